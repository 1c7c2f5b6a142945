#include "agent/link/agent_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/backoff.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "proto/frame.h"
#include "proto/keys.h"

#define RETRY_CAP (2 * USEC_PER_SEC)

struct agent_conn {
	sd_event *event;
	const struct link_config *config;
	struct agent_conn_owner owner;
	struct backoff backoff;
	int fd;
	struct frame_reader reader;
	struct frame_writer writer;
	sd_event_source *io, *timer, *defer;
	bool hold;
};

static int on_retry(sd_event_source *source, uint64_t now, void *userdata);

static void try_later(struct agent_conn *a)
{
	uint64_t bits = 0;

	(void)key_random(&bits, sizeof(bits));
	(void)sd_event_source_set_time_relative(
		a->timer, backoff_next(&a->backoff, bits));
	(void)sd_event_source_set_enabled(a->timer, SD_EVENT_ONESHOT);
}

static void close_conn(struct agent_conn *a)
{
	a->io = sd_event_source_disable_unref(a->io);
	if (a->fd >= 0)
		(void)close(take_fd(&a->fd));
	frame_reader_done(&a->reader);
	frame_writer_done(&a->writer);
}

static int lost(struct agent_conn *a, const struct fault *f)
{
	log_info("the agent's socket is gone%s%s", f->text[0] ? ": " : "",
		 f->text);
	close_conn(a);
	a->hold = false;
	try_later(a);
	a->owner.down(a->owner.userdata);
	return 0;
}

static int on_frame(void *userdata, uint8_t type, const uint8_t *body,
		    size_t size)
{
	struct agent_conn *a = userdata;

	return a->owner.frame(a->owner.userdata, type, body, size);
}

static int run(struct agent_conn *a)
{
	bool had = !frame_writer_empty(&a->writer);
	struct fault f = FAULT_INIT;
	uint32_t events = 0;
	int r = 0;

	if (a->fd < 0)
		return 0;
	if (!a->hold)
		r = frame_reader_fd(&a->reader, a->fd, on_frame, a, &f);
	if (r == 0)
		r = frame_writer_fd(&a->writer, a->fd);
	if (r < 0)
		return lost(a, &f);
	if (had && r == 0)
		a->owner.drained(a->owner.userdata);
	if (!a->hold)
		events |= EPOLLIN;
	if (!frame_writer_empty(&a->writer))
		events |= EPOLLOUT;
	return sd_event_source_set_io_events(a->io, events);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents,
		 void *userdata)
{
	(void)source;
	(void)fd;
	(void)revents;
	return run(userdata);
}

static int on_defer(sd_event_source *source, void *userdata)
{
	(void)source;
	return run(userdata);
}

static int open_socket(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;

	if (strlen(path) >= sizeof(un.sun_path))
		return -ENAMETOOLONG;
	memcpy(un.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&un, sizeof(un)) < 0)
		return -errno;
	return take_fd(&fd);
}

static int on_retry(sd_event_source *source, uint64_t now, void *userdata)
{
	struct agent_conn *a = userdata;
	int r;

	(void)source;
	(void)now;
	r = open_socket(a->config->socket);
	if (r < 0) {
		log_debug("%s: %s", a->config->socket, strerror(-r));
		try_later(a);
		return 0;
	}
	a->fd = r;
	r = sd_event_add_io(a->event, &a->io, a->fd, EPOLLIN, on_io, a);
	if (r < 0) {
		close_conn(a);
		try_later(a);
		return 0;
	}
	backoff_reset(&a->backoff);
	a->owner.up(a->owner.userdata);
	return 0;
}

int agent_conn_new(sd_event *event, const struct link_config *config,
		   const struct agent_conn_owner *owner,
		   struct agent_conn **ret_conn)
{
	struct agent_conn *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->event = event;
	a->config = config;
	a->owner = *owner;
	a->fd = -1;
	a->backoff.base = config->backoff_base;
	a->backoff.cap = config->backoff_cap < RETRY_CAP ? config->backoff_cap :
							   RETRY_CAP;
	frame_reader_init(&a->reader, FRAME_LINK);
	frame_writer_init(&a->writer, FRAME_LINK);
	r = sd_event_add_time_relative(event, &a->timer, CLOCK_BOOTTIME, 0, 0,
				       on_retry, a);
	if (r >= 0)
		r = sd_event_add_defer(event, &a->defer, on_defer, a);
	if (r >= 0)
		r = sd_event_source_set_enabled(a->defer, SD_EVENT_OFF);
	if (r < 0) {
		(void)agent_conn_free(a);
		return r;
	}
	*ret_conn = a;
	return 0;
}

struct agent_conn *agent_conn_free(struct agent_conn *a)
{
	if (!a)
		return NULL;
	close_conn(a);
	(void)sd_event_source_disable_unref(a->timer);
	(void)sd_event_source_disable_unref(a->defer);
	free(a);
	return NULL;
}

bool agent_conn_is_up(const struct agent_conn *a)
{
	return a && a->fd >= 0;
}

int agent_conn_send(struct agent_conn *a, uint8_t type, const void *body,
		    size_t size)
{
	int r;

	if (!agent_conn_is_up(a))
		return -ENOTCONN;
	r = frame_writer_put(&a->writer, type, body, size);
	if (r == 0)
		(void)sd_event_source_set_enabled(a->defer, SD_EVENT_ONESHOT);
	return r;
}

size_t agent_conn_queued(const struct agent_conn *a)
{
	return a ? a->writer.end - a->writer.start : 0;
}

void agent_conn_hold(struct agent_conn *a, bool hold)
{
	if (!agent_conn_is_up(a) || a->hold == hold)
		return;
	a->hold = hold;
	(void)sd_event_source_set_enabled(a->defer, SD_EVENT_ONESHOT);
}
