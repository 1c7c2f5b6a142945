/*
 * trial.h - a desired state that touches egress or forwarding is kept only
 * if the coordinator is heard from under it (KS-05).
 *
 * From the moment such a state is accepted until a signed order arrives
 * that was read after the new policy had been applied, it is on trial. If
 * none arrives in time, the previous state returns: the desired state from
 * disk, and the record of armed classes as it was before, but for what was
 * disarmed on purpose meanwhile. A class that was armed before is closed
 * before, during and after; one that only the trial armed is let go. Where
 * nothing was desired before, sysctls that the trial set are put back.
 *
 * What there was before is in STATE/trial, so a trial survives a restart,
 * with all of its time anew. A trial that follows on another unconfirmed
 * one returns to before both.
 *
 * An order that was on its way when the policy was applied counts, if it is
 * read afterwards: it shows the way in, and the session's own answers and
 * heartbeats must then keep the way out.
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "agent/engine.h"
#include "agent/state.h"

#define TRIAL_TIME (60 * USEC_PER_SEC)

struct trial;

struct trial_env {		/* all borrowed */
	sd_event *event;
	struct node_state *state;
	struct engine *engine;
	usec time;		/* to be heard from */
};

/* Goes on with a trial that is on disk. */
int trial_new(const struct trial_env *env, struct trial **ret_trial,
	      struct fault *f);
struct trial *trial_free(struct trial *t);	/* returns NULL */

/*
 * Before `next` is stored or applied: what is now goes to disk, if `next`
 * touches either. 1: it is on trial; 0: it need not be. `t` may be NULL.
 */
int trial_begin(struct trial *t, const struct desired *next, struct fault *f);
/* `next` could not be stored. */
void trial_cancel(struct trial *t);

/* A signed order of this session was read. */
void trial_heard(struct trial *t);
/* The engine has looked, or root has changed something. */
void trial_look(struct trial *t);

struct trial_status {
	bool running, applied;
	bool returned;		/* the last one was not confirmed */
	uint64_t generation;	/* on trial, or last so */
	usec left;
};

void trial_status(const struct trial *t, usec now,
		  struct trial_status *ret_status);

/* Armed record of before the trial on disk, as text; -ENOENT: none. */
int trial_before(const char *state_dir, char **ret_text);

/* Nothing but what keeps armed classes closed; NULL when out of memory. */
struct desired *trial_nothing_desired(void);
