#include "agent/link/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/cleanup.h"

/* A dead path is noticed in about KEEP_IDLE + KEEP_COUNT * KEEP_EVERY. */
#define KEEP_IDLE 60
#define KEEP_EVERY 20
#define KEEP_COUNT 3

struct dial {
	int fd;				/* -1 when the TLS connection owns it */
	struct tls_conn *conn;		/* NULL for plain TCP */
	bool connected;
	sd_event_source *io, *timer;
	dial_done done;
	void *userdata;
	char peer[IP_TEXT_MAX];
};

DEFINE_CLEANUP(dial, struct dial, dial_free)

struct dial *dial_free(struct dial *d)
{
	if (!d)
		return NULL;
	(void)sd_event_source_disable_unref(d->io);
	(void)sd_event_source_disable_unref(d->timer);
	(void)tls_free(d->conn);
	if (d->fd >= 0)
		(void)close(d->fd);
	free(d);
	return NULL;
}

/* Ends the dial; the callee may free it, so nothing is touched after. */
static int finish(struct dial *d, int r, const struct fault *f)
{
	struct tls_conn *conn = NULL;
	int fd = -1;

	d->io = sd_event_source_disable_unref(d->io);
	d->timer = sd_event_source_disable_unref(d->timer);
	if (r == 0) {
		conn = take_ptr(d->conn);
		fd = take_fd(&d->fd);
	}
	d->done(d->userdata, r, fd, conn, f);
	return 0;
}

static int shake(struct dial *d)
{
	struct fault f = FAULT_INIT;
	int r = tls_handshake(d->conn, &f);

	if (r == -EAGAIN) {
		r = sd_event_source_set_io_events(d->io, tls_wants(d->conn));
		if (r >= 0)
			return 0;
	}
	return finish(d, r, &f);
}

static int on_connected(struct dial *d, int fd)
{
	struct fault f = FAULT_INIT;
	socklen_t size = sizeof(int);
	int err = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) < 0)
		err = errno;
	if (err)
		return finish(d, fault_errno(&f, -err, d->peer,
					     "cannot be reached"), &f);
	d->connected = true;
	return d->conn ? shake(d) : finish(d, 0, &f);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents,
		 void *userdata)
{
	struct dial *d = userdata;

	(void)source;
	(void)revents;
	return d->connected ? shake(d) : on_connected(d, fd);
}

static int on_deadline(sd_event_source *source, uint64_t now, void *userdata)
{
	struct dial *d = userdata;
	struct fault f = FAULT_INIT;

	(void)source;
	(void)now;
	return finish(d, fault_set(&f, -ETIMEDOUT, d->peer, "%s",
				   d->connected ? "does not finish the handshake" :
					     "does not answer"), &f);
}

static int set_options(int fd)
{
	static const struct {
		int level, name, value;
	} t[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE },
		{ IPPROTO_TCP, TCP_KEEPINTVL, KEEP_EVERY },
		{ IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT },
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
	};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		if (setsockopt(fd, t[i].level, t[i].name, &t[i].value,
			       sizeof(t[i].value)) < 0)
			return -errno;
	return 0;
}

static socklen_t fill_address(const struct ip_addr *a, uint16_t port,
			      struct sockaddr_storage *ret)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	ret->ss_family = a->family;
	if (a->family == AF_INET) {
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, a->bytes, sizeof(in->sin_addr));
		return sizeof(*in);
	}
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, a->bytes, sizeof(in6->sin6_addr));
	return sizeof(*in6);
}

static int start(struct dial *d, const struct ip_addr *addr, uint16_t port,
		 struct fault *f)
{
	struct sockaddr_storage ss;
	socklen_t size = fill_address(addr, port, &ss);
	int r;

	d->fd = socket(addr->family,
		       SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0)
		return fault_errno(f, -errno, d->peer, "no socket");
	r = set_options(d->fd);
	if (r < 0)
		return fault_errno(f, r, d->peer, "socket options");
	/* An immediate refusal (no route) is an answer as well. */
	if (connect(d->fd, (struct sockaddr *)&ss, size) < 0 &&
	    errno != EINPROGRESS)
		return fault_errno(f, -errno, d->peer, "cannot be reached");
	return 0;
}

int dial_new(sd_event *event, const struct ip_addr *addr, uint16_t port,
	     const struct tls_ctx *tls, usec deadline, dial_done done,
	     void *userdata, struct dial **ret_dial, struct fault *f)
{
	CLEANUP(cleanup_dial) struct dial *d = calloc(1, sizeof(*d));
	struct ip_endpoint e = { .addr = *addr, .port = port };
	int r;

	if (!d)
		return -ENOMEM;
	d->fd = -1;
	d->done = done;
	d->userdata = userdata;
	(void)ip_endpoint_format(&e, d->peer);
	r = start(d, addr, port, f);
	if (r < 0)
		return r;
	r = sd_event_add_io(event, &d->io, d->fd, EPOLLOUT, on_io, d);
	if (r >= 0 && tls) {
		/* Now, since the context may be replaced meanwhile. */
		r = tls_client_new(tls, d->fd, &d->conn, f);
		if (r == 0)
			d->fd = -1;
	}
	if (r >= 0)
		r = sd_event_add_time_relative(event, &d->timer,
					       CLOCK_BOOTTIME, deadline, 0,
					       on_deadline, d);
	if (r < 0)
		return fault_errno(f, r, d->peer, "no event source");
	*ret_dial = take_ptr(d);
	return 0;
}
