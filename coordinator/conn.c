#include "coordinator/conn.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "proto/frame.h"
#include "proto/tls.h"

#define READ_CHUNK 16384
#define READ_TURN (16 * READ_CHUNK)	/* then others get their turn */
#define STREAM_HELLO_FRAME (FRAME_HEADER_SIZE + 16)

#define CONN_EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

struct conn {
	struct tls_conn *tls;
	sd_event_source *io;
	struct frame_reader reader;
	struct frame_writer writer;
	const struct conn_ops *ops;
	void *owner;
	unsigned int depth;	/* callbacks running */
	size_t first;		/* bytes of the first frame taken so far */
	uint8_t head[FRAME_HEADER_SIZE];
	bool shaken, raw, dying;
	char peer[CONN_PEER_MAX];
};

static void destroy(struct conn *c)
{
	(void)sd_event_source_disable_unref(c->io);
	frame_reader_done(&c->reader);
	frame_writer_done(&c->writer);
	(void)tls_free(c->tls);
	free(c);
}

static void finish(struct conn *c, const struct fault *why)
{
	if (c->dying)
		return;
	c->dying = true;
	(void)sd_event_source_set_enabled(c->io, SD_EVENT_OFF);
	c->depth++;
	c->ops->closed(c->owner, c, why);
	c->depth--;
	if (c->depth == 0)
		destroy(c);
}

void conn_close(struct conn *c, int err, const char *reason)
{
	struct fault why = FAULT_INIT;

	(void)fault_set(&why, err, c->peer, "%s", reason);
	finish(c, &why);
}

/* Writes until the socket is full. A failure shows as a hang-up later. */
static void flush(struct conn *c)
{
	const uint8_t *data;
	size_t size, n;
	int r;

	if (!c->shaken || c->raw)
		return;
	while ((size = frame_writer_peek(&c->writer, &data)) > 0) {
		r = tls_write(c->tls, data, size, &n, NULL);
		if (r == -EAGAIN)
			return;
		if (r < 0) {
			(void)shutdown(tls_fd(c->tls), SHUT_RDWR);
			return;
		}
		frame_writer_consumed(&c->writer, n);
	}
}

int conn_send(struct conn *c, uint8_t type, const void *body, size_t size)
{
	int r;

	if (c->dying)
		return -ESHUTDOWN;
	r = frame_writer_put(&c->writer, type, body, size);
	if (r < 0)
		return r;
	flush(c);
	return 0;
}

size_t conn_queued(const struct conn *c)
{
	const uint8_t *data;

	return frame_writer_peek(&c->writer, &data);
}

/*
 * After a STREAM_HELLO raw bytes follow, which the frame reader must not
 * see: until the first frame is whole no more is read than it needs.
 */
static size_t read_room(const struct conn *c)
{
	if (c->first >= STREAM_HELLO_FRAME)
		return READ_CHUNK;
	if (c->first < FRAME_HEADER_SIZE)
		return FRAME_HEADER_SIZE - c->first;
	if (c->head[4] == FRAME_STREAM_HELLO)
		return STREAM_HELLO_FRAME - c->first;
	return READ_CHUNK;
}

static void note_first(struct conn *c, const uint8_t *data, size_t n)
{
	for (size_t i = 0; i < n && c->first < STREAM_HELLO_FRAME; i++) {
		if (c->first < FRAME_HEADER_SIZE)
			c->head[c->first] = data[i];
		c->first++;
	}
}

struct turn {
	struct conn *c;
	struct fault *f;
};

static int on_frame(void *userdata, uint8_t type, const uint8_t *body,
		    size_t size)
{
	struct turn *t = userdata;
	int r;

	r = t->c->ops->frame(t->c->owner, t->c, type, body, size, t->f);
	if (r >= 0 && t->c->dying)
		return -ECANCELED;
	return r;
}

