#include "agent/nl/rtnl_msg.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/socket.h>

static size_t family_bytes(uint8_t family)
{
	return family == AF_INET6 ? 16 : 4;
}

/* The message's own header, or NULL if `nlh` is too short for it. */
static const void *fixed_header(const struct nlmsghdr *nlh, size_t size)
{
	if (nlh->nlmsg_len < NLMSG_HDRLEN ||
	    mnl_nlmsg_get_payload_len(nlh) < size)
		return NULL;
	return mnl_nlmsg_get_payload(nlh);
}

static int get_u32(const struct nlattr *a, uint32_t *ret_value)
{
	if (mnl_attr_get_payload_len(a) < sizeof(*ret_value))
		return -EBADMSG;
	*ret_value = mnl_attr_get_u32(a);
	return 0;
}

static int get_index(const struct nlattr *a, int *ret_value)
{
	uint32_t v;

	if (get_u32(a, &v) < 0 || v > INT32_MAX)
		return -EBADMSG;
	*ret_value = (int)v;
	return 0;
}

static int get_text(const struct nlattr *a, char *buf, size_t size)
{
	size_t n = mnl_attr_get_payload_len(a);
	const char *text = mnl_attr_get_payload(a);

	n = strnlen(text, n);
	if (n >= size)
		return -EBADMSG;
	(void)memcpy(buf, text, n);
	buf[n] = '\0';
	return 0;
}

static int get_ip(const struct nlattr *a, uint8_t family,
		  struct ip_addr *ret_addr)
{
	struct ip_addr addr = { .family = family };

	if (mnl_attr_get_payload_len(a) != family_bytes(family))
		return -EBADMSG;
	(void)memcpy(addr.bytes, mnl_attr_get_payload(a),
		     family_bytes(family));
	*ret_addr = addr;
	return 0;
}

static bool ip_family(uint8_t family)
{
	return family == AF_INET || family == AF_INET6;
}

/* ---- links ---- */

static int link_info(const struct nlattr *nest, struct rtnl_link *l)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, nest)
		if (mnl_attr_get_type(a) == IFLA_INFO_KIND)
			return get_text(a, l->kind, sizeof(l->kind));
	return 0;
}

static void link_xdp(const struct nlattr *nest, struct rtnl_link *l)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, nest)
		if (mnl_attr_get_type(a) == IFLA_XDP_ATTACHED &&
		    mnl_attr_get_payload_len(a) == 1)
			l->xdp = mnl_attr_get_u8(a) != XDP_ATTACHED_NONE;
}

static int link_attr(const struct nlattr *a, struct rtnl_link *l,
		     bool *foreign_lower)
{
	switch (mnl_attr_get_type(a)) {
	case IFLA_IFNAME:
		return get_text(a, l->name, sizeof(l->name));
	case IFLA_MASTER:
		return get_index(a, &l->master);
	case IFLA_LINK:
		return get_index(a, &l->lower);
	case IFLA_LINK_NETNSID:
		*foreign_lower = true;
		return 0;
	case IFLA_PARENT_DEV_NAME:
		l->hardware = true;
		return 0;
	case IFLA_LINKINFO:
		return link_info(a, l);
	case IFLA_XDP:
		link_xdp(a, l);
		return 0;
	}
	return 0;
}

int rtnl_link_decode(const struct nlmsghdr *nlh, struct rtnl_link *ret_link)
{
	const struct ifinfomsg *m = fixed_header(nlh, sizeof(*m));
	struct rtnl_link l = { 0 };
	bool foreign_lower = false;
	const struct nlattr *a;
	int r;

	if (!m || m->ifi_index <= 0)
		return -EBADMSG;
	l.index = m->ifi_index;
	l.flags = m->ifi_flags;
	l.bare = m->ifi_type == ARPHRD_NONE;
	mnl_attr_for_each(a, nlh, sizeof(*m)) {
		r = link_attr(a, &l, &foreign_lower);
		if (r < 0)
			return r;
	}
	if (foreign_lower || l.lower == l.index)
		l.lower = 0;
	*ret_link = l;
	return 0;
}

/* ---- addresses ---- */

int rtnl_addr_decode(const struct nlmsghdr *nlh, struct rtnl_addr *ret_addr)
{
	const struct ifaddrmsg *m = fixed_header(nlh, sizeof(*m));
	struct rtnl_addr v = { 0 };
	bool local = false;
	const struct nlattr *a;
	int r = 0;

	if (!m || !ip_family(m->ifa_family) ||
	    m->ifa_prefixlen > family_bytes(m->ifa_family) * 8)
		return -EBADMSG;
	v.index = (int)m->ifa_index;
	v.scope = m->ifa_scope;
	v.flags = m->ifa_flags;
	v.prefix.len = m->ifa_prefixlen;
	mnl_attr_for_each(a, nlh, sizeof(*m)) {
		switch (mnl_attr_get_type(a)) {
		case IFA_LOCAL:		/* with a peer, IFA_ADDRESS is its */
			local = true;
			r = get_ip(a, m->ifa_family, &v.prefix.addr);
			break;
		case IFA_ADDRESS:
			if (!local)
				r = get_ip(a, m->ifa_family, &v.prefix.addr);
			break;
		case IFA_FLAGS:
			r = get_u32(a, &v.flags);
			break;
		}
		if (r < 0)
			return r;
	}
	if (!v.prefix.addr.family)
		return -EBADMSG;
	*ret_addr = v;
	return 0;
}

