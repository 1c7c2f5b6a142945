/*
 * sequencer.h - runs the stages in their one order, each only when the one
 * before it holds, and stops at the failing one with its own cause (A64,
 * A65). It knows nothing of k3s, nodes or streams.
 *
 * Each stage: observe, plan; an empty plan holds and changes nothing.
 * Otherwise apply, then observe and plan again: only an empty plan counts.
 * With `check` nothing is applied; the stages after the first one that
 * would change are not looked at; that, and what each leaves unproven, is
 * said (A14).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/change.h"
#include "common/fault.h"
#include "coordinator/steps/step.h"

struct sequence_options {
	bool check;
	const char *only;	/* stage name; NULL: all */
	/*
	 * Sees the changes of each stage that has any, before they are
	 * carried out, and ends the run by a negative errno. May be NULL.
	 */
	int (*approve)(void *userdata, const char *stage,
		       const struct change_list *changes, struct fault *f);
	void *userdata;
};

enum sequence_outcome {
	SEQUENCE_HOLDS,		/* nothing was to be done */
	SEQUENCE_CHANGED,	/* done, and holds now */
	SEQUENCE_WOULD_CHANGE,	/* check */
	SEQUENCE_FAILED,
};

struct sequence_result {
	enum sequence_outcome outcome;
	size_t stages;		/* looked at */
	size_t changes;		/* carried out, or that would be */
	const char *failed;	/* stage, NULL unless failed */
	const char *unseen;	/* first stage not looked at; NULL: none */
};

/*
 * `registry` has `n` entries in order of ids. Returns 0 or the negative
 * errno of the failing stage, with `f`; *ret_result is always written.
 * -ENOENT: `only` names no stage.
 */
int sequence_run(const struct step *const *registry, size_t n,
		 const struct step_env *env,
		 const struct sequence_options *options,
		 struct sequence_result *ret_result, struct fault *f);