/* 0: the socket is empty. 1: more may wait. */
static int read_turn(struct conn *c, struct fault *f)
{
	struct turn t = { .c = c, .f = f };
	uint8_t buf[READ_CHUNK];
	size_t n, total = 0;
	int r;

	while (total < READ_TURN && !c->raw) {
		r = tls_read(c->tls, buf, read_room(c), &n, f);
		if (r == -EAGAIN)
			return 0;
		if (r < 0)
			return r;
		if (n == 0)
			return fault_set(f, -EPIPE, c->peer, "connection ended");
		note_first(c, buf, n);
		r = frame_reader_feed(&c->reader, buf, n, on_frame, &t, f);
		if (r < 0)
			return r;
		total += n;
	}
	return 1;
}

static int run(struct conn *c, struct fault *f)
{
	bool queued;
	int r;

	if (!c->shaken) {
		r = tls_handshake(c->tls, f);
		if (r < 0)
			return r == -EAGAIN ? 0 : r;
		c->shaken = true;
		/* Thousands of strangers must not hold a megabyte each. */
		if (tls_peer(c->tls)->kind == PKI_NONE)
			c->reader.most = CONN_STRANGER_MAX;
		r = c->ops->up(c->owner, c, f);
		if (r < 0)
			return r;
	}
	if (!c->raw) {
		queued = !frame_writer_empty(&c->writer);
		flush(c);
		r = read_turn(c, f);
		if (r < 0)
			return r;
		if (r > 0)
			conn_kick(c);
		if (!queued || !frame_writer_empty(&c->writer))
			return 0;
	}
	return c->ops->ready(c->owner, c, f);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents,
		 void *userdata)
{
	struct fault f = FAULT_INIT;
	struct conn *c = userdata;
	int r;

	(void)source, (void)fd, (void)revents;
	c->depth++;
	r = run(c, &f);
	if (r < 0 && !c->dying) {
		if (!f.err)
			(void)fault_errno(&f, r, c->peer, "connection");
		finish(c, &f);
	}
	c->depth--;
	if (c->dying && c->depth == 0)
		destroy(c);
	return 0;
}

int conn_new(sd_event *event, const struct tls_ctx *ctx, int fd,
	     const char *peer, const struct conn_ops *ops, void *owner,
	     struct conn **ret_conn, struct fault *f)
{
	struct conn *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return fault_set(f, -ENOMEM, peer, "out of memory");
	(void)snprintf(c->peer, sizeof(c->peer), "%s", peer);
	c->ops = ops;
	c->owner = owner;
	frame_reader_init(&c->reader, FRAME_TLS);
	frame_writer_init(&c->writer, FRAME_TLS);
	r = sd_event_add_io(event, &c->io, fd, CONN_EVENTS, on_io, c);
	if (r < 0) {
		free(c);
		return fault_errno(f, r, peer, "cannot watch the connection");
	}
	r = tls_server_new(ctx, fd, &c->tls, f);
	if (r < 0) {
		(void)sd_event_source_disable_unref(c->io);
		free(c);
		return r;
	}
	*ret_conn = c;
	return 0;
}

void conn_set_owner(struct conn *c, const struct conn_ops *ops, void *owner)
{
	c->ops = ops;
	c->owner = owner;
}

int conn_frame(struct conn *c, uint8_t type, const uint8_t *body, size_t size,
	       struct fault *f)
{
	if (c->dying)
		return -ECANCELED;
	return c->ops->frame(c->owner, c, type, body, size, f);
}

void conn_set_raw(struct conn *c)
{
	c->raw = true;
	conn_kick(c);
}

void conn_kick(struct conn *c)
{
	/* Setting edge-triggered events again makes epoll tell them again. */
	if (!c->dying)
		(void)sd_event_source_set_io_events(c->io, CONN_EVENTS);
}

struct tls_conn *conn_tls(struct conn *c)
{
	return c->tls;
}

const char *conn_peer(const struct conn *c)
{
	return c->peer;
}

const struct pki_identity *conn_identity(const struct conn *c)
{
	return tls_peer(c->tls);
}
