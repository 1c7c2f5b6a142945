#include "agent/res/swap_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/rootpath.h"
#include "common/cleanup.h"
#include "common/file.h"

#define TEXT_FILE_MAX (1024 * 1024)
#define OWN_DIR "/etc/systemd/system"

/* Where systemd looks for units; generated ones tell what fstab made. */
static const char *const unit_dirs[] = {
	OWN_DIR,
	"/run/systemd/system",
	"/run/systemd/generator",
	"/run/systemd/generator.early",
	"/run/systemd/generator.late",
	"/usr/local/lib/systemd/system",
	"/usr/lib/systemd/system",
	"/lib/systemd/system",
};
#define N_UNIT_DIRS (sizeof(unit_dirs) / sizeof(unit_dirs[0]))

/* Packages of Debian that make swap without swap.target. */
static const char *const makers[] = {
	"zramswap.service", "dphys-swapfile.service", "swapspace.service",
};

/* "\040" and the like, as the kernel and fstab(5) write blanks. */
static void unescape(char *text)
{
	char *w = text;
	const char *r = text;

	while (*r) {
		if (r[0] == '\\' && r[1] >= '0' && r[1] <= '3' &&
		    r[2] >= '0' && r[2] <= '7' && r[3] >= '0' && r[3] <= '7') {
			*w++ = (char)((r[1] - '0') * 64 + (r[2] - '0') * 8 +
				      (r[3] - '0'));
			r += 4;
		} else {
			*w++ = *r++;
		}
	}
	*w = '\0';
}

/* Filename Type Size Used Priority */
static void see_active(const char *root, struct swap_seen *seen)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX], *next, *line;
	struct swap_active *a;
	size_t size;

	seen->err = rootpath(root, path, "/proc/swaps");
	if (seen->err == 0)
		seen->err = file_read(path, TEXT_FILE_MAX, &text, &size, NULL);
	if (seen->err == -ENOENT)	/* a kernel without swap */
		seen->err = 0;
	if (seen->err < 0 || !text)
		return;
	next = text;
	(void)strsep(&next, "\n");
	while ((line = strsep(&next, "\n")) && seen->n < SWAP_ACTIVE_MAX) {
		a = &seen->v[seen->n];
		if (sscanf(line, "%511s %*s %" SCNu64 " %" SCNu64, a->path,
			   &a->size, &a->used) != 3)
			continue;
		unescape(a->path);
		if (unitname_from_path(a->path, ".swap", a->unit) < 0)
			a->unit[0] = '\0';
		seen->n++;
	}
}

static void see_memory(const char *root, struct swap_seen *seen)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX], *at;
	size_t size;

	if (rootpath(root, path, "/proc/meminfo") < 0 ||
	    file_read(path, TEXT_FILE_MAX, &text, &size, NULL) < 0)
		return;
	at = strstr(text, "\nMemAvailable:");
	if (at)
		(void)sscanf(at, "\nMemAvailable: %" SCNu64,
			     &seen->available);
}

static void see_fstab(const char *root, struct swap_seen *seen)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX], *next, *line;
	unsigned int number = 0;
	size_t size;

	if (rootpath(root, path, "/etc/fstab") < 0 ||
	    file_read(path, TEXT_FILE_MAX, &text, &size, NULL) < 0)
		return;
	next = text;
	while ((line = strsep(&next, "\n"))) {
		char spec[SWAP_PATH_MAX], type[32];

		number++;
		if (line[strspn(line, " \t")] == '#' ||
		    sscanf(line, "%511s %*s %31s", spec, type) != 2 ||
		    strcmp(type, "swap") != 0)
			continue;
		if (seen->fstab_entries++ > 0)
			continue;
		seen->fstab_line = number;
		(void)snprintf(seen->fstab_first, sizeof(seen->fstab_first),
			       "%s", spec);
		fault_sanitize(seen->fstab_first);
	}
}

/* ---- masks ---- */

static int mask_path(const char *root, const char *unit, char *path)
{
	return rootpath(root, path, OWN_DIR "/%s", unit);
}

static enum swap_mask mask_see(const char *root, const char *unit)
{
	char path[PATH_MAX], target[PATH_MAX];
	ssize_t n;

	if (mask_path(root, unit, path) < 0)
		return SWAP_MASK_UNKNOWN;
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return errno == ENOENT || errno == ENOTDIR ? SWAP_UNMASKED :
		       errno == EINVAL ? SWAP_OTHER : SWAP_MASK_UNKNOWN;
	target[n] = '\0';
	return strcmp(target, "/dev/null") == 0 ? SWAP_MASKED : SWAP_OTHER;
}

