/*
 * nl/rtnl_index against the plain search. What thousands of routes cost is
 * measured by tests/bench/policy.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <linux/rtnetlink.h>

#include "agent/nl/rtnl_index.h"

#define ROUTES 2000

static unsigned int seed = 1;

static uint32_t any_of(uint32_t n)
{
	return (uint32_t)rand_r(&seed) % n;
}

/* From few values, so that many share a place and some are equal. */
static struct rtnl_route some_route(void)
{
	struct rtnl_route r = {
		.dst = { { any_of(2) ? AF_INET : AF_INET6,
			   { (uint8_t)any_of(8) } },
			 (uint8_t)(8 * any_of(3)) },
		.table = 100 + any_of(2),
		.metric = any_of(2),
		.type = (uint8_t)(RTN_UNICAST + any_of(2)),
		.protocol = RTNL_PROTO_GARBOARD,
		.oif = (int)any_of(2),
		.extra = any_of(16) == 0,
	};

	return r;
}

static bool same_place(const struct rtnl_route *a, const struct rtnl_route *b)
{
	return a->table == b->table && a->metric == b->metric &&
	       a->dst.addr.family == b->dst.addr.family &&
	       a->dst.len == b->dst.len &&
	       (a->dst.len == 0 ||
		ip_addr_cmp(&a->dst.addr, &b->dst.addr) == 0);
}

static const struct rtnl_route *search(const struct rtnl_routes *l,
				       const struct rtnl_route *r,
				       bool (*is)(const struct rtnl_route *a,
						  const struct rtnl_route *b))
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (is(&l->v[i], r))
			return &l->v[i];
	return NULL;
}

static void finds_what_a_search_finds(void **state)
{
	struct rtnl_routes l = { calloc(ROUTES, sizeof(*l.v)), 0 };
	struct rtnl_index x;
	size_t i, found = 0;

	(void)state;
	assert_int_equal(rtnl_index_make(&l, &x), 0);
	l.v[0] = some_route();
	assert_null(rtnl_index_find(&x, &l.v[0]));
	assert_null(rtnl_index_place(&x, &l.v[0]));
	rtnl_index_done(&x);
	for (; l.n < ROUTES; l.n++)
		l.v[l.n] = some_route();
	l.n = ROUTES / 100;	/* a part, so that not all are there */
	for (i = 0; i < 2; i++, l.n = ROUTES) {
		size_t k;

		assert_int_equal(rtnl_index_make(&l, &x), 0);
		for (k = 0; k < ROUTES; k++) {
			const struct rtnl_route *r = &l.v[k];

			assert_ptr_equal(rtnl_index_find(&x, r),
					 search(&l, r, rtnl_route_equal));
			assert_ptr_equal(rtnl_index_place(&x, r),
					 search(&l, r, same_place));
			found += rtnl_index_find(&x, r) != NULL;
		}
		rtnl_index_done(&x);
	}
	assert_in_range(found, ROUTES / 2, 2 * ROUTES - 1);
	free(l.v);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_a_search_finds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
