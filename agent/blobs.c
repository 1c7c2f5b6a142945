#include "agent/blobs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/k3s_paths.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/parse.h"

static const char *kind_name(enum blob_kind kind)
{
	static const char *const names[] = {
		[BLOB_K3S] = "k3s",
		[BLOB_CHART] = "chart",
		[BLOB_IMAGES] = "images",
	};
	_Static_assert(sizeof(names) / sizeof(names[0]) == BLOB_KIND_MAX,
		       "every kind has a name");

	return kind > 0 && kind < BLOB_KIND_MAX ? names[kind] : "unknown";
}

static int make_path(const char *state_dir, enum blob_kind kind,
		     const uint8_t sha256[32], const char *suffix, char *buf,
		     size_t size)
{
	char hex[65];
	int n;

	format_hex(sha256, 32, hex);
	n = snprintf(buf, size, "%s/blobs/%s-%s%s", state_dir, kind_name(kind),
		     hex, suffix);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int blobs_path(const char *state_dir, enum blob_kind kind,
	       const uint8_t sha256[32], char *buf, size_t size)
{
	int r = make_path(state_dir, kind, sha256, "", buf, size);

	if (r < 0)
		return r;
	return access(buf, R_OK) < 0 ? -errno : 0;
}

int blobs_part(const char *state_dir, enum blob_kind kind,
	       const uint8_t sha256[32], char *buf, size_t size)
{
	return make_path(state_dir, kind, sha256, ".part", buf, size);
}

static int check_room(int fd, const struct order_blob *chunk, const char *path,
		      struct fault *f)
{
	struct statvfs v;
	uint64_t room;

	if (fstatvfs(fd, &v) < 0)
		return fault_errno(f, -errno, path, "cannot be looked at");
	room = (uint64_t)v.f_bavail * v.f_frsize;
	if (room < chunk->size - chunk->offset + BLOBS_RESERVE)
		return fault_set(f, -ENOSPC, path,
				 "needs %" PRIu64 " MiB, and %" PRIu64
				 " MiB must stay free; there are %" PRIu64,
				 (chunk->size - chunk->offset) >> 20,
				 BLOBS_RESERVE >> 20, room >> 20);
	return 0;
}

static int write_all(int fd, const struct order_blob *chunk, const char *path,
		     struct fault *f)
{
	size_t at = 0;

	while (at < chunk->data.n) {
		ssize_t n = pwrite(fd, chunk->data.v + at, chunk->data.n - at,
				   (off_t)(chunk->offset + at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fault_errno(f, -errno, path,
					   "cannot be written");
		at += n;
	}
	return 0;
}

int blobs_append(const char *state_dir, const struct order_blob *chunk,
		 struct fault *f)
{
	char path[K3S_PATH_MAX], dir[K3S_PATH_MAX];
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	(void)snprintf(dir, sizeof(dir), "%s/blobs", state_dir);
	r = blobs_part(state_dir, chunk->kind, chunk->sha256, path,
		       sizeof(path));
	if (r < 0)
		return fault_errno(f, r, dir, "cannot be used");
	r = file_mkdirs(dir, 0700, f);
	if (r < 0)
		return r;
	fd = open(path,
		  O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
			  (chunk->offset ? 0 : O_TRUNC),
		  0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fault_errno(f, -errno, path, "cannot be written");
	if ((uint64_t)st.st_size != chunk->offset)
		return fault_set(f, -ESPIPE, path,
				 "has %" PRIu64 " bytes, the chunk is at %"
				 PRIu64, (uint64_t)st.st_size, chunk->offset);
	r = check_room(fd, chunk, path, f);
	if (r == 0)
		r = write_all(fd, chunk, path, f);
	if (r < 0 || chunk->offset + chunk->data.n < chunk->size)
		return r;
	return fsync(fd) < 0 ? fault_errno(f, -errno, path, "not on disk") : 1;
}

/* k3s imports what lies in its images directory at its start (2.3). */
static int place_images(const char *path, const char *root,
			const struct order_blob *chunk, struct fault *f)
{
	char dir[K3S_PATH_MAX], to[K3S_PATH_MAX], hex[65];
	int r;

	(void)snprintf(dir, sizeof(dir), "%s%s", root, K3S_IMAGES);
	r = file_mkdirs(dir, 0755, f);
	if (r < 0)
		return r;
	format_hex(chunk->sha256, 32, hex);
	(void)snprintf(to, sizeof(to), "%.400s/garboard-%.16s.tar", dir, hex);
	if (link(path, to) < 0 && errno != EEXIST)
		return fault_errno(f, -errno, to, "cannot be placed");
	return 0;
}

int blobs_accept(const char *state_dir, const char *root,
		 const struct order_blob *chunk, struct fault *f)
{
	char part[K3S_PATH_MAX], path[K3S_PATH_MAX];
	int r;

	r = blobs_part(state_dir, chunk->kind, chunk->sha256, part,
		       sizeof(part));
	if (r == 0)
		r = make_path(state_dir, chunk->kind, chunk->sha256, "", path,
			      sizeof(path));
	if (r < 0)
		return fault_errno(f, r, state_dir, "cannot be used");
	if (chunk->kind == BLOB_K3S && chmod(part, 0700) < 0)
		return fault_errno(f, -errno, part, "cannot be kept");
	if (rename(part, path) < 0)
		return fault_errno(f, -errno, path, "cannot be kept");
	r = file_sync_parent(path);
	if (r < 0)
		return fault_errno(f, r, path, "is not on disk");
	return chunk->kind == BLOB_IMAGES ?
		       place_images(path, root, chunk, f) :
		       0;
}
