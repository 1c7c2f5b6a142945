#include "coordinator/stream.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "coordinator/conn.h"
#include "coordinator/fleet.h"
#include "coordinator/journal.h"
#include "proto/tls.h"
#include "proto/up.h"

#define PUMP_BUFFER 16384
#define PUMP_TURN 32		/* buffers per direction, then others */
#define LOCAL_EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

/* One direction: read into buf, written from it, closed after the end. */
struct pump {
	uint8_t buf[PUMP_BUFFER];
	size_t start, end;
	bool eof, closed;
};

struct stream {
	TAILQ_ENTRY(stream) link;
	struct streams *streams;
	struct stream_listener *listener;
	uint8_t id[STREAM_ID_SIZE];
	int fd;				/* ours */
	sd_event_source *local;		/* from the join on */
	sd_event_source *deadline;	/* until the join */
	struct fleet_order *order;
	struct conn *conn;		/* after the join */
	struct pump *down, *up;		/* to the node, from the node */
};

struct stream_listener {
	TAILQ_ENTRY(stream_listener) link;
	struct streams *streams;
	uint8_t node[16];
	enum stream_target target;
	struct ip_addr server;
	sd_event_source *io;
	int fd;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

struct streams {
	sd_event *event;
	struct fleet *fleet;
	struct journal *journal;
	char *dir;
	unsigned int serial;
	TAILQ_HEAD(stream_list, stream) open;
	TAILQ_HEAD(stream_listeners, stream_listener) listeners;
	size_t n_open, n_listeners;
};

int streams_new(sd_event *event, const char *dir, struct fleet *fleet,
		struct journal *journal, struct streams **ret_streams,
		struct fault *f)
{
	struct streams *s;
	int r;

