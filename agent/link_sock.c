#include "agent/link_sock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "proto/frame.h"

struct link_sock {
	sd_event *event;
	struct link_sock_owner owner;
	int listen_fd, fd;
	sd_event_source *accept_source, *io;
	struct frame_reader reader;
	struct frame_writer writer;
};

static void drop_peer(struct link_sock *s)
{
	if (s->fd < 0)
		return;
	s->io = sd_event_source_disable_unref(s->io);
	(void)close(s->fd);
	s->fd = -1;
	frame_reader_done(&s->reader);
	frame_writer_done(&s->writer);
	s->owner.connected(s->owner.userdata, false);
}

static int flush(struct link_sock *s)
{
	int r = frame_writer_fd(&s->writer, s->fd);

	if (r < 0)
		return r;
	r = sd_event_source_set_io_events(s->io,
					  r ? EPOLLIN | EPOLLOUT : EPOLLIN);
	return r < 0 ? r : 0;
}

static int on_frame(void *userdata, uint8_t type, const uint8_t *body,
		    size_t size)
{
	struct link_sock *s = userdata;

	return s->owner.frame(s->owner.userdata, type, body, size);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents,
		 void *userdata)
{
	struct link_sock *s = userdata;
	struct fault f = FAULT_INIT;
	int r = 0;

	(void)source;
	if (revents & (EPOLLIN | EPOLLHUP | EPOLLERR))
		r = frame_reader_fd(&s->reader, fd, on_frame, s, &f);
	if (r == 0 && !frame_writer_empty(&s->writer))
		r = flush(s);
	if (r == 0)
		return 0;
	if (r != -EPIPE)
		log_warning("link: %s; its connection is closed",
			    f.err ? f.text : "connection lost");
	drop_peer(s);
	return 0;
}

static bool may_connect(const struct link_sock *s, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return false;
	if (cred.uid == s->owner.uid || cred.uid == 0)
		return true;
	log_warning("link: a process of user %u may not connect",
		    (unsigned int)cred.uid);
	return false;
}

static int on_connect(sd_event_source *source, int fd, uint32_t revents,
		      void *userdata)
{
	struct link_sock *s = userdata;
	_cleanup_close_ int peer =
		accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int r;

	(void)source;
	(void)revents;
	if (peer < 0 || !may_connect(s, peer))
		return 0;
	drop_peer(s);
	frame_reader_init(&s->reader, FRAME_LINK);
	frame_writer_init(&s->writer, FRAME_LINK);
	r = sd_event_add_io(s->event, &s->io, peer, EPOLLIN, on_io, s);
	if (r < 0)
		return 0;
	s->fd = take_fd(&peer);
	s->owner.connected(s->owner.userdata, true);
	return 0;
}

int link_sock_new(sd_event *event, int listen_fd,
		  const struct link_sock_owner *owner,
		  struct link_sock **ret_sock)
{
	struct link_sock *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->event = event;
	s->owner = *owner;
	s->fd = -1;
	r = sd_event_add_io(event, &s->accept_source, listen_fd, EPOLLIN,
			    on_connect, s);
	if (r < 0) {
		free(s);
		return r;
	}
	s->listen_fd = listen_fd;
	*ret_sock = s;
	return 0;
}

struct link_sock *link_sock_free(struct link_sock *s)
{
	if (!s)
		return NULL;
	(void)sd_event_source_disable_unref(s->accept_source);
	(void)sd_event_source_disable_unref(s->io);
	if (s->fd >= 0)
		(void)close(s->fd);
	frame_reader_done(&s->reader);
	frame_writer_done(&s->writer);
	(void)close(s->listen_fd);
	free(s);
	return NULL;
}

/* Called at any time, also from inside a frame: the loss of the peer is
 * therefore left to its own callback. */
int link_sock_send(struct link_sock *s, uint8_t type, const void *body,
		   size_t size)
{
	int r;

	if (!s || s->fd < 0)
		return -ENOTCONN;
	r = frame_writer_put(&s->writer, type, body, size);
	if (r < 0)
		return r;
	return flush(s);
}

bool link_sock_is_connected(const struct link_sock *s)
{
	return s && s->fd >= 0;
}
