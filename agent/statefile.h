/*
 * statefile.h - small state files that survive power cuts and bad disks.
 *
 * A stored file is a header (magic, format version, length, SHA-256) and
 * the data. Writing keeps the previous copy, if that is whole, beside it as
 * NAME.old; one of them is whole at any moment. Reading falls back to the previous copy when the
 * current one is broken, and says so. Nothing here knows what it stores.
 *
 * Files are 0600 in a directory the caller keeps 0700. Errors: negative
 * errno with a fault; -ENOENT (nothing stored) is without one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"

#define STATEFILE_PATH_MAX 512
#define STATEFILE_HEADER_SIZE 44
/* Above every limit that a caller has for its data. */
#define STATEFILE_SIZE_MAX (64u * 1024 * 1024)

/*
 * 0: the current copy. 1: the current copy is broken, the previous one was
 * read, and `f` says what is wrong. -EBADMSG: neither is whole. -EPROTO: it
 * is whole but of a later format. *ret_data has a NUL beyond *ret_size.
 */
int statefile_read(const char *dir, const char *name, uint32_t format,
	       size_t limit, char **ret_data, size_t *ret_size,
	       struct fault *f);

int statefile_write(const char *dir, const char *name, uint32_t format,
		const void *data, size_t size, struct fault *f);

/* Both copies; absence is success. */
int statefile_remove(const char *dir, const char *name, struct fault *f);