	r = file_mkdirs(dir, 0700, f);
	if (r < 0)
		return r;
	if (chmod(dir, 0700) < 0)
		return fault_errno(f, -errno, dir, "cannot protect it");
	s = calloc(1, sizeof(*s));
	if (!s || !(s->dir = strdup(dir))) {
		free(s);
		return fault_set(f, -ENOMEM, dir, "out of memory");
	}
	s->event = sd_event_ref(event);
	s->fleet = fleet;
	s->journal = journal;
	TAILQ_INIT(&s->open);
	TAILQ_INIT(&s->listeners);
	*ret_streams = s;
	return 0;
}

static void stream_release(struct stream *st)
{
	TAILQ_REMOVE(&st->streams->open, st, link);
	st->streams->n_open--;
	if (st->order)
		fleet_order_cancel(st->order);
	(void)sd_event_source_disable_unref(st->local);
	(void)sd_event_source_disable_unref(st->deadline);
	(void)close(st->fd);
	free(st->down);
	free(st->up);
	free(st);
}

/* May be called from inside any of its callbacks but on_closed(). */
static void stream_end(struct stream *st, int err, const char *reason)
{
	if (st->conn)
		conn_close(st->conn, err, reason);	/* releases */
	else
		stream_release(st);
}

struct streams *streams_free(struct streams *s)
{
	if (!s)
		return NULL;
	while (!TAILQ_EMPTY(&s->open))
		stream_end(TAILQ_FIRST(&s->open), -ESHUTDOWN,
			   "the coordinator ends");
	while (!TAILQ_EMPTY(&s->listeners))
		stream_listener_free(TAILQ_FIRST(&s->listeners));
	(void)sd_event_unref(s->event);
	free(s->dir);
	free(s);
	return NULL;
}

void streams_end_node(struct streams *s, const struct fleet_node *n)
{
	struct stream *st, *next;

	for (st = TAILQ_FIRST(&s->open); st; st = next) {
		next = TAILQ_NEXT(st, link);
		if (memcmp(st->listener->node, n->row.id, 16) == 0)
			stream_end(st, -EACCES, "the node was revoked");
	}
}

/* ---- pumping ---- */

/* What can be taken from a descriptor or from TLS, as one shape. */
struct end {
	int fd;				/* -1: TLS */
	struct tls_conn *tls;
};

static int end_read(const struct end *e, uint8_t *buf, size_t size,
		    size_t *ret_n)
{
	ssize_t n;

	if (e->tls)
		return tls_read(e->tls, buf, size, ret_n, NULL);
	n = read(e->fd, buf, size);
	if (n < 0)
		return -errno;
	*ret_n = (size_t)n;
	return 0;
}

static int end_write(const struct end *e, const uint8_t *buf, size_t size,
		     size_t *ret_n)
{
	ssize_t n;

	if (e->tls)
		return tls_write(e->tls, buf, size, ret_n, NULL);
	n = send(e->fd, buf, size, MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	*ret_n = (size_t)n;
	return 0;
}

static void end_close(const struct end *e)
{
	if (e->tls)
		(void)tls_shutdown(e->tls, NULL);
	else
		(void)shutdown(e->fd, SHUT_WR);
}

/*
 * Moves until either side would block. 0: wait for an event, 1: stopped by
 * the bound of a turn, negative: broken.
 */
static int pump_run(struct pump *p, const struct end *from,
		    const struct end *to)
{
	size_t n;
	int r;

	for (int turn = 0; turn < PUMP_TURN && !p->closed; turn++) {
		while (p->start < p->end) {
			r = end_write(to, p->buf + p->start,
				      p->end - p->start, &n);
			if (r == -EAGAIN)
				return 0;
			if (r < 0)
				return r;
			p->start += n;
		}
		p->start = p->end = 0;
		if (p->eof) {
			end_close(to);
			p->closed = true;
			return 0;
		}
		r = end_read(from, p->buf, sizeof(p->buf), &n);
		if (r == -EAGAIN)
			return 0;
		if (r < 0)
			return r;
		p->end = n;
		p->eof = n == 0;
	}
	return p->closed ? 0 : 1;
}

/* 0, or negative when the stream is over. */
static int stream_pump(struct stream *st)
{
	struct end local = { .fd = st->fd };
	struct end remote = { .fd = -1, .tls = conn_tls(st->conn) };
	int down, up;

	down = pump_run(st->down, &local, &remote);
	if (down < 0)
		return down;
	up = pump_run(st->up, &remote, &local);
	if (up < 0)
		return up;
	if (st->down->closed && st->up->closed)
		return -EPIPE;
	if (down > 0 || up > 0)
		conn_kick(st->conn);
	return 0;
}

static int on_local(sd_event_source *source, int fd, uint32_t revents,
		    void *userdata)
{
	struct stream *st = userdata;
	int r;

	(void)source, (void)fd, (void)revents;
	r = stream_pump(st);
	if (r < 0)
		stream_end(st, r, "stream ended");
	return 0;
}

static int on_ready(void *owner, struct conn *c, struct fault *f)
{
	int r = stream_pump(owner);

	return r < 0 ? fault_set(f, r, conn_peer(c), "stream ended") : 0;
}

static int on_frame(void *owner, struct conn *c, uint8_t type,
		    const uint8_t *body, size_t size, struct fault *f)
{
	(void)owner, (void)type, (void)body, (void)size;
	return fault_set(f, -EPROTO, conn_peer(c), "a frame inside a stream");
}

static void on_closed(void *owner, struct conn *c, const struct fault *why)
{
	(void)c, (void)why;
	stream_release(owner);
}

static const struct conn_ops stream_ops = {
	.frame = on_frame,
	.ready = on_ready,
	.closed = on_closed,
};

/* ---- opening ---- */

static int on_deadline(sd_event_source *source, uint64_t usec_, void *userdata)
{
	struct stream *st = userdata;

	(void)source, (void)usec_;
	journal_note(st->streams->journal, "stream", NULL,
		     "the node did not dial back in time");
	stream_end(st, -ETIMEDOUT, "not dialled in time");
	return 0;
}

static void on_answer(void *userdata, int err, const uint8_t *result,
		      size_t size, const struct fault *why)
{
	struct stream *st = userdata;
	struct up *u = NULL;

	st->order = NULL;
	if (err < 0) {
		journal_note(st->streams->journal, "stream", NULL, "%s",
			     why->text);
		stream_end(st, err, "the order was not answered");
		return;
	}
	if (up_decode(result, size, &u, NULL) < 0)
		return;
	if (u->result.code != RESULT_DONE) {
		journal_note(st->streams->journal, "stream", NULL,
			     "the node could not open it: %s", u->result.text);
		stream_end(st, -ECONNREFUSED, "refused by the node");
	}
	(void)up_free(u);
}

static int order_stream(struct stream *st, struct fleet_node *n,
			struct fault *f)
{
	struct order o = { .kind = ORDER_OPEN_STREAM };
	_cleanup_free_ uint8_t *payload = NULL;
	size_t size = 0;
	int r;

	memcpy(o.stream.stream_id, st->id, sizeof(st->id));
	o.stream.target = st->listener->target;
	o.stream.server = st->listener->server;
	r = order_encode(&o, &payload, &size, f);
	if (r < 0)
		return r;
	return fleet_order(st->streams->fleet, n, payload, size,
			   clock_boottime() + STREAM_OPEN_TIME, on_answer, st,
			   &st->order, f);
}

/* Takes fd on success. */
static int stream_start(struct stream_listener *l, int fd, struct fault *f)
{
	struct streams *s = l->streams;
	struct fleet_node *n = fleet_by_id(s->fleet, l->node);
	struct stream *st;
	int r;

	if (!n || !n->session)
		return fault_set(f, -ENOTCONN, l->path,
				 "the node is not connected");
	if (s->n_open >= STREAM_MAX)
		return fault_set(f, -ENOBUFS, l->path, "too many streams");
	st = calloc(1, sizeof(*st));
	if (!st)
		return fault_set(f, -ENOMEM, l->path, "out of memory");
	st->streams = s;
	st->listener = l;
	r = key_random(st->id, sizeof(st->id));
	if (r >= 0)
		r = sd_event_add_time_relative(s->event, &st->deadline,
					       CLOCK_MONOTONIC,
					       STREAM_OPEN_TIME, 0,
					       on_deadline, st);
	if (r < 0) {
		free(st);
		return fault_errno(f, r, l->path, "cannot start a stream");
	}
	st->fd = fd;
	TAILQ_INSERT_TAIL(&s->open, st, link);
	s->n_open++;
	r = order_stream(st, n, f);
	if (r < 0) {
		st->fd = -1;	/* the caller's again */
		stream_release(st);
	}
	return r;
}

static int on_accept(sd_event_source *source, int fd, uint32_t revents,
		     void *userdata)
{
	struct stream_listener *l = userdata;
	struct fault f = FAULT_INIT;
	struct ucred who;
	socklen_t size = sizeof(who);
	int client, r;

	(void)source, (void)revents;
	client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (client < 0)
		return 0;
	if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0 ||
	    who.uid != geteuid()) {
		(void)close(client);
		return 0;
	}
	r = stream_start(l, client, &f);
	if (r < 0) {
		journal_note(l->streams->journal, "stream", NULL, "%s",
			     f.text);
		(void)close(client);
	}
	return 0;
}

int stream_join(struct streams *s, struct conn *c, const uint8_t *id,
		size_t id_size, struct fault *f)
{
	struct stream *st;
	int r;

	TAILQ_FOREACH(st, &s->open, link)
		if (id_size == sizeof(st->id) && !st->conn &&
		    key_equal(st->id, id, sizeof(st->id)))
			break;
	if (!st || memcmp(st->listener->node, conn_identity(c)->node_id,
			  sizeof(st->listener->node)) != 0)
		return fault_set(f, -EACCES, conn_peer(c),
				 "a stream that was not ordered from it");
	st->down = calloc(1, sizeof(*st->down));
	st->up = calloc(1, sizeof(*st->up));
	r = st->down && st->up ? 0 : -ENOMEM;
	if (r == 0)
		r = sd_event_add_io(s->event, &st->local, st->fd, LOCAL_EVENTS,
				    on_local, st);
	if (r < 0) {
		stream_release(st);
		return fault_errno(f, r, conn_peer(c), "cannot join");
	}
	st->deadline = sd_event_source_disable_unref(st->deadline);
	st->conn = c;
	conn_set_owner(c, &stream_ops, st);
	conn_set_raw(c);
	return 0;
}

/* ---- listeners ---- */

const char *stream_listener_path(const struct stream_listener *l)
{
	return l->path;
}

void stream_listener_free(struct stream_listener *l)
{
	struct stream *st, *next;

	if (!l)
		return;
	for (st = TAILQ_FIRST(&l->streams->open); st; st = next) {
		next = TAILQ_NEXT(st, link);
		if (st->listener == l)
			stream_end(st, -ESHUTDOWN, "its listener ended");
	}
	TAILQ_REMOVE(&l->streams->listeners, l, link);
	l->streams->n_listeners--;
	(void)sd_event_source_disable_unref(l->io);
	(void)unlink(l->path);
	(void)close(l->fd);
	free(l);
}

static int listen_socket(struct stream_listener *l, struct fault *f)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fault_errno(f, -errno, l->path, "no socket");
	memcpy(sa.sun_path, l->path, sizeof(l->path));
	(void)unlink(l->path);
	/* The directory is 0700: nobody gets here before the chmod. */
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    chmod(l->path, 0600) < 0 || listen(fd, 64) < 0)
		return fault_errno(f, -errno, l->path, "cannot listen");
	return take_fd(&fd);
}

