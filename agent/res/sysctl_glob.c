#include "agent/res/sysctl_glob.h"

#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <string.h>

#include "agent/res/sysctl_files.h"
#include "agent/rootpath.h"
#include "common/cleanup.h"

#define PROC_SYS "/proc/sys/"

size_t sysctl_want_key(const struct desired *want, size_t n, const char *path)
{
	char other[SYSCTL_KEY_MAX];
	size_t length = strlen(path), i;

	for (i = 0; i < n; i++) {
		const char *key = want->sysctls[i].key;

		/* Spellings differ in separators and in a leading slash. */
		if (strlen(key) - (*key == '/') == length &&
		    sysctl_key_path(key, other, sizeof(other)) == 0 &&
		    strcmp(other, path) == 0)
			return i;
	}
	return SYSCTL_NOT_WANTED;
}

bool sysctl_glob_matches(const char *pattern, const char *path)
{
	return fnmatch(pattern, path, FNM_PATHNAME | FNM_PERIOD) == 0;
}

size_t sysctl_want_glob(const struct desired *want, const char *path)
{
	char pattern[SYSCTL_KEY_MAX];
	size_t i, found = SYSCTL_NOT_WANTED;

	for (i = want->n_sysctls; i > 0; i--) {
		const struct desired_sysctl *d = &want->sysctls[i - 1];

		if (!d->exclude && sysctl_is_glob(d->key) &&
		    sysctl_key_path(d->key, pattern, sizeof(pattern)) == 0 &&
		    sysctl_glob_matches(pattern, path)) {
			found = i - 1;
			break;
		}
	}
	if (found == SYSCTL_NOT_WANTED ||
	    sysctl_want_key(want, want->n_sysctls, path) != SYSCTL_NOT_WANTED)
		return SYSCTL_NOT_WANTED;
	return found;
}

bool sysctl_wants(const struct desired *want, const char *path)
{
	size_t i = sysctl_want_key(want, want->n_sysctls, path);

	if (i != SYSCTL_NOT_WANTED)
		return !want->sysctls[i].exclude;
	return sysctl_want_glob(want, path) != SYSCTL_NOT_WANTED;
}

int sysctl_glob_expand(const char *root, const char *pattern,
		       struct strlist *ret_paths)
{
	CLEANUP(globfree) glob_t g = { 0 };
	struct strlist paths = STRLIST_INIT;
	char full[PATH_MAX];
	size_t skip, i;
	int r;

	r = rootpath(root, full, PROC_SYS "%s", pattern);
	if (r < 0)
		return r;
	skip = strlen(full) - strlen(pattern);
	r = glob(full, GLOB_NOSORT, NULL, &g);
	if (r == GLOB_NOSPACE)
		return -ENOMEM;
	if (g.gl_pathc > SYSCTL_GLOB_MAX)
		return -E2BIG;
	r = 0;
	for (i = 0; i < g.gl_pathc && r == 0; i++)
		r = strlist_add(&paths, g.gl_pathv[i] + skip);
	if (r < 0) {
		strlist_done(&paths);
		return r;
	}
	*ret_paths = paths;
	return 0;
}
