#include "agent/link/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "agent/link/dial.h"
#include "common/cleanup.h"
#include "proto/frame.h"

/* A whole TLS record, so that OpenSSL never holds decrypted bytes back. */
#define BUFFER 16384

struct way {			/* one direction */
	uint8_t *buf;
	size_t start, end;
	bool ended;		/* the source has ended */
	bool closed;		/* and the sink was told */
};

struct stream {
	sd_event *event;
	struct stream_target target;
	struct tls_ctx *const *tls;
	usec deadline;
	struct stream_owner owner;
	struct dial *dial;
	int fd;				/* of the local end */
	struct tls_conn *conn;
	sd_event_source *local_io, *tls_io;
	struct way up, down;		/* to, and from the coordinator */
	bool joined;
};

DEFINE_CLEANUP(stream, struct stream, stream_free)

struct stream *stream_free(struct stream *s)
{
	if (!s)
		return NULL;
	(void)dial_free(s->dial);
	(void)sd_event_source_disable_unref(s->local_io);
	(void)sd_event_source_disable_unref(s->tls_io);
	(void)tls_free(s->conn);
	if (s->fd >= 0)
		(void)close(s->fd);
	free(s->up.buf);
	free(s->down.buf);
	free(s);
	return NULL;
}

/* Ends it; the callee may free, so nothing is touched after. */
static void close_stream(struct stream *s)
{
	s->local_io = sd_event_source_disable_unref(s->local_io);
	s->tls_io = sd_event_source_disable_unref(s->tls_io);
	s->owner.closed(s->owner.userdata, s);
}

static void fail(struct stream *s, int r, const struct fault *f)
{
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];

	if (!s->joined)
		s->owner.result(s->owner.userdata, s->target.id, r,
				fault_str(f, text, sizeof(text)));
	close_stream(s);
}

/* ---- pump ---- */

static bool is_empty(const struct way *w)
{
	return w->start == w->end;
}

