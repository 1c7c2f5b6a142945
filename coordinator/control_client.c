#include "coordinator/control_client_internal.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/parse.h"
#include "coordinator/control.h"
#include "coordinator/control_spawn.h"
#include "proto/frame.h"
#include "proto/keys.h"

struct control {
	int fd;
	int signals;		/* signalfd */
	sigset_t old_mask;
	bool masked, interrupted;
	struct spawned child;
	struct frame_reader reader;
	uint32_t next_id;
	json_t *replies;	/* by id text, of tickets not yet finished */
	size_t n_tickets;
};

/* ---- signals ---- */

static int block_signals(struct control *c, struct fault *f)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, &c->old_mask) < 0)
		return fault_errno(f, -errno, "control", "cannot block signals");
	c->masked = true;
	c->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (c->signals < 0)
		return fault_errno(f, -errno, "control", "no signal descriptor");
	return 0;
}

int control_interrupt_fd(const struct control *c)
{
	return c->signals;
}

/* Not read away: the descriptor stays readable for polls of others. */
bool control_interrupted(struct control *c)
{
	struct pollfd p = { .fd = c->signals, .events = POLLIN };

	if (!c->interrupted && poll(&p, 1, 0) > 0)
		c->interrupted = true;
	return c->interrupted;
}

static int timeout_ms(usec deadline)
{
	usec now = clock_boottime(), left;

	if (deadline <= now)
		return 0;
	left = (deadline - now + USEC_PER_MSEC - 1) / USEC_PER_MSEC;
	return left > 3600000 ? 3600000 : (int)left;
}

/* 1: `fd` is ready, 0: the deadline, -EINTR: the operator. */
static int wait_fd(struct control *c, int fd, short events, usec deadline)
{
	struct pollfd p[2] = {
		{ .fd = c->signals, .events = POLLIN },
		{ .fd = fd, .events = events },
	};
	int n;

	do {
		n = poll(p, fd >= 0 ? 2 : 1, timeout_ms(deadline));
		if (n < 0 && errno != EINTR)
			return -errno;
		if (control_interrupted(c))
			return -EINTR;
		if (n > 0 && fd >= 0 && p[1].revents)
			return 1;
	} while (clock_boottime() < deadline);
	return 0;
}

int control_sleep(struct control *c, usec deadline)
{
	return wait_fd(c, -1, 0, deadline);
}

/* ---- connection ---- */

static int connect_to(const char *state)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;
	int n;

	n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%s", state,
		     CONTROL_SOCKET);
	if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	return take_fd(&fd);
}

static int open_connection(struct control *c, const struct control_options *o,
			   struct fault *f)
{
	int r;

	c->fd = connect_to(o->state);
	if (c->fd == -ENOENT || c->fd == -ECONNREFUSED) {
		if (o->no_spawn)
			return fault_set(f, -ECONNREFUSED, o->state,
					 "no coordinator runs for this state "
					 "directory: start garboard serve");
		r = control_spawn(o->state, o->listen, o->n_listen, c->signals,
				  &c->child, f);
		if (r < 0)
			return r;
		c->fd = connect_to(o->state);
	}
	if (c->fd < 0)
		return fault_errno(f, c->fd, o->state,
				   "cannot reach the coordinator");
	return 0;
}

int control_open(const struct control_options *o, struct control **ret_control,
		 struct fault *f)
{
	struct control *c CLEANUP(control_freep) = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return fault_set(f, -ENOMEM, "control", "out of memory");
	c->fd = c->signals = -1;
	c->child = SPAWNED_NONE;
	frame_reader_init(&c->reader, FRAME_CONTROL);
	c->replies = json_object();
	if (!c->replies)
		return fault_set(f, -ENOMEM, "control", "out of memory");
	if ((r = block_signals(c, f)) < 0 || (r = open_connection(c, o, f)) < 0)
		return r;
	*ret_control = take_ptr(c);
	return 0;
}

struct control *control_free(struct control *c)
{
	if (!c)
		return NULL;
	if (c->fd >= 0)
		(void)close(c->fd);
	control_spawned_done(&c->child);
	if (c->signals >= 0)
		(void)close(c->signals);
	/* A signal that came is not delivered late: it was answered. */
	if (c->masked) {
		if (c->interrupted) {
			(void)signal(SIGINT, SIG_IGN);
			(void)signal(SIGTERM, SIG_IGN);
		}
		(void)sigprocmask(SIG_SETMASK, &c->old_mask, NULL);
	}
	frame_reader_done(&c->reader);
	json_decref(c->replies);
	free(c);
	return NULL;
}

/* ---- requests ---- */

