/* nl/rtnl_msg: round trips, every property, truncated and foreign input. */
#include <errno.h>
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>

#include "agent/nl/rtnl_msg.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static struct ip_prefix prefix(const char *text)
{
	struct ip_prefix p = { 0 };

	assert_int_equal(ip_prefix_parse(text, &p), 0);
	return p;
}

static struct ip_addr addr(const char *text)
{
	struct ip_addr a = { 0 };

	assert_int_equal(ip_addr_parse(text, &a), 0);
	return a;
}

static struct rtnl_route sample_route(const char *dst)
{
	return (struct rtnl_route){
		.dst = prefix(dst), .table = 51820,
		.protocol = RTNL_PROTO_GARBOARD, .type = RTN_UNICAST,
		.metric = 1024, .oif = 7,
	};
}

static void routes_round_trip(void **state)
{
	alignas(struct nlmsghdr) unsigned char buf[512];
	const struct nlmsghdr *nlh = (const void *)buf;
	struct rtnl_route t[5], back;
	char text[RTNL_TEXT_MAX];
	size_t i;

	(void)state;
	t[0] = sample_route("0.0.0.0/0");
	t[0].scope = RT_SCOPE_LINK;
	t[1] = sample_route("::/0");
	t[1].metric = UINT32_MAX - 1;
	t[2] = sample_route("10.42.0.0/16");
	t[2].type = RTN_THROW;
	t[2].oif = 0;
	t[3] = sample_route("192.0.2.0/24");
	t[3].gateway = addr("198.51.100.1");
	t[3].prefsrc = addr("198.51.100.2");
	t[4] = sample_route("2001:db8::/64");
	t[4].gateway = addr("fe80::1");
	t[4].table = 200;
	for (i = 0; i < N(t); i++) {
		assert_int_equal(rtnl_route_encode(&t[i], RTM_NEWROUTE,
						   NLM_F_CREATE, buf,
						   sizeof(buf)), 0);
		assert_int_equal(rtnl_route_decode(nlh, &back), 0);
		assert_true(rtnl_route_equal(&t[i], &back));
		assert_int_equal(nlh->nlmsg_flags, NLM_F_CREATE);
	}
	assert_string_equal(rtnl_route_format(&t[0], "wg0", text),
			    "default dev wg0 metric 1024");
	assert_string_equal(rtnl_route_format(&t[2], NULL, text),
			    "throw 10.42.0.0/16 metric 1024");
	assert_int_equal(rtnl_route_encode(&t[4], RTM_NEWROUTE, 0, buf, 60),
			 -EMSGSIZE);
	assert_int_equal(rtnl_route_encode(&t[4], RTM_NEWROUTE, 0, buf, 8),
			 -EMSGSIZE);
}

static void every_route_property_counts(void **state)
{
	struct rtnl_route a = sample_route("10.0.0.0/8"), v[10];
	size_t i;

	(void)state;
	a.gateway = addr("192.0.2.1");
	a.prefsrc = addr("192.0.2.2");
	for (i = 0; i < N(v); i++)
		v[i] = a;
	v[0].dst = prefix("10.0.0.0/9");
	v[1].table++;
	v[2].protocol++;
	v[3].type = RTN_BLACKHOLE;
	v[4].scope = RT_SCOPE_HOST;
	v[5].metric++;
	v[6].oif++;
	v[7].gateway.bytes[3]++;
	v[8].prefsrc.family = 0;
	v[9].extra = true;
	assert_true(rtnl_route_equal(&a, &a));
	for (i = 0; i < N(v); i++)
		assert_false(rtnl_route_equal(&a, &v[i]));
}

static struct rtnl_rule sample_rule(void)
{
	return (struct rtnl_rule){
		.family = AF_INET, .src = prefix("10.64.0.2"),
		.dst = prefix("203.0.113.0/24"), .mark = 0x2000,
		.mask = 0x3f00, .iif = "eth0", .priority = 18200,
		.table = 51820, .action = FR_ACT_TO_TBL,
		.protocol = RTNL_PROTO_GARBOARD,
	};
}

