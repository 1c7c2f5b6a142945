/* The part of state.h that keeps results and forgets identities. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "agent/statefile.h"
#include "common/cleanup.h"
#include "common/file.h"

#define RESULT_FORMAT 1
#define RESULT_NAME_SIZE 34	/* 16 + "-" + 16 + NUL */
#define RESULT_FILES_MAX 4096

static int results_dir(const struct node_state *s, char *path, size_t size,
		       struct fault *f)
{
	int n = snprintf(path, size, "%s/results", s->dir);

	if (n < 0 || (size_t)n >= size)
		return fault_set(f, -ENAMETOOLONG, s->dir, "path too long");
	return 0;
}

/* Fixed width, so that the order of names is the order of orders. */
static void result_name(char name[RESULT_NAME_SIZE], uint64_t epoch,
			uint64_t sequence)
{
	(void)snprintf(name, RESULT_NAME_SIZE, "%016" PRIx64 "-%016" PRIx64,
		       epoch, sequence);
}

static int is_result(const struct dirent *d)
{
	return strlen(d->d_name) == RESULT_NAME_SIZE - 1 &&
	       d->d_name[16] == '-';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void prune(const char *dir)
{
	struct dirent **v = NULL;
	int n, i;

	n = scandir(dir, &v, is_result, by_name);
	for (i = 0; i < n; i++) {
		if (i < n - STATE_RESULTS_MAX)	/* an old one that stays is no harm */
			(void)statefile_remove(dir, v[i]->d_name, NULL);
		free(v[i]);
	}
	free(v);
}

int state_put_result(struct node_state *s, uint64_t epoch, uint64_t sequence,
		     const uint8_t digest[32], const void *bytes, size_t size,
		     struct fault *f)
{
	char dir[STATEFILE_PATH_MAX], name[RESULT_NAME_SIZE];
	_cleanup_free_ uint8_t *data = NULL;
	int r;

	if (size > STATE_RESULT_SIZE_MAX)
		return fault_set(f, -E2BIG, "result", "too large to keep");
	r = results_dir(s, dir, sizeof(dir), f);
	if (r == 0)
		r = file_mkdirs(dir, 0700, f);
	if (r < 0)
		return r;
	data = malloc(32 + size);
	if (!data)
		return fault_errno(f, -ENOMEM, "result", "cannot be kept");
	memcpy(data, digest, 32);
	memcpy(data + 32, bytes, size);
	result_name(name, epoch, sequence);
	r = statefile_write(dir, name, RESULT_FORMAT, data, 32 + size, f);
	if (r == 0)
		prune(dir);
	return r;
}

int state_get_result(const struct node_state *s, uint64_t epoch,
		     uint64_t sequence, const uint8_t digest[32],
		     uint8_t **ret_bytes, size_t *ret_size, struct fault *f)
{
	char dir[STATEFILE_PATH_MAX], name[RESULT_NAME_SIZE];
	_cleanup_free_ char *data = NULL;
	size_t size;
	int r;

	r = results_dir(s, dir, sizeof(dir), f);
	if (r < 0)
		return r;
	result_name(name, epoch, sequence);
	r = statefile_read(dir, name, RESULT_FORMAT, 32 + STATE_RESULT_SIZE_MAX,
		       &data, &size, f);
	if (r < 0)
		return r;
	if (size < 32)
		return fault_set(f, -EBADMSG, name, "is too short");
	if (memcmp(data, digest, 32) != 0)
		return fault_set(f, -EEXIST, name,
				 "another order had this number");
	memmove(data, data + 32, size - 32);
	*ret_size = size - 32;
	*ret_bytes = (uint8_t *)take_ptr(data);
	return 0;
}

static void remove_results(const char *dir)
{
	struct dirent **v = NULL;
	int n, i;

	n = scandir(dir, &v, is_result, by_name);
	for (i = 0; i < n; i++) {
		(void)statefile_remove(dir, v[i]->d_name, NULL);
		free(v[i]);
	}
	free(v);
}

int state_reset_identity(struct node_state *s, struct fault *f)
{
	static const char *const stored[] = { "identity", "orders", "desired",
					      "founding", "lease", "trial" };
	static const char *const plain[] = { "report.key", "seal.key" };
	char path[STATEFILE_PATH_MAX];
	size_t i;
	int r, first = 0;

	for (i = 0; i < sizeof(stored) / sizeof(stored[0]); i++) {
		r = statefile_remove(s->dir, stored[i], f);
		first = first ? first : r;
	}
	for (i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", s->dir, plain[i]);
		if (unlink(path) < 0 && errno != ENOENT && !first)
			first = fault_errno(f, -errno, path,
					    "cannot be removed");
	}
	if (results_dir(s, path, sizeof(path), NULL) == 0)
		remove_results(path);
	s->enrolled = false;
	return first;
}