static int send_all(struct control *c, struct frame_writer *w, usec deadline)
{
	const uint8_t *data;
	size_t size;
	ssize_t n;
	int r;

	while ((size = frame_writer_peek(w, &data)) > 0) {
		n = send(c->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			frame_writer_consumed(w, (size_t)n);
			continue;
		}
		if (errno != EAGAIN)
			return -EPIPE;
		/* Interrupted here, no later call gets further either. */
		r = wait_fd(c, c->fd, POLLOUT, deadline);
		if (r == 0)
			return -ETIMEDOUT;
		if (r < 0)
			return r;
	}
	return 0;
}

static int send_request(struct control *c, json_t *request, usec deadline,
			uint32_t *ret_id, struct fault *f)
{
	struct frame_writer w;
	uint32_t id = ++c->next_id;
	char *text;
	int r;

	if (json_object_set_new(request, "id", json_integer(id)) < 0 ||
	    !(text = json_dumps(request, JSON_COMPACT)))
		return fault_set(f, -ENOMEM, "control", "out of memory");
	frame_writer_init(&w, FRAME_CONTROL);
	r = frame_writer_put(&w, FRAME_REQUEST, text, strlen(text));
	key_wipe(text, strlen(text));
	free(text);
	if (r == 0)
		r = send_all(c, &w, deadline);
	frame_writer_done(&w);
	if (r < 0)
		return fault_errno(f, r, "control",
				   "cannot ask the coordinator");
	*ret_id = id;
	return 0;
}

static int on_frame(void *userdata, uint8_t type, const uint8_t *body,
		    size_t size)
{
	struct control *c = userdata;
	char key[16];
	json_t *reply;

	if (type == FRAME_EVENT)
		return 0;
	reply = json_loadb((const char *)body, size, JSON_REJECT_DUPLICATES,
			   NULL);
	if (type != FRAME_REPLY || !json_is_object(reply)) {
		json_decref(reply);
		return -EPROTO;
	}
	(void)snprintf(key, sizeof(key), "%u",
		       (unsigned int)json_integer_value(
			       json_object_get(reply, "id")));
	return json_object_set_new(c->replies, key, reply) == 0 ? 0 : -ENOMEM;
}

static int read_some(struct control *c)
{
	uint8_t buf[65536];
	ssize_t n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (n == 0)
		return -EPIPE;
	if (n < 0)
		return errno == EAGAIN ? 0 : -EPIPE;
	return frame_reader_feed(&c->reader, buf, (size_t)n, on_frame, c,
				 NULL);
}

/* Moves what the coordinator reported into the caller's fault. */
static int reply_error(const json_t *reply, struct fault *f)
{
	json_int_t err = json_integer_value(json_object_get(reply, "error"));
	const char *object = json_string_value(json_object_get(reply,
							       "object"));
	const char *text = json_string_value(json_object_get(reply, "text"));

	if (err == 0)
		return 0;
	if (err > -1 || err < -4095)
		err = -EPROTO;
	return fault_set(f, (int)err, object ? object : "coordinator", "%s",
			 text ? text : "failed");
}

int control_await(struct control *c, uint32_t id, usec deadline,
		  json_t **ret_reply, struct fault *f)
{
	char key[16];
	json_t *reply;
	int r;

	(void)snprintf(key, sizeof(key), "%u", id);
	while (!(reply = json_object_get(c->replies, key))) {
		r = wait_fd(c, c->fd, POLLIN, deadline);
		if (r == 0)
			return fault_set(f, -ETIMEDOUT, "control",
					 "the coordinator did not answer");
		if (r > 0)
			r = read_some(c);
		if (r == -EINTR)
			return fault_set(f, r, "control", "interrupted");
		if (r < 0)
			return fault_errno(f, r, "control",
					   "the coordinator is gone");
	}
	json_incref(reply);
	(void)json_object_del(c->replies, key);
	r = reply_error(reply, f);
	if (r < 0) {
		json_decref(reply);
		return r;
	}
	*ret_reply = reply;
	return 0;
}

int control_begin(struct control *c, json_t *request, usec deadline,
		  uint32_t *ret_id, struct fault *f)
{
	return send_request(c, request, deadline, ret_id, f);
}

int control_call(struct control *c, json_t *request, usec deadline,
		 json_t **ret_reply, struct fault *f)
{
	uint32_t id = 0;
	int r;

	r = send_request(c, request, deadline, &id, f);
	return r < 0 ? r : control_await(c, id, deadline, ret_reply, f);
}

bool control_spawned(const struct control *c)
{
	return c->child.fd >= 0;
}
