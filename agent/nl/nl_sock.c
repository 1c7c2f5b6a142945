#include "agent/nl/nl_sock.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

/* The kernel fills dump datagrams up to the largest buffer seen: 32 KiB. */
#define RECV_MAX 32768
#define RCVBUF_BYTES (4 * 1024 * 1024)
#define SNDBUF_BYTES (4 * 1024 * 1024)
#define DUMP_ATTEMPTS 5

static const struct timeval receive_timeout = { .tv_sec = 5 };

struct nl_sock {
	struct mnl_socket *mnl;
	int fd;
	uint32_t portid;
	uint32_t seq;
	alignas(struct nlmsghdr) unsigned char buf[RECV_MAX];
};

/* Forced where CAP_NET_ADMIN allows; else as much as the limit gives. */
static int set_buffer(int fd, int force, int plain, int bytes)
{
	if (setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof(bytes)) == 0 ||
	    setsockopt(fd, SOL_SOCKET, plain, &bytes, sizeof(bytes)) == 0)
		return 0;
	return -errno;
}

static int set_options(struct nl_sock *s)
{
	int one = 1, r;

	if (setsockopt(s->fd, SOL_NETLINK, NETLINK_EXT_ACK, &one,
		       sizeof(one)) < 0 ||
	    setsockopt(s->fd, SOL_NETLINK, NETLINK_CAP_ACK, &one,
		       sizeof(one)) < 0 ||
	    setsockopt(s->fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &one,
		       sizeof(one)) < 0 ||
	    setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &receive_timeout,
		       sizeof(receive_timeout)) < 0)
		return -errno;
	r = set_buffer(s->fd, SO_RCVBUFFORCE, SO_RCVBUF, RCVBUF_BYTES);
	if (r < 0)
		return r;
	return set_buffer(s->fd, SO_SNDBUFFORCE, SO_SNDBUF, SNDBUF_BYTES);
}

int nl_sock_open(int bus, struct nl_sock **ret_sock, struct fault *f)
{
	struct nl_sock *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return fault_errno(f, -ENOMEM, "netlink", "open");
	s->mnl = mnl_socket_open2(bus, SOCK_CLOEXEC);
	if (!s->mnl || mnl_socket_bind(s->mnl, 0, MNL_SOCKET_AUTOPID) < 0) {
		r = -errno;
		(void)nl_sock_free(s);
		return fault_errno(f, r, "netlink", "cannot open a socket");
	}
	s->fd = mnl_socket_get_fd(s->mnl);
	s->portid = mnl_socket_get_portid(s->mnl);
	r = set_options(s);
	if (r < 0) {
		(void)nl_sock_free(s);
		return fault_errno(f, r, "netlink", "cannot set an option");
	}
	*ret_sock = s;
	return 0;
}

struct nl_sock *nl_sock_free(struct nl_sock *s)
{
	if (s && s->mnl)
		(void)mnl_socket_close(s->mnl);
	free(s);
	return NULL;
}

uint32_t nl_sock_portid(const struct nl_sock *s)
{
	return s->portid;
}

uint32_t nl_sock_sequence(struct nl_sock *s, uint32_t n)
{
	uint32_t first = s->seq + 1;

	/* 0 would be the number of an unsolicited message. */
	if (first == 0 || first + n < first)
		first = 1;
	s->seq = first + n - 1;
	return first;
}

static int send_all(struct nl_sock *s, const void *data, size_t size,
		    struct fault *f)
{
	static const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	ssize_t n;