int stream_listen(struct streams *s, const struct fleet_node *n,
		  enum stream_target target, const struct ip_addr *server,
		  struct stream_listener **ret_listener, struct fault *f)
{
	struct stream_listener *l;
	int r;

	if (s->n_listeners >= STREAM_LISTENERS_MAX)
		return fault_set(f, -ENOBUFS, s->dir, "too many listeners");
	l = calloc(1, sizeof(*l));
	if (!l)
		return fault_set(f, -ENOMEM, s->dir, "out of memory");
	l->streams = s;
	l->target = target;
	if (server)
		l->server = *server;
	memcpy(l->node, n->row.id, sizeof(l->node));
	r = snprintf(l->path, sizeof(l->path), "%s/%.32s-%u.sock", s->dir,
		     n->row.name, s->serial++);
	if (r < 0 || (size_t)r >= sizeof(l->path)) {
		free(l);
		return fault_set(f, -ENAMETOOLONG, s->dir,
				 "too long for a socket: use a shorter --state");
	}
	l->fd = listen_socket(l, f);
	if (l->fd < 0) {
		r = l->fd;
		free(l);
		return r;
	}
	r = sd_event_add_io(s->event, &l->io, l->fd, EPOLLIN, on_accept, l);
	if (r < 0) {
		(void)close(l->fd);
		free(l);
		return fault_errno(f, r, s->dir, "no event source");
	}
	TAILQ_INSERT_TAIL(&s->listeners, l, link);
	s->n_listeners++;
	*ret_listener = l;
	return 0;
}
