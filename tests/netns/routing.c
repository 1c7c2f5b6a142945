/* The routing against a real kernel: steering, falling closed, repair. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>

#include "agent/armed.h"
#include "agent/nl/rtnl.h"
#include "agent/res/routing.h"
#include "world.h"

#define OUT "198.51.100.1"
#define OUT6 "2001:db8:ffff::1"
#define SRC "10.44.0.5"
#define SRC6 "fd44::5"

struct fixture {
	struct run run;
	struct desired *want;
};

static struct fixture *make(bool resident)
{
	struct fixture *x = calloc(1, sizeof(*x));
	struct ip_prefix v4 = sample_prefix(SRC), v6 = sample_prefix(SRC6);
	struct desired_class *c;

	world_make();
	x->want = sample_desired(true);
	c = &x->want->egress.classes[0];
	assert_int_equal(prefix_list_add(&c->sources, &v4), 0);
	assert_int_equal(prefix_list_add(&c->sources, &v6), 0);
	run_open(&x->run, &resource_routing, resident);
	if (resident)
		run_watch(&x->run, x->want);
	return x;
}

static int setup(void **state)
{
	*state = make(false);
	return 0;
}

static int setup_resident(void **state)
{
	*state = make(true);
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

static void tunnel_up(void)
{
	world_tunnel();
	sh("ip addr add 10.64.0.2/32 dev wg0;"
	   "ip -6 addr add fd64::2/128 dev wg0 nodad");
}

static void nothing_wanted_nothing_done(void **state)
{
	struct fixture *x = *state;
	struct desired *none = desired_new();
	char *a = sh_text("ip rule; ip -6 rule; ip route show table all"), *b;

	assert_int_equal(run_plan(&x->run, none, NULL, NULL), 0);
	run_converge(&x->run, none);
	b = sh_text("ip rule; ip -6 rule; ip route show table all");
	assert_string_equal(a, b);
	free(a);
	free(b);
	(void)desired_free(none);
}

static void converges_and_second_run_changes_nothing(void **state)
{
	static const char *const expected[] = {
		"18200:\tfrom 10.64.0.2 lookup 51820",
		"18200:\tfrom fd64::2 lookup 51820",
		"18201:\tfrom 10.44.0.5 lookup 51820",
		"18201:\tfrom fd44::5 lookup 51820",
		"18202:\tfrom all fwmark 0x2000/0x3f00 lookup 51820",
		"default dev wg0", "unreachable default",
		"throw 10.0.0.0/8", "throw 192.0.2.0/24", "10.64.0.1 dev wg0",
		"unreachable 10.64.0.1", "throw 2001:db8:1::/64",
	};
	struct fixture *x = *state;
	char *text;
	size_t i;

	tunnel_up();
	run_converge(&x->run, x->want);
	run_reopen(&x->run);
	assert_int_equal(run_plan(&x->run, x->want, NULL, NULL), 0);
	text = sh_text("ip rule; ip -6 rule; ip route show table 51820;"
		       "ip -6 route show table 51820");
	for (i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		if (!strstr(text, expected[i]))
			fail_msg("no \"%s\" in\n%s", expected[i], text);
	free(text);
	text = sh_text("ip route show table main; ip -6 route show");
	assert_null(strstr(text, "default dev wg0"));
	free(text);
}

/* Through the tunnel, but for what is local (IS-05). */
static void is05_local_goes_by_main(void **state)
{
	struct fixture *x = *state;

	tunnel_up();
	assert_true(leaves(PATH_OUTPUT, SRC, OUT, 1000));
	assert_true(leaves(PATH_OUTPUT, SRC6, OUT6, 1000));
	assert_true(leaves_marked(0x2001, OUT, 1000));
	run_converge(&x->run, x->want);
	assert_false(leaves(PATH_OUTPUT, SRC, OUT, 1000));
	assert_false(leaves(PATH_OUTPUT, SRC6, OUT6, 1000));
	assert_false(leaves_marked(0x2001, OUT, 1000));
	assert_true(leaves(PATH_OUTPUT, SRC, "192.0.2.53", 1000));
	assert_true(leaves(PATH_OUTPUT, "", OUT, 1000));
	assert_true(leaves(PATH_OUTPUT, "", OUT6, 1000));
	sh("ip route get 10.64.0.1 from 10.44.0.5 | grep -q 'dev wg0'");
}

