#include "agent/statefile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "proto/keys.h"

static const char magic[4] = { 'G', 'B', 'S', 'T' };

static void put32(uint8_t *p, uint32_t v)
{
	p[0] = v >> 24;
	p[1] = v >> 16;
	p[2] = v >> 8;
	p[3] = v;
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

static int make_path(char *path, const char *dir, const char *name,
		     const char *suffix, struct fault *f)
{
	int n = snprintf(path, STATEFILE_PATH_MAX, "%s/%s%s", dir, name, suffix);

	if (n < 0 || n >= STATEFILE_PATH_MAX)
		return fault_set(f, -ENAMETOOLONG, name, "path too long");
	return 0;
}

/* The header says exactly what follows it, or the file is broken. */
static int check(const char *path, uint32_t format, const char *file,
		 size_t size, struct fault *f)
{
	const uint8_t *h = (const uint8_t *)file;
	uint8_t digest[KEY_SHA256_SIZE];
	int r;

	if (size < STATEFILE_HEADER_SIZE || memcmp(h, magic, sizeof(magic)) != 0 ||
	    get32(h + 8) != size - STATEFILE_HEADER_SIZE)
		return fault_set(f, -EBADMSG, path,
				 "is truncated or not a state file");
	r = key_sha256(h + STATEFILE_HEADER_SIZE, size - STATEFILE_HEADER_SIZE, digest);
	if (r < 0)
		return fault_errno(f, r, path, "cannot be checked");
	if (memcmp(digest, h + 12, sizeof(digest)) != 0)
		return fault_set(f, -EBADMSG, path,
				 "does not match its checksum");
	if (get32(h + 4) != format)
		return fault_set(f, -EPROTO, path,
				 "has format %u, this program knows %u",
				 get32(h + 4), format);
	return 0;
}

static int read_copy(const char *path, uint32_t format, size_t limit,
		     char **ret_data, size_t *ret_size, struct fault *f)
{
	_cleanup_free_ char *file = NULL;
	size_t size = 0;
	int r;

	r = file_read(path, limit + STATEFILE_HEADER_SIZE, &file, &size, f);
	if (r < 0)
		return r;
	r = check(path, format, file, size, f);
	if (r < 0)
		return r;
	size -= STATEFILE_HEADER_SIZE;
	/* The NUL that file_read() left moves along. */
	memmove(file, file + STATEFILE_HEADER_SIZE, size + 1);
	*ret_data = take_ptr(file);
	*ret_size = size;
	return 0;
}

int statefile_read(const char *dir, const char *name, uint32_t format,
	       size_t limit, char **ret_data, size_t *ret_size,
	       struct fault *f)
{
	char path[STATEFILE_PATH_MAX], old[STATEFILE_PATH_MAX];
	struct fault second = FAULT_INIT;
	int r, r_old;

	r = make_path(path, dir, name, "", f);
	if (r == 0)
		r = make_path(old, dir, name, ".old", f);
	if (r < 0)
		return r;
	r = read_copy(path, format, limit, ret_data, ret_size, f);
	if (r != -ENOENT && r != -EBADMSG && r != -EIO)
		return r;
	r_old = read_copy(old, format, limit, ret_data, ret_size, &second);
	if (r_old == -ENOENT)
		return r;
	if (r_old < 0)
		return r == -ENOENT ? fault_set(f, r_old, second.object, "%s",
						second.text) :
				      r;
	if (r == -ENOENT)
		(void)fault_set(f, r, path, "is missing");
	return 1;
}

/* Of any format: what a later version wrote is worth as much. */
static bool whole(const char *path, uint32_t format)
{
	_cleanup_free_ char *data = NULL;
	size_t size;
	int r = read_copy(path, format, STATEFILE_SIZE_MAX, &data, &size, NULL);

	return r == 0 || r == -EPROTO;
}

int statefile_write(const char *dir, const char *name, uint32_t format,
		const void *data, size_t size, struct fault *f)
{
	char path[STATEFILE_PATH_MAX], old[STATEFILE_PATH_MAX], tmp[STATEFILE_PATH_MAX];
	_cleanup_free_ uint8_t *file = NULL;
	int r;

	r = make_path(path, dir, name, "", f);
	if (r == 0)
		r = make_path(old, dir, name, ".old", f);
	if (r == 0)
		r = make_path(tmp, dir, name, ".old.tmp", f);
	if (r < 0)
		return r;
	file = malloc(STATEFILE_HEADER_SIZE + size);
	if (!file)
		return fault_errno(f, -ENOMEM, path, "cannot be written");
	memcpy(file, magic, sizeof(magic));
	put32(file + 4, format);
	put32(file + 8, size);
	memcpy(file + STATEFILE_HEADER_SIZE, data, size);
	r = key_sha256(data, size, file + 12);
	if (r < 0)
		return fault_errno(f, r, path, "cannot be checksummed");
	/*
	 * A second name for the current copy, so that both exist when
	 * file_write() renames over the first. A missing one is no error, and
	 * a broken one must not push out the whole one before it.
	 */
	(void)unlink(tmp);
	if (whole(path, format) && link(path, tmp) == 0 && rename(tmp, old) < 0)
		return fault_errno(f, -errno, old, "cannot be kept");
	return file_write(path, 0600, file, STATEFILE_HEADER_SIZE + size, f);
}

int statefile_remove(const char *dir, const char *name, struct fault *f)
{
	static const char *const suffixes[] = { "", ".old" };
	char path[STATEFILE_PATH_MAX];
	size_t i;
	int r;

	for (i = 0; i < 2; i++) {
		r = make_path(path, dir, name, suffixes[i], f);
		if (r < 0)
			return r;
		if (unlink(path) < 0 && errno != ENOENT)
			return fault_errno(f, -errno, path,
					   "cannot be removed");
	}
	return 0;
}
