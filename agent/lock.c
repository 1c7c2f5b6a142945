#include "agent/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/parse.h"

#define LOCK_PATH_MAX 512

static int open_lock(const char *state_dir, int flags, char *path)
{
	int fd;

	(void)snprintf(path, LOCK_PATH_MAX, "%s/lock", state_dir);
	fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
	return fd < 0 ? -errno : fd;
}

int lock_take(const char *state_dir, int *ret_fd, struct fault *f)
{
	char path[LOCK_PATH_MAX];
	_cleanup_close_ int fd = open_lock(state_dir, O_CREAT, path);

	if (fd < 0)
		return fault_errno(f, fd, path, "cannot be locked");
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return fault_set(f, -EBUSY, path,
				 "another garboard-agent is running");
	if (ftruncate(fd, 0) < 0 || dprintf(fd, "%d", (int)getpid()) < 0)
		return fault_errno(f, -errno, path, "cannot be written");
	*ret_fd = take_fd(&fd);
	return 0;
}

bool lock_is_taken(const char *state_dir)
{
	char path[LOCK_PATH_MAX];
	_cleanup_close_ int fd = open_lock(state_dir, 0, path);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
}

int lock_nudge(const char *state_dir)
{
	char path[LOCK_PATH_MAX], text[16] = "";
	_cleanup_close_ int fd = open_lock(state_dir, 0, path);
	uint64_t pid = 0;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0 ||
	    read(fd, text, sizeof(text) - 1) <= 0 ||
	    parse_u64(text, INT32_MAX, &pid) < 0 || pid < 2)
		return -ESRCH;
	return kill((pid_t)pid, SIGHUP) < 0 ? -errno : 0;
}