static void a20_nothing_before_the_address_is_known(void **state)
{
	struct fixture *x = *state;
	char *text;

	assert_int_equal(run_plan(&x->run, x->want, NULL, NULL), 0);
	assert_int_equal(run_item(&x->run, x->want, "tunnel wg0"),
			 ITEM_PENDING);
	world_tunnel();
	assert_int_equal(run_plan(&x->run, x->want, NULL, NULL), 0);
	sh("ip addr add 10.64.0.2/32 dev wg0");
	run_converge(&x->run, x->want);
	sh("ip link del wg0");
	run_reopen(&x->run);
	run_converge(&x->run, x->want);
	text = sh_text("ip rule");
	assert_non_null(strstr(text, "from 10.64.0.2 lookup 51820"));
	free(text);
	sh("ip route show table 51820 | grep -q 'unreachable default'");
	/* Even when the rules were lost while the tunnel is away. */
	sh("ip rule flush; ip rule add pref 32766 lookup main");
	run_converge(&x->run, x->want);
	assert_false(leaves(PATH_OUTPUT, SRC, OUT, 1000));
}

/* Each way to lose the tunnel leaves its traffic unreachable. */
static void rt03_tunnel_goes_closed_stays(void **state)
{
	static const char *const how[] = {
		"ip link set wg0 down",
		"ip addr flush dev wg0",
		"ip link del wg0",
	};
	struct fixture *x = *state;
	size_t i;

	for (i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		tunnel_up();
		(void)sd_event_run(x->run.event, 0);
		run_converge(&x->run, x->want);
		while (sd_event_run(x->run.event, 0) > 0)
			;
		sh("%s", how[i]);
		/* Before anybody has repaired anything. */
		assert_false(leaves(PATH_OUTPUT, SRC, OUT, 1000));
		assert_false(leaves(PATH_OUTPUT, SRC6, OUT6, 1000));
		if (!run_wait(&x->run))
			fail_msg("no event after: %s", how[i]);
		run_converge(&x->run, x->want);
		assert_false(leaves(PATH_OUTPUT, SRC, OUT, 1000));
		assert_false(leaves(PATH_OUTPUT, SRC6, OUT6, 1000));
		assert_false(leaves_marked(0x2001, OUT, 1000));
		(void)sh_status("ip link del wg0 2>/dev/null");
	}
	tunnel_up();
	run_converge(&x->run, x->want);
	sh("ip route get %s from %s | grep -q 'dev wg0'", OUT, SRC);
}

#define FOREIGN "ip rule | grep -v ' 51820'; ip -6 rule | grep -v ' 51820';" \
	"ip route show table 100; ip route show table 51820 proto static;" \
	"ip -6 route show table 100; ip route; ip -6 route"

static void foreign_objects_stay_identical(void **state)
{
	struct fixture *x = *state;
	struct fault f = FAULT_INIT;
	char *a, *b;

	tunnel_up();
	sh("ip rule add from 198.18.0.1 lookup 100 pref 100;"
	   "ip rule add fwmark 0x200/0xf00 lookup 2004 pref 9 protocol 201;"
	   "ip -6 rule add from fd00::1 lookup 100 pref 100;"
	   "ip route add blackhole default table 100 proto 201;"
	   "ip -6 route add blackhole default table 100;"
	   "ip route add 203.0.113.0/24 dev wg0 table 51820 proto static");
	a = sh_text(FOREIGN);
	run_converge(&x->run, x->want);
	x->want->egress.tunnels[0].priority = 18300;
	run_converge(&x->run, x->want);
	b = sh_text(FOREIGN);
	assert_string_equal(a, b);
	free(b);
	assert_int_equal(sh_status("ip rule | grep -q 18200"), 1);

	/* Disarmed: ours go, all of them, and nothing else. */
	assert_int_equal(armed_save(x->run.dir, &(struct armed){
				 .found = true, .d = x->want }, &f), 0);
	assert_int_equal(armed_disarm(x->run.dir, "vpn", &f), 0);
	run_converge(&x->run, x->want);
	b = sh_text(FOREIGN);
	assert_string_equal(a, b);
	assert_int_equal(sh_status("ip rule | grep -q 51820"), 1);
	assert_int_equal(sh_status("ip route show table all proto 0x67 | "
				   "grep -q ."), 1);
	free(a);
	free(b);
}

