/*
 * uncovered: what no layer of the kill-switch sees, told from what is there;
 * and nl/tc.c: which filters can send a packet to another device.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>

#include "agent/uncovered.h"
#include "agent/verdict.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* ---- filters ---- */

struct message {
	alignas(struct nlmsghdr) unsigned char buf[1024];
	struct nlmsghdr *nlh;
	struct nlattr *options;
};

static void begin(struct message *m, const char *kind)
{
	struct tcmsg *t;

	m->nlh = mnl_nlmsg_put_header(m->buf);
	m->nlh->nlmsg_type = RTM_NEWTFILTER;
	t = mnl_nlmsg_put_extra_header(m->nlh, sizeof(*t));
	t->tcm_ifindex = 7;
	mnl_attr_put_strz(m->nlh, TCA_KIND, kind);
	m->options = mnl_attr_nest_start(m->nlh, TCA_OPTIONS);
}

/* As the kernel nests them: list of actions, one action, its kind. */
static void put_action(struct message *m, uint16_t type, const char *kind)
{
	struct nlattr *list = mnl_attr_nest_start(m->nlh, type);
	struct nlattr *one = mnl_attr_nest_start(m->nlh, 1);

	mnl_attr_put_strz(m->nlh, TCA_ACT_KIND, kind);
	mnl_attr_nest_end(m->nlh, one);
	mnl_attr_nest_end(m->nlh, list);
}

static int end(struct message *m, struct tc_redirect *t)
{
	mnl_attr_nest_end(m->nlh, m->options);
	return tc_filter_decode(m->nlh, t);
}

static void filters_that_redirect(void **state)
{
	static const struct {
		const char *kind;
		uint16_t action_attr;
		const char *action;
		bool able;
	} rows[] = {
		{ "u32", TCA_U32_ACT, "mirred", true },
		{ "matchall", TCA_MATCHALL_ACT, "mirred", true },
		{ "flower", TCA_FLOWER_ACT, "mirred", true },
		{ "flower", TCA_FLOWER_ACT, "bpf", true },
		{ "flower", TCA_FLOWER_ACT, "gact", false },
		{ "u32", TCA_U32_ACT, "police", false },
		{ "u32", 0, NULL, false },
	};
	struct tc_redirect t;
	struct message m;
	size_t i;

	(void)state;
	for (i = 0; i < N(rows); i++) {
		begin(&m, rows[i].kind);
		mnl_attr_put_u32(m.nlh, 1, 5);
		if (rows[i].action)
			put_action(&m, rows[i].action_attr, rows[i].action);
		assert_int_equal(end(&m, &t), rows[i].able);
		if (rows[i].able) {
			assert_int_equal(t.index, 7);
			assert_false(t.program);
		}
	}
}

