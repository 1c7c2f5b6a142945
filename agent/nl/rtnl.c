#include "agent/nl/rtnl.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define REQUEST_MAX 512
#define GROW_MIN 16

/*
 * The list `v` with room for one more behind `n`; NULL without memory or
 * beyond the limit. Capacities are GROW_MIN and its doublings, so `n` tells
 * when to grow.
 */
static void *list_room(void *v, size_t n, size_t size)
{
	if (n >= RTNL_LIST_MAX)
		return NULL;
	if (n != 0 && (n < GROW_MIN || (n & (n - 1)) != 0))
		return v;
	return reallocarray(v, n < GROW_MIN ? GROW_MIN : 2 * n, size);
}

/* Where an append to a list began, for a dump that starts again. */
struct collect {
	void *list;
	size_t *n;
	size_t start;
};

static void collect_restart(void *userdata)
{
	struct collect *c = userdata;

	*c->n = c->start;
}

static int collect_link(const struct nlmsghdr *nlh, void *userdata)
{
	struct rtnl_links *l = ((struct collect *)userdata)->list;
	struct rtnl_link *v;
	int r;

	if (nlh->nlmsg_type != RTM_NEWLINK)
		return 0;
	v = list_room(l->v, l->n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	l->v = v;
	r = rtnl_link_decode(nlh, &v[l->n]);
	l->n += r == 0;
	return r;
}

static int collect_addr(const struct nlmsghdr *nlh, void *userdata)
{
	struct rtnl_addrs *l = ((struct collect *)userdata)->list;
	struct rtnl_addr *v;
	int r;

	if (nlh->nlmsg_type != RTM_NEWADDR)
		return 0;
	v = list_room(l->v, l->n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	l->v = v;
	r = rtnl_addr_decode(nlh, &v[l->n]);
	l->n += r == 0;
	return r;
}

/* Multicast routing and MPLS answer a dump of all families as well. */
static bool foreign_family(const struct nlmsghdr *nlh)
{
	const struct rtgenmsg *g = mnl_nlmsg_get_payload(nlh);

	return mnl_nlmsg_get_payload_len(nlh) < sizeof(*g) ||
	       (g->rtgen_family != AF_INET && g->rtgen_family != AF_INET6);
}

static int collect_route(const struct nlmsghdr *nlh, void *userdata)
{
	struct rtnl_routes *l = ((struct collect *)userdata)->list;
	struct rtnl_route *v;
	int r;

	if (nlh->nlmsg_type != RTM_NEWROUTE || foreign_family(nlh))
		return 0;
	v = list_room(l->v, l->n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	l->v = v;
	r = rtnl_route_decode(nlh, &v[l->n]);
	l->n += r == 0;
	return r;
}

static int collect_rule(const struct nlmsghdr *nlh, void *userdata)
{
	struct rtnl_rules *l = ((struct collect *)userdata)->list;
	struct rtnl_rule *v;
	int r;

	if (nlh->nlmsg_type != RTM_NEWRULE || foreign_family(nlh))
		return 0;
	v = list_room(l->v, l->n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	l->v = v;
	r = rtnl_rule_decode(nlh, &v[l->n]);
	l->n += r == 0;
	return r;
}

static struct nlmsghdr *request(void *buf, uint16_t type, size_t header,
				void **ret_header)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	nlh->nlmsg_type = type;
	*ret_header = mnl_nlmsg_put_extra_header(nlh, header);
	return nlh;
}

/* Statistics make up most of a link message: leave them out. */
static void put_link_mask(struct nlmsghdr *nlh)
{
	mnl_attr_put_u32(nlh, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
}

int rtnl_link_dump(struct nl_sock *s, struct rtnl_links *links,
		   struct fault *f)
{
	alignas(struct nlmsghdr) unsigned char buf[REQUEST_MAX];
	struct collect c = { links, &links->n, 0 };
	void *header;
	struct nlmsghdr *nlh =
		request(buf, RTM_GETLINK, sizeof(struct ifinfomsg), &header);

	links->n = 0;
	put_link_mask(nlh);
	return nl_sock_dump(s, nlh, collect_link, collect_restart, &c, f);
}

static int one_link(const struct nlmsghdr *nlh, void *userdata)
{
	if (nlh->nlmsg_type != RTM_NEWLINK)
		return 0;
	return rtnl_link_decode(nlh, userdata);
}

int rtnl_link_get(struct nl_sock *s, const char *name,
		  struct rtnl_link *ret_link, struct fault *f)
{
	alignas(struct nlmsghdr) unsigned char buf[REQUEST_MAX];
	struct fault own = FAULT_INIT;
	struct rtnl_link link = { 0 };
	void *header;
	struct nlmsghdr *nlh =
		request(buf, RTM_GETLINK, sizeof(struct ifinfomsg), &header);
	int r;

	put_link_mask(nlh);
	if (!mnl_attr_put_strz_check(nlh, sizeof(buf), IFLA_IFNAME, name))
		return fault_set(f, -EINVAL, name, "name too long");
	r = nl_sock_request(s, nlh, one_link, &link, &own);
	if (r == -ENODEV)
		return r;
	if (r < 0)
		return fault_set(f, r, name, "%s", own.text);
	if (!link.index)
		return fault_set(f, -EBADMSG, name, "no link in the answer");
	*ret_link = link;
	return 0;
}

int rtnl_addr_dump(struct nl_sock *s, int index, struct rtnl_addrs *addrs,
		   struct fault *f)
{
	alignas(struct nlmsghdr) unsigned char buf[REQUEST_MAX];
	struct collect c = { addrs, &addrs->n, 0 };
	struct ifaddrmsg *m;
	void *header;
	struct nlmsghdr *nlh =
		request(buf, RTM_GETADDR, sizeof(*m), &header);

	m = header;
	m->ifa_index = (uint32_t)index;
	addrs->n = 0;
	return nl_sock_dump(s, nlh, collect_addr, collect_restart, &c, f);
}

int rtnl_route_dump(struct nl_sock *s, const struct rtnl_route_filter *filter,
		    struct rtnl_routes *routes, struct fault *f)
{
	alignas(struct nlmsghdr) unsigned char buf[REQUEST_MAX];
	struct collect c = { routes, &routes->n, routes->n };
	struct fault own = FAULT_INIT;
	struct rtmsg *m;
	void *header;
	struct nlmsghdr *nlh =
		request(buf, RTM_GETROUTE, sizeof(*m), &header);
	int r;

	m = header;
	m->rtm_protocol = filter->protocol;
	if (filter->table)
		mnl_attr_put_u32(nlh, RTA_TABLE, filter->table);
	if (filter->oif)
		mnl_attr_put_u32(nlh, RTA_OIF, (uint32_t)filter->oif);
	r = nl_sock_dump(s, nlh, collect_route, collect_restart, &c, &own);
	/* A table nobody has used yet, or a device that just went. */
	if (r == -ENOENT || r == -ENODEV) {
		collect_restart(&c);
		return 0;
	}
	return r < 0 ? fault_set(f, r, own.object, "routes: %s", own.text) : 0;
}

static int route_send(struct nl_sock *s, const struct rtnl_route *route,
		      uint16_t type, uint16_t flags, struct fault *f)
{
	alignas(struct nlmsghdr) unsigned char buf[REQUEST_MAX];
	int r = rtnl_route_encode(route, type, flags, buf, sizeof(buf));

	if (r < 0)
		return fault_errno(f, r, "route", "encode");
	return nl_sock_request(s, (void *)buf, NULL, NULL, f);
}

int rtnl_route_add(struct nl_sock *s, const struct rtnl_route *route,
		   struct fault *f)
{
	return route_send(s, route, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL,
			  f);
}

int rtnl_route_delete(struct nl_sock *s, const struct rtnl_route *route,
		      struct fault *f)
{
	return route_send(s, route, RTM_DELROUTE, 0, f);
}

int rtnl_rule_dump(struct nl_sock *s, struct rtnl_rules *rules,
		   struct fault *f)
{
	alignas(struct nlmsghdr) unsigned char buf[REQUEST_MAX];
	struct collect c = { rules, &rules->n, 0 };
	void *header;
	struct nlmsghdr *nlh = request(
		buf, RTM_GETRULE, sizeof(struct fib_rule_hdr), &header);

	rules->n = 0;
	return nl_sock_dump(s, nlh, collect_rule, collect_restart, &c, f);
}

static int rule_send(struct nl_sock *s, const struct rtnl_rule *rule,
		     uint16_t type, uint16_t flags, struct fault *f)
{
	alignas(struct nlmsghdr) unsigned char buf[REQUEST_MAX];
	int r = rtnl_rule_encode(rule, type, flags, buf, sizeof(buf));

	if (r < 0)
		return fault_errno(f, r, "rule", "encode");
	return nl_sock_request(s, (void *)buf, NULL, NULL, f);
}

int rtnl_rule_add(struct nl_sock *s, const struct rtnl_rule *rule,
		  struct fault *f)
{
	return rule_send(s, rule, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, f);
}

int rtnl_rule_delete(struct nl_sock *s, const struct rtnl_rule *rule,
		     struct fault *f)
{
	return rule_send(s, rule, RTM_DELRULE, 0, f);
}
