/*
 * Looks in a hurry (resource.h, glance): they see what a whole look sees, and
 * are refused wherever more than the one thing may have moved.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/res/killswitch.h"
#include "agent/res/routing.h"
#include "world.h"

#define SRC "10.45.0.5/32"
#define FLOOD 30000	/* events; the socket keeps 8 MB of them */

struct fixture {
	struct run run;
	struct desired *want;
};

static void settle(struct fixture *x)
{
	int i;

	run_converge(&x->run, x->want);
	while (sd_event_run(x->run.event, 0) > 0)
		;
	/* Once more, for what was heard of meanwhile; old enough now. */
	for (i = 0; i < 3; i++) {
		(void)sd_event_run(x->run.event, 30000);
		assert_int_equal(run_plan(&x->run, x->want, NULL, NULL), 0);
	}
}

static struct fixture *make(const struct resource *res)
{
	struct fixture *x = calloc(1, sizeof(*x));
	struct ip_prefix v4 = sample_prefix(SRC);

	world_make();
	world_tunnel();
	sh("ip addr add 10.64.0.2/32 dev wg0;"
	   "ip -6 addr add fd64::2/128 dev wg0 nodad");
	x->want = sample_desired(true);
	assert_int_equal(prefix_list_add(&x->want->egress.classes[0].sources,
					 &v4), 0);
	run_open(&x->run, res, true);
	x->run.host.no_table_owner = true;	/* so that others can */
	run_reopen(&x->run);
	run_watch(&x->run, x->want);
	settle(x);
	return x;
}

static int setup_tables(void **state)
{
	*state = make(&resource_killswitch);
	return 0;
}

static int setup_routing(void **state)
{
	*state = make(&resource_routing);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *x = *state;

	run_close(&x->run);
	x->want = desired_free(x->want);
	free(x);
	world_done();
	return 0;
}

static bool glance(struct fixture *x, struct change_list *ret_changes)
{
	struct item_list items = ITEM_LIST_INIT;
	void *seen = NULL;

	*ret_changes = CHANGE_LIST_INIT;
	if (x->run.res->glance(x->run.state, x->want, &seen) <= 0)
		return false;
	assert_int_equal(x->run.res->plan(x->want, seen, &items, ret_changes,
					  NULL), 0);
	x->run.res->seen_free(seen);
	item_list_done(&items);
	return true;
}

static void assert_same(const struct change_list *a,
			const struct change_list *b, const char *how)
{
	size_t i;

	if (a->n != b->n)
		fail_msg("%s: %zu changes at a glance, %zu in all", how, a->n,
			 b->n);
	for (i = 0; i < a->n; i++) {
		assert_int_equal(a->v[i].op, b->v[i].op);
		assert_string_equal(a->v[i].key, b->v[i].key);
		assert_string_equal(a->v[i].have, b->v[i].have);
		assert_string_equal(a->v[i].want, b->v[i].want);
	}
}

/* All that is queued, from every source, as the engine does it. */
static void hear(struct fixture *x)
{
	assert_true(run_wait(&x->run));
	while (sd_event_run(x->run.event, 0) > 0)
		;
}

static void seen_alike(struct fixture *x, const char *how)
{
	struct change_list quick, whole;

	settle(x);
	sh("%s", how);
	hear(x);
	if (!glance(x, &quick))
		fail_msg("no glance after: %s", how);
	(void)run_plan(&x->run, x->want, NULL, &whole);
	assert_true(whole.n > 0);
	assert_same(&quick, &whole, how);
	change_list_done(&quick);
	change_list_done(&whole);
}

static void refused(struct fixture *x, const char *how)
{
	struct change_list quick;

	settle(x);
	sh("%s", how);
	hear(x);
	if (glance(x, &quick))
		fail_msg("a glance after: %s", how);
	run_converge(&x->run, x->want);
}