static void rules_round_trip(void **state)
{
	alignas(struct nlmsghdr) unsigned char buf[512];
	struct rtnl_rule t[3], back;
	char text[RTNL_TEXT_MAX];
	size_t i;

	(void)state;
	t[0] = sample_rule();
	t[1] = (struct rtnl_rule){ .family = AF_INET6,
				   .src = prefix("2001:db8::/64"),
				   .priority = 1, .table = 254,
				   .action = FR_ACT_TO_TBL };
	t[2] = (struct rtnl_rule){ .family = AF_INET6, .mask = 0xff,
				   .table = 51820,
				   .action = FR_ACT_TO_TBL };
	for (i = 0; i < N(t); i++) {
		assert_int_equal(rtnl_rule_encode(&t[i], RTM_NEWRULE, 0, buf,
						  sizeof(buf)), 0);
		assert_int_equal(rtnl_rule_decode((void *)buf, &back), 0);
		assert_true(rtnl_rule_equal(&t[i], &back));
	}
	assert_string_equal(rtnl_rule_format(&t[0], text),
			    "18200: from 10.64.0.2/32 to 203.0.113.0/24 "
			    "fwmark 0x2000/0x3f00 iif eth0 lookup 51820");
	assert_int_equal(rtnl_rule_encode(&t[0], RTM_NEWRULE, 0, buf, 40),
			 -EMSGSIZE);
}

static void every_rule_property_counts(void **state)
{
	struct rtnl_rule a = sample_rule(), v[11];
	size_t i;

	(void)state;
	for (i = 0; i < N(v); i++)
		v[i] = a;
	v[0].family = AF_INET6;
	v[1].src = prefix("10.64.0.3");
	v[2].dst.len = 0;
	v[3].mark++;
	v[4].mask = 0;
	v[5].iif[0] = '\0';
	v[6].priority++;
	v[7].table++;
	v[8].action = FR_ACT_BLACKHOLE;
	v[9].protocol = 0;
	v[10].extra = true;
	assert_true(rtnl_rule_equal(&a, &a));
	for (i = 0; i < N(v); i++)
		assert_false(rtnl_rule_equal(&a, &v[i]));
}

/* A selector nobody modelled must never look like a rule of ours. */
static void unknown_is_extra(void **state)
{
	alignas(struct nlmsghdr) unsigned char buf[512];
	struct rtnl_rule rule = sample_rule();
	struct rtnl_route route = sample_route("10.0.0.0/8");
	struct fib_rule_hdr *m = (void *)(buf + NLMSG_HDRLEN);

	(void)state;
	(void)rtnl_rule_encode(&rule, RTM_NEWRULE, 0, buf, sizeof(buf));
	mnl_attr_put_u32((void *)buf, FRA_SUPPRESS_PREFIXLEN, UINT32_MAX);
	assert_int_equal(rtnl_rule_decode((void *)buf, &rule), 0);
	assert_false(rule.extra);
	mnl_attr_put_u32((void *)buf, FRA_SUPPRESS_PREFIXLEN, 0);
	assert_int_equal(rtnl_rule_decode((void *)buf, &rule), 0);
	assert_true(rule.extra);

	rule = sample_rule();
	(void)rtnl_rule_encode(&rule, RTM_NEWRULE, 0, buf, sizeof(buf));
	m->flags = FIB_RULE_INVERT;
	assert_int_equal(rtnl_rule_decode((void *)buf, &rule), 0);
	assert_true(rule.extra);

	(void)rtnl_route_encode(&route, RTM_NEWROUTE, 0, buf, sizeof(buf));
	mnl_attr_put_u32((void *)buf, RTA_NH_ID, 5);
	assert_int_equal(rtnl_route_decode((void *)buf, &route), 0);
	assert_true(route.extra);
}

