#include "agent/link/tls_session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/cleanup.h"
#include "common/trim.h"
#include "proto/frame.h"

/* A whole record: OpenSSL then never holds decrypted bytes back, and the
 * readiness of the socket is all there is to wait for. */
#define CHUNK 16384
#define READS_PER_CALL 8
#define SILENT_PINGS 3

struct tls_session {
	struct tls_conn *conn;
	struct frame_reader reader;
	struct frame_writer writer;
	sd_event_source *io, *timer, *defer;
	struct tls_session_owner owner;
	usec ping;
	unsigned int silent;	/* pings without a byte in return */
	bool hold;
	bool broken;		/* nothing more may be sent */
};

DEFINE_CLEANUP(session, struct tls_session, tls_session_free)

struct tls_session *tls_session_free(struct tls_session *s)
{
	if (!s)
		return NULL;
	(void)sd_event_source_disable_unref(s->io);
	(void)sd_event_source_disable_unref(s->timer);
	(void)sd_event_source_disable_unref(s->defer);
	frame_reader_done(&s->reader);
	frame_writer_done(&s->writer);
	/* So that the peer need not take our leaving for an accident. */
	if (s->conn && !s->broken)
		(void)tls_shutdown(s->conn, NULL);
	(void)tls_free(s->conn);
	free(s);
	return NULL;
}

/* Ends it; the callee may free, so nothing is touched after. */
static int end(struct tls_session *s, int r, const struct fault *f)
{
	s->io = sd_event_source_disable_unref(s->io);
	s->timer = sd_event_source_disable_unref(s->timer);
	s->defer = sd_event_source_disable_unref(s->defer);
	s->broken = true;
	s->owner.down(s->owner.userdata, r, f);
	return 0;
}

static int on_frame(void *userdata, uint8_t type, const uint8_t *body,
		    size_t size)
{
	struct tls_session *s = userdata;

	if (type == FRAME_PING)
		return frame_writer_put(&s->writer, FRAME_PONG, body, size);
	if (type == FRAME_PONG)
		return 0;
	return s->owner.frame(s->owner.userdata, type, body, size);
}

static int receive(struct tls_session *s, struct fault *f)
{
	uint8_t chunk[CHUNK];
	int i, r;

	for (i = 0; i < READS_PER_CALL && !s->hold; i++) {
		size_t n = 0;

		r = tls_read(s->conn, chunk, sizeof(chunk), &n, f);
		if (r == -EAGAIN)
			return 0;
		if (r < 0)
			return r;
		if (n == 0)
			return fault_set(f, -EPIPE, "coordinator",
					 "ended the session");
		s->silent = 0;
		r = frame_reader_feed(&s->reader, chunk, n, on_frame, s, f);
		if (r < 0)
			return r;
	}
	return 0;
}

static int transmit(struct tls_session *s, struct fault *f)
{
	bool had = !frame_writer_empty(&s->writer);
	int r;

	while (!frame_writer_empty(&s->writer)) {
		const uint8_t *data;
		size_t size = frame_writer_peek(&s->writer, &data), n = 0;

		r = tls_write(s->conn, data, size, &n, f);
		if (r == -EAGAIN)
			return 0;
		if (r < 0)
			return r;
		frame_writer_consumed(&s->writer, n);
	}
	if (had)
		s->owner.drained(s->owner.userdata);
	return 0;
}

static int run(struct tls_session *s)
{
	struct fault f = FAULT_INIT;
	uint32_t events;
	int r;

	r = receive(s, &f);
	if (r == 0)
		r = transmit(s, &f);
	if (r < 0)
		return end(s, r, &f);
	events = s->hold ? 0 : EPOLLIN;
	if (!frame_writer_empty(&s->writer))
		events |= EPOLLOUT;
	r = sd_event_source_set_io_events(s->io, events);
	return r < 0 ? end(s, r, &f) : 0;
}

static int on_io(sd_event_source *source, int fd, uint32_t revents,
		 void *userdata)
{
	(void)source;
	(void)fd;
	(void)revents;
	return run(userdata);
}

/* Sending and releasing only mark; the work is done from the loop. */
static int on_defer(sd_event_source *source, void *userdata)
{
	(void)source;
	return run(userdata);
}

static void soon(struct tls_session *s)
{
	if (s->defer)
		(void)sd_event_source_set_enabled(s->defer, SD_EVENT_ONESHOT);
}

static int on_ping(sd_event_source *source, uint64_t now, void *userdata)
{
	struct tls_session *s = userdata;
	struct fault f = FAULT_INIT;

	(void)now;
	if (s->silent >= SILENT_PINGS)
		return end(s, fault_set(&f, -ETIMEDOUT, "coordinator",
					"has been silent for %u pings",
					s->silent), &f);
	trim_memory();
	s->silent++;
	(void)frame_writer_put(&s->writer, FRAME_PING, NULL, 0);
	(void)sd_event_source_set_time_relative(source, s->ping);
	(void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	return run(s);
}

int tls_session_new(sd_event *event, struct tls_conn *conn, usec ping,
		    const struct tls_session_owner *owner,
		    struct tls_session **ret_session)
{
	CLEANUP(cleanup_session) struct tls_session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->owner = *owner;
	s->ping = ping;
	frame_reader_init(&s->reader, FRAME_TLS);
	frame_writer_init(&s->writer, FRAME_TLS);
	r = sd_event_add_io(event, &s->io, tls_fd(conn), EPOLLIN, on_io, s);
	/* A tenth of slack lets the kernel join our wake-ups with others'. */
	if (r >= 0)
		r = sd_event_add_time_relative(event, &s->timer, CLOCK_BOOTTIME,
					       ping, ping / 10 + 1, on_ping, s);
	if (r >= 0)
		r = sd_event_add_defer(event, &s->defer, on_defer, s);
	if (r < 0)
		return r;
	s->conn = conn;
	*ret_session = take_ptr(s);
	return 0;
}

int tls_session_send(struct tls_session *s, uint8_t type, const void *body,
		     size_t size)
{
	int r = frame_writer_put(&s->writer, type, body, size);

	if (r == 0)
		soon(s);
	return r;
}

size_t tls_session_queued(const struct tls_session *s)
{
	return s->writer.end - s->writer.start;
}

void tls_session_hold(struct tls_session *s, bool hold)
{
	if (s->hold == hold)
		return;
	s->hold = hold;
	soon(s);
}
