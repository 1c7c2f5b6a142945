#include "agent/nl/nl_notify.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <stdalign.h>
#include <stdlib.h>
#include <sys/socket.h>

#define NOTIFY_RECV_MAX 32768
#define NOTIFY_RCVBUF (4 * 1024 * 1024)
#define DRAIN_MAX 1024

struct nl_notify {
	struct mnl_socket *mnl;
	int fd;
	alignas(struct nlmsghdr) unsigned char buf[NOTIFY_RECV_MAX];
};

static int join(struct nl_notify *n, const unsigned int *groups,
		size_t n_groups)
{
	int bytes = NOTIFY_RCVBUF;
	size_t i;

	if (setsockopt(n->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes,
		       sizeof(bytes)) < 0 &&
	    setsockopt(n->fd, SOL_SOCKET, SO_RCVBUF, &bytes,
		       sizeof(bytes)) < 0)
		return -errno;
	for (i = 0; i < n_groups; i++)
		if (setsockopt(n->fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP,
			       &groups[i], sizeof(groups[i])) < 0)
			return -errno;
	return 0;
}

int nl_notify_open(int bus, const unsigned int *groups, size_t n_groups,
		   struct nl_notify **ret_notify, struct fault *f)
{
	struct nl_notify *n = calloc(1, sizeof(*n));
	int r = 0;

	if (!n)
		return fault_errno(f, -ENOMEM, "netlink", "subscribe");
	n->mnl = mnl_socket_open2(bus, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!n->mnl || mnl_socket_bind(n->mnl, 0, MNL_SOCKET_AUTOPID) < 0)
		r = -errno;
	if (r == 0) {
		n->fd = mnl_socket_get_fd(n->mnl);
		r = join(n, groups, n_groups);
	}
	if (r < 0) {
		(void)nl_notify_free(n);
		return fault_errno(f, r, "netlink", "cannot subscribe");
	}
	*ret_notify = n;
	return 0;
}

struct nl_notify *nl_notify_free(struct nl_notify *n)
{
	if (n && n->mnl)
		(void)mnl_socket_close(n->mnl);
	free(n);
	return NULL;
}

int nl_notify_fd(const struct nl_notify *n)
{
	return n->fd;
}

static int feed(const struct nl_notify *n, size_t size, nl_handler handler,
		void *userdata)
{
	const struct nlmsghdr *nlh = (const void *)n->buf;
	int left = (int)size, err = 0, r;

	while (mnl_nlmsg_ok(nlh, left)) {
		if (nlh->nlmsg_type >= NLMSG_MIN_TYPE) {
			r = handler(nlh, userdata);
			if (r < 0 && err == 0)
				err = r;
		}
		nlh = mnl_nlmsg_next(nlh, &left);
	}
	return left > 0 ? NL_NOTIFY_LOST : err;
}

int nl_notify_drain(struct nl_notify *n, nl_handler handler, void *userdata)
{
	int lost = 0, err = 0, i, r;

	for (i = 0; i < DRAIN_MAX; i++) {
		struct sockaddr_nl from = { 0 };
		struct iovec iov = { n->buf, sizeof(n->buf) };
		struct msghdr msg = {
			.msg_name = &from,
			.msg_namelen = sizeof(from),
			.msg_iov = &iov,
			.msg_iovlen = 1,
		};
		ssize_t size = recvmsg(n->fd, &msg, MSG_DONTWAIT);

		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0 && errno == ENOBUFS) {
			lost = NL_NOTIFY_LOST;
			continue;
		}
		if (size < 0)
			break;
		if (msg.msg_flags & MSG_TRUNC)
			lost = NL_NOTIFY_LOST;
		if (from.nl_pid != 0 || (msg.msg_flags & MSG_TRUNC))
			continue;
		r = feed(n, (size_t)size, handler, userdata);
		if (r == NL_NOTIFY_LOST)
			lost = r;
		else if (r < 0 && err == 0)
			err = r;
	}
	return err < 0 ? err : lost;
}