/* Every shorter message is refused or decodes without reading beyond. */
static void truncated(void **state)
{
	alignas(struct nlmsghdr) unsigned char buf[512], cut[512];
	struct nlmsghdr *nlh = (void *)buf;
	struct rtnl_rule rule = sample_rule();
	struct rtnl_link link;
	struct rtnl_addr a;
	struct rtnl_route route;
	uint32_t n;

	(void)state;
	(void)rtnl_rule_encode(&rule, RTM_NEWRULE, 0, buf, sizeof(buf));
	for (n = NLMSG_HDRLEN; n < nlh->nlmsg_len; n++) {
		(void)memset(cut, 0xff, sizeof(cut));
		(void)memcpy(cut, buf, n);
		((struct nlmsghdr *)(void *)cut)->nlmsg_len = n;
		(void)rtnl_rule_decode((void *)cut, &rule);
		(void)rtnl_route_decode((void *)cut, &route);
		(void)rtnl_addr_decode((void *)cut, &a);
		(void)rtnl_link_decode((void *)cut, &link);
		if (n < NLMSG_HDRLEN + sizeof(struct fib_rule_hdr))
			assert_int_equal(rtnl_rule_decode((void *)cut, &rule),
					 -EBADMSG);
	}
	/* An IPv6 address in an IPv4 rule. */
	nlh->nlmsg_len = NLMSG_HDRLEN + sizeof(struct fib_rule_hdr);
	mnl_attr_put(nlh, FRA_SRC, 16, cut);
	assert_int_equal(rtnl_rule_decode(nlh, &rule), -EBADMSG);
}

static void links_and_addresses(void **state)
{
	alignas(struct nlmsghdr) unsigned char buf[512];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *m = mnl_nlmsg_put_extra_header(nlh, sizeof(*m));
	struct ifaddrmsg *im;
	struct rtnl_link l;
	struct rtnl_addr a;
	struct nlattr *nest;

	(void)state;
	m->ifi_index = 9;
	m->ifi_flags = IFF_UP;
	mnl_attr_put_strz(nlh, IFLA_IFNAME, "eth0.5");
	mnl_attr_put_u32(nlh, IFLA_LINK, 2);
	mnl_attr_put_u32(nlh, IFLA_MASTER, 4);
	nest = mnl_attr_nest_start(nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(nlh, IFLA_INFO_KIND, "vlan");
	mnl_attr_nest_end(nlh, nest);
	assert_int_equal(rtnl_link_decode(nlh, &l), 0);
	assert_string_equal(l.name, "eth0.5");
	assert_string_equal(l.kind, "vlan");
	assert_int_equal(l.lower, 2);
	assert_int_equal(l.master, 4);
	assert_false(l.hardware);
	/* The lower device of a veth is in another namespace. */
	mnl_attr_put_u32(nlh, IFLA_LINK_NETNSID, 1);
	mnl_attr_put_strz(nlh, IFLA_PARENT_DEV_NAME, "0000:00:01.0");
	assert_int_equal(rtnl_link_decode(nlh, &l), 0);
	assert_int_equal(l.lower, 0);
	assert_true(l.hardware);
	assert_false(l.xdp);
	nest = mnl_attr_nest_start(nlh, IFLA_XDP);
	mnl_attr_put_u8(nlh, IFLA_XDP_ATTACHED, XDP_ATTACHED_SKB);
	mnl_attr_nest_end(nlh, nest);
	assert_int_equal(rtnl_link_decode(nlh, &l), 0);
	assert_true(l.xdp);
	mnl_attr_put_strz(nlh, IFLA_IFNAME, "a-name-that-is-too-long");
	assert_int_equal(rtnl_link_decode(nlh, &l), -EBADMSG);

	nlh = mnl_nlmsg_put_header(buf);
	im = mnl_nlmsg_put_extra_header(nlh, sizeof(*im));
	*im = (struct ifaddrmsg){ AF_INET, 24, 0, RT_SCOPE_UNIVERSE, 3 };
	mnl_attr_put(nlh, IFA_LOCAL, 4, "\x0a\x40\x00\x02");
	mnl_attr_put(nlh, IFA_ADDRESS, 4, "\x0a\x40\x00\x01");
	assert_int_equal(rtnl_addr_decode(nlh, &a), 0);
	assert_int_equal(a.prefix.addr.bytes[3], 2);
	assert_int_equal(a.prefix.len, 24);
	im->ifa_prefixlen = 33;
	assert_int_equal(rtnl_addr_decode(nlh, &a), -EBADMSG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes_round_trip),
		cmocka_unit_test(every_route_property_counts),
		cmocka_unit_test(rules_round_trip),
		cmocka_unit_test(every_rule_property_counts),
		cmocka_unit_test(unknown_is_extra),
		cmocka_unit_test(truncated),
		cmocka_unit_test(links_and_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
