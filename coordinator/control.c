#include "coordinator/control_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "coordinator/fleet.h"
#include "proto/frame.h"
#include "proto/keys.h"

struct client {
	LIST_ENTRY(client) link;
	struct control_server *server;
	int fd;
	sd_event_source *io;
	struct frame_reader reader;
	struct frame_writer writer;
	struct deferred_list deferred;
	size_t n_deferred;
	struct listener_list listeners;
	bool dying;
};

struct control_parts *client_parts(struct client *c)
{
	return &c->server->parts;
}

sd_event *client_event(struct client *c)
{
	return c->server->event;
}

struct deferred_list *client_deferred(struct client *c)
{
	return &c->deferred;
}

struct listener_list *client_listeners(struct client *c)
{
	return &c->listeners;
}

struct deferred *client_defer(struct client *c, const json_t *request,
			      struct fault *f)
{
	struct deferred *d;

	if (c->n_deferred >= CONTROL_REQUESTS_MAX) {
		(void)fault_set(f, -EBUSY, "control", "too many at once");
		return NULL;
	}
	d = calloc(1, sizeof(*d));
	if (!d) {
		(void)fault_set(f, -ENOMEM, "control", "out of memory");
		return NULL;
	}
	d->client = c;
	d->id = json_integer_value(json_object_get(request, "id"));
	LIST_INSERT_HEAD(&c->deferred, d, link);
	c->n_deferred++;
	return d;
}

void deferred_free(struct deferred *d)
{
	LIST_REMOVE(d, link);
	d->client->n_deferred--;
	(void)sd_event_source_disable_unref(d->timer);
	free(d);
}

/* ---- out ---- */

static void want(struct client *c, bool writable)
{
	(void)sd_event_source_set_io_events(
		c->io, EPOLLIN | (writable ? EPOLLOUT : 0u));
}

static void flush(struct client *c)
{
	int r = frame_writer_fd(&c->writer, c->fd);

	if (r < 0) {
		(void)shutdown(c->fd, SHUT_RDWR);	/* seen as its end */
		return;
	}
	want(c, r > 0);
}

void client_reply(struct client *c, json_t *reply)
{
	char *text = json_dumps(reply, JSON_COMPACT);
	size_t size;
	int r = -ENOMEM;

	json_decref(reply);
	if (text) {
		size = strlen(text);
		r = c->dying ? 0 :
			       frame_writer_put(&c->writer, FRAME_REPLY, text,
						size);
		key_wipe(text, size);	/* it may hold a secret */
		free(text);
	}
	if (r < 0)
		(void)shutdown(c->fd, SHUT_RDWR);
	else if (!c->dying)
		flush(c);
}

void client_fail(struct client *c, json_int_t id, const struct fault *f)
{
	json_t *reply = json_pack("{sI si ss ss}", "id", id, "error", f->err,
				  "object", f->object, "text", f->text);

	if (reply)
		client_reply(c, reply);
	else
		(void)shutdown(c->fd, SHUT_RDWR);
}

/* ---- in ---- */

static void handle(struct client *c, const json_t *request)
{
	const char *name = json_string_value(json_object_get(request, "op"));
	json_t *id = json_object_get(request, "id");
	control_op op = name ? control_ops_find(name) : NULL;
	struct fault f = FAULT_INIT;
	json_t *reply = json_object();
	int r = -ENOMEM;

	if (!op)
		r = fault_set(&f, -ENOSYS, name ? name : "control",
			      "this coordinator does not know the request: is "
			      "an older one running?");
	else if (reply && json_object_set(reply, "id", id) == 0)
		r = op(c, request, reply, &f);
	if (r == 0) {
		client_reply(c, reply);
		return;
	}
	json_decref(reply);
	if (r > 0)
		return;
	if (!f.err)
		(void)fault_errno(&f, r, name ? name : "control", "failed");
	client_fail(c, json_integer_value(id), &f);
}

static int on_frame(void *userdata, uint8_t type, const uint8_t *body,
		    size_t size)
{
	struct client *c = userdata;
	json_t *request;

	if (type != FRAME_REQUEST)
		return -EPROTO;
	request = json_loadb((const char *)body, size,
			     JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(request) ||
	    !json_is_integer(json_object_get(request, "id"))) {
		json_decref(request);
		return -EBADMSG;
	}
	handle(c, request);
	json_decref(request);
	return 0;
}

static void client_free(struct client *c)
{
	struct control_server *s = c->server;

	c->dying = true;
	control_ops_release(c);
	LIST_REMOVE(c, link);
	s->n_clients--;
	(void)sd_event_source_disable_unref(c->io);
	frame_reader_done(&c->reader);
	frame_writer_done(&c->writer);
	(void)close(c->fd);
	free(c);
	if (s->n_clients == 0 && s->idle)
		s->idle(s->idle_data);
}