static int fill_from_local(struct stream *s)
{
	struct way *w = &s->up;
	ssize_t n;

	if (w->ended || !is_empty(w))
		return 0;
	n = recv(s->fd, w->buf, BUFFER, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	w->start = 0;
	w->end = (size_t)n;
	w->ended = n == 0;
	return n > 0;
}

static int drain_to_tls(struct stream *s)
{
	struct way *w = &s->up;
	struct fault f = FAULT_INIT;
	size_t n = 0;
	int r;

	if (!is_empty(w)) {
		r = tls_write(s->conn, w->buf + w->start, w->end - w->start,
			      &n, &f);
		if (r < 0)
			return r == -EAGAIN ? 0 : r;
		w->start += n;
		return 1;
	}
	if (!w->ended || w->closed)
		return 0;
	r = tls_shutdown(s->conn, &f);
	if (r < 0)
		return r == -EAGAIN ? 0 : r;
	w->closed = true;
	return 1;
}

static int fill_from_tls(struct stream *s)
{
	struct way *w = &s->down;
	struct fault f = FAULT_INIT;
	size_t n = 0;
	int r;

	if (w->ended || !is_empty(w))
		return 0;
	r = tls_read(s->conn, w->buf, BUFFER, &n, &f);
	if (r < 0)
		return r == -EAGAIN ? 0 : r;
	w->start = 0;
	w->end = n;
	w->ended = n == 0;
	return n > 0;
}

static int drain_to_local(struct stream *s)
{
	struct way *w = &s->down;
	ssize_t n;

	if (!is_empty(w)) {
		n = send(s->fd, w->buf + w->start, w->end - w->start,
			 MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		w->start += (size_t)n;
		return 1;
	}
	if (!w->ended || w->closed)
		return 0;
	(void)shutdown(s->fd, SHUT_WR);	/* the peer may be gone already */
	w->closed = true;
	return 1;
}

/* What each end is waited for: read into an empty buffer, write a full. */
static int arm(struct stream *s)
{
	uint32_t local = 0, tls = 0;
	int r;

	if (!s->up.ended && is_empty(&s->up))
		local |= EPOLLIN;
	if (!is_empty(&s->down))
		local |= EPOLLOUT;
	if (!s->down.ended && is_empty(&s->down))
		tls |= EPOLLIN;
	if (!is_empty(&s->up) || (s->up.ended && !s->up.closed))
		tls |= EPOLLOUT;
	r = sd_event_source_set_io_events(s->local_io, local);
	return r < 0 ? r : sd_event_source_set_io_events(s->tls_io, tls);
}

/* Bounded turns: one stream must not starve the session. */
static int pump(struct stream *s)
{
	static int (*const moves[])(struct stream *) = {
		fill_from_local, drain_to_tls, fill_from_tls, drain_to_local,
	};
	bool moved = true;
	size_t i;
	int turn, r;

	for (turn = 0; turn < 16 && moved; turn++) {
		moved = false;
		for (i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
			r = moves[i](s);
			if (r < 0)
				goto over;
			moved |= r > 0;
		}
	}
	if (s->up.closed && s->down.closed)
		goto over;
	if (arm(s) >= 0)
		return 0;
over:
	close_stream(s);
	return 0;
}

static int on_io(sd_event_source *source, int fd, uint32_t revents,
		 void *userdata)
{
	struct stream *s = userdata;

	(void)fd;
	/* A reset of an end that is not read now is seen only here. */
	if (revents & EPOLLERR) {
		close_stream(s);
		return 0;
	}
	/* HUP cannot be masked; every move is tried whenever either end
	 * moves, so an end that says only this needs no watching. */
	if (revents == EPOLLHUP)
		(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
	return pump(s);
}

/* ---- joining ---- */

static int start_pump(struct stream *s)
{
	uint8_t hello[FRAME_HEADER_SIZE + STREAM_ID_SIZE] = {
		0, 0, 0, STREAM_ID_SIZE, FRAME_STREAM_HELLO,
	};
	int r;

	s->up.buf = malloc(BUFFER);
	s->down.buf = malloc(BUFFER);
	if (!s->up.buf || !s->down.buf)
		return -ENOMEM;
	memcpy(hello + FRAME_HEADER_SIZE, s->target.id, STREAM_ID_SIZE);
	memcpy(s->up.buf, hello, sizeof(hello));
	s->up.end = sizeof(hello);
	r = sd_event_add_io(s->event, &s->local_io, s->fd, 0, on_io, s);
	if (r >= 0)
		r = sd_event_add_io(s->event, &s->tls_io, tls_fd(s->conn), 0,
				    on_io, s);
	return r < 0 ? r : arm(s);
}

static void on_coordinator(void *userdata, int r, int fd,
			   struct tls_conn *conn, const struct fault *f)
{
	struct stream *s = userdata;
	struct fault mine = FAULT_INIT;

	(void)fd;
	s->dial = dial_free(s->dial);
	if (r < 0) {
		fail(s, r, f);
		return;
	}
	s->conn = conn;
	r = start_pump(s);
	if (r < 0) {
		(void)fault_errno(&mine, r, "stream", "cannot be started");
		fail(s, r, &mine);
		return;
	}
	s->joined = true;
	s->owner.result(s->owner.userdata, s->target.id, 0, "");
}

static void on_local(void *userdata, int r, int fd, struct tls_conn *conn,
		     const struct fault *f)
{
	struct stream *s = userdata;
	struct fault mine = FAULT_INIT;

	(void)conn;
	s->dial = dial_free(s->dial);
	if (r < 0) {
		fail(s, r, f);
		return;
	}
	s->fd = fd;
	r = dial_new(s->event, &s->target.coordinator.addr,
		     s->target.coordinator.port, *s->tls, s->deadline,
		     on_coordinator, s, &s->dial, &mine);
	if (r < 0)
		fail(s, r, &mine);
}

int stream_new(sd_event *event, const struct stream_target *target,
	       struct tls_ctx *const *tls, usec deadline,
	       const struct stream_owner *owner, struct stream **ret_stream,
	       struct fault *f)
{
	CLEANUP(cleanup_stream) struct stream *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->event = event;
	s->target = *target;
	s->tls = tls;
	s->deadline = deadline;
	s->owner = *owner;
	s->fd = -1;
	r = dial_new(event, &target->local.addr, target->local.port, NULL,
		     deadline, on_local, s, &s->dial, f);
	if (r < 0)
		return r;
	*ret_stream = take_ptr(s);
	return 0;
}
