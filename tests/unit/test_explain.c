/* explain: the two evaluators, and the question put to the kernel. */
#include <errno.h>
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>

#include "agent/explain/fib.h"
#include "agent/explain/filter.h"
#include "agent/nl/rtnl_lookup.h"
#include "agent/res/killswitch_tables.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static struct packet packet(const char *src, const char *dst)
{
	struct packet p = { .socket = true };

	assert_int_equal(ip_addr_parse(dst, &p.dst), 0);
	if (src)
		assert_int_equal(ip_addr_parse(src, &p.src), 0);
	return p;
}

/* ---- the filter ---- */

static const struct packet_out up0 = { .name = "up0" };
static const struct packet_out wg0 = { .name = "wg0", .bare = true };

static struct desired *policy(void)
{
	struct desired *d = desired_new();
	struct desired_egress *e = &d->egress;
	struct ip_prefix p;

	e->tunnels = calloc(1, sizeof(*e->tunnels));
	e->n_tunnels = 1;
	e->tunnels[0] = (struct desired_tunnel){ .name = strdup("wg0"),
						 .table = 51820 };
	e->classes = calloc(1, sizeof(*e->classes));
	e->n_classes = 1;
	e->classes[0] = (struct desired_class){ .name = strdup("vpn"),
						.mark = 0x2000,
						.mask = 0x3f00,
						.gateway = true };
	assert_int_equal(ip_prefix_parse("10.44.0.0/20", &p), 0);
	assert_int_equal(prefix_list_add(&e->classes[0].pods, &p), 0);
	assert_int_equal(ip_prefix_parse("192.0.2.0/24", &p), 0);
	assert_int_equal(prefix_list_add(&e->local, &p), 0);
	return d;
}

struct filter_case {
	const char *name, *src, *dst;
	uint32_t mark;
	uint8_t proto;
	uint16_t sport, dport;
	const struct packet_out *out;
	enum filter_verdict inet, netdev;
};

static void filters_as_the_policy_says(void **state)
{
	static const struct filter_case v[] = {
		{ "nobody's", "10.9.0.1", "198.51.100.1", 0, 0, 0, 0, &up0,
		  FILTER_PASS, FILTER_PASS },
		{ "first of the prefix", "10.44.0.0", "198.51.100.1", 0, 0, 0,
		  0, &up0, FILTER_DROP, FILTER_DROP },
		{ "last of the prefix", "10.44.15.255", "198.51.100.1", 0, 0,
		  0, 0, &up0, FILTER_DROP, FILTER_DROP },
		{ "behind the prefix", "10.44.16.0", "198.51.100.1", 0, 0, 0,
		  0, &up0, FILTER_PASS, FILTER_PASS },
		{ "into the tunnel", "10.44.0.1", "198.51.100.1", 0, 0, 0, 0,
		  &wg0, FILTER_PASS, FILTER_PASS },
		{ "mark", "10.9.0.1", "198.51.100.1", 0x2001, 0, 0, 0, &up0,
		  FILTER_DROP, FILTER_DROP },
		{ "mark under another mask", "10.9.0.1", "198.51.100.1",
		  0x2100, 0, 0, 0, &up0, FILTER_PASS, FILTER_PASS },
		{ "local", "10.44.0.1", "192.0.2.9", 0, IPPROTO_TCP, 0, 80,
		  &up0, FILTER_PASS, FILTER_PASS },
		{ "DNS over TLS", "10.44.0.1", "192.0.2.9", 0, IPPROTO_TCP, 0,
		  853, &up0, FILTER_DROP, FILTER_DROP },
		{ "DHCP", "10.44.0.1", "198.51.100.1", 0, IPPROTO_UDP, 68, 67,
		  &up0, FILTER_PASS, FILTER_PASS },
		{ "from the server's port", "10.44.0.1", "198.51.100.1", 0,
		  IPPROTO_UDP, 67, 68, &up0, FILTER_DROP, FILTER_DROP },
		{ "IPv6 by mark", "2001:db8::1", "2001:db8:9::1", 0x2000,
		  IPPROTO_ICMPV6, 0, 0, &up0, FILTER_DROP, FILTER_DROP },
		{ "IPv6, link scope", "2001:db8::1", "fe80::1", 0x2000, 0, 0,
		  0, &up0, FILTER_PASS, FILTER_PASS },
	};
	struct nft_table inet, netdev;
	struct desired *d = policy();
	struct filter_result r;
	size_t i;

	(void)state;
	assert_int_equal(killswitch_table(&d->egress, NULL, &inet), 0);
	assert_int_equal(killswitch_table(&d->egress, "up0", &netdev), 0);
	for (i = 0; i < N(v); i++) {
		struct packet p = packet(v[i].src, v[i].dst);

		p.mark = v[i].mark;
		p.proto = v[i].proto;
		p.sport = v[i].sport;
		p.dport = v[i].dport;
		filter_run(&inet, &p, v[i].out, &r);
		if (r.verdict != v[i].inet)
			fail_msg("inet, %s: %d", v[i].name, r.verdict);
		filter_run(&netdev, &p, v[i].out, &r);
		if (r.verdict != v[i].netdev)
			fail_msg("netdev, %s: %d", v[i].name, r.verdict);
	}
	nft_table_done(&inet);
	nft_table_done(&netdev);
	(void)desired_free(d);
}