static int sync_own_dir(const char *root)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	int r = rootpath(root, path, OWN_DIR);

	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int swap_mask_make(const char *root, const char *unit, struct fault *f)
{
	char path[PATH_MAX];
	int r = rootpath(root, path, OWN_DIR);

	if (r == 0)
		r = file_mkdirs(path, 0755, f);
	if (r == 0)
		r = mask_path(root, unit, path);
	if (r == 0 && symlink("/dev/null", path) < 0)
		r = -errno;
	if (r == -EEXIST && mask_see(root, unit) == SWAP_MASKED)
		r = 0;
	if (r == 0)
		r = sync_own_dir(root);
	return r < 0 ? fault_errno(f, r, unit, "cannot be masked") : 0;
}

int swap_mask_remove(const char *root, const char *unit, struct fault *f)
{
	char path[PATH_MAX];
	int r = mask_path(root, unit, path);

	if (r == 0 && mask_see(root, unit) == SWAP_MASKED &&
	    unlink(path) < 0 && errno != ENOENT)
		r = -errno;
	if (r == 0)
		r = sync_own_dir(root);
	return r < 0 ? fault_errno(f, r, unit, "cannot be unmasked") : 0;
}

/* ---- units ---- */

struct swap_unit *swap_seen_unit(struct swap_seen *seen, const char *name)
{
	size_t i;

	for (i = 0; i < seen->n_units; i++)
		if (strcmp(seen->units[i].name, name) == 0)
			return &seen->units[i];
	return NULL;
}

struct swap_unit *swap_seen_add(struct swap_seen *seen, const char *root,
				const char *name, const char *by)
{
	struct swap_unit *u = swap_seen_unit(seen, name);

	if (u)
		return u;
	if (seen->n_units == SWAP_UNITS_MAX || strlen(name) >= UNITNAME_MAX)
		return NULL;
	u = &seen->units[seen->n_units++];
	*u = (struct swap_unit){ .mask = mask_see(root, name) };
	(void)snprintf(u->name, sizeof(u->name), "%s", name);
	(void)snprintf(u->by, sizeof(u->by), "%.200s", by);
	return u;
}

static bool unit_exists(const char *root, const char *unit)
{
	char path[PATH_MAX];
	struct stat st;
	size_t i;

	/* Its own file in /etc counts only when it is one. */
	for (i = 0; i < N_UNIT_DIRS; i++)
		if (rootpath(root, path, "%s/%s", unit_dirs[i], unit) == 0 &&
		    stat(path, &st) == 0 && S_ISREG(st.st_mode))
			return true;
	return false;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && strcmp(text + n - m, end) == 0;
}

/* What another unit than swap.target pulls in: "x.target.wants/a.swap". */
static void see_wants(const char *root, const char *dir, const char *wants,
		      struct swap_seen *seen)
{
	_cleanup_closedir_ DIR *d = NULL;
	char path[PATH_MAX], by[NAME_MAX + 1];
	struct swap_unit *u;
	struct dirent *e;

	if (rootpath(root, path, "%s/%s", dir, wants) < 0)
		return;
	d = opendir(path);
	(void)snprintf(by, sizeof(by), "%s", wants);
	*strrchr(by, '.') = '\0';
	while (d && (e = readdir(d))) {
		if (!ends_with(e->d_name, ".swap"))
			continue;
		u = swap_seen_add(seen, root, e->d_name, by);
		if (u)
			u->present = true;
	}
}

static void see_dir(const char *root, const char *dir, struct swap_seen *seen)
{
	_cleanup_closedir_ DIR *d = NULL;
	char path[PATH_MAX];
	struct dirent *e;

	if (rootpath(root, path, "%s", dir) < 0)
		return;
	d = opendir(path);
	while (d && (e = readdir(d))) {
		if (!ends_with(e->d_name, ".wants") &&
		    !ends_with(e->d_name, ".requires"))
			continue;
		if (strncmp(e->d_name, SWAP_TARGET ".",
			    strlen(SWAP_TARGET ".")) != 0)
			see_wants(root, dir, e->d_name, seen);
	}
}

void swap_see(const char *root, struct swap_seen *seen)
{
	struct swap_unit *u;
	size_t i;

	see_active(root, seen);
	see_memory(root, seen);
	see_fstab(root, seen);
	u = swap_seen_add(seen, root, SWAP_TARGET, "");
	if (u)
		u->present = true;
	for (i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		if (!unit_exists(root, makers[i]))
			continue;
		u = swap_seen_add(seen, root, makers[i], "");
		if (u)
			u->present = true;
	}
	for (i = 0; i < N_UNIT_DIRS; i++)
		see_dir(root, unit_dirs[i], seen);
}
