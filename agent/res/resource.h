/*
 * resource.h - what a resource of the node is: observe, plan, apply,
 * watch, free (DESIGN section 4).
 *
 * A resource owns one part of the node. It keeps its sockets and caches in
 * a state of its own, made by open() and released by free(). It never logs
 * above debug, never decides about modes, rates or retries (the engine
 * does), and never touches what it did not make (H32). Resources do not
 * include each other; registry.c is the one list of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "common/change.h"
#include "common/fault.h"
#include "proto/desired.h"

struct bus;		/* agent/bus/bus.h */

enum item_state {	/* from best to worst, for "worst of" */
	ITEM_IN_SYNC,
	ITEM_PENDING,		/* not yet possible; will be tried again */
	ITEM_ABSENT,
	ITEM_DRIFTED,
	ITEM_BLOCKED,		/* refused, with the reason and remedy */
	ITEM_UNOBSERVABLE,	/* could not be read; never "repaired" */
	ITEM_STATE_MAX,
};

#define ITEM_LIST_MAX 8192

struct item {
	char *key;		/* unique in the resource */
	enum item_state state;
	char *have, *want;	/* "" where there is none; of key's piece */
	char *reason;		/* why, and the remedy; "" when in sync */
};

struct item_list {
	struct item *v;
	size_t n;
};

#define ITEM_LIST_INIT ((struct item_list){ NULL, 0 })

const char *item_state_name(enum item_state state);
/* Appends copies; NULL text is "". -E2BIG, -ENOMEM. */
int item_list_add(struct item_list *list, const char *key,
		  enum item_state state, const char *have, const char *want,
		  const char *reason);
struct item *item_list_find(struct item_list *list, const char *key);
/*
 * Gives the item another state and reason, for apply; adds it when it is
 * not there. Without memory the old reason stays.
 */
void item_list_mark(struct item_list *list, const char *key,
		    enum item_state state, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

struct apply {			/* what apply() was called with */
	void *state;
	const struct desired *want;
	const void *seen;
	struct item_list *items;
};

/*
 * For resources whose changes stand alone: `one` for each of them; what
 * fails is blocked with its cause, and the others go on. Returns the first
 * error, with `f`; else 1 when some `one` returned 1 (it is under way, and
 * an event will tell), or 0.
 */
int apply_each(const struct apply *a, const struct change_list *changes,
	       int (*one)(const struct apply *a, const struct change *c,
			  struct fault *f),
	       struct fault *f);
enum item_state item_list_worst(const struct item_list *list);
void item_list_done(struct item_list *list);

/*
 * Where a resource finds the node. Everything is under `root` in tests of
 * files; sockets are always those of the process's own namespaces.
 */
struct resource_host {
	sd_event *event;	/* NULL in a one-shot without a loop */
	struct bus *bus;	/* NULL when there is no D-Bus (yet) */
	const char *root;	/* "" in production */
	const char *state_dir;	/* "/var/lib/garboard": what is ours */
	bool oneshot;		/* ends at once: nothing may need it to live */
	bool no_table_owner;	/* as if the kernel had none (before 6.9) */
};

/* "Look again" (carries no data); may be called from any event source. */
typedef void (*resource_look_again)(void *userdata);

struct resource {
	enum resource_id id;

	/* Allocates the state; opens sockets lazily where it can. */
	int (*open)(const struct resource_host *host, void **ret_state,
		    struct fault *f);

	/*
	 * Reads the truth, no side effects. *ret_seen belongs to the caller
	 * and is released by seen_free(). What cannot be read is recorded in
	 * it as unobservable; failing altogether is for lack of memory.
	 */
	int (*observe)(void *state, const struct desired *want,
		       void **ret_seen, struct fault *f);

	/*
	 * Pure. Fills `items` (one per thing wanted or ours) and `changes`
	 * (what apply would do). Both are empty lists made by the caller.
	 */
	int (*plan)(const struct desired *want, const void *seen,
		    struct item_list *items, struct change_list *changes,
		    struct fault *f);

	/*
	 * Carries out exactly `changes`; tries every one, keeps the first
	 * error in `f`, and marks each failed key in `items` (BLOCKED or
	 * PENDING, with the reason). 0: done. 1: something was started and
	 * is waited for; the resource calls look_again when it ends or when
	 * its own deadline passes. Never blocks but for one netlink request.
	 */
	int (*apply)(void *state, const struct desired *want,
		     const void *seen, const struct change_list *changes,
		     struct item_list *items, struct fault *f);

	/*
	 * Subscribes to every event that can mean drift. Called once, before
	 * the first observe. `want` may be used to choose what to watch and
	 * is valid during the call only; watch is called again when the
	 * desired state changes and must then only adjust.
	 */
	int (*watch)(void *state, const struct desired *want,
		     resource_look_again look_again, void *userdata,
		     struct fault *f);

	void (*seen_free)(void *seen);	/* NULL is accepted */
	void *(*free)(void *state);	/* returns NULL; cancels sources */

	/*
	 * Optional, NULL where it means nothing: what the last foreign
	 * change was, by whom the kernel says ("nft[1234]"), for status.
	 */
	const char *(*writer)(void *state);

	/*
	 * Optional: observe() in a hurry. Reads again only what the events
	 * since the last look were about, and takes the rest from that look.
	 * 1: *ret_seen was made; 0: there is nothing to go by, observe. What
	 * is seen so may start a repair but never proves anything: the
	 * engine observes after it, and also when no difference is seen.
	 */
	int (*glance)(void *state, const struct desired *want,
		      void **ret_seen);
};

/* registry.c: RESOURCE_MAX entries in the order of enum resource_id. */
extern const struct resource *const resource_registry[RESOURCE_MAX];