static void missing_section_keeps_the_steering(void **state)
{
	struct fixture *x = *state;
	struct desired *none = desired_new();
	struct fault f = FAULT_INIT;

	tunnel_up();
	run_converge(&x->run, x->want);
	/* As the kill-switch records it when it arms. */
	assert_int_equal(armed_save(x->run.dir, &(struct armed){
				 .found = true, .d = x->want }, &f), 0);
	assert_int_equal(run_plan(&x->run, none, NULL, NULL), 0);
	sh("echo rubbish > %s/ours/killswitch", x->run.dir);
	assert_int_equal(run_plan(&x->run, none, NULL, NULL), 0);
	(void)desired_free(none);
}

static void rt01_deletions_are_seen_and_undone(void **state)
{
	static const char *const how[] = {
		"ip rule del pref 18200",
		"ip -6 rule del pref 18201",
		"ip rule del pref 18202",
		"ip rule del pref 32766",
		"ip -6 rule del pref 32766",
		"ip rule add lookup local pref 1; ip rule del pref 0;"
		"ip rule del pref 1",
		"ip rule flush",
		"ip route flush table 51820",
		"ip -6 route flush table 51820",
		"ip route del unreachable default table 51820 "
		"metric 4294967294",
		"ip route del throw 10.0.0.0/8 table 51820 metric 1024",
		"ip route replace default dev up0 table 51820 metric 1024",
		"ip route change throw default table 51820 metric 1024",
	};
	struct fixture *x = *state;
	size_t i;

	tunnel_up();
	for (i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		(void)run_apply(&x->run, x->want);
		if (run_plan(&x->run, x->want, NULL, NULL))
			fail_msg("not repaired after: %s",
				 i ? how[i - 1] : "start");
		while (sd_event_run(x->run.event, 0) > 0)
			;
		sh("%s", how[i]);
		if (!run_wait(&x->run))
			fail_msg("no event after: %s", how[i]);
		/* A foreign route in our place is not ours to delete. */
		if (strstr(how[i], "replace") || strstr(how[i], "change")) {
			assert_int_not_equal(run_apply(&x->run, x->want), 0);
			sh("ip route del default table 51820 metric 1024");
			continue;
		}
		if (run_plan(&x->run, x->want, NULL, NULL) == 0)
			fail_msg("not seen: %s", how[i]);
	}
}

static void rt01_writer_is_named(void **state)
{
	static const char *const how[] = {
		"ip rule del pref 18200", "ip -6 rule del pref 32766",
		"ip route del throw 10.0.0.0/8 table 51820 metric 1024",
	};
	struct fixture *x = *state;
	char want[32], *pid;
	size_t i;

	tunnel_up();
	for (i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		(void)run_apply(&x->run, x->want);
		while (sd_event_run(x->run.event, 0) > 0)
			;
		pid = sh_text("sh -c 'echo $$; exec %s'", how[i]);
		assert_true(run_wait(&x->run));
		(void)snprintf(want, sizeof(want), "[%u]",
			       (unsigned int)strtoul(pid, NULL, 10));
		if (!strstr(x->run.res->writer(x->run.state), want))
			fail_msg("%s: not %s but %s", how[i], want,
				 x->run.res->writer(x->run.state));
		free(pid);
	}
}