static void tables_are_seen_alike(void **state)
{
	static const char *const how[] = {
		"nft delete table inet garboard",
		"nft delete table netdev garboard_egress_up0",
		"nft flush chain inet garboard output",
		"nft delete chain netdev garboard_egress_up0 egress",
		"nft insert rule inet garboard class_vpn accept",
		"nft add chain inet garboard mine",
		"nft 'add chain inet garboard output { policy drop; }'",
		"nft 'add set inet garboard s { type mark; }'",
		"nft 'delete table inet garboard; add table inet garboard'",
		"nft delete table inet garboard; nft add table inet garboard",
	};
	size_t i;

	for (i = 0; i < sizeof(how) / sizeof(how[0]); i++)
		seen_alike(*state, how[i]);
}

static void rules_are_seen_alike(void **state)
{
	static const char *const how[] = {
		"ip rule del from " SRC,
		"ip -6 rule flush",
		"ip rule flush",
		"ip rule add from 10.45.0.6 pref 18201 lookup 51820 "
		"protocol 103; ip rule del from " SRC,
	};
	struct fixture *x = *state;
	size_t i;

	for (i = 0; i < sizeof(how) / sizeof(how[0]); i++)
		seen_alike(x, how[i]);
}

static void only_tables_that_moved_alone(void **state)
{
	static const char *const how[] = {
		"nft flush ruleset",
		"ip link add v0 type veth peer name v1; ip link set up0 down;"
		"ip link set up0 up; nft delete table inet garboard",
		"nft delete table inet garboard; ip link set up0 down;"
		"ip link set up0 up",
	};
	struct fixture *x = *state;
	struct change_list quick;
	size_t i;

	assert_false(glance(x, &quick));
	for (i = 0; i < sizeof(how) / sizeof(how[0]); i++)
		refused(x, how[i]);
	/* The record may say something else than when it was read. */
	settle(x);
	sh("touch -d yesterday %s/ours/killswitch;"
	   "nft delete table inet garboard", x->run.dir);
	hear(x);
	assert_false(glance(x, &quick));
}

static void only_rules_that_moved_alone(void **state)
{
	static const char *const how[] = {
		"ip rule del from " SRC "; ip route flush table 51820",
		"ip addr del 10.64.0.2/32 dev wg0; ip rule del from " SRC
		"; ip addr add 10.64.0.2/32 dev wg0",
		"ip rule del from " SRC "; ip link set wg0 down;"
		"ip link set wg0 up",
	};
	struct fixture *x = *state;
	struct change_list quick;
	size_t i;

	assert_false(glance(x, &quick));
	for (i = 0; i < sizeof(how) / sizeof(how[0]); i++)
		refused(x, how[i]);
	settle(x);
	sh("touch -d yesterday %s/ours/routing; ip rule del from " SRC,
	   x->run.dir);
	hear(x);
	assert_false(glance(x, &quick));
}

/* ENOBUFS: what was lost may have been anything, so all is looked at. */
static void lost_events_are_no_hint(void **state)
{
	struct fixture *x = *state;
	struct change_list quick;

	settle(x);
	sh("for i in $(seq 1 %d); do echo route add 172.$((16 + i / 65536))"
	   ".$((i / 256 %% 256)).$((i %% 256)) dev dum0 table 4000; done |"
	   "ip -batch -; ip rule del from " SRC, FLOOD);
	hear(x);
	assert_false(glance(x, &quick));
	assert_true(run_plan(&x->run, x->want, NULL, NULL) > 0);
	run_converge(&x->run, x->want);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tables_are_seen_alike,
						setup_tables, teardown),
		cmocka_unit_test_setup_teardown(only_tables_that_moved_alone,
						setup_tables, teardown),
		cmocka_unit_test_setup_teardown(rules_are_seen_alike,
						setup_routing, teardown),
		cmocka_unit_test_setup_teardown(only_rules_that_moved_alone,
						setup_routing, teardown),
		cmocka_unit_test_setup_teardown(lost_events_are_no_hint,
						setup_routing, teardown),
	};

	world_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
