/*
 * step.h - what a step of the bring-up is (DESIGN sections 4 and 9).
 *
 * observe asks whether the outcome already holds, plan turns that into
 * changes (pure), apply carries out exactly those and stops at the first
 * failure. The sequencer observes again after apply: only an empty plan
 * counts. Steps never log, never decide about order, and never include
 * each other; registry.c is the one list.
 *
 * Steps are synchronous: each wait is a call with a deadline that Ctrl-C
 * ends (-EINTR). Nodes keep converging meanwhile, they need none of this.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/change.h"
#include "common/clock.h"
#include "common/fault.h"

struct cluster;
struct control;
struct gate_result;
struct progress;
struct spec;

enum step_id {		/* the order of A64; no other is accepted */
	STEP_PREFLIGHT,
	STEP_BASELINE,
	STEP_FOUNDER,
	STEP_JOINERS,
	STEP_KUBE_VIP,
	STEP_CILIUM,
	STEP_VERIFY,
	STEP_MAX,
};

/* How long things may take; all shrink together in tests. */
struct step_times {
	usec poll;		/* between two looks at something slow */
	usec order;		/* one order, with its result */
	usec install;		/* hashing and placing a binary */
	usec settle;		/* baseline of one node */
	usec start;		/* k3s start to READY */
	usec join;		/* start to voting member */
	usec vip;		/* A53: 300 s */
	usec vip_proof;		/* more than two lease times */
	usec rollout;		/* Cilium and its nodes */
};

struct step_env {
	const struct spec *spec;
	struct control *control;
	struct cluster *cluster;	/* what is read of the living cluster */
	struct progress *progress;
	const struct step_times *times;
	const struct gate_result *gate;	/* what may be founded, and where */
	const char *limit;		/* node name, NULL: all */
};

struct step {
	enum step_id id;
	const char *name;	/* as printed and as --only takes it */

	/*
	 * No side effects. *ret_seen is released by seen_free. A step whose
	 * outcome cannot even be asked yet (no API) records "not there",
	 * unless `f` says why it cannot be told.
	 */
	int (*observe)(const struct step_env *env, void **ret_seen,
		       struct fault *f);
	int (*plan)(const struct spec *spec, const void *seen,
		    struct change_list *changes, struct fault *f);
	int (*apply)(const struct step_env *env, const void *seen,
		     const struct change_list *changes, struct fault *f);
	void (*seen_free)(void *seen);

	/* What a dry run could not verify (A14); NULL: it saw everything. */
	const char *unverified;
};

extern const struct step *const step_registry[STEP_MAX];

/* `scale` divides every time: 1 in production, 10 in a fast test. */
void step_times_init(struct step_times *t, double scale);
