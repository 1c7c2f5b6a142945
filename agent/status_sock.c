/* The socket of status.h. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/status.h"
#include "common/cleanup.h"

#define CLIENT_PATIENCE (5 * USEC_PER_SEC)

struct client {
	struct status_sock *sock;
	struct client *next;
	int fd;
	char *text;
	size_t size, sent;
	sd_event_source *io, *timer;
};

struct status_sock {
	sd_event *event;
	int fd;
	status_fill fill;
	void *userdata;
	sd_event_source *source;
	struct client *clients;
	size_t n;
};

static void client_free(struct client *c)
{
	struct client **p = &c->sock->clients;

	while (*p && *p != c)
		p = &(*p)->next;
	if (*p) {
		*p = c->next;
		c->sock->n--;
	}
	(void)sd_event_source_disable_unref(c->io);
	(void)sd_event_source_disable_unref(c->timer);
	if (c->fd >= 0)
		(void)close(c->fd);
	free(c->text);
	free(c);
}

static int on_writable(sd_event_source *s, int fd, uint32_t revents,
		       void *userdata)
{
	struct client *c = userdata;
	ssize_t n;

	(void)s;
	(void)revents;
	n = send(fd, c->text + c->sent, c->size - c->sent, MSG_NOSIGNAL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0)
		c->sent += n;
	if (n <= 0 || c->sent == c->size)
		client_free(c);
	return 0;
}

static int on_patience(sd_event_source *s, uint64_t due, void *userdata)
{
	(void)s;
	(void)due;
	client_free(userdata);
	return 0;
}

static int serve(struct status_sock *s, int fd)
{
	struct client *c = calloc(1, sizeof(*c));
	struct status_input in = { 0 };
	socklen_t n = sizeof(struct ucred);
	struct ucred who;
	int r;

	if (!c)
		return -ENOMEM;
	c->sock = s;
	c->fd = -1;
	s->fill(s->userdata, &in);
	in.stranger = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 ||
		      who.uid != 0;
	r = status_document(&in, clock_boottime(), &c->text, &c->size);
	if (r >= 0)
		r = sd_event_add_io(s->event, &c->io, fd, EPOLLOUT,
				    on_writable, c);
	if (r >= 0)
		r = sd_event_add_time_relative(s->event, &c->timer,
					       CLOCK_BOOTTIME, CLIENT_PATIENCE,
					       0, on_patience, c);
	if (r < 0) {
		client_free(c);
		return r;
	}
	c->fd = fd;
	c->next = s->clients;
	s->clients = c;
	s->n++;
	return 0;
}

static int on_connect(sd_event_source *source, int fd, uint32_t revents,
		      void *userdata)
{
	struct status_sock *s = userdata;
	_cleanup_close_ int client =
		accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)source;
	(void)revents;
	if (client < 0 || s->n >= STATUS_CLIENTS_MAX)
		return 0;
	if (serve(s, client) == 0)
		(void)take_fd(&client);
	return 0;
}

int status_sock_new(sd_event *event, int listen_fd, status_fill fill,
		    void *userdata, struct status_sock **ret_sock)
{
	struct status_sock *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->event = event;
	s->fd = listen_fd;
	s->fill = fill;
	s->userdata = userdata;
	r = sd_event_add_io(event, &s->source, listen_fd, EPOLLIN, on_connect,
			    s);
	if (r < 0) {
		free(s);
		return r;
	}
	*ret_sock = s;
	return 0;
}

struct status_sock *status_sock_free(struct status_sock *s)
{
	if (!s)
		return NULL;
	while (s->clients)
		client_free(s->clients);
	(void)sd_event_source_disable_unref(s->source);
	(void)close(s->fd);
	free(s);
	return NULL;
}
