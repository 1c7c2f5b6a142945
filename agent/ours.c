#include "agent/ours.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/record.h"
#include "common/cleanup.h"
#include "common/file.h"

#define HEAD "garboard-ours-1\n"
#define END "end"

static int ours_path(const char *state_dir, const char *name, char *buf)
{
	int n = snprintf(buf, PATH_MAX, "%s/ours/%s", state_dir, name);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static void record_done(struct ours_record *rec)
{
	free(rec->key);
	free(rec->before);
	free(rec->set);
}

struct ours_record *ours_find(const struct ours *ours, const char *key)
{
	size_t i;

	for (i = 0; i < ours->n; i++)
		if (strcmp(ours->v[i].key, key) == 0)
			return &ours->v[i];
	return NULL;
}

static int replace_set(struct ours_record *rec, const char *set)
{
	char *copy = strdup(set);

	if (!copy)
		return -ENOMEM;
	free(rec->set);
	rec->set = copy;
	return 0;
}

int ours_put(struct ours *ours, const char *key, const char *before,
	     const char *set)
{
	struct ours_record *rec = ours_find(ours, key), *v;

	if (strpbrk(key, "\t\n") || strpbrk(before, "\t\n") ||
	    strpbrk(set, "\t\n"))
		return -EINVAL;
	if (rec)
		return replace_set(rec, set);
	if (ours->n >= OURS_RECORDS_MAX)
		return -E2BIG;
	v = reallocarray(ours->v, ours->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	ours->v = v;
	rec = &v[ours->n];
	*rec = (struct ours_record){ strdup(key), strdup(before), strdup(set) };
	if (!rec->key || !rec->before || !rec->set) {
		record_done(rec);
		return -ENOMEM;
	}
	ours->n++;
	return 0;
}

void ours_remove(struct ours *ours, const char *key)
{
	struct ours_record *rec = ours_find(ours, key);

	if (!rec)
		return;
	record_done(rec);
	*rec = ours->v[--ours->n];
}

void ours_done(struct ours *ours)
{
	size_t i;

	for (i = 0; i < ours->n; i++)
		record_done(&ours->v[i]);
	free(ours->v);
	*ours = OURS_INIT;
}

static int parse_lines(char *text, bool has_end, struct ours *ours)
{
	bool ended = false;
	char *line;
	int r = 0;

	while (r == 0 && (line = strsep(&text, "\n"))) {
		char *key, *before;

		if (!*line)
			continue;
		if (ended)
			return -EBADMSG;
		ended = has_end && strcmp(line, END) == 0;
		if (ended)
			continue;
		key = strsep(&line, "\t");
		before = strsep(&line, "\t");
		if (!before || !line || strchr(line, '\t'))
			return -EBADMSG;
		r = ours_put(ours, key, before, line);
	}
	return r < 0 || ended == has_end ? r : -EBADMSG;
}

/* The first version had no head and no end. */
static int take(const char *text, void *userdata, struct fault *f)
{
	const char *lines = strncmp(text, HEAD, strlen(HEAD)) == 0 ?
				    text + strlen(HEAD) : NULL;
	_cleanup_free_ char *copy = strdup(lines ? lines : text);
	struct ours ours = OURS_INIT;
	int r;

	if (!copy)
		return fault_errno(f, -ENOMEM, "record", "read");
	r = parse_lines(copy, lines != NULL, &ours);
	if (r < 0) {
		ours_done(&ours);
		return fault_set(f, r, "record", "the record is damaged; move "
				 "it away to start a new one");
	}
	*(struct ours *)userdata = ours;
	return 0;
}

int ours_read(const char *state_dir, const char *name, struct ours *ret_ours,
	      struct fault *f)
{
	char path[PATH_MAX];
	int r;

	if (!state_dir) {
		*ret_ours = OURS_INIT;
		return 0;
	}
	r = ours_path(state_dir, name, path);
	if (r < 0)
		return fault_errno(f, r, name, "no record can be kept");
	r = record_read(NULL, path, OURS_FILE_MAX, take, ret_ours, f);
	if (r == -ENOENT) {
		*ret_ours = OURS_INIT;
		return 0;
	}
	if (r == 1)
		(void)fault_set(f, -EBADMSG, path, "is damaged; the copy "
				"before it counts");
	return r;
}

int ours_write(const char *state_dir, const char *name,
	       const struct ours *ours, struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_fclose_ FILE *out = NULL;
	char path[PATH_MAX];
	size_t size = 0, i;
	int r;

	if (!state_dir)
		return 0;
	if (snprintf(path, sizeof(path), "%s/ours", state_dir) >=
	    (int)sizeof(path))
		return fault_set(f, -ENAMETOOLONG, name, "path is too long");
	r = file_mkdirs(path, 0700, f);
	if (r < 0)
		return r;
	r = ours_path(state_dir, name, path);
	if (r < 0)
		return fault_errno(f, r, name, "no record can be kept");
	out = open_memstream(&text, &size);
	if (!out)
		return fault_errno(f, -errno, path, "cannot be written");
	(void)fputs(HEAD, out);
	for (i = 0; i < ours->n; i++)
		(void)fprintf(out, "%s\t%s\t%s\n", ours->v[i].key,
			      ours->v[i].before, ours->v[i].set);
	(void)fputs(END "\n", out);
	if (fclose(take_ptr(out)) != 0)
		return fault_errno(f, -errno, path, "cannot be written");
	return record_write(path, text, size, f);
}
