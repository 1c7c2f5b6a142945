/*
 * scratch.h - a scratch root for tests of resources: files are put, read
 * and removed below it. Included once, by a test program.
 */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"

static char scratch[] = "/tmp/garboard-test-XXXXXX";
static char scratch_state[64];

static inline char *scratch_path(const char *path)
{
	static char full[4096];

	(void)snprintf(full, sizeof(full), "%s%s", scratch, path);
	return full;
}

static inline void scratch_dir(const char *path)
{
	assert_int_equal(file_mkdirs(scratch_path(path), 0755, NULL), 0);
}

/* Writes in place, as the kernel does: descriptors may be held. */
static inline void put(const char *path, const char *text)
{
	_cleanup_close_ int fd = -1;
	char *full = scratch_path(path), *slash = strrchr(full, '/');

	*slash = '\0';
	assert_int_equal(file_mkdirs(full, 0755, NULL), 0);
	*slash = '/';
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static inline void put_link(const char *path, const char *target)
{
	char *full = scratch_path(path), *slash = strrchr(full, '/');

	*slash = '\0';
	assert_int_equal(file_mkdirs(full, 0755, NULL), 0);
	*slash = '/';
	(void)unlink(full);
	assert_int_equal(symlink(target, full), 0);
}

/* Valid until the next call; NULL when absent. */
static inline char *get(const char *path)
{
	static char buf[8192];
	_cleanup_free_ char *data = NULL;
	size_t n;

	if (file_read(scratch_path(path), sizeof(buf) - 1, &data, &n,
		      NULL) < 0)
		return NULL;
	memcpy(buf, data, n + 1);
	return buf;
}

static inline int scratch_make(void **state)
{
	(void)state;
	memcpy(scratch + sizeof(scratch) - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(scratch));
	(void)snprintf(scratch_state, sizeof(scratch_state), "%s/state",
		       scratch);
	return 0;
}

static inline int scratch_drop(void **state)
{
	char cmd[128];

	(void)state;
	(void)snprintf(cmd, sizeof(cmd), "rm -rf %s", scratch);
	return system(cmd);
}
