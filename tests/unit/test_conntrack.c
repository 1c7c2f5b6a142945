/* Conntrack entries: decoding, what is of a class, and what is deleted. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>

#include "agent/nl/conntrack.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

union message {
	struct nlmsghdr nlh;
	unsigned char bytes[512];
};

static void put_addr(struct nlmsghdr *nlh, uint16_t type, const char *text)
{
	struct ip_addr a;

	assert_int_equal(ip_addr_parse(text, &a), 0);
	mnl_attr_put(nlh, type, a.family == AF_INET6 ? 16 : 4, a.bytes);
}

static void make(union message *m, const char *source, const char *dest,
		 uint32_t mark)
{
	bool v6 = strchr(source, ':');
	struct nlattr *tuple, *nest;

	(void)memset(m, 0, sizeof(*m));
	(void)mnl_nlmsg_put_header(m);
	m->nlh.nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW;
	(void)mnl_nlmsg_put_extra_header(&m->nlh, sizeof(struct nfgenmsg));
	tuple = mnl_attr_nest_start(&m->nlh, CTA_TUPLE_ORIG);
	nest = mnl_attr_nest_start(&m->nlh, CTA_TUPLE_IP);
	put_addr(&m->nlh, v6 ? CTA_IP_V6_SRC : CTA_IP_V4_SRC, source);
	put_addr(&m->nlh, v6 ? CTA_IP_V6_DST : CTA_IP_V4_DST, dest);
	mnl_attr_nest_end(&m->nlh, nest);
	nest = mnl_attr_nest_start(&m->nlh, CTA_TUPLE_PROTO);
	mnl_attr_put_u8(&m->nlh, CTA_PROTO_NUM, 17);
	mnl_attr_nest_end(&m->nlh, nest);
	mnl_attr_nest_end(&m->nlh, tuple);
	mnl_attr_put_u32(&m->nlh, CTA_MARK, htonl(mark));
	mnl_attr_put_u32(&m->nlh, CTA_ID, htonl(0x1234567));
	mnl_attr_put_u16(&m->nlh, CTA_ZONE, htons(7));
}

static void only_the_class_beyond_local(void **state)
{
	static const struct {
		const char *source, *dest;
		uint32_t mark;
		bool matches;
	} rows[] = {
		{ "10.44.0.5", "198.51.100.1", 0, true },
		{ "10.45.0.5", "198.51.100.1", 0, true },
		{ "fd44::5", "2001:db8::1", 0, true },
		{ "10.44.0.5", "192.0.2.9", 0, false },
		{ "10.43.0.5", "198.51.100.1", 0, false },
		{ "198.51.100.1", "10.44.0.5", 0, false },
		{ "192.0.2.1", "198.51.100.1", 0x2001, true },
		{ "192.0.2.1", "198.51.100.1", 0x3001, false },
		{ "192.0.2.1", "192.0.2.9", 0x2001, false },
	};
	struct ip_prefix pods[2], source, local;
	struct prefix_list p = { pods, 2 }, s = { &source, 1 },
			   l = { &local, 1 };
	struct conntrack_match match = { .pods = &p, .sources = &s,
					 .local = &l, .mark = 0x2000,
					 .mask = 0x3f00 };
	size_t i;

	(void)state;
	assert_int_equal(ip_prefix_parse("10.44.0.0/20", &pods[0]), 0);
	assert_int_equal(ip_prefix_parse("fd44::/64", &pods[1]), 0);
	assert_int_equal(ip_prefix_parse("10.45.0.5", &source), 0);
	assert_int_equal(ip_prefix_parse("192.0.2.0/24", &local), 0);
	for (i = 0; i < N(rows); i++) {
		struct conntrack_entry e;
		union message m;

		make(&m, rows[i].source, rows[i].dest, rows[i].mark);
		assert_int_equal(conntrack_decode(&m.nlh, &e), 0);
		if (conntrack_matches(&match, &e) != rows[i].matches)
			fail_msg("%s to %s", rows[i].source, rows[i].dest);
	}
}

static void a_deletion_names_one_entry(void **state)
{
	struct conntrack_entry e, back;
	union message m, d;

	(void)state;
	make(&m, "fd44::5", "2001:db8::1", 5);
	assert_int_equal(conntrack_decode(&m.nlh, &e), 0);
	assert_int_equal(e.id, 0x1234567);
	assert_int_equal(e.zone, 7);
	(void)memset(&d, 0, sizeof(d));
	(void)conntrack_encode_delete(&e, &d);
	assert_true(d.nlh.nlmsg_len <= CONNTRACK_REQUEST_MAX);
	assert_int_equal(d.nlh.nlmsg_type,
			 NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE);
	d.nlh.nlmsg_type = m.nlh.nlmsg_type;
	assert_int_equal(conntrack_decode(&d.nlh, &back), 0);
	assert_int_equal(back.id, e.id);
	assert_int_equal(back.zone, e.zone);
	assert_int_equal(back.tuple_size, e.tuple_size);
	assert_memory_equal(back.tuple, e.tuple, e.tuple_size);
}

static void cut_messages_are_no_entries(void **state)
{
	struct conntrack_entry e;
	union message m;
	uint32_t len;

	(void)state;
	make(&m, "10.44.0.5", "198.51.100.1", 0);
	for (len = NLMSG_HDRLEN; len < 56; len += 4) {
		m.nlh.nlmsg_len = len;
		assert_int_equal(conntrack_decode(&m.nlh, &e), -EBADMSG);
	}
	make(&m, "10.44.0.5", "198.51.100.1", 0);
	m.nlh.nlmsg_type = 0x10;
	assert_int_equal(conntrack_decode(&m.nlh, &e), -EBADMSG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_class_beyond_local),
		cmocka_unit_test(a_deletion_names_one_entry),
		cmocka_unit_test(cut_messages_are_no_entries),
	};

	return cmocka_run_group_tests_name("conntrack", tests, NULL, NULL);
}
