/*
 * tc.h - which devices have a traffic-control filter that can send a packet
 * to another device, behind the back of netfilter (FACTS S3).
 *
 * Reads qdiscs and filters over rtnetlink and changes nothing. What it takes
 * for able: a BPF program that acts by itself, and any filter whose options
 * hold the actions mirred or bpf. Programs attached by tcx links (since 6.6)
 * are not told over netlink and are not seen.
 */
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/nl/nl_sock.h"

#define TC_NAME_MAX 64
#define TC_REDIRECTS_MAX 256	/* the rest is not looked at */

struct tc_redirect {
	int index;		/* of the device */
	char name[TC_NAME_MAX];	/* of the program, or "mirred" */
	bool program;
};

struct tc_redirects {
	struct tc_redirect v[TC_REDIRECTS_MAX];
	size_t n;
};

/* Pure: 1 and the value, 0: a filter that stays on its device. */
int tc_filter_decode(const struct nlmsghdr *nlh, struct tc_redirect *ret);

/* Every filter that is able, of all devices; one per device and side. */
int tc_redirect_dump(struct nl_sock *s, struct tc_redirects *ret,
		     struct fault *f);
