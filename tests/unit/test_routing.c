/* res/routing: what is wanted of the kernel, and the plan. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>

#include "agent/res/routing_plan.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define WG 9

static const char gateway[] =
	"garboard-armed-1\nlocal 10.0.0.0/8\nclass vpn\n"
	"tunnel wg0 0 51820 18200\ngateway\nmark 0x2000 0x3f00\n"
	"source 10.44.0.5/32\ndns 10.64.0.1\nend\n";
static const char no_gateway[] =
	"garboard-armed-1\nclass vpn\ntunnel wg0 0 51820 18200\n"
	"source 10.44.0.5/32\nend\n";

static struct rtnl_addr addr4 = { .index = WG, .prefix = {
	{ AF_INET, { 10, 64, 0, 2 } }, 32 } };
static struct rtnl_addr addrs46[] = {
	{ .index = WG, .prefix = { { AF_INET, { 10, 64, 0, 2 } }, 32 } },
	{ .index = WG, .prefix = { { AF_INET6, { 0xfd, 0x64, 2 } }, 128 } },
	{ .index = WG, .prefix = { { AF_INET6, { 0xfe, 0x80, 1 } }, 64 },
	  .scope = RT_SCOPE_LINK },
};
static struct rtnl_rule kernel[] = {
	{ .family = AF_INET, .table = 255, .action = FR_ACT_TO_TBL },
	{ .family = AF_INET, .table = 254, .action = FR_ACT_TO_TBL },
	{ .family = AF_INET, .table = 253, .action = FR_ACT_TO_TBL },
	/* Cilium moves the local lookup: that is no loss of it. */
	{ .family = AF_INET6, .table = 255, .action = FR_ACT_TO_TBL,
	  .priority = 100 },
	{ .family = AF_INET6, .table = 254, .action = FR_ACT_TO_TBL },
};

struct scene {
	const char *name;
	const char *want;
	struct rtnl_addr *addrs;
	size_t n_addrs;
	bool up, known, ipv6;
	const char *routes, *rules;	/* number wanted, first letters */
};

/* u unreachable, d device, t throw; a address, s source, m mark. */
static const struct scene scenes[] = {
	{ "up, both families", gateway, addrs46, 3, true, false, true,
	  "udtud" "ud", "asm" "am" },
	{ "up, IPv4 only address", gateway, &addr4, 1, true, false, true,
	  "udtud" "u", "asm" "m" },
	{ "up, kernel without IPv6", gateway, &addr4, 1, true, false, false,
	  "udtud", "asm" },
	{ "down, known", gateway, &addr4, 1, false, true, false, "utu",
	  "asm" },
	{ "away, known", gateway, NULL, 0, false, true, false, "utu", "asm" },
	{ "away, never seen", gateway, NULL, 0, false, false, true, "", "" },
	{ "no gateway", no_gateway, &addr4, 1, true, true, true, "", "" },
};

static void see(const struct scene *sc, struct routing_seen *s)
{
	struct routing_tunnel *t = &s->tunnels[0];

	(void)memset(s, 0, sizeof(*s));
	s->ipv6 = sc->ipv6;
	s->n_tunnels = 1;
	(void)strcpy(t->name, "wg0");
	t->addrs = (struct rtnl_addrs){ sc->addrs, sc->n_addrs };
	if (sc->n_addrs) {
		t->link.index = WG;
		t->link.flags = sc->up ? IFF_UP : 0;
	}
	if (sc->known)
		assert_int_equal(routing_record_add(&s->record, "wg0",
						    &addr4.prefix.addr), 0);
	s->rules = (struct rtnl_rules){ kernel, N(kernel) };
	assert_int_equal(armed_parse(sc->want, &s->armed, NULL), 0);
}

static char route_letter(const struct rtnl_route *r)
{
	assert_int_equal(r->table, 51820);
	assert_int_equal(r->protocol, RTNL_PROTO_GARBOARD);
	if (r->type == RTN_UNREACHABLE) {
		assert_int_equal(r->metric, 4294967294u);
		return 'u';
	}
	assert_int_equal(r->metric, 1024);
	if (r->type == RTN_THROW)
		return 't';
	assert_int_equal(r->oif, WG);
	return 'd';
}

static char rule_letter(const struct rtnl_rule *r)
{
	static const char letters[] = { 'a', 's', 'm' };

	assert_int_equal(r->table, 51820);
	assert_int_equal(r->protocol, RTNL_PROTO_GARBOARD);
	/* A19: every rule has a selector. */
	assert_true(r->src.len > 0 || r->mask != 0);
	return letters[r->priority - 18200];
}

