/*
 * verdict.h - is this node healthy? One answer for the monitoring plugin,
 * the status and the metrics. Pure.
 *
 * Critical: protection is not as desired (the kill-switch, in any way), or
 * a proof is too old to count. Warning: anything else that is not as
 * desired, contended, or cannot be told; a broken state file; no session;
 * a desired state that was taken back (trial.h). A path that no layer of the
 * kill-switch covers (uncovered.h) is one or the other, as it says.
 * A resource switched below enforce is named, never silently fine.
 */
#pragma once

#include <stdbool.h>

#include "agent/engine.h"
#include "agent/trial.h"
#include "agent/uncovered.h"

#define VERDICT_TEXT_MAX 512
#define VERDICT_PROOF_MAX (180 * USEC_PER_SEC)	/* three periods */

enum verdict_code {		/* of the Monitoring Plugins */
	VERDICT_OK = 0,
	VERDICT_WARNING = 1,
	VERDICT_CRITICAL = 2,
	VERDICT_UNKNOWN = 3,
};

struct verdict_input {
	const struct engine_report *engine;
	bool enrolled;
	bool session;		/* the coordinator is connected */
	const char *state_fault;	/* of the state files; "" */
	const struct trial_status *trial;	/* may be NULL */
	const struct uncovered_paths *uncovered;	/* may be NULL */
};

struct verdict {
	enum verdict_code code;
	char text[VERDICT_TEXT_MAX];		/* without the code's name */
	char perfdata[VERDICT_TEXT_MAX];
};

const char *verdict_name(enum verdict_code code);	/* "OK", ... */
void verdict_make(const struct verdict_input *in, struct verdict *ret_verdict);