/* Every property of every rule and route of ours, changed by somebody. */
static void perturb_rules(struct fixture *x, struct nl_sock *s,
			  unsigned int *made)
{
	struct rtnl_rules rules = { 0 };
	size_t i;
	int n;

	assert_int_equal(rtnl_rule_dump(s, &rules, NULL), 0);
	for (i = 0; i < rules.n; i++) {
		if (rules.v[i].protocol != RTNL_PROTO_GARBOARD)
			continue;
		for (n = 0; n < 7; n++) {
			struct rtnl_rule r = rules.v[i];

			if (n == 0)
				r.priority++;
			else if (n == 1)
				r.table++;
			else if (n == 2)
				r.protocol = 4;
			else if (n == 3)
				r.mask ^= 0x4000;
			else if (n == 4)
				(void)strcpy(r.iif, "lo");
			else if (n == 5)
				r.action = FR_ACT_BLACKHOLE;
			else if (r.src.len)
				r.src.addr.bytes[3] ^= 1;
			else
				r.mark ^= 0x100;
			assert_int_equal(rtnl_rule_delete(s, &rules.v[i],
							  NULL), 0);
			if (rtnl_rule_add(s, &r, NULL) == 0) {
				(*made)++;
				if (!run_plan(&x->run, x->want, NULL, NULL))
					fail_msg("rule %zu, property %d", i,
						 n);
			}
			run_converge(&x->run, x->want);
			if (r.protocol != RTNL_PROTO_GARBOARD)
				(void)rtnl_rule_delete(s, &r, NULL);
		}
	}
	free(rules.v);
}

static void perturb_routes(struct fixture *x, struct nl_sock *s,
			   unsigned int *made)
{
	static const struct rtnl_route_filter ours = {
		.protocol = RTNL_PROTO_GARBOARD,
	};
	struct rtnl_routes routes = { 0 };
	size_t i;
	int n;

	assert_int_equal(rtnl_route_dump(s, &ours, &routes, NULL), 0);
	for (i = 0; i < routes.n; i++) {
		for (n = 0; n < 6; n++) {
			struct rtnl_route r = routes.v[i];

			if (n == 0)
				r.metric--;
			else if (n == 1)
				r.table++;
			else if (n == 2)
				r.protocol = 4;
			else if (n == 3)
				r.type = r.type == RTN_THROW ?
						 RTN_UNREACHABLE : RTN_THROW,
				r.oif = 0, r.scope = 0;
			else if (n == 4 && r.oif)
				r.prefsrc = sample_prefix(
					r.dst.addr.family == AF_INET6 ?
						"fd64::2" : "10.64.0.2").addr;
			else if (n == 5 && r.dst.len)
				r.dst.addr.bytes[0] ^= 2;
			else
				continue;
			assert_int_equal(rtnl_route_delete(s, &routes.v[i],
							   NULL), 0);
			if (rtnl_route_add(s, &r, NULL) == 0) {
				(*made)++;
				if (!run_plan(&x->run, x->want, NULL, NULL))
					fail_msg("route %zu, property %d", i,
						 n);
			}
			if (r.protocol != RTNL_PROTO_GARBOARD)
				(void)rtnl_route_delete(s, &r, NULL);
			run_converge(&x->run, x->want);
		}
	}
	free(routes.v);
}

static void every_property_is_seen(void **state)
{
	struct fixture *x = *state;
	unsigned int made = 0;
	struct nl_sock *s = NULL;

	tunnel_up();
	run_converge(&x->run, x->want);
	assert_int_equal(nl_sock_open(NETLINK_ROUTE, &s, NULL), 0);
	perturb_rules(x, s, &made);
	perturb_routes(x, s, &made);
	print_message("# %u perturbed rules and routes\n", made);
	assert_true(made > 60);
	(void)nl_sock_free(s);
}

static bool reports(struct fixture *x, const char *part)
{
	struct item_list items;
	bool found = false;
	size_t i;

	(void)run_plan(&x->run, x->want, &items, NULL);
	for (i = 0; i < items.n; i++)
		if (strstr(items.v[i].key, part) &&
		    items.v[i].state == ITEM_BLOCKED)
			found = true;
	item_list_done(&items);
	return found;
}

