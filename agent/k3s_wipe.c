#include "agent/k3s_wipe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

#define DEPTH_MAX 32
#define MOUNTS_MAX 65536

struct tree {
	dev_t device;
	const char *const *keep;	/* names at its top; NULL ends it */
};

bool k3s_wipe_is_pods(const char *line)
{
	static const char *const places[] = { "/run/k3s/", "/var/lib/kubelet/",
					      "/run/netns/cni-" };
	const char *at = line;
	size_t i;

	for (i = 0; i < 4 && at; i++) {		/* the fifth field */
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	for (i = 0; at && i < sizeof(places) / sizeof(places[0]); i++)
		if (strncmp(at, places[i], strlen(places[i])) == 0)
			return true;
	return false;
}

static int check_mounts(struct fault *f)
{
	_cleanup_fclose_ FILE *in = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0, n = 0;

	if (!in)
		return fault_errno(f, -errno, "mounts", "cannot be read");
	while (n++ < MOUNTS_MAX && getline(&line, &size, in) >= 0)
		if (k3s_wipe_is_pods(line))
			return fault_set(f, -EBUSY, "k3s",
					 "is stopped and will not start again, "
					 "but its pods still have mounts: "
					 "reboot the node, then wipe it");
	return 0;
}

static bool kept(const struct tree *t, const char *name)
{
	const char *const *k;

	for (k = t->keep; k && *k; k++)
		if (strcmp(*k, name) == 0)
			return true;
	return false;
}

static int remove_at(int parent, const char *name, const struct tree *t,
		     unsigned int depth);

/* The first error is kept; the rest is removed all the same. */
static int empty_dir(int fd, const struct tree *t, unsigned int depth)
{
	_cleanup_closedir_ DIR *dir = fdopendir(fd);
	const struct tree below = { .device = t->device };
	struct dirent *d;
	int r = dir ? 0 : -errno, one;

	if (!dir) {
		(void)close(fd);
		return r;
	}
	while ((d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 ||
		    strcmp(d->d_name, "..") == 0 || kept(t, d->d_name))
			continue;
		one = remove_at(dirfd(dir), d->d_name, &below, depth + 1);
		if (one < 0 && r == 0)
			r = one;
	}
	return r;
}

static int remove_at(int parent, const char *name, const struct tree *t,
		     unsigned int depth)
{
	struct stat st;
	int fd, r;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(st.st_mode))
		return unlinkat(parent, name, 0) < 0 && errno != ENOENT ?
			       -errno : 0;
	if (depth > DEPTH_MAX)
		return -ELOOP;
	if (t->device && st.st_dev != t->device)
		return 0;	/* a mount point is not ours to empty */
	fd = openat(parent, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = empty_dir(fd, &(struct tree){ st.st_dev, t->keep }, depth);
	if (r == 0 && !t->keep &&
	    unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = -errno;
	return r;
}

int k3s_wipe_work(void *arg, int out, struct fault *f)
{
	static const char *const caches[] = { "images", "containerd", NULL };
	static const struct {
		const char *path;
		const char *const *keep;
	} what[] = {
		{ K3S_DATA "/server", NULL },
		{ K3S_DATA "/agent", caches },
		{ K3S_CONFIG_DIR "/k3s.yaml", NULL },
		{ K3S_TOKEN_FILE, NULL },
		{ K3S_CONFIG, NULL },
		{ "/etc/cni/net.d/05-cilium.conflist", NULL },
		{ K3S_UNIT_FILE, NULL },	/* last: it tells all is done */
	};
	const struct k3s_wipe *w = arg;
	char path[2 * K3S_PATH_MAX];
	int r = check_mounts(f);
	size_t i;

	(void)out;
	for (i = 0; r == 0 && i < sizeof(what) / sizeof(what[0]); i++) {
		const struct tree t = { .keep = what[i].keep };

		(void)snprintf(path, sizeof(path), "%s%s", w->root,
			       what[i].path);
		r = remove_at(AT_FDCWD, path, &t, 0);
		if (r < 0)
			return fault_errno(f, r, what[i].path,
					   "cannot be removed");
	}
	return r;
}