/* ---- routes ---- */

static int route_attr(const struct nlattr *a, uint8_t family,
		      struct rtnl_route *t)
{
	switch (mnl_attr_get_type(a)) {
	case RTA_DST:
		return get_ip(a, family, &t->dst.addr);
	case RTA_TABLE:
		return get_u32(a, &t->table);
	case RTA_PRIORITY:
		return get_u32(a, &t->metric);
	case RTA_OIF:
		return get_index(a, &t->oif);
	case RTA_GATEWAY:
		return get_ip(a, family, &t->gateway);
	case RTA_PREFSRC:
		return get_ip(a, family, &t->prefsrc);
	case RTA_CACHEINFO:	/* counters and expiry, IPv6 shows always */
		return 0;
	case RTA_PREF:		/* of router advertisements; medium is 0 */
		if (mnl_attr_get_payload_len(a) < 1 || mnl_attr_get_u8(a))
			t->extra = true;
		return 0;
	}
	t->extra = true;
	return 0;
}

int rtnl_route_decode(const struct nlmsghdr *nlh,
		      struct rtnl_route *ret_route)
{
	const struct rtmsg *m = fixed_header(nlh, sizeof(*m));
	struct rtnl_route t = { 0 };
	const struct nlattr *a;
	int r;

	if (!m || !ip_family(m->rtm_family) ||
	    m->rtm_dst_len > family_bytes(m->rtm_family) * 8)
		return -EBADMSG;
	t.dst.addr.family = m->rtm_family;
	t.dst.len = m->rtm_dst_len;
	t.table = m->rtm_table;
	t.protocol = m->rtm_protocol;
	t.type = m->rtm_type;
	t.scope = m->rtm_family == AF_INET ? m->rtm_scope : 0;
	t.flags = m->rtm_flags;
	if (m->rtm_src_len || m->rtm_tos)
		t.extra = true;
	mnl_attr_for_each(a, nlh, sizeof(*m)) {
		r = route_attr(a, m->rtm_family, &t);
		if (r < 0)
			return r;
	}
	/* IPv6 shows its reject routes with lo as the device. */
	if (m->rtm_family == AF_INET6 && t.type != RTN_UNICAST &&
	    t.type != RTN_LOCAL && t.type != RTN_ANYCAST &&
	    t.type != RTN_MULTICAST)
		t.oif = 0;
	*ret_route = t;
	return 0;
}

static bool put_ip(struct nlmsghdr *nlh, size_t size, uint16_t type,
		   const struct ip_addr *addr)
{
	return mnl_attr_put_check(nlh, size, type, family_bytes(addr->family),
				  addr->bytes);
}

static struct nlmsghdr *start(uint16_t type, uint16_t flags, void *buf,
			      size_t size, size_t header, void **ret_header)
{
	struct nlmsghdr *nlh;

	if (size < NLMSG_HDRLEN + NLMSG_ALIGN(header))
		return NULL;
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = flags;
	*ret_header = mnl_nlmsg_put_extra_header(nlh, header);
	return nlh;
}

int rtnl_route_encode(const struct rtnl_route *route, uint16_t type,
		      uint16_t flags, void *buf, size_t size)
{
	struct nlmsghdr *nlh;
	struct rtmsg *m;
	bool fits = true;
	void *header;

	nlh = start(type, flags, buf, size, sizeof(*m), &header);
	if (!nlh)
		return -EMSGSIZE;
	m = header;
	m->rtm_family = route->dst.addr.family;
	m->rtm_dst_len = route->dst.len;
	m->rtm_table = route->table < 256 ? (uint8_t)route->table :
					    RT_TABLE_UNSPEC;
	m->rtm_protocol = route->protocol;
	m->rtm_type = route->type;
	m->rtm_scope = route->scope;
	fits &= mnl_attr_put_u32_check(nlh, size, RTA_TABLE, route->table);
	if (route->dst.len)
		fits &= put_ip(nlh, size, RTA_DST, &route->dst.addr);
	if (route->metric)
		fits &= mnl_attr_put_u32_check(nlh, size, RTA_PRIORITY,
					       route->metric);
	if (route->oif)
		fits &= mnl_attr_put_u32_check(nlh, size, RTA_OIF,
					       (uint32_t)route->oif);
	if (route->gateway.family)
		fits &= put_ip(nlh, size, RTA_GATEWAY, &route->gateway);
	if (route->prefsrc.family)
		fits &= put_ip(nlh, size, RTA_PREFSRC, &route->prefsrc);
	return fits ? 0 : -EMSGSIZE;
}

