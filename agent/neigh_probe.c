#include "agent/neigh_probe.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PROBE_BUFFER 16384
#define PROBE_ANSWERED (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE)

struct neigh_probe {
	struct mnl_socket *events;
	unsigned int ifindex;
	struct ip_addr address;
	neigh_probe_done done;
	void *userdata;
	bool asked;		/* events before the question are old news */
	sd_event_source *io, *timer;
};

static unsigned int addr_size(const struct ip_addr *a)
{
	return ip_addr_bits(a) / 8;
}

static void encode(char *buf, uint16_t type, uint16_t flags, uint8_t ntf,
		   const struct neigh_probe *p)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ndmsg *nd;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nd = mnl_nlmsg_put_extra_header(nlh, sizeof(*nd));
	nd->ndm_family = p->address.family;
	nd->ndm_ifindex = p->ifindex;
	nd->ndm_state = NUD_NONE;
	nd->ndm_flags = ntf;
	mnl_attr_put(nlh, NDA_DST, addr_size(&p->address), p->address.bytes);
}

/* One request on a socket of its own; the answer is its acknowledgement. */
static int request(uint16_t type, uint16_t flags, uint8_t ntf,
		   const struct neigh_probe *p)
{
	char buf[256] = { 0 }, reply[PROBE_BUFFER];
	struct timeval patience = { .tv_sec = 1 };
	struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	ssize_t n;
	int r = 0;

	if (!nl)
		return -errno;
	(void)setsockopt(mnl_socket_get_fd(nl), SOL_SOCKET, SO_RCVTIMEO,
			 &patience, sizeof(patience));
	encode(buf, type, flags | NLM_F_ACK, ntf, p);
	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_sendto(nl, buf, ((struct nlmsghdr *)(void *)buf)
					       ->nlmsg_len) < 0)
		r = -errno;
	n = r < 0 ? 0 : mnl_socket_recvfrom(nl, reply, sizeof(reply));
	if (n < 0 || (r == 0 && mnl_cb_run(reply, n, 0,
					   mnl_socket_get_portid(nl), NULL,
					   NULL) < 0))
		r = -errno;
	(void)mnl_socket_close(nl);
	return r;
}

struct neigh_probe *neigh_probe_free(struct neigh_probe *p)
{
	if (!p)
		return NULL;
	(void)sd_event_source_disable_unref(p->io);
	(void)sd_event_source_disable_unref(p->timer);
	if (p->events)
		(void)mnl_socket_close(p->events);
	free(p);
	return NULL;
}

static void finish(struct neigh_probe *p, int r, const char *mac)
{
	p->done(p->userdata, r, mac);
	(void)neigh_probe_free(p);
}

static void format_mac(const struct nlattr *attr, char mac[24])
{
	const uint8_t *b = mnl_attr_get_payload(attr);

	mac[0] = '\0';
	if (mnl_attr_get_payload_len(attr) == 6)
		(void)snprintf(mac, 24, "%02x:%02x:%02x:%02x:%02x:%02x", b[0],
			       b[1], b[2], b[3], b[4], b[5]);
}

/* 1 answered, 0 nobody, -EAGAIN: not about us, or not yet decided. */
static int judge(const struct neigh_probe *p, const struct nlmsghdr *nlh,
		 char mac[24])
{
	const struct ndmsg *nd = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;
	bool ours = false;

	if (nlh->nlmsg_type != RTM_NEWNEIGH ||
	    nlh->nlmsg_len < MNL_NLMSG_HDRLEN + sizeof(*nd) ||
	    nd->ndm_ifindex != (int)p->ifindex ||
	    nd->ndm_family != p->address.family)
		return -EAGAIN;
	mnl_attr_for_each(attr, nlh, sizeof(*nd)) {
		if (mnl_attr_get_type(attr) == NDA_DST)
			ours = mnl_attr_get_payload_len(attr) ==
				       addr_size(&p->address) &&
			       memcmp(mnl_attr_get_payload(attr),
				      p->address.bytes,
				      addr_size(&p->address)) == 0;
		else if (mnl_attr_get_type(attr) == NDA_LLADDR)
			format_mac(attr, mac);
	}
	if (!ours)
		return -EAGAIN;
	if (nd->ndm_state & PROBE_ANSWERED)
		return 1;
	return nd->ndm_state & NUD_FAILED ? 0 : -EAGAIN;
}

static int on_event(sd_event_source *s, int fd, uint32_t revents,
		    void *userdata)
{
	struct neigh_probe *p = userdata;
	char buf[PROBE_BUFFER], mac[24] = "";
	const struct nlmsghdr *nlh = (const void *)buf;
	ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	int left = (int)n, r = -EAGAIN;

	(void)s;
	(void)revents;
	if (n < 0 || !p->asked)	/* overrun: the deadline decides */
		return 0;
	for (; r == -EAGAIN && mnl_nlmsg_ok(nlh, left);
	     nlh = mnl_nlmsg_next(nlh, &left))
		r = judge(p, nlh, mac);
	if (r != -EAGAIN)
		finish(p, r, mac);
	return 0;
}

static int on_deadline(sd_event_source *s, uint64_t due, void *userdata)
{
	(void)s;
	(void)due;
	finish(userdata, -ETIMEDOUT, "");
	return 0;
}

static int ask(struct neigh_probe *p, struct fault *f)
{
	int r = request(RTM_DELNEIGH, 0, 0, p);

	if (r < 0 && r != -ENOENT && r != -ESRCH)
		return fault_errno(f, r, "neighbour", "cannot be dropped");
	p->asked = true;
	r = request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, NTF_USE, p);
	return r < 0 ? fault_errno(f, r, "neighbour", "cannot be asked for") :
		       0;
}

static int subscribe(struct neigh_probe *p, sd_event *event, usec deadline)
{
	int r;

	p->events = mnl_socket_open2(NETLINK_ROUTE,
				     SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!p->events ||
	    mnl_socket_bind(p->events, RTMGRP_NEIGH, MNL_SOCKET_AUTOPID) < 0)
		return -errno;
	r = sd_event_add_io(event, &p->io, mnl_socket_get_fd(p->events),
			    EPOLLIN, on_event, p);
	if (r < 0)
		return r;
	return sd_event_add_time_relative(event, &p->timer, CLOCK_BOOTTIME,
					  deadline, 0, on_deadline, p);
}

int neigh_probe_start(sd_event *event, unsigned int ifindex,
		      const struct ip_addr *address, usec deadline,
		      neigh_probe_done done, void *userdata,
		      struct neigh_probe **ret_probe, struct fault *f)
{
	struct neigh_probe *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return fault_errno(f, -ENOMEM, "neighbour", "cannot be asked");
	p->ifindex = ifindex;
	p->address = *address;
	p->done = done;
	p->userdata = userdata;
	r = subscribe(p, event, deadline);
	if (r < 0)
		(void)fault_errno(f, r, "neighbour", "cannot be watched");
	else
		r = ask(p, f);
	if (r < 0) {
		(void)neigh_probe_free(p);
		return r;
	}
	*ret_probe = p;
	return 0;
}
