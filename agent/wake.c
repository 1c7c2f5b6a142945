#include "agent/wake.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/socket.h>

#include "agent/rootpath.h"
#include "common/cleanup.h"

#define WAKE_NETLINKS_MAX 2
#define WAKE_DRAIN_MAX 1024	/* reads per wake-up; the rest comes back */

struct wake_netlink {
	struct wake *wake;
	int fd;
	const char *only;
	sd_event_source *source;
};

struct wake {
	sd_event *event;
	wake_fn fn;
	void *userdata;
	int inotify;
	sd_event_source *inotify_source;
	struct wake_netlink netlink[WAKE_NETLINKS_MAX];
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

static int is_ours(const char *only, char *buf, size_t n)
{
	const char *at;

	if (!only)
		return 1;
	buf[n] = '\0';
	at = strchr(buf, '@');
	return at && strncmp(at + 1, only, strlen(only)) == 0;
}

static int on_netlink(sd_event_source *source, int fd, uint32_t revents,
		      void *userdata)
{
	struct wake_netlink *nl = userdata;
	char buf[8192];
	unsigned int i;
	int found = 0;

	(void)source;
	(void)revents;
	for (i = 0; i < WAKE_DRAIN_MAX; i++) {
		ssize_t n = recv(fd, buf, sizeof(buf) - 1, MSG_DONTWAIT);

		if (n >= 0)
			found |= is_ours(nl->only, buf, (size_t)n);
		else if (errno == ENOBUFS)
			found = 1;	/* lost events: look again (H29) */
		else if (errno != EINTR)
			break;
	}
	if (found)
		nl->wake->fn(nl->wake->userdata);
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
		sd_event_source_disable_unref(w->netlink[i].source);
		(void)close(w->netlink[i].fd);
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

int wake_paths(struct wake *w, const char *root, const char *const *paths,
	       uint32_t mask, struct fault *f)
{
	char path[PATH_MAX];
	int r, first = 0;

	for (; *paths; paths++) {
		r = rootpath(root, path, "%s", *paths);
		if (r == 0)
			r = wake_path(w, path, mask, f);
		first = first ? first : r;
	}
	return first;
}

int wake_netlink(struct wake *w, int protocol, uint32_t groups,
		 const char *only, struct fault *f)
{
	struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = groups,
	};
	_cleanup_close_ int fd = -1;
	struct wake_netlink *nl;
	int r;

	if (!w)
		return 0;
	if (w->n_netlink >= WAKE_NETLINKS_MAX)
		return -E2BIG;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    protocol);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return fault_errno(f, -errno, "netlink", "cannot be watched");
	nl = &w->netlink[w->n_netlink];
	nl->wake = w;
	nl->only = only;
	r = sd_event_add_io(w->event, &nl->source, fd, EPOLLIN, on_netlink,
			    nl);
	if (r < 0)
		return fault_errno(f, r, "netlink", "cannot be watched");
	nl->fd = take_fd(&fd);
	w->n_netlink++;
	return 0;
}
