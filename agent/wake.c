#include "agent/wake.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/socket.h>

#include "common/cleanup.h"

#define WAKE_NETLINKS_MAX 2
#define WAKE_DRAIN_MAX 1024	/* reads per wake-up; the rest comes back */

struct wake {
	sd_event *event;
	wake_fn fn;
	void *userdata;
	int inotify;
	sd_event_source *inotify_source;
	int netlink[WAKE_NETLINKS_MAX];
	sd_event_source *netlink_source[WAKE_NETLINKS_MAX];
	unsigned int n_netlink;
};

static int on_inotify(sd_event_source *source, int fd, uint32_t revents,
		      void *userdata)
{
	struct wake *w = userdata;
	char buf[4096] __attribute__((aligned(8)));
	unsigned int i;

	(void)source;
	(void)revents;
	for (i = 0; i < WAKE_DRAIN_MAX; i++)
		if (read(fd, buf, sizeof(buf)) <= 0)
			break;
	w->fn(w->userdata);
	return 0;
}

static int on_netlink(sd_event_source *source, int fd, uint32_t revents,
		      void *userdata)
{
	struct wake *w = userdata;
	char buf[8192];
	unsigned int i;

	(void)source;
	(void)revents;
	/* ENOBUFS means lost events: read on, and look again (H29). */
	for (i = 0; i < WAKE_DRAIN_MAX; i++)
		if (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) < 0 &&
		    errno != ENOBUFS && errno != EINTR)
			break;
	w->fn(w->userdata);
	return 0;
}

int wake_new(sd_event *event, wake_fn fn, void *userdata,
	     struct wake **ret_wake, struct fault *f)
{
	struct wake *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return fault_set(f, -ENOMEM, "wake", "out of memory");
	w->event = event;
	w->fn = fn;
	w->userdata = userdata;
	w->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->inotify < 0)
		r = -errno;
	else
		r = sd_event_add_io(event, &w->inotify_source, w->inotify,
				    EPOLLIN, on_inotify, w);
	if (r < 0) {
		wake_free(w);
		return fault_errno(f, r, "inotify", "cannot be used");
	}
	*ret_wake = w;
	return 0;
}

struct wake *wake_free(struct wake *w)
{
	unsigned int i;

	if (!w)
		return NULL;
	sd_event_source_disable_unref(w->inotify_source);
	if (w->inotify >= 0)
		(void)close(w->inotify);
	for (i = 0; i < w->n_netlink; i++) {
		sd_event_source_disable_unref(w->netlink_source[i]);
		(void)close(w->netlink[i]);
	}
	free(w);
	return NULL;
}

int wake_path(struct wake *w, const char *path, uint32_t mask,
	      struct fault *f)
{
	if (!w || inotify_add_watch(w->inotify, path, mask) >= 0)
		return 0;
	if (errno == ENOENT || errno == ENOTDIR)
		return 0;
	return fault_errno(f, -errno, path, "cannot be watched");
}

int wake_netlink(struct wake *w, int protocol, uint32_t groups,
		 struct fault *f)
{
	struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = groups,
	};
	_cleanup_close_ int fd = -1;
	int r;

	if (!w)
		return 0;
	if (w->n_netlink >= WAKE_NETLINKS_MAX)
		return -E2BIG;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    protocol);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return fault_errno(f, -errno, "netlink", "cannot be watched");
	r = sd_event_add_io(w->event, &w->netlink_source[w->n_netlink], fd,
			    EPOLLIN, on_netlink, w);
	if (r < 0)
		return fault_errno(f, r, "netlink", "cannot be watched");
	w->netlink[w->n_netlink++] = take_fd(&fd);
	return 0;
}
