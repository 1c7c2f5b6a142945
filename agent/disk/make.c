#include "agent/disk/make.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/disk/probe.h"
#include "common/cleanup.h"
#include "common/file.h"

#define PREFIX "/dev/disk/by-"

static void say(struct disk_seen *seen, enum disk_state state,
		const char *text, int err)
{
	seen->state = state;
	(void)snprintf(seen->text, sizeof(seen->text), "%s%s%s", text,
		       err ? ": " : "", err ? strerror(err) : "");
}

/* Kernel: O_EXCL on a device fails while it is mounted, swapped on or held. */
static int open_device(const struct disk_want *want, int flags,
		       struct disk_seen *seen)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (strncmp(want->device, PREFIX, strlen(PREFIX)) != 0 ||
	    strstr(want->device, "/../")) {
		say(seen, DISK_ERROR, "is no stable name", 0);
		return -EINVAL;
	}
	fd = open(want->device, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
	if (fd < 0) {
		int err = errno;

		say(seen, err == ENOENT ? DISK_ABSENT :
		    err == EBUSY ? DISK_BUSY : DISK_ERROR,
		    err == ENOENT ? "is not there" :
		    err == EBUSY ? "is in use: mounted, or held by a mapping" :
				   "cannot be opened", err);
		return -err;
	}
	if (fstat(fd, &st) < 0 || !S_ISBLK(st.st_mode)) {
		say(seen, DISK_ERROR, "is no block device", 0);
		return -ENOTBLK;
	}
	seen->major = major(st.st_rdev);
	seen->minor = minor(st.st_rdev);
	return take_fd(&fd);
}

static int size_of(int fd, uint64_t *ret_size, struct disk_seen *seen)
{
	int read_only = 0;

	if (ioctl(fd, BLKGETSIZE64, ret_size) < 0) {
		say(seen, DISK_ERROR, "has no size", errno);
		return -EIO;
	}
	if (ioctl(fd, BLKROGET, &read_only) == 0 && read_only) {
		say(seen, DISK_OTHER, "is read-only", 0);
		return -EROFS;
	}
	return 0;
}

/* Without a word to force it: they refuse by themselves what is not blank. */
static int run_mkfs(const char *fs, const char *device, struct disk_seen *seen)
{
	char program[64];
	int status;
	pid_t pid;

	(void)snprintf(program, sizeof(program), "/usr/sbin/mkfs.%s", fs);
	if (access(program, X_OK) < 0) {
		(void)snprintf(seen->text, sizeof(seen->text),
			       "%s is not installed: apt-get install %s",
			       program, strcmp(fs, "xfs") == 0 ? "xfsprogs" :
								 "e2fsprogs");
		seen->state = DISK_ERROR;
		return -ENOENT;
	}
	pid = fork();
	if (pid == 0) {
		const char *argv[] = { program, "-q", device, NULL };

		(void)execv(program, (char **)(void *)argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0) {
		say(seen, DISK_ERROR, "mkfs cannot be run", errno);
		return -EIO;
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		(void)snprintf(seen->text, sizeof(seen->text),
			       "mkfs.%s failed; see journalctl -u "
			       "'garboard-disk@*'", fs);
		seen->state = DISK_ERROR;
		return -EIO;
	}
	return 0;
}

/*
 * The lock keeps udev away from a device that is being written
 * (systemd.io/BLOCK_DEVICE_LOCKING); O_EXCL would keep mkfs away, too, so
 * that is asked first and given back. The device is held open meanwhile: its
 * number stays its own, and mkfs gets that very device by that number's name.
 */
static int make(const struct disk_want *want, struct disk_seen *seen)
{
	_cleanup_close_ int fd = -1;
	char node[64];
	uint64_t size;
	int r;

	fd = open_device(want, 0, seen);
	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		say(seen, DISK_BUSY, "is locked by another program", errno);
		return -EBUSY;
	}
	r = size_of(fd, &size, seen);
	if (r < 0)
		return r;
	disk_probe(fd, size, seen);
	if (seen->state != DISK_BLANK)
		return 0;
	(void)snprintf(node, sizeof(node), "/proc/%d/fd/%d", (int)getpid(),
		       fd);
	r = run_mkfs(want->fs, node, seen);
	if (r < 0)
		return r;
	disk_probe(fd, size, seen);
	return 0;
}

static int look(const struct disk_want *want, struct disk_seen *seen)
{
	_cleanup_close_ int fd = open_device(want, O_EXCL, seen);
	uint64_t size;
	int r;

	if (fd < 0)
		return fd;
	r = size_of(fd, &size, seen);
	if (r == 0)
		disk_probe(fd, size, seen);
	return r;
}

int disk_visit(const char *dir, const char *name, struct fault *f)
{
	struct disk_seen seen = { 0 };
	struct disk_want want;
	int r;

	r = disk_want_read(dir, name, &want, f);
	if (r < 0)
		return r == -ENOENT ? fault_set(f, r, name, "nothing is wanted "
						"of it") : r;
	if (strcmp(want.fs, "ext4") != 0 && strcmp(want.fs, "xfs") != 0)
		return fault_set(f, -EINVAL, want.fs, "is no filesystem of "
				 "ours");
	if (file_line("/proc/sys/kernel/random/boot_id", seen.boot,
		      sizeof(seen.boot), f) < 0)
		return -EIO;
	(void)memcpy(seen.device, want.device, sizeof(seen.device));
	r = look(&want, &seen);
	if (r == 0 && want.format && seen.state == DISK_BLANK)
		(void)make(&want, &seen);
	return disk_seen_write(dir, name, &seen, f);
}
