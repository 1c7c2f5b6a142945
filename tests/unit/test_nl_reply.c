/* nl/nl_reply: the end of an answer, wherever it stands. */
#include <errno.h>
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>

#include "agent/nl/nl_reply.h"

#define SEQ 7
#define PORT 4711

struct datagram {
	alignas(struct nlmsghdr) unsigned char buf[1024];
	size_t size;
};

static struct nlmsghdr *append(struct datagram *d, uint16_t type,
			       uint16_t flags, const void *payload,
			       size_t size)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(d->buf + d->size);

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = flags;
	nlh->nlmsg_seq = SEQ;
	nlh->nlmsg_pid = PORT;
	if (size)
		(void)memcpy(mnl_nlmsg_put_extra_header(nlh, size), payload,
			     size);
	d->size += nlh->nlmsg_len;
	return nlh;
}

static int count(const struct nlmsghdr *nlh, void *userdata)
{
	(void)nlh;
	(*(int *)userdata)++;
	return 0;
}

static int refuse(const struct nlmsghdr *nlh, void *userdata)
{
	(void)nlh;
	(*(int *)userdata)++;
	return -EBADMSG;
}

static struct nl_reply reply(nl_handler h, int *n, struct fault *f)
{
	return (struct nl_reply){ .seq = SEQ, .portid = PORT, .handler = h,
				  .userdata = n, .fault = f };
}

static const int zero;

static void one_datagram(void **state)
{
	struct datagram d = { 0 };
	int n = 0;
	struct nl_reply r = reply(count, &n, NULL);

	(void)state;
	(void)append(&d, 24, NLM_F_MULTI, &zero, 4);
	(void)append(&d, 24, NLM_F_MULTI, &zero, 4);
	(void)append(&d, NLMSG_DONE, NLM_F_MULTI, &zero, 4);
	nl_reply_feed(&r, d.buf, d.size);
	assert_true(r.done);
	assert_int_equal(r.err, 0);
	assert_int_equal(n, 2);
	assert_false(r.interrupted);
}

static void two_datagrams(void **state)
{
	struct datagram a = { 0 }, b = { 0 };
	int n = 0;
	struct nl_reply r = reply(count, &n, NULL);

	(void)state;
	(void)append(&a, 24, NLM_F_MULTI, &zero, 4);
	(void)append(&b, NLMSG_DONE, NLM_F_MULTI, &zero, 4);
	nl_reply_feed(&r, a.buf, a.size);
	assert_false(r.done);
	nl_reply_feed(&r, b.buf, b.size);
	assert_true(r.done);
	assert_int_equal(n, 1);
}

static void foreign_messages_are_skipped(void **state)
{
	struct datagram d = { 0 };
	int n = 0;
	struct nl_reply r = reply(count, &n, NULL);

	(void)state;
	append(&d, 24, 0, &zero, 4)->nlmsg_seq = SEQ - 1;
	append(&d, 24, 0, &zero, 4)->nlmsg_pid = PORT + 1;
	append(&d, NLMSG_DONE, 0, &zero, 4)->nlmsg_seq = SEQ + 1;
	nl_reply_feed(&r, d.buf, d.size);
	assert_false(r.done);
	assert_int_equal(n, 0);
}

static void handler_error_does_not_end_it(void **state)
{
	struct datagram d = { 0 };
	int n = 0;
	struct nl_reply r = reply(refuse, &n, NULL);

	(void)state;
	(void)append(&d, 24, NLM_F_MULTI, &zero, 4);
	(void)append(&d, 24, NLM_F_MULTI | NLM_F_DUMP_INTR, &zero, 4);
	nl_reply_feed(&r, d.buf, d.size);
	assert_false(r.done);
	(void)append(&d, NLMSG_DONE, 0, &zero, 4);
	nl_reply_feed(&r, d.buf, d.size);
	assert_true(r.done);
	assert_true(r.interrupted);
	assert_int_equal(r.err, -EBADMSG);
}

static void kernel_text(void **state)
{
	static const uint16_t flags[] = { NLM_F_ACK_TLVS | NLM_F_CAPPED,
					  NLM_F_ACK_TLVS };
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct nlmsgerr e = { .error = -EPERM,
				      .msg.nlmsg_len = NLMSG_HDRLEN };
		struct datagram d = { 0 };
		struct fault f = FAULT_INIT;
		struct nl_reply r = reply(NULL, NULL, &f);
		struct nlmsghdr *nlh;

		nlh = append(&d, NLMSG_ERROR, flags[i], &e, sizeof(e));
		mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, "not for you");
		nl_reply_feed(&r, d.buf, nlh->nlmsg_len);
		assert_true(r.done);
		assert_int_equal(r.err, -EPERM);
		assert_non_null(strstr(f.text, "not for you"));
	}
}

static void bad_input(void **state)
{
	static const int wild = INT32_MIN;
	struct datagram d = { 0 };
	struct fault f = FAULT_INIT;
	struct nl_reply r = reply(NULL, NULL, &f);

	(void)state;
	(void)append(&d, 24, 0, &zero, 4);
	nl_reply_feed(&r, d.buf, d.size - 2);
	assert_true(r.done);
	assert_int_equal(r.err, -EBADMSG);

	d.size = 0;
	r = reply(NULL, NULL, NULL);
	(void)append(&d, NLMSG_ERROR, 0, &wild, 4);
	nl_reply_feed(&r, d.buf, d.size);
	assert_int_equal(r.err, -EBADMSG);

	d.size = 0;
	r = reply(NULL, NULL, NULL);
	(void)append(&d, NLMSG_DONE, 0, &wild, 4);
	nl_reply_feed(&r, d.buf, d.size);
	assert_int_equal(r.err, -EBADMSG);

	/* The request it claims to echo would reach beyond the message. */
	d.size = 0;
	r = reply(NULL, NULL, NULL);
	(void)append(&d, NLMSG_ERROR, NLM_F_ACK_TLVS,
		     &(struct nlmsgerr){ .error = -EINVAL,
					 .msg.nlmsg_len = UINT32_MAX },
		     sizeof(struct nlmsgerr));
	nl_reply_feed(&r, d.buf, d.size);
	assert_int_equal(r.err, -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_datagram),
		cmocka_unit_test(two_datagrams),
		cmocka_unit_test(foreign_messages_are_skipped),
		cmocka_unit_test(handler_error_does_not_end_it),
		cmocka_unit_test(kernel_text),
		cmocka_unit_test(bad_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