	do {
		n = sendto(s->fd, data, size, 0,
			   (const struct sockaddr *)&kernel, sizeof(kernel));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return fault_errno(f, -errno, "netlink", "send");
	return 0;
}

/* One datagram from the kernel: its size; 0 if it is not the kernel's. */
static ssize_t receive(struct nl_sock *s, int flags)
{
	struct sockaddr_nl from = { 0 };
	struct iovec iov = { s->buf, sizeof(s->buf) };
	struct msghdr msg = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	ssize_t n;

	do {
		n = recvmsg(s->fd, &msg, flags);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (msg.msg_flags & MSG_TRUNC)
		return -ENOBUFS;
	return from.nl_pid == 0 ? n : 0;
}

static int receive_reply(struct nl_sock *s, struct nl_reply *r,
			 struct fault *f)
{
	ssize_t n;

	while (!r->done) {
		n = receive(s, 0);
		if (n == -EAGAIN)
			return fault_set(f, -ETIMEDOUT, "netlink",
					 "no answer: outcome unknown");
		if (n < 0)
			return fault_errno(f, (int)n, "netlink",
					   "answer lost: outcome unknown");
		nl_reply_feed(r, s->buf, (size_t)n);
	}
	return r->err;
}

int nl_sock_request(struct nl_sock *s, struct nlmsghdr *req,
		    nl_handler handler, void *userdata, struct fault *f)
{
	struct nl_reply reply = {
		.seq = nl_sock_sequence(s, 1),
		.portid = s->portid,
		.handler = handler,
		.userdata = userdata,
		.fault = f,
	};
	int r;

	req->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	req->nlmsg_seq = reply.seq;
	req->nlmsg_pid = 0;
	r = send_all(s, req, req->nlmsg_len, f);
	return r < 0 ? r : receive_reply(s, &reply, f);
}

int nl_sock_dump(struct nl_sock *s, struct nlmsghdr *req, nl_handler handler,
		 void (*restart)(void *userdata), void *userdata,
		 struct fault *f)
{
	int attempt, r;

	req->nlmsg_flags |= NLM_F_REQUEST | NLM_F_DUMP;
	req->nlmsg_pid = 0;
	for (attempt = 0; attempt < DUMP_ATTEMPTS; attempt++) {
		struct nl_reply reply = {
			.seq = nl_sock_sequence(s, 1),
			.portid = s->portid,
			.handler = handler,
			.userdata = userdata,
			.fault = f,
		};

		if (attempt > 0 && restart)
			restart(userdata);
		req->nlmsg_seq = reply.seq;
		r = send_all(s, req, req->nlmsg_len, f);
		if (r == 0)
			r = receive_reply(s, &reply, f);
		if (r < 0 || !reply.interrupted)
			return r;
	}
	return fault_set(f, -EAGAIN, "netlink",
			 "unstable: it changed during each of %d dumps",
			 DUMP_ATTEMPTS);
}

struct batch_result {
	uint32_t first, last;
	bool acknowledged;
	int err;
	struct fault *fault;
};

static void batch_message(struct batch_result *b, const struct nlmsghdr *nlh)
{
	struct fault own = FAULT_INIT;
	int err;

	if (nlh->nlmsg_type != NLMSG_ERROR ||
	    nlh->nlmsg_seq - b->first > b->last - b->first)
		return;
	err = nl_reply_error(nlh, &own);
	if (err == 0 && nlh->nlmsg_seq == b->last)
		b->acknowledged = true;
	if (err < 0 && b->err == 0) {
		b->err = fault_set(b->fault, err, own.object, "message %u: %s",
				   nlh->nlmsg_seq - b->first, own.text);
	}
}

static void batch_datagram(struct batch_result *b, const struct nl_sock *s,
			   size_t size)
{
	const struct nlmsghdr *nlh = (const void *)s->buf;
	int left = (int)size;

	while (mnl_nlmsg_ok(nlh, left)) {
		if (nlh->nlmsg_pid == s->portid)
			batch_message(b, nlh);
		nlh = mnl_nlmsg_next(nlh, &left);
	}
}

int nl_sock_batch(struct nl_sock *s, const void *data, size_t size,
		  uint32_t first, uint32_t last, struct fault *f)
{
	struct batch_result b = { .first = first, .last = last, .fault = f };
	bool lost = false;
	ssize_t n;
	int r = send_all(s, data, size, f);

	if (r < 0)
		return r;
	/*
	 * A failed batch reports each bad message, a failed commit the first
	 * one only; both are queued before sendto() returns.
	 */
	while ((n = receive(s, MSG_DONTWAIT)) != -EAGAIN) {
		if (n == -ENOBUFS)
			lost = true;
		else if (n < 0)
			return fault_errno(f, (int)n, "netlink", "receive");
		else
			batch_datagram(&b, s, (size_t)n);
	}
	if (b.err < 0)
		return b.err;
	if (lost || !b.acknowledged)
		return fault_set(f, -ENOBUFS, "netlink",
				 "batch not acknowledged: outcome unknown");
	return 0;
}
