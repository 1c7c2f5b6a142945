#include "coordinator/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/ip.h"
#include "coordinator/conn.h"
#include "coordinator/enroll.h"
#include "coordinator/fleet.h"
#include "coordinator/journal.h"
#include "coordinator/stream.h"
#include "proto/frame.h"

#define ACCEPT_TURN 64
#define BACKLOG 1024
#define LISTEN_EVENTS (EPOLLIN | EPOLLET)
#define EXHAUSTED_PAUSE USEC_PER_SEC	/* no descriptors left */

struct young {
	TAILQ_ENTRY(young) link;
	struct server *server;
	struct conn *conn;
	usec until;
};

struct server {
	sd_event *event;
	struct server_parts parts;
	sd_event_source *listeners[SERVER_LISTEN_MAX];
	size_t n_listeners;
	sd_event_source *timer;
	TAILQ_HEAD(young_list, young) young;	/* oldest first */
	size_t n_young;
	bool paused;
};

/* ---- the young ---- */

static void pause_accept(struct server *s, bool pause)
{
	if (s->paused == pause)
		return;
	s->paused = pause;
	for (size_t i = 0; i < s->n_listeners; i++)
		(void)sd_event_source_set_enabled(s->listeners[i],
						  pause ? SD_EVENT_OFF :
							  SD_EVENT_ON);
}

/* Turned on again, an edge-triggered socket tells what waits already. */
static void young_release(struct young *y)
{
	struct server *s = y->server;

	TAILQ_REMOVE(&s->young, y, link);
	s->n_young--;
	free(y);
	if (s->n_young < SERVER_YOUNG_MAX)
		pause_accept(s, false);
}

static int on_up(void *owner, struct conn *c, struct fault *f)
{
	(void)owner;
	if (conn_identity(c)->kind == PKI_COORDINATOR)
		return fault_set(f, -EACCES, conn_peer(c),
				 "a coordinator's certificate, not a node's");
	return 0;
}

/* The first frame says what it is; its new owner gets it as well. */
static int on_frame(void *owner, struct conn *c, uint8_t type,
		    const uint8_t *body, size_t size, struct fault *f)
{
	struct young *y = owner;
	struct server_parts *p = &y->server->parts;
	bool node = conn_identity(c)->kind == PKI_NODE;
	int r;

	if (type == FRAME_STREAM_HELLO)
		r = node ? stream_join(p->streams, c, body, size, f) :
			   fault_set(f, -EACCES, conn_peer(c),
				     "a stream without a certificate");
	else if (node)
		r = fleet_attach(p->fleet, c, f);
	else
		r = enroll_attach(p->enroll, c, f);
	if (r < 0)
		return r;
	young_release(y);
	return type == FRAME_STREAM_HELLO ? 0 :
					    conn_frame(c, type, body, size, f);
}

static int on_ready(void *owner, struct conn *c, struct fault *f)
{
	(void)owner, (void)c, (void)f;
	return 0;
}

static void on_closed(void *owner, struct conn *c, const struct fault *why)
{
	struct young *y = owner;

	if (why->err != -ESHUTDOWN)
		journal_refused(y->server->parts.journal, conn_peer(c),
				why->text, clock_boottime());
	young_release(y);
}

static const struct conn_ops young_ops = {
	.up = on_up,
	.frame = on_frame,
	.ready = on_ready,
	.closed = on_closed,
};

static void arm(struct server *s, usec when)
{
	(void)sd_event_source_set_time(s->timer, when);
	(void)sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

/* Silence has less time while it keeps others out: a herd is faster. */
static usec patience(const struct server *s, const struct young *y)
{
	return s->n_young < SERVER_YOUNG_MAX ?
		       y->until :
		       y->until - (SERVER_YOUNG_TIME - SERVER_YOUNG_FULL);
}

static int on_timer(sd_event_source *source, uint64_t now, void *userdata)
{
	struct server *s = userdata;
	struct young *y;

	(void)source;
	while ((y = TAILQ_FIRST(&s->young)) && patience(s, y) <= now)
		conn_close(y->conn, -ETIMEDOUT,
			   "no handshake and no frame in time");
	pause_accept(s, s->n_young >= SERVER_YOUNG_MAX);
	if (y)
		arm(s, patience(s, y));
	return 0;
}

/* ---- accepting ---- */

static void peer_text(const struct sockaddr_storage *sa, char *buf)
{
	struct ip_endpoint e = { 0 };

	if (sa->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)sa;

		e.addr.family = AF_INET6;
		memcpy(e.addr.bytes, &in6->sin6_addr, 16);
		e.port = ntohs(in6->sin6_port);
	} else {
		const struct sockaddr_in *in4 = (const void *)sa;

		e.addr.family = AF_INET;
		memcpy(e.addr.bytes, &in4->sin_addr, 4);
		e.port = ntohs(in4->sin_port);
	}
	(void)ip_endpoint_format(&e, buf);
}

static void set_options(int fd)
{
	int one = 1, idle = 60, interval = 20, count = 3;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval,
			 sizeof(interval));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static int take(struct server *s, int fd, const char *peer, usec now,
		struct fault *f)
{
	struct young *y = calloc(1, sizeof(*y));
	int r;

	if (!y)
		return fault_set(f, -ENOMEM, peer, "out of memory");
	set_options(fd);
	y->server = s;
	y->until = now + SERVER_YOUNG_TIME;
	r = conn_new(s->event, s->parts.tls, fd, peer, &young_ops, y, &y->conn,
		     f);
	if (r < 0) {
		free(y);
		return r;
	}
	if (TAILQ_EMPTY(&s->young))
		arm(s, y->until);
	TAILQ_INSERT_TAIL(&s->young, y, link);
	s->n_young++;
	return 0;
}

