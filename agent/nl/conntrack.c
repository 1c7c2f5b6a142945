#include "agent/nl/conntrack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cleanup.h"

#define ROUND_MAX 4096		/* entries deleted after one listing */
#define ROUNDS_MAX 64

/* ---- one entry ---- */

static int get_addr(const struct nlattr *a, uint8_t family,
		    struct ip_addr *ret_addr)
{
	struct ip_addr addr = { .family = family };
	size_t bytes = family == AF_INET6 ? 16 : 4;

	if (mnl_attr_get_payload_len(a) != bytes)
		return -EBADMSG;
	(void)memcpy(addr.bytes, mnl_attr_get_payload(a), bytes);
	*ret_addr = addr;
	return 0;
}

static int decode_addresses(const struct nlattr *nest,
			    struct conntrack_entry *e)
{
	const struct nlattr *a;
	int r = 0;

	mnl_attr_for_each_nested(a, nest) {
		switch (mnl_attr_get_type(a)) {
		case CTA_IP_V4_SRC:
			r = get_addr(a, AF_INET, &e->source);
			break;
		case CTA_IP_V4_DST:
			r = get_addr(a, AF_INET, &e->dest);
			break;
		case CTA_IP_V6_SRC:
			r = get_addr(a, AF_INET6, &e->source);
			break;
		case CTA_IP_V6_DST:
			r = get_addr(a, AF_INET6, &e->dest);
			break;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int decode_tuple(const struct nlattr *nest, struct conntrack_entry *e)
{
	size_t size = mnl_attr_get_payload_len(nest);
	const struct nlattr *a;
	int r;

	if (size > sizeof(e->tuple))
		return -EBADMSG;
	(void)memcpy(e->tuple, mnl_attr_get_payload(nest), size);
	e->tuple_size = (uint16_t)size;
	mnl_attr_for_each_nested(a, nest) {
		if (mnl_attr_get_type(a) != CTA_TUPLE_IP)
			continue;
		r = decode_addresses(a, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int get_number(const struct nlattr *a, uint32_t *ret_number)
{
	if (mnl_attr_get_payload_len(a) != sizeof(uint32_t))
		return -EBADMSG;
	*ret_number = ntohl(mnl_attr_get_u32(a));
	return 0;
}

static int decode_attr(const struct nlattr *a, struct conntrack_entry *e)
{
	switch (mnl_attr_get_type(a)) {
	case CTA_TUPLE_ORIG:
		return decode_tuple(a, e);
	case CTA_MARK:
		return get_number(a, &e->mark);
	case CTA_ID:
		return get_number(a, &e->id);
	case CTA_ZONE:
		if (mnl_attr_get_payload_len(a) != sizeof(uint16_t))
			return -EBADMSG;
		e->zone = ntohs(mnl_attr_get_u16(a));
		return 0;
	}
	return 0;
}

int conntrack_decode(const struct nlmsghdr *nlh,
		     struct conntrack_entry *ret_entry)
{
	struct conntrack_entry e = { .id = 0 };
	const struct nlattr *a;
	int r;

	if (nlh->nlmsg_type != (NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW) ||
	    mnl_nlmsg_get_payload_len(nlh) < sizeof(struct nfgenmsg))
		return -EBADMSG;
	mnl_attr_for_each(a, nlh, sizeof(struct nfgenmsg)) {
		r = decode_attr(a, &e);
		if (r < 0)
			return r;
	}
	if (!e.source.family || e.source.family != e.dest.family)
		return -EBADMSG;
	*ret_entry = e;
	return 0;
}

static bool contains(const struct prefix_list *list, const struct ip_addr *a)
{
	return list && prefix_list_contains(list, a);
}

bool conntrack_matches(const struct conntrack_match *match,
		       const struct conntrack_entry *entry)
{
	if (contains(match->local, &entry->dest))
		return false;
	return contains(match->pods, &entry->source) ||
	       contains(match->sources, &entry->source) ||
	       (match->mask && (entry->mark & match->mask) == match->mark);
}

struct nlmsghdr *conntrack_encode_delete(const struct conntrack_entry *entry,
					 void *buf)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *h;

	nlh->nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE;
	h = mnl_nlmsg_put_extra_header(nlh, sizeof(*h));
	h->nfgen_family = entry->source.family;
	h->version = NFNETLINK_V0;
	mnl_attr_put(nlh, CTA_TUPLE_ORIG | NLA_F_NESTED, entry->tuple_size,
		     entry->tuple);
	/* One that took the place of this one since is another flow. */
	mnl_attr_put_u32(nlh, CTA_ID, htonl(entry->id));
	if (entry->zone)
		mnl_attr_put_u16(nlh, CTA_ZONE, htons(entry->zone));
	return nlh;
}

/* ---- the table ---- */

struct round {
	const struct conntrack_match *match;
	struct conntrack_entry *v;
	size_t n;
	bool more;
};

static int collect(const struct nlmsghdr *nlh, void *userdata)
{
	struct round *round = userdata;
	struct conntrack_entry e;

	/* What cannot be told to be of the class is left alone. */
	if (conntrack_decode(nlh, &e) < 0 ||
	    !conntrack_matches(round->match, &e))
		return 0;
	if (round->n == ROUND_MAX) {
		round->more = true;
		return 0;
	}
	round->v[round->n++] = e;
	return 0;
}

static void collect_again(void *userdata)
{
	struct round *round = userdata;

	round->n = 0;
	round->more = false;
}

static int list(struct nl_sock *s, struct round *round, struct fault *f)
{
	alignas(struct nlmsghdr) unsigned char buf[CONNTRACK_REQUEST_MAX];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct fault own = FAULT_INIT;
	struct nfgenmsg *h;
	int r;

	nlh->nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET;
	h = mnl_nlmsg_put_extra_header(nlh, sizeof(*h));
	h->nfgen_family = AF_UNSPEC;
	h->version = NFNETLINK_V0;
	collect_again(round);
	r = nl_sock_dump(s, nlh, collect, collect_again, round, &own);
	/* The answer of a kernel without that part of netfilter. */
	if (r == -EINVAL || r == -EOPNOTSUPP)
		return 0;
	/* Connections come and go all the time: what was seen is there. */
	if (r == -EAGAIN) {
		round->more = true;
		return 0;
	}
	return r < 0 ? fault_set(f, r, "conntrack", "%s", own.text) : 0;
}

static int delete_round(struct nl_sock *s, const struct round *round,
			size_t *deleted, struct fault *f)
{
	alignas(struct nlmsghdr) unsigned char buf[CONNTRACK_REQUEST_MAX];
	int first = 0, r;
	size_t i;

	for (i = 0; i < round->n; i++) {
		struct fault own = FAULT_INIT;

		r = nl_sock_request(s, conntrack_encode_delete(&round->v[i],
							       buf),
				    NULL, NULL, &own);
		if (r == 0)
			(*deleted)++;
		if (r == 0 || r == -ENOENT || first < 0)
			continue;
		first = fault_set(f, r, "conntrack", "%s", own.text);
	}
	return first;
}

int conntrack_forget(struct nl_sock *s, const struct conntrack_match *match,
		     size_t *ret_deleted, struct fault *f)
{
	_cleanup_free_ struct conntrack_entry *v = NULL;
	struct round round = { .match = match };
	size_t deleted = 0;
	int i, r = 0;

	v = reallocarray(NULL, ROUND_MAX, sizeof(*v));
	if (!v)
		return fault_errno(f, -ENOMEM, "conntrack", "list");
	round.v = v;
	round.more = true;
	for (i = 0; i < ROUNDS_MAX && round.more && r == 0; i++) {
		r = list(s, &round, f);
		if (r == 0)
			r = delete_round(s, &round, &deleted, f);
	}
	if (r < 0)
		return r;
	if (round.more)
		return fault_set(f, -E2BIG, "conntrack",
				 "flows come faster than they are forgotten");
	*ret_deleted = deleted;
	return 0;
}
