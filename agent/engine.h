/*
 * engine.h - keeps the node's resources as desired (DESIGN section 4).
 *
 * Owns the schedule: which resource looks when, whether it may repair, how
 * often, and what is told about it. Resources run in registry order, fail
 * closed first. Each run is: watch, observe, plan, and where the mode and
 * the rate allow it apply and observe again; only an empty plan counts as
 * converged (H35). A mode below `enforce` changes nothing, so it never
 * removes protection either. Every fact is logged once.
 *
 * The engine itself knows no clock and no loop: engine_pass() is handed
 * `now` (CLOCK_BOOTTIME). engine_attach() drives it from an sd-event loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/rate.h"
#include "agent/res/resource.h"

#define ENGINE_NEVER UINT64_MAX

struct engine_params {
	usec reobserve;		/* events may be lost: the periodic truth */
	usec flight;		/* longest wait for what apply started */
	usec retry_base;	/* after an apply that did not help */
	usec retry_cap;
	struct rate_limits repair;
	bool check;		/* a dry run: nothing is ever applied */
	bool quiet;		/* the caller prints; do not log changes */
	bool oneshot;		/* watch only what is applied and waited for */
};

/* 60 s, 60 s, 100 ms to 30 s, 20 repairs then 100 ms to 30 s, quiet 60 s. */
struct engine_params engine_params_default(void);

/* What is known of one resource; borrowed until the engine runs again. */
struct engine_resource {
	bool present;		/* the registry has it */
	enum mode mode;
	bool looked;		/* observed for this desired state */
	bool settled;		/* nothing in flight, no repair left to do */
	bool contended;
	usec proof_age;		/* since the last complete observe */
	uint64_t repairs;	/* of drift, since start */
	const struct item_list *items;
	const struct change_list *plan;	/* still to be done */
	const struct change_list *done;	/* what was last applied */
	const char *writer;		/* of the last foreign change, or "" */
	const struct fault *fault;	/* err 0: none */
};

struct engine_report {
	bool desired;		/* there is a desired state */
	uint64_t generation;
	bool settled;		/* every resource is */
	struct engine_resource v[RESOURCE_MAX];
};

struct engine;

/*
 * `host` and `registry` (RESOURCE_MAX entries, NULL ones are skipped) are
 * borrowed for the engine's life. -ENOMEM.
 */
int engine_new(const struct resource_host *host,
	       const struct resource *const *registry,
	       const struct engine_params *params, struct engine **ret_engine);
/* Frees resources in reverse order. What they set up stays (H41). */
struct engine *engine_free(struct engine *e);

/* Takes `desired`; every resource becomes due. Never fails. */
void engine_set_desired(struct engine *e, struct desired *desired);
const struct desired *engine_desired(const struct engine *e);
/* Hands it back; the engine has none then, and rests. NULL: it had none. */
struct desired *engine_take_desired(struct engine *e);

/* Only these resources run; a bit per enum resource_id. Default: all. */
void engine_only(struct engine *e, uint32_t mask);

/* Every resource looks again, for example because D-Bus has come up. */
void engine_look_again(struct engine *e);

/* Runs what is due; returns when the next run is (ENGINE_NEVER: never). */
usec engine_pass(struct engine *e, usec now);

/* True when no run is due at once and nothing is in flight. */
bool engine_settled(const struct engine *e);

void engine_report(const struct engine *e, usec now,
		   struct engine_report *ret_report);

/* Called after each pass in which something reportable changed. */
typedef void (*engine_changed)(void *userdata);
void engine_on_change(struct engine *e, engine_changed changed,
		      void *userdata);

/* What one look of one resource came to; borrowed during the call. */
struct engine_look {
	enum resource_id id;
	const struct item_list *items;	/* NULL: off, nobody looks */
	const struct change_list *plan;
	const char *writer;	/* of the last foreign change, or "" */
	usec began;		/* the `now` of the pass */
	bool prompted;		/* an event of the resource asked for it */
};

/* After every look, also the one behind an apply. It must not block. */
typedef void (*engine_looked)(void *userdata, const struct engine_look *look);
void engine_on_look(struct engine *e, engine_looked looked, void *userdata);

/* From now on the loop of host->event runs the passes. */
int engine_attach(struct engine *e);
