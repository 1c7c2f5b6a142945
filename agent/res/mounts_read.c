#include "agent/res/mounts_read.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/rootpath.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

#define UNITS "/etc/systemd/system"
#define WANTS UNITS "/local-fs.target.wants"
#define MARK "# Written by garboard-agent from the cluster's spec; changes " \
	     "here are undone.\n"
#define UNIT_MAX 4096
#define ANSWER_SECONDS 300	/* then it is asked again */
#define UDEV_FILE_MAX 65536
#define MOUNTINFO_MAX (16 * 1024 * 1024)

/* ---- the device ---- */

static bool udev_names(const char *root, const char *file, const char *link)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX], *next, *line;
	size_t size;

	if (rootpath(root, path, "/run/udev/data/%s", file) < 0 ||
	    file_read(path, UDEV_FILE_MAX, &text, &size, NULL) < 0)
		return false;
	next = text;
	while ((line = strsep(&next, "\n")))
		if (strncmp(line, "S:", 2) == 0 && strcmp(line + 2, link) == 0)
			return true;
	return false;
}

/* "/dev/disk/by-id/x" is "S:disk/by-id/x" in the file "b254:16". */
static void see_device(const char *root, const char *device,
		       struct mount_seen *seen)
{
	_cleanup_closedir_ DIR *dir = NULL;
	char path[PATH_MAX];
	struct dirent *e;
	struct stat st;

	if (rootpath(root, path, "%s", device) == 0 && stat(path, &st) == 0 &&
	    S_ISBLK(st.st_mode)) {
		seen->present = true;
		seen->major = major(st.st_rdev);
		seen->minor = minor(st.st_rdev);
		return;
	}
	if (rootpath(root, path, "/run/udev/data") < 0)
		return;
	dir = opendir(path);
	while (dir && !seen->present && (e = readdir(dir)))
		if (sscanf(e->d_name, "b%u:%u", &seen->major, &seen->minor) ==
		    2)
			seen->present = udev_names(root, e->d_name,
						   device + strlen("/dev/"));
}

/* ---- the mount ---- */

/* ID PARENT MAJ:MIN ROOT POINT OPTIONS [TAG..] - FS SOURCE SUPER */
static void see_line(char *line, const char *path, struct mount_seen *seen)
{
	char point[512], *tail = strstr(line, " - ");
	unsigned int maj, min;

	if (!tail || sscanf(line, "%*s %*s %u:%u %*s %511s", &maj, &min,
			    point) != 3 || strcmp(point, path) != 0)
		return;
	*tail = '\0';
	seen->mounted = true;	/* the last one lies on top */
	seen->right = seen->present && maj == seen->major &&
		      min == seen->minor;
	seen->shared = strstr(line, " shared:") != NULL;
	if (sscanf(tail + 3, "%31s %255s", seen->fs, seen->source) != 2)
		seen->fs[0] = seen->source[0] = '\0';
}

static void see_mount(const char *root, const char *path,
		      struct mount_seen *seen)
{
	_cleanup_free_ char *text = NULL;
	char full[PATH_MAX], *next, *line;
	size_t size;

	if (rootpath(root, full, "/proc/1/mountinfo") < 0 ||
	    file_read(full, MOUNTINFO_MAX, &text, &size, NULL) < 0)
		return;
	next = text;
	while ((line = strsep(&next, "\n")))
		see_line(line, path, seen);
}

static void see_point(const char *root, const char *path,
		      struct mount_seen *seen)
{
	_cleanup_closedir_ DIR *dir = NULL;
	char full[PATH_MAX];
	struct dirent *e;
	struct stat st;

	seen->point = POINT_OTHER;
	if (rootpath(root, full, "%s", path) < 0)
		return;
	if (lstat(full, &st) < 0) {
		seen->point = errno == ENOENT ? POINT_FREE : POINT_OTHER;
		return;
	}
	if (!S_ISDIR(st.st_mode) || !(dir = opendir(full)))
		return;
	seen->point = POINT_FREE;
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 &&
		    strcmp(e->d_name, "..") != 0 &&
		    strcmp(e->d_name, "lost+found") != 0)
			seen->point = POINT_FILLED;
}

static void see_fstab(const char *root, const char *path,
		      struct mount_seen *seen)
{
	_cleanup_free_ char *text = NULL;
	char full[PATH_MAX], point[512], *next, *line;
	unsigned int number = 0;
	size_t size;

	if (rootpath(root, full, "/etc/fstab") < 0 ||
	    file_read(full, 1024 * 1024, &text, &size, NULL) < 0)
		return;
	next = text;
	while ((line = strsep(&next, "\n"))) {
		number++;
		if (line[strspn(line, " \t")] != '#' &&
		    sscanf(line, "%*s %511s", point) == 1 &&
		    strcmp(point, path) == 0)
			seen->fstab_line = number;
	}
}

/* ---- the unit ---- */

int mount_unit_text(const struct desired_mount *want, char *buf, size_t size)
{
	int n = snprintf(buf, size, MARK
			 "[Unit]\n"
			 "Description=Data disk at %s\n"
			 "Before=k3s.service k3s-agent.service\n"
			 "\n"
			 "[Mount]\n"
			 "What=%s\n"
			 "Where=%s\n"
			 "Type=%s\n"
			 "Options=nofail\n"
			 "\n"
			 "[Install]\n"
			 "WantedBy=local-fs.target\n",
			 want->path, want->device, want->path, want->fs);

	return n < 0 || (size_t)n >= size ? -E2BIG : 0;
}

