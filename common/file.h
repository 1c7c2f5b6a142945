/*
 * file.h - whole files, bounded and crash-safe.
 *
 * Reading never returns more than the stated limit (-E2BIG above it).
 * Writing goes to a temporary name in the same directory, is flushed to
 * disk and renamed, so that a crash leaves the old or the new file.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "common/fault.h"

/*
 * Reads the whole file. *ret_data is NUL-terminated beyond *ret_size and
 * owned by the caller (free). -ENOENT is returned without a fault, since
 * absence is often an answer.
 */
int file_read(const char *path, size_t limit, char **ret_data,
	      size_t *ret_size, struct fault *f);

/* Replaces `path` with `data`; `mode` is exact, whatever the umask. */
int file_write(const char *path, mode_t mode, const void *data, size_t size,
	       struct fault *f);

/* For who renames by itself: it is durable when the directory is flushed. */
int file_sync_parent(const char *path);

/*
 * As file_read() and file_write() for text lines: file_line() drops one
 * trailing newline. The limit is 4096 bytes.
 */
int file_line(const char *path, char *buf, size_t size, struct fault *f);

/* Creates the directory and its parents; an existing one is success. */
int file_mkdirs(const char *path, mode_t mode, struct fault *f);
