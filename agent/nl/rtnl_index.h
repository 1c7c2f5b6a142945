/*
 * rtnl_index.h - finds a route in a list of thousands without reading all
 * of it. Pure; borrows the list, which must not change meanwhile.
 */
#pragma once

#include "agent/nl/rtnl.h"

struct rtnl_index {
	const struct rtnl_route **v;	/* by place, then as in the list */
	size_t n;
};

/* -ENOMEM. */
int rtnl_index_make(const struct rtnl_routes *list,
		    struct rtnl_index *ret_index);
void rtnl_index_done(struct rtnl_index *x);

/* The first of the list that is equal; NULL: none. */
const struct rtnl_route *rtnl_index_find(const struct rtnl_index *x,
					 const struct rtnl_route *route);
/*
 * The first in the same place, where the kernel takes one route only: same
 * prefix, table and metric.
 */
const struct rtnl_route *rtnl_index_place(const struct rtnl_index *x,
					  const struct rtnl_route *route);