static enum mount_unit unit_see(const char *root, const char *unit,
				const char *wanted)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX], link[PATH_MAX];
	struct stat st;
	size_t size;
	int r;

	if (rootpath(root, path, UNITS "/%s", unit) < 0 ||
	    rootpath(root, link, WANTS "/%s", unit) < 0)
		return MOUNT_UNIT_FOREIGN;
	r = file_read(path, UNIT_MAX, &text, &size, NULL);
	if (r == -ENOENT)
		return lstat(path, &st) == 0 ? MOUNT_UNIT_FOREIGN :
					       MOUNT_UNIT_ABSENT;
	if (r < 0 || strncmp(text, MARK, strlen(MARK)) != 0)
		return MOUNT_UNIT_FOREIGN;
	if (strcmp(text, wanted) != 0 || lstat(link, &st) < 0)
		return MOUNT_UNIT_DIFFERS;
	return MOUNT_UNIT_SAME;
}

static void see_unit(const char *root, const struct desired_mount *want,
		     struct mount_seen *seen)
{
	char text[UNIT_MAX];

	if (mount_unit_text(want, text, sizeof(text)) < 0)
		seen->file = MOUNT_UNIT_FOREIGN;
	else
		seen->file = unit_see(root, seen->unit, text);
}

int mount_unit_write(const char *root, const struct desired_mount *want,
		     const char *unit, struct fault *f)
{
	char path[PATH_MAX], text[UNIT_MAX], target[UNITNAME_MAX + 8];
	int r;

	r = mount_unit_text(want, text, sizeof(text));
	if (r == 0 && unit_see(root, unit, text) == MOUNT_UNIT_FOREIGN)
		r = -EEXIST;
	if (r == 0)
		r = rootpath(root, path, WANTS);
	if (r < 0)
		return fault_errno(f, r, unit, "cannot be written");
	r = file_mkdirs(path, 0755, f);
	if (r < 0)
		return r;
	r = rootpath(root, path, UNITS "/%s", unit);
	if (r == 0)
		r = file_write(path, 0644, text, strlen(text), f);
	if (r < 0)
		return r;
	(void)snprintf(target, sizeof(target), "../%s", unit);
	r = rootpath(root, path, WANTS "/%s", unit);
	if (r == 0 && symlink(target, path) < 0 && errno != EEXIST)
		r = -errno;
	return r < 0 ? fault_errno(f, r, unit, "cannot be enabled") : 0;
}

int mount_unit_remove(const char *root, const char *unit, struct fault *f)
{
	char path[PATH_MAX], link[PATH_MAX];

	/* Whatever its text, it is judged by its mark alone. */
	switch (unit_see(root, unit, "")) {
	case MOUNT_UNIT_ABSENT:
	case MOUNT_UNIT_FOREIGN:
		return 0;
	case MOUNT_UNIT_SAME:
	case MOUNT_UNIT_DIFFERS:
		break;
	}
	if (rootpath(root, path, UNITS "/%s", unit) < 0 ||
	    rootpath(root, link, WANTS "/%s", unit) < 0)
		return fault_set(f, -ENAMETOOLONG, unit, "cannot be removed");
	if ((unlink(link) < 0 && errno != ENOENT) ||
	    (unlink(path) < 0 && errno != ENOENT))
		return fault_errno(f, -errno, unit, "cannot be removed");
	return 0;
}

static void see_answer(const char *root, const char *state_dir,
		       const char *device, struct mount_seen *seen)
{
	char boot[64], path[PATH_MAX];
	struct stat st;

	/* Somebody may have wiped it, or plugged it in, since. */
	if (!state_dir ||
	    snprintf(path, sizeof(path), "%s/" DISK_DIR "/%s.seen", state_dir,
		     seen->name) >= (int)sizeof(path) ||
	    stat(path, &st) < 0 ||
	    llabs((long long)(clock_realtime() / USEC_PER_SEC) -
		  st.st_mtim.tv_sec) > ANSWER_SECONDS ||
	    rootpath(root, path, "/proc/sys/kernel/random/boot_id") < 0 ||
	    file_line(path, boot, sizeof(boot), NULL) < 0 ||
	    disk_seen_read(state_dir, seen->name, &seen->answer, NULL) < 0)
		return;
	/* Another boot, or another disk under that name: ask again. */
	seen->answered = strcmp(seen->answer.boot, boot) == 0 &&
			 strcmp(seen->answer.device, device) == 0 &&
			 (seen->answer.state < DISK_BLANK ||
			  (seen->answer.major == seen->major &&
			   seen->answer.minor == seen->minor));
}

void mount_see(const char *root, const char *state_dir,
	       const struct desired_mount *want, struct mount_seen *seen)
{
	*seen = (struct mount_seen){ 0 };
	if (unitname_from_path(want->path, ".mount", seen->unit) < 0 ||
	    unitname_from_path(want->path, "", seen->name) < 0) {
		seen->unit[0] = '\0';
		return;
	}
	see_device(root, want->device, seen);
	see_mount(root, want->path, seen);
	if (!seen->mounted)
		see_point(root, want->path, seen);
	see_fstab(root, want->path, seen);
	see_unit(root, want, seen);
	see_answer(root, state_dir, want->device, seen);
}
