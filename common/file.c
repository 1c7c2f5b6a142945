#include "common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"

#define LINE_FILE_MAX 4096

/* Stops at `expected` bytes (0: not known), else where the file ends. */
static int read_all(int fd, size_t limit, size_t expected, char *buf,
		    size_t *ret_size)
{
	size_t have = 0;

	while (have <= limit) {
		ssize_t n = read(fd, buf + have, limit + 1 - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		have += (size_t)n;
		if (n == 0 || (expected && have == expected)) {
			*ret_size = have;
			return 0;
		}
	}
	return -E2BIG;
}

int file_read(const char *path, size_t limit, char **ret_data,
	      size_t *ret_size, struct fault *f)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *buf = NULL;
	size_t size = 0, room, expected = 0;
	struct stat st;
	int r;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st) < 0)
		return fault_errno(f, -errno, path, "cannot be opened");
	/* procfs reports size 0, so trust the size only as a hint. */
	room = limit;
	if (S_ISREG(st.st_mode) && st.st_size > 0 &&
	    (size_t)st.st_size < limit) {
		expected = (size_t)st.st_size;
		room = expected + 4096 < limit ? expected + 4096 : limit;
	}
	buf = malloc(room + 2);
	if (!buf)
		return -ENOMEM;
	r = read_all(fd, room, expected, buf, &size);
	if (r == -E2BIG)
		return fault_set(f, r, path, "is larger than %zu bytes", room);
	if (r < 0)
		return fault_errno(f, r, path, "cannot be read");
	buf[size] = '\0';
	*ret_data = take_ptr(buf);
	*ret_size = size;
	return 0;
}

/* What ends with the end of a line is read whole: one call of the kernel. */
static int read_line_file(int fd, char *data, size_t *ret_size)
{
	ssize_t n;

	do
		n = read(fd, data, LINE_FILE_MAX);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*ret_size = (size_t)n;
	if (n == 0 || (n < LINE_FILE_MAX && data[n - 1] == '\n'))
		return 0;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return read_all(fd, LINE_FILE_MAX, 0, data, ret_size);
}

int file_line(const char *path, char *buf, size_t size, struct fault *f)
{
	_cleanup_close_ int fd = -1;
	char data[LINE_FILE_MAX + 2];
	size_t n = 0;
	int r;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0)
		return fault_errno(f, -errno, path, "cannot be opened");
	r = read_line_file(fd, data, &n);
	if (r < 0)
		return fault_errno(f, r, path, "cannot be read");
	data[n] = '\0';
	if (n > 0 && data[n - 1] == '\n')
		data[--n] = '\0';
	if (n >= size)
		return fault_set(f, -E2BIG, path, "line is too long");
	memcpy(buf, data, n + 1);
	return 0;
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

/* The rename is durable only when the directory itself is flushed. */
int file_sync_parent(const char *path)
{
	char dir[PATH_MAX];
	_cleanup_close_ int fd = -1;
	char *slash;

	(void)snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (!slash)
		(void)snprintf(dir, sizeof(dir), ".");
	else if (slash == dir)
		dir[1] = '\0';
	else
		*slash = '\0';
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		return -errno;
	return 0;
}

int file_write(const char *path, mode_t mode, const void *data, size_t size,
	       struct fault *f)
{
	char tmp[PATH_MAX];
	_cleanup_close_ int fd = -1;
	const char *base = strrchr(path, '/');
	int dirlen = base ? (int)(base - path) + 1 : 0;
	int r;

	base = path + dirlen;
	/* A leading dot keeps directory scanners (k3s, sysctl.d) away. */
	if (snprintf(tmp, sizeof(tmp), "%.*s.%s.XXXXXX", dirlen, path,
		     base) >= (int)sizeof(tmp))
		return fault_set(f, -ENAMETOOLONG, path, "path is too long");
	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return fault_errno(f, -errno, path, "cannot be created");
	r = write_all(fd, data, size);
	if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
		r = -errno;
	if (r == 0 && rename(tmp, path) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlink(tmp);
		return fault_errno(f, r, path, "cannot be written");
	}
	r = file_sync_parent(path);
	if (r < 0)
		return fault_errno(f, r, path, "directory cannot be flushed");
	return 0;
}

int file_mkdirs(const char *path, mode_t mode, struct fault *f)
{
	char dir[PATH_MAX];
	char *p;

	if (snprintf(dir, sizeof(dir), "%s", path) >= (int)sizeof(dir))
		return fault_set(f, -ENAMETOOLONG, path, "path is too long");
	for (p = dir + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(dir, mode) < 0 && errno != EEXIST)
			return fault_errno(f, -errno, dir, "cannot be made");
		*p = '/';
	}
	if (mkdir(dir, mode) < 0 && errno != EEXIST)
		return fault_errno(f, -errno, dir, "cannot be made");
	return 0;
}