/* ---- rules ---- */

static int rule_suppress(const struct nlattr *a, struct rtnl_rule *t)
{
	uint32_t v;

	/* "Nothing is suppressed" is shown as -1. */
	if (get_u32(a, &v) < 0)
		return -EBADMSG;
	if (v != UINT32_MAX)
		t->extra = true;
	return 0;
}

static int rule_attr(const struct nlattr *a, uint8_t family,
		     struct rtnl_rule *t)
{
	switch (mnl_attr_get_type(a)) {
	case FRA_SRC:
		return get_ip(a, family, &t->src.addr);
	case FRA_DST:
		return get_ip(a, family, &t->dst.addr);
	case FRA_PRIORITY:
		return get_u32(a, &t->priority);
	case FRA_TABLE:
		return get_u32(a, &t->table);
	case FRA_FWMARK:
		return get_u32(a, &t->mark);
	case FRA_FWMASK:
		return get_u32(a, &t->mask);
	case FRA_IIFNAME:
		return get_text(a, t->iif, sizeof(t->iif));
	case FRA_SUPPRESS_PREFIXLEN:
	case FRA_SUPPRESS_IFGROUP:
		return rule_suppress(a, t);
	case FRA_PROTOCOL:
		if (mnl_attr_get_payload_len(a) < 1)
			return -EBADMSG;
		t->protocol = mnl_attr_get_u8(a);
		return 0;
	case FRA_L3MDEV:
		if (mnl_attr_get_payload_len(a) < 1 || mnl_attr_get_u8(a))
			t->extra = true;
		return 0;
	case FRA_PAD:
		return 0;
	}
	t->extra = true;
	return 0;
}

int rtnl_rule_decode(const struct nlmsghdr *nlh, struct rtnl_rule *ret_rule)
{
	const struct fib_rule_hdr *m = fixed_header(nlh, sizeof(*m));
	struct rtnl_rule t = { 0 };
	const struct nlattr *a;
	int r;

	if (!m || !ip_family(m->family) ||
	    m->src_len > family_bytes(m->family) * 8 ||
	    m->dst_len > family_bytes(m->family) * 8)
		return -EBADMSG;
	t.family = m->family;
	t.table = m->table;
	t.action = m->action;
	t.src.len = m->src_len;
	t.dst.len = m->dst_len;
	/* The flags 0x10000 and 0x20000 only say that a device is away. */
	if (m->tos || (m->flags & FIB_RULE_INVERT))
		t.extra = true;
	mnl_attr_for_each(a, nlh, sizeof(*m)) {
		r = rule_attr(a, m->family, &t);
		if (r < 0)
			return r;
	}
	if ((t.src.len && !t.src.addr.family) ||
	    (t.dst.len && !t.dst.addr.family))
		return -EBADMSG;
	*ret_rule = t;
	return 0;
}

int rtnl_rule_encode(const struct rtnl_rule *rule, uint16_t type,
		     uint16_t flags, void *buf, size_t size)
{
	struct fib_rule_hdr *m;
	struct nlmsghdr *nlh;
	bool fits = true;
	void *header;

	nlh = start(type, flags, buf, size, sizeof(*m), &header);
	if (!nlh)
		return -EMSGSIZE;
	m = header;
	m->family = rule->family;
	m->action = rule->action;
	m->src_len = rule->src.len;
	m->dst_len = rule->dst.len;
	m->table = rule->table < 256 ? (uint8_t)rule->table : RT_TABLE_UNSPEC;
	fits &= mnl_attr_put_u32_check(nlh, size, FRA_TABLE, rule->table);
	fits &= mnl_attr_put_u32_check(nlh, size, FRA_PRIORITY,
				       rule->priority);
	fits &= mnl_attr_put_u8_check(nlh, size, FRA_PROTOCOL,
				      rule->protocol);
	if (rule->src.len)
		fits &= put_ip(nlh, size, FRA_SRC, &rule->src.addr);
	if (rule->dst.len)
		fits &= put_ip(nlh, size, FRA_DST, &rule->dst.addr);
	if (rule->mask) {
		fits &= mnl_attr_put_u32_check(nlh, size, FRA_FWMARK,
					       rule->mark);
		fits &= mnl_attr_put_u32_check(nlh, size, FRA_FWMASK,
					       rule->mask);
	}
	if (rule->iif[0])
		fits &= mnl_attr_put_strz_check(nlh, size, FRA_IIFNAME,
						rule->iif);
	return fits ? 0 : -EMSGSIZE;
}
