/*
 * nl_reply.h - the answer to one netlink request, as a pure state machine.
 *
 * Fed one datagram after the other, it checks sequence number and port id,
 * hands each message to a handler, and knows when the answer has ended: at
 * NLMSG_DONE or NLMSG_ERROR, wherever in a datagram that stands. It does no
 * I/O. A handler that fails does not end the answer: the rest is still
 * consumed and the first error kept (H29).
 */
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"

/* 0 or negative errno; the message is complete and only borrowed. */
typedef int (*nl_handler)(const struct nlmsghdr *nlh, void *userdata);

struct nl_reply {
	uint32_t seq, portid;	/* what an answer must carry */
	nl_handler handler;	/* may be NULL */
	void *userdata;
	struct fault *fault;	/* may be NULL */

	bool done;		/* the end has been seen */
	bool interrupted;	/* NLM_F_DUMP_INTR was set somewhere */
	int err;		/* first error; valid when done */
};

/*
 * One datagram. Messages of other requests are skipped; a datagram that is
 * not a sequence of whole messages is -EBADMSG in `err`, and ends it.
 */
void nl_reply_feed(struct nl_reply *r, const void *data, size_t size);

/*
 * The error a NLMSG_ERROR or NLMSG_DONE message carries, 0 if none; the
 * kernel's own text goes into the fault.
 */
int nl_reply_error(const struct nlmsghdr *nlh, struct fault *f);
