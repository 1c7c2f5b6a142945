#include "agent/nl/rtnl_index.h"

#include <errno.h>
#include <stdlib.h>

static int order(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

static int by_place(const struct rtnl_route *a, const struct rtnl_route *b)
{
	int r = order(a->table, b->table);

	if (r == 0)
		r = order(a->metric, b->metric);
	if (r == 0)
		r = order(a->dst.addr.family, b->dst.addr.family);
	if (r == 0)
		r = order(a->dst.len, b->dst.len);
	if (r == 0 && a->dst.len)
		r = ip_addr_cmp(&a->dst.addr, &b->dst.addr);
	return r;
}

static int by_place_and_turn(const void *a, const void *b)
{
	const struct rtnl_route *x = *(const struct rtnl_route *const *)a;
	const struct rtnl_route *y = *(const struct rtnl_route *const *)b;
	int r = by_place(x, y);

	return r ? r : (x > y) - (x < y);
}

int rtnl_index_make(const struct rtnl_routes *list,
		    struct rtnl_index *ret_index)
{
	struct rtnl_index x = { .n = list->n };
	size_t i;

	x.v = calloc(list->n + 1, sizeof(*x.v));
	if (!x.v)
		return -ENOMEM;
	for (i = 0; i < list->n; i++)
		x.v[i] = &list->v[i];
	qsort(x.v, x.n, sizeof(*x.v), by_place_and_turn);
	*ret_index = x;
	return 0;
}

void rtnl_index_done(struct rtnl_index *x)
{
	free(x->v);
	*x = (struct rtnl_index){ 0 };
}

/* Where the routes of this place begin, or would. */
static size_t begin(const struct rtnl_index *x, const struct rtnl_route *route)
{
	size_t low = 0, high = x->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_place(x->v[middle], route) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct rtnl_route *rtnl_index_find(const struct rtnl_index *x,
					 const struct rtnl_route *route)
{
	size_t i;

	for (i = begin(x, route); i < x->n && by_place(x->v[i], route) == 0;
	     i++)
		if (rtnl_route_equal(x->v[i], route))
			return x->v[i];
	return NULL;
}

const struct rtnl_route *rtnl_index_place(const struct rtnl_index *x,
					  const struct rtnl_route *route)
{
	size_t i = begin(x, route);

	return i < x->n && by_place(x->v[i], route) == 0 ? x->v[i] : NULL;
}
