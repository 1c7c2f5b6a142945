#include "agent/confdirs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/rootpath.h"
#include "agent/stamps.h"
#include "agent/wake.h"
#include "common/cleanup.h"
#include "common/file.h"

/* /lib is a link to /usr/lib on a merged system: the names are then seen. */
static const char *const bases[] = {
	"/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib",
};

struct entry {
	char *name;
	char *path;
	int masked;
};

struct entries {
	struct entry *v;
	size_t n;
};

static void entries_done(struct entries *e)
{
	size_t i;

	for (i = 0; i < e->n; i++) {
		free(e->v[i].name);
		free(e->v[i].path);
	}
	free(e->v);
}

static int is_conf(const char *name)
{
	size_t n = strlen(name);

	return n > 5 && name[0] != '.' && strcmp(name + n - 5, ".conf") == 0;
}

static int is_masked(const char *path)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;

	n = readlink(path, target, sizeof(target) - 1);
	if (n >= 0) {
		target[n] = '\0';
		return strcmp(target, "/dev/null") == 0;
	}
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;
}

static int entries_add(struct entries *e, const char *name, const char *path,
		       int masked)
{
	struct entry *v;
	size_t i;

	for (i = 0; i < e->n; i++)
		if (strcmp(e->v[i].name, name) == 0)
			return 0;
	if (e->n >= CONFDIRS_FILES_MAX)
		return -E2BIG;
	v = reallocarray(e->v, e->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	e->v = v;
	e->v[e->n] = (struct entry){ strdup(name), strdup(path), masked };
	e->n++;
	return v[e->n - 1].name && v[e->n - 1].path ? 0 : -ENOMEM;
}

static int scan(const char *root, const char *dir, struct entries *e,
		struct fault *f)
{
	_cleanup_closedir_ DIR *d = NULL;
	char full[PATH_MAX], path[PATH_MAX];
	struct dirent *de;
	int r;

	r = rootpath(root, full, "%s", dir);
	if (r < 0)
		return fault_errno(f, r, dir, "cannot be listed");
	d = opendir(full);
	if (!d && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (!d)
		return fault_errno(f, -errno, dir, "cannot be listed");
	while ((de = readdir(d))) {
		if (!is_conf(de->d_name))
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", dir, de->d_name) >=
		    (int)sizeof(path))
			continue;
		r = rootpath(root, full, "%s", path);
		if (r == 0)
			r = entries_add(e, de->d_name, path, is_masked(full));
		if (r < 0)
			return fault_errno(f, r, dir, "cannot be listed");
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int scan_all(const char *root, const char *sub, struct entries *e,
		    struct fault *f)
{
	char dir[PATH_MAX];
	size_t i;
	int r = 0;

	for (i = 0; i < sizeof(bases) / sizeof(bases[0]) && r == 0; i++) {
		(void)snprintf(dir, sizeof(dir), "%s/%s", bases[i], sub);
		r = scan(root, dir, e, f);
	}
	return r;
}

static int note(const char *root, const char *path, struct stamps *stamps)
{
	char full[PATH_MAX];
	int r = rootpath(root, full, "%s", path);

	return r < 0 ? r : stamps_note(stamps, full);
}

int confdirs_note(const char *root, const char *sub, struct stamps *stamps,
		  struct fault *f)
{
	CLEANUP(entries_done) struct entries e = { NULL, 0 };
	char dir[PATH_MAX];
	size_t i;
	int r = 0;

	/* Directories first: what they list may change while it is noted. */
	for (i = 0; i < sizeof(bases) / sizeof(bases[0]) && r == 0; i++) {
		(void)snprintf(dir, sizeof(dir), "%s/%s", bases[i], sub);
		r = note(root, dir, stamps);
	}
	if (r == 0)
		r = scan_all(root, sub, &e, f);
	/* The masked too: an empty file hides others until it is filled. */
	for (i = 0; i < e.n && r == 0; i++)
		r = note(root, e.v[i].path, stamps);
	return r;
}

int confdirs_watch(const char *root, const char *sub, struct wake *wake,
		   struct fault *f)
{
	char dir[64];
	const char *const paths[] = { dir, NULL };
	int r, first = 0;
	size_t i;

	for (i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		(void)snprintf(dir, sizeof(dir), "%s/%s", bases[i], sub);
		r = wake_paths(wake, root, paths, WAKE_DIR_MASK, f);
		first = first ? first : r;
	}
	return first;
}

int confdirs_list(const char *root, const char *sub,
		  struct strlist *ret_files, struct fault *f)
{
	CLEANUP(entries_done) struct entries e = { NULL, 0 };
	struct strlist files = STRLIST_INIT;
	size_t i;
	int r = scan_all(root, sub, &e, f);

	if (r < 0)
		return r;
	if (e.n > 0)
		qsort(e.v, e.n, sizeof(*e.v), by_name);
	for (i = 0; i < e.n && r == 0; i++)
		if (!e.v[i].masked)
			r = strlist_add(&files, e.v[i].path);
	if (r < 0) {
		strlist_done(&files);
		return r;
	}
	*ret_files = files;
	return 0;
}

int confdirs_text(const char *file, char *text, confdirs_line fn,
		  void *userdata)
{
	unsigned int number = 0;
	char *line;
	int r;

	while ((line = strsep(&text, "\n"))) {
		r = fn(userdata, file, ++number, line);
		if (r < 0)
			return r;
	}
	return 0;
}

int confdirs_lines(const char *root, const char *sub, confdirs_line fn,
		   void *userdata, struct fault *f)
{
	CLEANUP(strlist_done) struct strlist files = STRLIST_INIT;
	int r, first = 0;
	size_t i;

	r = confdirs_list(root, sub, &files, f);
	if (r < 0)
		return r;
	for (i = 0; i < files.n; i++) {
		_cleanup_free_ char *data = NULL;
		char path[PATH_MAX];
		size_t size;

		r = rootpath(root, path, "%s", files.v[i]);
		if (r == 0)
			r = file_read(path, CONFDIRS_FILE_SIZE_MAX, &data,
				      &size, f);
		/* Gone between the listing and now, or a dangling link. */
		if (r == -ENOENT)
			continue;
		if (r < 0) {
			first = first ? first : r;
			continue;
		}
		r = confdirs_text(files.v[i], data, fn, userdata);
		if (r < 0)
			return r;
	}
	return first;
}
