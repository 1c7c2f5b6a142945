/*
 * converge.h - one look at this node, and one go at making it right.
 *
 * First everything is looked at without D-Bus, without a loop and without
 * watches: on a node with nothing to do that is all. Only what is left goes
 * through an engine with a loop and a bus, until nothing is under way or
 * the deadline passes. With `check` nothing is ever changed (A12-A14).
 */
#pragma once

#include "agent/engine.h"

struct converge_params {
	bool check;
	uint32_t only;			/* a bit per resource */
	usec deadline;
	const char *root, *state_dir;
	const struct resource *const *registry;
};

enum converge_line {
	CONVERGE_OK,
	CONVERGE_CHANGED,	/* with check: would be */
	CONVERGE_LEFT,		/* not as desired, and why */
	CONVERGE_LINE_MAX,
};

struct converge_entry {
	enum converge_line kind;
	enum resource_id resource;
	enum item_state state;
	enum change_op op;	/* of a change */
	char *key, *have, *want, *reason;
};

struct converge_result {
	struct converge_entry *v;
	size_t n;
	size_t count[CONVERGE_LINE_MAX];
	bool unobservable;	/* something could not be told */
};

/*
 * The look alone. 1: that is not all, there is something to do or D-Bus
 * could tell more, and converge() has to; nothing was changed and there is
 * no result. Takes `desired`.
 */
int converge_look(const struct converge_params *p, struct desired *desired,
		  struct converge_result *ret_result, struct fault *f);

/* Takes `desired`. The result is released by converge_result_done(). */
int converge(const struct converge_params *p, struct desired *desired,
	     struct converge_result *ret_result, struct fault *f);
void converge_result_done(struct converge_result *r);