/* 1: more may wait, 0: none does, negative errno. */
static int accept_one(struct server *s, int fd, usec now)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t size = sizeof(sa);
	char peer[IP_TEXT_MAX];
	struct fault f = FAULT_INIT;
	int client;

	client = accept4(fd, (struct sockaddr *)&sa, &size,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (client < 0) {
		if (errno == EAGAIN)
			return 0;
		return errno == EMFILE || errno == ENFILE ? -errno : 1;
	}
	peer_text(&sa, peer);
	if (take(s, client, peer, now, &f) < 0) {
		journal_refused(s->parts.journal, peer, f.text,
				clock_boottime());
		(void)close(client);
	}
	return 1;
}

static int on_listen(sd_event_source *source, int fd, uint32_t revents,
		     void *userdata)
{
	struct server *s = userdata;
	usec now = 0;
	int r = 1;

	(void)revents;
	(void)sd_event_now(s->event, CLOCK_MONOTONIC, &now);
	for (int i = 0; i < ACCEPT_TURN && r > 0; i++) {
		if (s->n_young >= SERVER_YOUNG_MAX) {
			pause_accept(s, true);
			arm(s, patience(s, TAILQ_FIRST(&s->young)));
			return 0;
		}
		r = accept_one(s, fd, now);
	}
	if (r < 0) {
		journal_refused(s->parts.journal, "listener",
				"no descriptors left: raise LimitNOFILE",
				clock_boottime());
		pause_accept(s, true);
		if (TAILQ_EMPTY(&s->young))
			arm(s, now + EXHAUSTED_PAUSE);
	} else if (r > 0) {
		/* Tell again next turn, after the others. */
		(void)sd_event_source_set_io_events(source, LISTEN_EVENTS);
	}
	return 0;
}

/* ---- life ---- */

int server_new(sd_event *event, const struct server_parts *parts,
	       struct server **ret_server, struct fault *f)
{
	struct server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return fault_set(f, -ENOMEM, "server", "out of memory");
	s->event = sd_event_ref(event);
	s->parts = *parts;
	TAILQ_INIT(&s->young);
	r = sd_event_add_time(event, &s->timer, CLOCK_MONOTONIC, 0, 0,
			      on_timer, s);
	if (r < 0) {
		(void)server_free(s);
		return fault_errno(f, r, "server", "no timer");
	}
	(void)sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
	*ret_server = s;
	return 0;
}

struct server *server_free(struct server *s)
{
	struct young *y;

	if (!s)
		return NULL;
	while ((y = TAILQ_FIRST(&s->young)))
		conn_close(y->conn, -ESHUTDOWN, "the coordinator ends");
	for (size_t i = 0; i < s->n_listeners; i++) {
		(void)close(sd_event_source_get_io_fd(s->listeners[i]));
		(void)sd_event_source_disable_unref(s->listeners[i]);
	}
	(void)sd_event_source_disable_unref(s->timer);
	(void)sd_event_unref(s->event);
	free(s);
	return NULL;
}

static socklen_t to_sockaddr(const struct ip_endpoint *e,
			     struct sockaddr_storage *sa)
{
	memset(sa, 0, sizeof(*sa));
	if (e->addr.family == AF_INET6) {
		struct sockaddr_in6 *in6 = (void *)sa;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(e->port);
		memcpy(&in6->sin6_addr, e->addr.bytes, 16);
		return sizeof(*in6);
	}
	struct sockaddr_in *in4 = (void *)sa;

	in4->sin_family = AF_INET;
	in4->sin_port = htons(e->port);
	memcpy(&in4->sin_addr, e->addr.bytes, 4);
	return sizeof(*in4);
}

int server_listen(struct server *s, const char *address, struct fault *f)
{
	_cleanup_close_ int fd = -1;
	struct sockaddr_storage sa;
	struct ip_endpoint e;
	socklen_t size;
	int one = 1, r;

	if (s->n_listeners == SERVER_LISTEN_MAX)
		return fault_set(f, -E2BIG, address, "too many addresses");
	if (ip_endpoint_parse(address, &e) < 0)
		return fault_set(f, -EINVAL, address,
				 "is no address with a port, such as "
				 "192.0.2.5:7643");
	fd = socket(e.addr.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    0);
	if (fd < 0)
		return fault_errno(f, -errno, address, "no socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (e.addr.family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one,
				 sizeof(one));
	size = to_sockaddr(&e, &sa);
	if (bind(fd, (struct sockaddr *)&sa, size) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return fault_errno(f, -errno, address, "cannot listen");
	r = sd_event_add_io(s->event, &s->listeners[s->n_listeners], fd,
			    LISTEN_EVENTS, on_listen, s);
	if (r < 0)
		return fault_errno(f, r, address, "no event source");
	s->n_listeners++;
	(void)take_fd(&fd);
	return 0;
}

int server_port(const struct server *s)
{
	struct sockaddr_storage sa;
	socklen_t size = sizeof(sa);

	memset(&sa, 0, sizeof(sa));
	if (s->n_listeners == 0 ||
	    getsockname(sd_event_source_get_io_fd(s->listeners[0]),
			(struct sockaddr *)&sa, &size) < 0)
		return -ENOENT;
	if (sa.ss_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, &sa, sizeof(in6));
		return ntohs(in6.sin6_port);
	}
	struct sockaddr_in in4;

	memcpy(&in4, &sa, sizeof(in4));
	return ntohs(in4.sin_port);
}
