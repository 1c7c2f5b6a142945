#include "agent/record.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/fnv.h"

#define SUM_LINE "sum 0123456789abcdef\n"
#define SUM_SIZE (sizeof(SUM_LINE) - 1)

static void sum_line(const char *text, size_t size, char buf[SUM_SIZE + 1])
{
	(void)snprintf(buf, SUM_SIZE + 1, "sum %016" PRIx64 "\n",
		       fnv_add(FNV_BASIS, text, size));
}

size_t record_body(const char *file, size_t size)
{
	size_t body = size < SUM_SIZE ? 0 : size - SUM_SIZE;

	if (size < SUM_SIZE || memcmp(file + body, "sum ", 4) != 0 ||
	    (body > 0 && file[body - 1] != '\n'))
		return size;
	return body;
}

static int take_text(const char *path, const char *file, size_t size,
		     record_take take, void *userdata, struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	size_t body = record_body(file, size);
	char want[SUM_SIZE + 1];

	if (strlen(file) != size)
		return fault_set(f, -EBADMSG, path, "damaged: holds NUL");
	if (body < size) {
		sum_line(file, body, want);
		if (memcmp(file + body, want, SUM_SIZE) != 0)
			return fault_set(f, -EBADMSG, path,
					 "damaged: does not match its sum");
	}
	text = strndup(file, body);
	if (!text)
		return fault_errno(f, -ENOMEM, path, "read");
	return take(text, userdata, f);
}

static int read_copy(struct kept *kept, const char *path, size_t limit,
		     record_take take, void *userdata, struct fault *f)
{
	struct kept once = KEPT_INIT;
	const char *file;
	size_t size;
	int r = kept_read(kept ? kept : &once, path, limit, &file, &size, f);

	if (r == 0)
		r = take_text(path, file, size, take, userdata, f);
	kept_done(&once);
	return r;
}

static int previous_path(const char *path, char old[PATH_MAX])
{
	return snprintf(old, PATH_MAX, "%s.old", path) < PATH_MAX ?
		       0 : -ENAMETOOLONG;
}

int record_read(struct kept *kept, const char *path, size_t limit,
		record_take take, void *userdata, struct fault *f)
{
	struct fault first = FAULT_INIT;
	char old[PATH_MAX];
	int r = read_copy(kept, path, limit, take, userdata, &first);

	if (r == 0 || (r == -ENOENT && !first.err))
		return r;
	if ((r == -EBADMSG || r == -EIO) && previous_path(path, old) == 0 &&
	    read_copy(NULL, old, limit, take, userdata, NULL) == 0)
		return 1;
	return fault_set(f, r, first.object, "%s", first.text);
}

/*
 * A second name for the current copy, so that both exist when the new one
 * takes its place. A damaged one must not push out the whole one before it.
 */
static int keep_current(const char *path, struct fault *f)
{
	_cleanup_free_ char *file = NULL;
	char old[PATH_MAX], tmp[PATH_MAX], want[SUM_SIZE + 1];
	size_t size, body;

	if (file_read(path, SIZE_MAX / 4, &file, &size, NULL) < 0)
		return 0;
	body = record_body(file, size);
	sum_line(file, body, want);
	if (body == size || memcmp(file + body, want, SUM_SIZE) != 0)
		return 0;
	if (previous_path(path, old) < 0 || previous_path(old, tmp) < 0)
		return fault_set(f, -ENAMETOOLONG, path, "path is too long");
	(void)unlink(tmp);
	if (link(path, tmp) == 0 && rename(tmp, old) < 0)
		return fault_errno(f, -errno, old, "cannot be kept");
	return 0;
}

int record_write(const char *path, const char *text, size_t size,
		 struct fault *f)
{
	_cleanup_free_ char *file = malloc(size + SUM_SIZE + 1);
	int r;

	if (!file)
		return fault_errno(f, -ENOMEM, path, "cannot be written");
	(void)memcpy(file, text, size);
	sum_line(text, size, file + size);
	r = keep_current(path, f);
	return r < 0 ? r : file_write(path, 0600, file, size + SUM_SIZE, f);
}