static void programs_that_act_themselves(void **state)
{
	struct tc_redirect t;
	struct message m;

	(void)state;
	begin(&m, "bpf");
	mnl_attr_put_strz(m.nlh, TCA_BPF_NAME, "cil_to_netdev-eth0");
	mnl_attr_put_u32(m.nlh, TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
	assert_int_equal(end(&m, &t), 1);
	assert_true(t.program);
	assert_string_equal(t.name, "cil_to_netdev-eth0");
	/* One that only classifies. */
	begin(&m, "bpf");
	mnl_attr_put_strz(m.nlh, TCA_BPF_NAME, "x");
	assert_int_equal(end(&m, &t), 0);
	/* Cut off anywhere: nothing read beyond, nothing crashes. */
	begin(&m, "bpf");
	mnl_attr_put_u32(m.nlh, TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
	mnl_attr_nest_end(m.nlh, m.options);
	m.nlh->nlmsg_len = NLMSG_HDRLEN + 4;
	assert_int_equal(tc_filter_decode(m.nlh, &t), -EBADMSG);
}

/* ---- the judgement ---- */

struct scene {
	struct rtnl_link links[4];
	struct tc_redirects *redirects;
	struct desired_class class;
	struct desired_tunnel tunnel;
	struct desired_egress egress;
	struct uncovered_paths got;
};

static struct scene s;

static int begin_scene(void **state)
{
	static struct tc_redirects redirects;

	(void)state;
	s = (struct scene){ .redirects = &redirects };
	redirects.n = 0;
	s.links[0] = (struct rtnl_link){ .index = 1, .name = "lo" };
	s.links[1] = (struct rtnl_link){ .index = 2, .name = "eth0",
					 .flags = IFF_UP, .hardware = true };
	s.links[2] = (struct rtnl_link){ .index = 3, .name = "wg0",
					 .flags = IFF_UP };
	s.links[3] = (struct rtnl_link){ .index = 4, .name = "pod0",
					 .kind = "veth", .flags = IFF_UP };
	s.class.name = (char *)(uintptr_t)"vpn";
	s.tunnel.name = (char *)(uintptr_t)"wg0";
	s.egress = (struct desired_egress){ .classes = &s.class,
					    .n_classes = 1,
					    .tunnels = &s.tunnel,
					    .n_tunnels = 1 };
	return 0;
}

static size_t judge(void)
{
	const struct rtnl_links links = { s.links, N(s.links) };

	uncovered_judge(&s.egress, false, &links, s.redirects, &s.got);
	return s.got.n;
}

static void filter(int index, const char *name, bool program)
{
	struct tc_redirect *t = &s.redirects->v[s.redirects->n++];

	*t = (struct tc_redirect){ .index = index, .program = program };
	(void)strcpy(t->name, name);
}

static void plain_node_is_covered(void **state)
{
	(void)state;
	assert_int_equal(judge(), 0);
}

static void mn03_tc_redirect_is_told(void **state)
{
	(void)state;
	filter(4, "mirred", false);
	filter(4, "mirred", false);
	assert_int_equal(judge(), 1);
	assert_string_equal(s.got.v[0].path, "redirect");
	assert_string_equal(s.got.v[0].device, "pod0");
	assert_true(s.got.v[0].critical);
	/* No class: nothing to leak. */
	s.egress.n_classes = 0;
	assert_int_equal(judge(), 0);
}

static void mn03_xdp_is_told(void **state)
{
	(void)state;
	s.links[1].xdp = true;
	assert_int_equal(judge(), 1);
	assert_string_equal(s.got.v[0].device, "eth0");
	assert_true(s.got.v[0].critical);
}

/* By name, and only where Cilium is. */
static void ciliums_own_programs_are_known(void **state)
{
	(void)state;
	filter(2, "cil_to_netdev-eth0", true);
	assert_int_equal(judge(), 1);
	(void)strcpy(s.links[3].name, "cilium_host");
	assert_int_equal(judge(), 0);
	filter(2, "other", true);
	assert_int_equal(judge(), 1);
	s.redirects->n = 0;
	filter(2, "cil_to_netdev-eth0", false);
	assert_int_equal(judge(), 1);
}

static void devices_that_wrap_are_told(void **state)
{
	static const char *const kinds[] = { "vxlan", "geneve", "ipip", "gre",
					     "gretap", "sit", "ip6tnl" };
	size_t i;

	(void)state;
	for (i = 0; i < N(kinds); i++) {
		(void)strcpy(s.links[3].kind, kinds[i]);
		assert_int_equal(judge(), 1);
		assert_string_equal(s.got.v[0].path, "encapsulated");
		assert_false(s.got.v[0].critical);
	}
	/* Down, Cilium's, or the class's own tunnel. */
	s.links[3].flags = 0;
	assert_int_equal(judge(), 0);
	s.links[3].flags = IFF_UP;
	(void)strcpy(s.links[3].name, "cilium_vxlan");
	assert_int_equal(judge(), 0);
	(void)strcpy(s.links[2].kind, "gre");
	assert_int_equal(judge(), 0);
}

static void pods_without_a_pool_are_told(void **state)
{
	(void)state;
	s.class.loose_pods = true;
	assert_int_equal(judge(), 1);
	assert_string_equal(s.got.v[0].path, "pods");
	assert_false(s.got.v[0].critical);
	assert_non_null(strstr(s.got.v[0].text, "pods.pool"));
}

static void more_than_fits_is_counted(void **state)
{
	static struct rtnl_link many[UNCOVERED_MAX + 3];
	const struct rtnl_links links = { many, N(many) };
	size_t i;

	(void)state;
	for (i = 0; i < N(many); i++)
		many[i] = (struct rtnl_link){ .index = (int)i + 1,
					      .name = "x", .xdp = true };
	uncovered_judge(&s.egress, false, &links, s.redirects, &s.got);
	assert_int_equal(s.got.n, UNCOVERED_MAX);
	assert_int_equal(s.got.more, 3);
}

static void health_fails(void **state)
{
	struct engine_report engine = { .desired = true };
	struct verdict_input in = { .engine = &engine, .enrolled = true,
				    .session = true, .state_fault = "",
				    .uncovered = &s.got };
	struct verdict v;

	(void)state;
	(void)judge();
	verdict_make(&in, &v);
	assert_int_equal(v.code, VERDICT_OK);
	s.class.loose_pods = true;
	(void)judge();
	verdict_make(&in, &v);
	assert_int_equal(v.code, VERDICT_WARNING);
	s.links[1].xdp = true;
	(void)judge();
	verdict_make(&in, &v);
	assert_int_equal(v.code, VERDICT_CRITICAL);
	assert_non_null(strstr(v.text, "not covered: an XDP program on eth0"));
}

#define T(fn) cmocka_unit_test_setup(fn, begin_scene)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(filters_that_redirect),
		cmocka_unit_test(programs_that_act_themselves),
		T(plain_node_is_covered),
		T(mn03_tc_redirect_is_told),
		T(mn03_xdp_is_told),
		T(ciliums_own_programs_are_known),
		T(devices_that_wrap_are_told),
		T(pods_without_a_pool_are_told),
		T(more_than_fits_is_counted),
		T(health_fails),
	};

	return cmocka_run_group_tests_name("uncovered", tests, NULL, NULL);
}
