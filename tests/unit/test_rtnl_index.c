/* nl/rtnl_index against the plain search, and what thousands of routes cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>
#include <linux/rtnetlink.h>

#include "agent/nl/rtnl_index.h"
#include "agent/res/routing_plan.h"

#define ROUTES 2000
#define TURNS 7
#define FEW 125
#define MANY (16 * FEW)
/* Squared it were 256, n log n it is 22; between, for a busy machine. */
#define GROWTH_MAX 70

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

/* ---- what it is for ---- */

static const char class[] =
	"garboard-armed-1\nlocal 10.0.0.0/8\nclass vpn\n"
	"tunnel wg0 0 51820 18200\ngateway\nmark 0x2000 0x3f00\nend\n";

static struct routing_seen *see(size_t prefixes)
{
	static const struct ip_addr address = { AF_INET, { 10, 64, 0, 2 } };
	struct routing_seen *s = calloc(1, sizeof(*s));
	size_t i;

	assert_non_null(s);
	assert_int_equal(armed_parse(class, &s->armed, NULL), 0);
	assert_int_equal(routing_record_add(&s->record, "wg0", &address), 0);
	for (i = 0; i < prefixes; i++) {
		struct ip_prefix p = {
			{ AF_INET, { 100, (uint8_t)(i >> 8), (uint8_t)i } },
			25
		};

		assert_int_equal(prefix_list_add(&s->armed.d->egress.local,
						 &p), 0);
	}
	return s;
}

/* All that is wanted is there already. */
static void put_there(struct routing_seen *s)
{
	struct routing_record record;
	struct routing_want w;

	assert_int_equal(routing_next_record(s, &s->armed.d->egress,
					     &record), 0);
	assert_int_equal(routing_want(&s->armed.d->egress, s, &record, &w),
			 0);
	s->ours = w.routes;
	w.routes = (struct rtnl_routes){ 0 };
	routing_want_done(&w);
}

/* The least of several turns, in this thread's processor time. */
static double cost(size_t prefixes)
{
	struct routing_seen *s = see(prefixes);
	struct desired *none = desired_new();
	double least = 0;
	int i;

	put_there(s);
	assert_true(s->ours.n > prefixes);
	for (i = 0; i < TURNS; i++) {
		struct timespec a, b;
		struct routing_steps steps;
		double t;

		(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
		assert_int_equal(routing_steps(none, s, &steps), 0);
		(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
		assert_true(steps.n > prefixes);
		routing_steps_done(&steps);
		t = (double)(b.tv_sec - a.tv_sec) * 1e6 +
		    (double)(b.tv_nsec - a.tv_nsec) / 1e3;
		if (i == 0 || t < least)
			least = t;
	}
	free(s->ours.v);
	armed_done(&s->armed);
	(void)desired_free(none);
	free(s);
	return least;
}

static void thousands_of_prefixes_do_not_square(void **state)
{
	double few = cost(FEW), many = cost(MANY);

	(void)state;
	print_message("# steps of %d routes: %.0f us, of %d: %.0f us\n", FEW,
		      few, MANY, many);
	assert_true(many < GROWTH_MAX * few);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_a_search_finds),
		cmocka_unit_test(thousands_of_prefixes_do_not_square),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
