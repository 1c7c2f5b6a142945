/*
 * nl_notify.h - netlink subscriptions: a socket that only listens.
 *
 * Groups are joined before the first look, so that nothing falls between.
 * Losing messages is normal (ENOBUFS): it is told as NL_NOTIFY_LOST, which
 * means "look again at everything" and never "nothing happened".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/nl/nl_reply.h"

struct nl_notify;

enum {
	NL_NOTIFY_LOST = 1,
};

/* `groups` are multicast group numbers, not a mask. */
int nl_notify_open(int bus, const unsigned int *groups, size_t n_groups,
		   struct nl_notify **ret_notify, struct fault *f);
struct nl_notify *nl_notify_free(struct nl_notify *n);	/* returns NULL */

int nl_notify_fd(const struct nl_notify *n);

/*
 * Reads everything that is queued, without waiting, at most a bounded
 * number of datagrams (level-triggered callers come back). 0, or
 * NL_NOTIFY_LOST, or the first error of the handler.
 */
int nl_notify_drain(struct nl_notify *n, nl_handler handler, void *userdata);