static struct nft_table drop_all(struct nft_rule **ret_first)
{
	struct nft_table t = { .family = NFPROTO_INET };
	struct nft_chain *c = nft_table_chain(&t, "output");

	c->base = true;
	c->hook = NF_INET_LOCAL_OUT;
	c->policy = NF_ACCEPT;
	*ret_first = nft_chain_rule(c);
	return t;
}

/* What cannot be judged is not judged; what does not filter, passes. */
static void never_guesses(void **state)
{
	struct packet p = packet("10.44.0.1", "198.51.100.1");
	struct filter_result r;
	struct nft_rule *rule;
	struct nft_table t;

	(void)state;
	t = drop_all(&rule);
	nft_rule_other(rule, "ct");
	nft_rule_verdict(rule, NF_DROP, NULL);
	filter_run(&t, &p, &up0, &r);
	assert_int_equal(r.verdict, FILTER_UNSURE);
	assert_ptr_equal(r.rule, rule);
	nft_table_done(&t);

	t = drop_all(&rule);
	nft_rule_lookup(rule, "nowhere");
	filter_run(&t, &p, &up0, &r);
	assert_int_equal(r.verdict, FILTER_UNSURE);
	nft_table_done(&t);

	t = drop_all(&rule);
	nft_rule_verdict(rule, NFT_JUMP, "output");	/* for ever */
	filter_run(&t, &p, &up0, &r);
	assert_int_equal(r.verdict, FILTER_UNSURE);
	nft_table_done(&t);

	t = drop_all(&rule);
	nft_rule_verdict(rule, NF_DROP, NULL);
	filter_run(&t, &p, &up0, &r);
	assert_int_equal(r.verdict, FILTER_DROP);
	assert_string_equal(r.base, "output");
	t.flags = NFT_TABLE_F_DORMANT;
	filter_run(&t, &p, &up0, &r);
	assert_int_equal(r.verdict, FILTER_PASS);
	nft_table_done(&t);
	filter_run(NULL, &p, &up0, &r);
	assert_int_equal(r.verdict, FILTER_PASS);
}

/* FACTS S3: a chain survives its device, unhooked and silent. */
static void an_unhooked_chain_is_silent(void **state)
{
	struct packet p = packet("10.44.0.1", "198.51.100.1");
	struct desired *d = policy();
	struct filter_result r;
	struct nft_table t;

	(void)state;
	assert_int_equal(killswitch_table(&d->egress, "up0", &t), 0);
	t.chains[0].device[0] = '\0';
	filter_run(&t, &p, &up0, &r);
	assert_int_equal(r.verdict, FILTER_PASS);
	nft_table_done(&t);
	(void)desired_free(d);
}

/* ---- rules and routes ---- */

static struct rtnl_route route(const char *dst, uint32_t table, uint8_t type,
			       uint32_t metric)
{
	struct rtnl_route r = { .table = table, .type = type,
				.metric = metric, .oif = 7 };

	assert_int_equal(ip_prefix_parse(dst, &r.dst), 0);
	return r;
}

static struct rtnl_rule rule_of(uint32_t priority, uint32_t table)
{
	return (struct rtnl_rule){ .family = AF_INET, .priority = priority,
				   .table = table, .action = FR_ACT_TO_TBL };
}

static void routes_as_the_kernel_does(void **state)
{
	struct packet p = packet("10.44.0.5", "198.51.100.1");
	struct rtnl_route o[] = {
		route("0.0.0.0/0", 100, RTN_UNREACHABLE, UINT32_MAX - 1),
		route("0.0.0.0/0", 100, RTN_UNICAST, 1024),
		route("198.51.100.0/24", 100, RTN_THROW, 0),
		route("0.0.0.0/0", 254, RTN_UNICAST, 0),
		route("::/0", 254, RTN_UNICAST, 0),
	};
	struct rtnl_rule u[] = { rule_of(0, 255), rule_of(10, 100),
				 rule_of(32766, 254) };
	struct rtnl_routes routes = { o, N(o) };
	struct rtnl_rules rules = { u, N(u) };
	struct fib_result r;

	(void)state;
	fib_run(&rules, &routes, &p, &r);
	assert_int_equal(r.end, FIB_ROUTE);
	assert_ptr_equal(r.rule, &u[2]);	/* thrown out of 100 */
	o[2].dst.addr.bytes[0] = 197;
	fib_run(&rules, &routes, &p, &r);
	assert_ptr_equal(r.route, &o[1]);	/* the lower metric */
	o[1].flags = RTNH_F_DEAD;
	fib_run(&rules, &routes, &p, &r);
	assert_int_equal(r.end, FIB_REFUSED);
	assert_ptr_equal(r.rule, &u[1]);
	u[1].mark = 1;
	u[1].mask = 1;
	fib_run(&rules, &routes, &p, &r);
	assert_ptr_equal(r.route, &o[3]);
	u[0].extra = true;
	fib_run(&rules, &routes, &p, &r);
	assert_int_equal(r.end, FIB_UNSURE);
	u[0] = rule_of(0, 255);
	routes.n = 0;
	fib_run(&rules, &routes, &p, &r);
	assert_int_equal(r.end, FIB_NOTHING);
	assert_null(r.rule);
}