static void a21_tunnel_as_default_is_reported(void **state)
{
	struct fixture *x = *state;

	tunnel_up();
	run_converge(&x->run, x->want);
	assert_false(reports(x, "main table"));
	sh("ip route add 0.0.0.0/1 dev wg0");
	assert_true(reports(x, "main table"));
	sh("ip route del 0.0.0.0/1 dev wg0");
	sh("ip -6 route add default dev wg0 metric 5");
	assert_true(reports(x, "main table"));
	sh("ip -6 route del default dev wg0 metric 5");
	sh("ip route add default via 192.0.2.254 dev up0 table 51820");
	assert_true(reports(x, "foreign route table 51820"));
}

/* Hand-added rules that open the steering are named (A30). */
static void a30_rule_before_ours_is_reported(void **state)
{
	struct fixture *x = *state;

	tunnel_up();
	sh("ip rule add fwmark 0x200/0xf00 lookup 2004 pref 9;"
	   "ip rule add from 198.18.0.0/15 lookup 100 pref 100;"
	   "ip rule add from 10.44.0.0/16 lookup main pref 20000");
	run_converge(&x->run, x->want);
	assert_false(reports(x, "foreign rule"));
	sh("ip rule add from 10.44.0.0/16 lookup main pref 101");
	assert_true(reports(x, "foreign rule 101: from 10.44.0.0/16"));
	sh("ip rule del pref 101");
	assert_false(reports(x, "foreign rule"));
}

static void no_gateway_no_steering(void **state)
{
	struct fixture *x = *state;

	tunnel_up();
	run_converge(&x->run, x->want);
	x->want->egress.classes[0].gateway = false;
	run_converge(&x->run, x->want);
	assert_int_equal(sh_status("ip rule | grep -q 51820"), 1);
	assert_int_equal(sh_status("ip route show table all proto 0x67 | "
				   "grep -q ."), 1);
}

static void only_what_matters_is_an_event(void **state)
{
	struct fixture *x = *state;

	tunnel_up();
	run_converge(&x->run, x->want);
	while (sd_event_run(x->run.event, 0) > 0)
		;
	x->run.looks = 0;
	sh("ip route add 10.44.0.9 dev pod0; ip route del 10.44.0.9;"
	   "ip link add pod1 type veth; ip link set pod1 up;"
	   "ip addr add 198.18.0.9/32 dev pod1; ip link del pod1");
	while (sd_event_run(x->run.event, 20000) > 0)
		;
	assert_int_equal(x->run.looks, 0);
	sh("ip rule add from 198.18.0.1 lookup 100");
	assert_true(run_wait(&x->run));
}

static void ipv6_absent_is_satisfied(void **state)
{
	struct fixture *x = *state;

	/* As near as a namespace comes to a kernel without it. */
	sh("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 "
	   "net.ipv6.conf.default.disable_ipv6=1");
	world_tunnel();
	sh("ip addr add 10.64.0.2/32 dev wg0");
	run_converge(&x->run, x->want);
	assert_false(leaves(PATH_OUTPUT, SRC, OUT, 1000));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define R(name) cmocka_unit_test_setup_teardown(name, setup_resident, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(nothing_wanted_nothing_done),
		T(converges_and_second_run_changes_nothing),
		T(is05_local_goes_by_main),
		T(a20_nothing_before_the_address_is_known),
		R(rt03_tunnel_goes_closed_stays),
		T(foreign_objects_stay_identical),
		T(missing_section_keeps_the_steering),
		R(rt01_deletions_are_seen_and_undone),
		R(rt01_writer_is_named),
		T(every_property_is_seen),
		T(a21_tunnel_as_default_is_reported),
		T(a30_rule_before_ours_is_reported),
		T(no_gateway_no_steering),
		R(only_what_matters_is_an_event),
		T(ipv6_absent_is_satisfied),
	};

	world_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