static int on_client(sd_event_source *source, int fd, uint32_t revents,
		     void *userdata)
{
	struct client *c = userdata;
	int r = 0;

	(void)source;
	if (revents & EPOLLOUT)
		flush(c);
	if (revents & (EPOLLIN | EPOLLHUP | EPOLLERR))
		r = frame_reader_fd(&c->reader, fd, on_frame, c, NULL);
	if (r < 0)
		client_free(c);
	return 0;
}

static int check_peer(int fd)
{
	socklen_t size = sizeof(struct ucred);
	struct ucred who;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
		return -errno;
	return who.uid == geteuid() || who.uid == 0 ? 0 : -EACCES;
}

static int take_client(struct control_server *s, int fd)
{
	struct client *c;
	int r;

	if (s->n_clients >= CONTROL_CLIENTS_MAX)
		return -EBUSY;
	r = check_peer(fd);
	if (r < 0)
		return r;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->server = s;
	c->fd = fd;
	frame_reader_init(&c->reader, FRAME_CONTROL);
	frame_writer_init(&c->writer, FRAME_CONTROL);
	r = sd_event_add_io(s->event, &c->io, fd, EPOLLIN, on_client, c);
	if (r < 0) {
		free(c);
		return r;
	}
	/* People are answered also while a whole fleet connects. */
	(void)sd_event_source_set_priority(c->io, SD_EVENT_PRIORITY_IMPORTANT);
	LIST_INIT(&c->deferred);
	LIST_INIT(&c->listeners);
	LIST_INSERT_HEAD(&s->clients, c, link);
	s->n_clients++;
	return 0;
}

static int on_accept(sd_event_source *source, int fd, uint32_t revents,
		     void *userdata)
{
	struct control_server *s = userdata;
	int client;

	(void)source, (void)revents;
	client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (client >= 0 && take_client(s, client) < 0)
		(void)close(client);
	return 0;
}

static void on_change(void *userdata)
{
	struct control_server *s = userdata;
	struct client *c;

	LIST_FOREACH(c, &s->clients, link)
		control_ops_changed(c);
}

/* ---- life ---- */

static int listen_at(const char *path, struct fault *f)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;

	if (strlen(path) >= sizeof(sa.sun_path))
		return fault_set(f, -ENAMETOOLONG, path,
				 "too long for a socket: use a shorter "
				 "--state");
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fault_errno(f, -errno, path, "no socket");
	(void)unlink(path);
	/* STATE is 0700, and each peer is checked: no gap before the chmod. */
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    chmod(path, 0600) < 0 || listen(fd, CONTROL_CLIENTS_MAX) < 0)
		return fault_errno(f, -errno, path, "cannot listen");
	return take_fd(&fd);
}

int control_server_new(sd_event *event, const char *path,
		       const struct control_parts *parts,
		       struct control_server **ret_server, struct fault *f)
{
	struct control_server *s;
	int fd, r;

	fd = listen_at(path, f);
	if (fd < 0)
		return fd;
	s = calloc(1, sizeof(*s));
	if (!s || !(s->path = strdup(path))) {
		free(s);
		(void)close(fd);
		return fault_set(f, -ENOMEM, path, "out of memory");
	}
	s->event = sd_event_ref(event);
	s->parts = *parts;
	LIST_INIT(&s->clients);
	r = sd_event_add_io(event, &s->io, fd, EPOLLIN, on_accept, s);
	if (r < 0) {
		(void)close(fd);
		(void)control_server_free(s);
		return fault_errno(f, r, path, "no event source");
	}
	(void)sd_event_source_set_io_fd_own(s->io, true);
	(void)sd_event_source_set_priority(s->io, SD_EVENT_PRIORITY_IMPORTANT);
	fleet_on_change(parts->fleet, on_change, s);
	*ret_server = s;
	return 0;
}

struct control_server *control_server_free(struct control_server *s)
{
	if (!s)
		return NULL;
	s->idle = NULL;
	fleet_on_change(s->parts.fleet, NULL, NULL);
	while (!LIST_EMPTY(&s->clients))
		client_free(LIST_FIRST(&s->clients));
	(void)sd_event_source_disable_unref(s->io);
	(void)unlink(s->path);
	(void)sd_event_unref(s->event);
	free(s->path);
	free(s);
	return NULL;
}

size_t control_server_clients(const struct control_server *s)
{
	return s->n_clients;
}

void control_server_on_idle(struct control_server *s,
			    void (*fn)(void *userdata), void *userdata)
{
	s->idle = fn;
	s->idle_data = userdata;
}
