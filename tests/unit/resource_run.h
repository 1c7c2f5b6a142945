/*
 * resource_run.h - one resource driven as the engine does it: look (observe
 * and plan), apply, look again. Needs scratch.h before it.
 */
#pragma once

#include "agent/res/resource.h"

struct run {
	const struct resource *res;
	struct resource_host host;
	struct desired *want;
	void *st, *seen;
	struct item_list items;
	struct change_list changes;
};

static inline void run_open(struct run *run, const struct resource *res)
{
	*run = (struct run){ .res = res, .want = desired_new() };
	run->host.root = scratch;
	run->host.state_dir = scratch_state;
	assert_non_null(run->want);
	assert_int_equal(res->open(&run->host, &run->st, NULL), 0);
}

static inline void look(struct run *run)
{
	item_list_done(&run->items);
	change_list_done(&run->changes);
	run->res->seen_free(run->seen);
	run->seen = NULL;
	assert_int_equal(run->res->observe(run->st, run->want, &run->seen,
					   NULL), 0);
	assert_int_equal(run->res->plan(run->want, run->seen, &run->items,
					&run->changes, NULL), 0);
}

static inline int apply(struct run *run)
{
	return run->res->apply(run->st, run->want, run->seen, &run->changes,
			       &run->items, NULL);
}

static inline void run_close(struct run *run)
{
	item_list_done(&run->items);
	change_list_done(&run->changes);
	run->res->seen_free(run->seen);
	assert_null(run->res->free(run->st));
	run->want = desired_free(run->want);
}

static inline enum item_state state_of(struct run *run, const char *key)
{
	struct item *it = item_list_find(&run->items, key);

	assert_non_null(it);
	return it->state;
}

static inline const char *reason_of(struct run *run, const char *key)
{
	struct item *it = item_list_find(&run->items, key);

	assert_non_null(it);
	return it->reason;
}
