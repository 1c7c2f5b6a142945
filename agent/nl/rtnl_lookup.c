#include "agent/nl/rtnl_lookup.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdalign.h>
#include <string.h>
#include <sys/socket.h>

#define REQUEST_MAX 512

static bool put_addr(struct nlmsghdr *nlh, size_t size, uint16_t type,
		     const struct ip_addr *a)
{
	return mnl_attr_put_check(nlh, size, type, ip_addr_bits(a) / 8,
				  a->bytes);
}

static bool put_port(struct nlmsghdr *nlh, size_t size, uint16_t type,
		     uint16_t port)
{
	return port == 0 ||
	       mnl_attr_put_u16_check(nlh, size, type, htons(port));
}

/* The kernel takes only these, and ports with the first two (FACTS S8). */
static bool put_transport(struct nlmsghdr *nlh, size_t size,
			  const struct rtnl_question *q)
{
	bool icmp = q->proto == (q->dst.family == AF_INET6 ? IPPROTO_ICMPV6 :
							     IPPROTO_ICMP);

	if (q->proto != IPPROTO_TCP && q->proto != IPPROTO_UDP && !icmp)
		return true;
	if (!mnl_attr_put_u8_check(nlh, size, RTA_IP_PROTO, q->proto))
		return false;
	return icmp || (put_port(nlh, size, RTA_SPORT, q->sport) &&
			put_port(nlh, size, RTA_DPORT, q->dport));
}

int rtnl_question_encode(const struct rtnl_question *q, bool match, void *buf,
			 size_t size)
{
	struct nlmsghdr *nlh;
	struct rtmsg *m;
	bool fits;

	if (size < NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(*m)))
		return -EMSGSIZE;
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = RTM_GETROUTE;
	m = mnl_nlmsg_put_extra_header(nlh, sizeof(*m));
	m->rtm_family = q->dst.family;
	m->rtm_dst_len = (uint8_t)ip_addr_bits(&q->dst);
	/* IPv6 always tells the table, and refuses to be asked for it. */
	m->rtm_flags = (match ? RTM_F_FIB_MATCH : 0u) |
		       (q->dst.family == AF_INET ? RTM_F_LOOKUP_TABLE : 0u);
	fits = put_addr(nlh, size, RTA_DST, &q->dst);
	if (q->src.family) {
		m->rtm_src_len = (uint8_t)ip_addr_bits(&q->src);
		fits = fits && put_addr(nlh, size, RTA_SRC, &q->src);
	}
	if (q->mark)
		fits = fits && mnl_attr_put_u32_check(nlh, size, RTA_MARK,
						      q->mark);
	if (q->iif)
		fits = fits && mnl_attr_put_u32_check(nlh, size, RTA_IIF,
						      (uint32_t)q->iif);
	else
		fits = fits && mnl_attr_put_u32_check(nlh, size, RTA_UID,
						      q->uid);
	return fits && put_transport(nlh, size, q) ? 0 : -EMSGSIZE;
}

static int one_route(const struct nlmsghdr *nlh, void *userdata)
{
	if (nlh->nlmsg_type != RTM_NEWROUTE)
		return 0;
	return rtnl_route_decode(nlh, userdata);
}

static bool refuses(int err)
{
	switch (err) {
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -EACCES:
	case -EINVAL:
	case -EXDEV:
		return true;
	}
	return false;
}

static int ask(struct nl_sock *s, const struct rtnl_question *q, bool match,
	       struct rtnl_route *ret_route, struct fault *f)
{
	alignas(struct nlmsghdr) unsigned char buf[REQUEST_MAX];
	struct rtnl_route route = { 0 };
	struct fault own = FAULT_INIT;
	int r = rtnl_question_encode(q, match, buf, sizeof(buf));

	if (r == 0)
		r = nl_sock_request(s, (void *)buf, one_route, &route, &own);
	if (r == 0)
		*ret_route = route;
	return r < 0 ? fault_set(f, r, "route", "%s", own.text) : 0;
}

/* IPv6 may answer with the entry that refuses. */
static int refused_by(const struct rtnl_route *route)
{
	switch (route->type) {
	case RTN_UNREACHABLE:
		return -EHOSTUNREACH;
	case RTN_PROHIBIT:
		return -EACCES;
	case RTN_BLACKHOLE:
		return -EINVAL;
	}
	return 0;
}

int rtnl_lookup(struct nl_sock *s, const struct rtnl_question *q,
		struct rtnl_answer *ret_answer, struct fault *f)
{
	struct rtnl_answer a = { 0 };
	struct fault own = FAULT_INIT;
	struct rtnl_route route;
	int r = ask(s, q, false, &route, &own);

	if (r == 0) {
		a.src = route.prefsrc;
		a.refused = refused_by(&route);
		r = ask(s, q, true, &a.route, &own);
	}
	if (refuses(r)) {
		a.refused = r;
		r = 0;
	}
	if (r < 0)
		return fault_set(f, r, own.object, "%s", own.text);
	*ret_answer = a;
	return 0;
}
