#include "agent/res/sysctl_held.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "agent/res/sysctl_files.h"
#include "agent/rootpath.h"
#include "agent/wake.h"
#include "common/cleanup.h"

static void forget_refusal(struct sysctl_held *h)
{
	h->refused = 0;
	free(take_ptr(h->refused_value));
	free(take_ptr(h->refused_note));
}

void sysctl_held_refuse(struct sysctl_held *h, const char *value, int err,
			const char *note)
{
	forget_refusal(h);
	h->refused_value = strdup(value);
	h->refused_note = strdup(note);
	if (!h->refused_value || !h->refused_note) {
		forget_refusal(h);
		return;
	}
	h->refused = err;
	h->refused_at = clock_boottime();
}

void sysctl_held_age(struct sysctl_held *h)
{
	if (h->refused &&
	    clock_boottime() - h->refused_at > SYSCTL_REFUSAL_USEC)
		forget_refusal(h);
}

static void held_done(struct sysctl_held *h)
{
	forget_refusal(h);
	if (h->fd >= 0)
		(void)close(h->fd);
	free(h->path);
}

void sysctl_helds_done(struct sysctl_helds *all)
{
	size_t i;

	for (i = 0; i < all->n; i++)
		held_done(&all->v[i]);
	free(take_ptr(all->v));
	all->n = 0;
}

struct sysctl_held *sysctl_held_find(struct sysctl_helds *all,
				     const char *path)
{
	size_t i;

	for (i = 0; i < all->n; i++)
		if (strcmp(all->v[i].path, path) == 0)
			return &all->v[i];
	return NULL;
}

struct sysctl_held *sysctl_held_get(struct sysctl_helds *all,
				    const char *path)
{
	struct sysctl_held *h = sysctl_held_find(all, path), *v;

	if (h)
		return h;
	v = reallocarray(all->v, all->n + 1, sizeof(*v));
	if (!v)
		return NULL;
	all->v = v;
	h = &v[all->n];
	*h = (struct sysctl_held){ .path = strdup(path), .fd = -1 };
	if (!h->path)
		return NULL;
	all->n++;
	return h;
}

void sysctl_held_sweep(struct sysctl_helds *all)
{
	size_t i = 0;

	while (i < all->n) {
		if (all->v[i].used) {
			all->v[i++].used = false;
			continue;
		}
		held_done(&all->v[i]);
		all->v[i] = all->v[--all->n];
	}
}

static int held_path(const struct sysctl_helds *all, const char *path,
		     char *buf)
{
	return rootpath(all->root, buf, "/proc/sys/%s", path);
}

static int held_open(struct sysctl_helds *all, struct sysctl_held *h)
{
	char path[PATH_MAX];
	struct stat sb;
	int r;

	r = held_path(all, h->path, path);
	if (r < 0)
		return r;
	h->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (h->fd < 0)
		return -errno;
	if (fstat(h->fd, &sb) < 0)
		return -errno;
	if (!S_ISREG(sb.st_mode))
		return -EISDIR;
	h->read_only = (sb.st_mode & 0222) == 0;
	(void)wake_path(all->wake, path, IN_CLOSE_WRITE, NULL);
	return 0;
}

/* A held descriptor outlives its key (module or interface gone): ENOENT. */
int sysctl_held_read(struct sysctl_helds *all, struct sysctl_held *h,
		     char buf[SYSCTL_READ_MAX])
{
	unsigned int tries;
	ssize_t n = -1;
	int r = 0;

	for (tries = 0; tries < 2; tries++) {
		r = h->fd < 0 ? held_open(all, h) : 0;
		if (r == 0) {
			n = pread(h->fd, buf, SYSCTL_READ_MAX - 1, 0);
			r = n < 0 ? -errno : 0;
		}
		if (h->fd >= 0 && (r < 0 || all->n > SYSCTL_HELD_MAX))
			(void)close(take_fd(&h->fd));
		if (r == 0)
			break;
	}
	if (r < 0)
		return r;
	buf[n] = '\0';
	sysctl_fold(buf);
	return 0;
}

int sysctl_held_write(const struct sysctl_helds *all, const char *path,
		      const char *value)
{
	_cleanup_close_ int fd = -1;
	char full[PATH_MAX], text[SYSCTL_VALUE_MAX + 2];
	ssize_t w;
	int n, r;

	r = held_path(all, path, full);
	if (r < 0)
		return r;
	n = snprintf(text, sizeof(text), "%s\n", value);
	if (n >= (int)sizeof(text))
		return -E2BIG;
	fd = open(full, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	w = write(fd, text, (size_t)n);
	return w < 0 ? -errno : 0;
}

bool sysctl_held_lacks_link(const struct sysctl_helds *all, const char *path)
{
	size_t n = sysctl_key_link(path);
	char link[SYSCTL_KEY_MAX], full[PATH_MAX];
	struct stat sb;

	if (n == 0)
		return false;
	(void)snprintf(link, sizeof(link), "%.*s", (int)n, path);
	return held_path(all, link, full) == 0 && stat(full, &sb) < 0 &&
	       errno == ENOENT;
}
