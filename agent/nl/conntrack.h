/*
 * conntrack.h - forgets the connections of a class.
 *
 * A flow that was opened before its class was armed is known to conntrack,
 * and whatever goes by that (address translation, flow tables that pass by
 * every hook but the device's own) goes on doing so (FACTS S7). Entries
 * whose original source lies in the class, or whose mark is the class's,
 * and that lead beyond the local prefixes, are listed and deleted one by
 * one, each by its own tuple and number: a deletion by filter is not there
 * on Linux 6.1, and one by source alone is refused everywhere.
 *
 * A kernel without conntrack has no entries: 0. Nothing else is touched.
 */
#pragma once

#include "agent/nl/nl_sock.h"
#include "proto/desired.h"

#define CONNTRACK_TUPLE_MAX 128

struct conntrack_match {
	const struct prefix_list *pods, *sources;	/* NULL: none */
	const struct prefix_list *local;	/* flows to these are kept */
	uint32_t mark, mask;			/* mask 0: no mark */
};

/* One entry of the table, as far as it decides and names it. */
struct conntrack_entry {
	struct ip_addr source, dest;	/* of the original direction */
	uint32_t mark, id;
	uint16_t zone;			/* 0: none */
	uint16_t tuple_size;
	uint8_t tuple[CONNTRACK_TUPLE_MAX];	/* CTA_TUPLE_ORIG as it came */
};

/* Pure. -EBADMSG: not an entry, or one without addresses. */
int conntrack_decode(const struct nlmsghdr *nlh,
		     struct conntrack_entry *ret_entry);
bool conntrack_matches(const struct conntrack_match *match,
		       const struct conntrack_entry *entry);

#define CONNTRACK_REQUEST_MAX 256
/* The request that deletes this entry, in CONNTRACK_REQUEST_MAX bytes. */
struct nlmsghdr *conntrack_encode_delete(const struct conntrack_entry *entry,
					 void *buf);

/*
 * `s` is a netfilter socket. *ret_deleted counts what was deleted; a flow
 * that ended meanwhile is no error. -E2BIG: new ones came faster than they
 * could be deleted.
 */
int conntrack_forget(struct nl_sock *s, const struct conntrack_match *match,
		     size_t *ret_deleted, struct fault *f);