static void wanted_takes_the_place_of_ours(void **state)
{
	struct rtnl_rule have[] = { rule_of(0, 255), rule_of(10, 100),
				    rule_of(32766, 254) };
	struct rtnl_rule want[] = { rule_of(11, 101), rule_of(5, 102) };
	struct rtnl_rules rules, h = { have, N(have) }, w = { want, N(want) };
	struct rtnl_routes routes, none = { NULL, 0 };

	(void)state;
	have[1].protocol = RTNL_PROTO_GARBOARD;
	assert_int_equal(fib_as_wanted(&h, &none, &w, &none, &rules, &routes),
			 0);
	assert_int_equal(rules.n, 4);
	assert_int_equal(rules.v[1].priority, 5);
	assert_int_equal(rules.v[2].priority, 11);
	assert_int_equal(rules.v[3].priority, 32766);
	free(rules.v);
	free(routes.v);
}

static void input_device_and_source_select(void **state)
{
	struct packet p = packet("10.44.0.5", "198.51.100.1");
	struct rtnl_rule r = rule_of(10, 100);

	(void)state;
	assert_true(fib_rule_matches(&r, &p));
	(void)strcpy(r.iif, "lo");	/* what this node sends itself */
	assert_true(fib_rule_matches(&r, &p));
	(void)strcpy(p.in, "pod0");
	assert_false(fib_rule_matches(&r, &p));
	(void)strcpy(r.iif, "pod0");
	assert_true(fib_rule_matches(&r, &p));
	assert_int_equal(ip_prefix_parse("10.44.0.0/24", &r.src), 0);
	assert_true(fib_rule_matches(&r, &p));
	p.src.family = 0;		/* not chosen yet */
	assert_false(fib_rule_matches(&r, &p));
	r.src.len = 0;
	r.family = AF_INET6;
	assert_false(fib_rule_matches(&r, &p));
}

/* ---- the question ---- */

static const struct nlattr *attr(const struct nlmsghdr *nlh, uint16_t type)
{
	const struct nlattr *a;

	mnl_attr_for_each(a, nlh, sizeof(struct rtmsg))
		if (mnl_attr_get_type(a) == type)
			return a;
	return NULL;
}

static void asks_for_the_whole_packet(void **state)
{
	alignas(struct nlmsghdr) unsigned char buf[512] = { 0 };
	const struct nlmsghdr *nlh = (void *)buf;
	const struct rtmsg *m = mnl_nlmsg_get_payload(nlh);
	struct rtnl_question q = { .mark = 0x2000, .iif = 4, .uid = 9,
				   .proto = IPPROTO_UDP, .dport = 53 };

	(void)state;
	assert_int_equal(ip_addr_parse("198.51.100.1", &q.dst), 0);
	assert_int_equal(ip_addr_parse("10.44.0.5", &q.src), 0);
	assert_int_equal(rtnl_question_encode(&q, true, buf, sizeof(buf)), 0);
	assert_int_equal(nlh->nlmsg_type, RTM_GETROUTE);
	assert_int_equal(m->rtm_dst_len, 32);
	assert_int_equal(m->rtm_src_len, 32);
	assert_int_equal(m->rtm_flags, RTM_F_LOOKUP_TABLE | RTM_F_FIB_MATCH);
	assert_int_equal(mnl_attr_get_u32(attr(nlh, RTA_MARK)), 0x2000);
	assert_int_equal(mnl_attr_get_u32(attr(nlh, RTA_IIF)), 4);
	assert_null(attr(nlh, RTA_UID));	/* nobody's, when forwarded */
	assert_int_equal(mnl_attr_get_u16(attr(nlh, RTA_DPORT)), htons(53));
	assert_null(attr(nlh, RTA_SPORT));

	assert_int_equal(ip_addr_parse("2001:db8::1", &q.dst), 0);
	q.src.family = 0;
	q.iif = 0;
	q.proto = IPPROTO_ICMPV6;
	assert_int_equal(rtnl_question_encode(&q, false, buf, sizeof(buf)),
			 0);
	assert_int_equal(m->rtm_dst_len, 128);
	assert_int_equal(m->rtm_flags, 0);	/* IPv6 refuses others */
	assert_null(attr(nlh, RTA_SRC));
	assert_null(attr(nlh, RTA_DPORT));
	assert_int_equal(mnl_attr_get_u32(attr(nlh, RTA_UID)), 9);
	assert_int_equal(rtnl_question_encode(&q, false, buf, 40), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filters_as_the_policy_says),
		cmocka_unit_test(never_guesses),
		cmocka_unit_test(an_unhooked_chain_is_silent),
		cmocka_unit_test(routes_as_the_kernel_does),
		cmocka_unit_test(wanted_takes_the_place_of_ours),
		cmocka_unit_test(input_device_and_source_select),
		cmocka_unit_test(asks_for_the_whole_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