static void wants(void **state)
{
	struct routing_seen s;
	size_t i, j;

	(void)state;
	for (i = 0; i < N(scenes); i++) {
		struct routing_record record;
		struct routing_want w;
		char routes[32] = "", rules[32] = "";

		see(&scenes[i], &s);
		assert_int_equal(routing_next_record(
			&s, &s.armed.d->egress, &record), 0);
		assert_int_equal(routing_want(&s.armed.d->egress, &s, &record,
					      &w), 0);
		for (j = 0; j < w.routes.n; j++)
			routes[j] = route_letter(&w.routes.v[j]);
		for (j = 0; j < w.rules.n; j++)
			rules[j] = rule_letter(&w.rules.v[j]);
		if (strcmp(routes, scenes[i].routes) != 0 ||
		    strcmp(rules, scenes[i].rules) != 0)
			fail_msg("%s: %s, %s", scenes[i].name, routes, rules);
		routing_want_done(&w);
		armed_done(&s.armed);
	}
}

/* Steps that change something, by their first letters: op and kind. */
static void plan_text(struct routing_seen *s, const char *want, char *text,
		      size_t size)
{
	struct item_list items = ITEM_LIST_INIT;
	struct change_list changes = CHANGE_LIST_INIT;
	struct armed w = ARMED_INIT;
	size_t used = 0, i;

	assert_int_equal(armed_parse(want, &w, NULL), 0);
	assert_int_equal(routing_plan(w.d, s, &items, &changes, NULL), 0);
	text[0] = '\0';
	for (i = 0; i < changes.n; i++)
		used += (size_t)snprintf(text + used, size - used, "%s %s\n",
					 change_op_name(changes.v[i].op),
					 changes.v[i].key);
	item_list_done(&items);
	change_list_done(&changes);
	armed_done(&w);
}

static void plan_is_the_difference(void **state)
{
	struct routing_seen s;
	struct routing_want w;
	char text[4096];

	(void)state;
	see(&scenes[2], &s);
	s.record.n = 0;
	(void)routing_record_add(&s.record, "wg0", &addr4.prefix.addr);
	assert_int_equal(routing_want(&s.armed.d->egress, &s, &s.record, &w),
			 0);
	s.ours = w.routes;
	s.rules = w.rules;
	s.rules.v = malloc((N(kernel) + w.rules.n) * sizeof(*s.rules.v));
	(void)memcpy(s.rules.v, kernel, sizeof(kernel));
	(void)memcpy(s.rules.v + N(kernel), w.rules.v,
		     w.rules.n * sizeof(*w.rules.v));
	s.rules.n = N(kernel) + w.rules.n;
	plan_text(&s, gateway, text, sizeof(text));
	assert_string_equal(text, "");

	/* A rule lost, one moved, the kernel's main lookup gone. */
	s.rules.n--;
	s.rules.v[1].src.len = 8;
	s.rules.v[1].src.addr.family = AF_INET;
	s.rules.v[N(kernel)].priority++;
	plan_text(&s, gateway, text, sizeof(text));
	assert_string_equal(text,
		"add ipv4 rule 32766: from all lookup 254\n"
		"add ipv4 rule 18200: from 10.64.0.2/32 lookup 51820\n"
		"add ipv4 rule 18202: from all fwmark 0x2000/0x3f00 "
		"lookup 51820\n"
		"remove ipv4 rule 18201: from 10.64.0.2/32 lookup 51820\n");

	/* Not known what else was armed: nothing is removed. */
	(void)fault_set(&s.armed_fault, -EBADMSG, "record", "bad");
	plan_text(&s, gateway, text, sizeof(text));
	assert_null(strstr(text, "remove"));
	(void)fault_set(&s.net_fault, -EAGAIN, "routes", "unstable");
	plan_text(&s, gateway, text, sizeof(text));
	assert_string_equal(text, "");
	free(s.rules.v);
	routing_want_done(&w);
	armed_done(&s.armed);
}

static void record_round_trip(void **state)
{
	char dir[] = "/tmp/garboard-routing-XXXXXX", path[64];
	struct routing_record a = { .n = 0 }, b = { .n = 0 };
	struct ip_addr v6;
	FILE *out;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(routing_record_load(dir, &a, NULL), 0);
	assert_int_equal(a.n, 0);
	assert_int_equal(ip_addr_parse("fd64::2", &v6), 0);
	assert_int_equal(routing_record_add(&a, "wg0", &addr4.prefix.addr),
			 0);
	assert_int_equal(routing_record_add(&a, "wg0", &addr4.prefix.addr),
			 0);
	assert_int_equal(routing_record_add(&a, "wg0", &v6), 0);
	assert_int_equal(a.n, 2);
	assert_int_equal(routing_record_save(dir, &a, NULL), 0);
	assert_int_equal(routing_record_load(dir, &b, NULL), 0);
	assert_true(routing_record_equal(&a, &b));
	(void)snprintf(path, sizeof(path), "%s/ours/routing", dir);
	out = fopen(path, "w");
	assert_non_null(out);
	(void)fputs("garboard-routing-1\naddress wg0 10.64.0.2\n", out);
	(void)fclose(out);
	assert_int_equal(routing_record_load(dir, &b, NULL), -EBADMSG);
	assert_int_equal(unlink(path), 0);
	(void)snprintf(path, sizeof(path), "%s/ours", dir);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(wants),
		cmocka_unit_test(plan_is_the_difference),
		cmocka_unit_test(record_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
