#include "agent/res/timezone_read.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/rootpath.h"
#include "common/cleanup.h"
#include "common/file.h"

#define ZONEINFO "usr/share/zoneinfo/"
#define TZDATA_ZI_MAX (4 * 1024 * 1024)

static bool component_is_valid(const char *p, size_t n, bool first)
{
	size_t i;

	if (n == 0 || (first && !isalpha((unsigned char)p[0])))
		return false;
	if ((n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
		return false;
	for (i = 0; i < n; i++)
		if (!isalnum((unsigned char)p[i]) && !strchr("+_-", p[i]) &&
		    (first || p[i] != '.'))
			return false;
	return true;
}

bool timezone_name_is_valid(const char *name)
{
	const char *p = name;
	bool first = true;

	if (strlen(name) >= TIMEZONE_NAME_MAX || strstr(name, "BLOCKED") ||
	    strncmp(name, "right/", 6) == 0)
		return false;
	for (;;) {
		size_t n = strcspn(p, "/");

		if (!component_is_valid(p, n, first))
			return false;
		if (!p[n])
			return true;
		p += n + 1;
		first = false;
	}
}

/* The data of a zone, or NULL. Only "TZif" is a zone (tzfile(5)). */
static char *zone_data(const char *path, size_t *ret_size)
{
	char *data = NULL;

	if (file_read(path, TIMEZONE_DATA_MAX, &data, ret_size, NULL) < 0)
		return NULL;
	if (*ret_size >= 4 && memcmp(data, "TZif", 4) == 0)
		return data;
	free(data);
	return NULL;
}

static char *named_data(const char *root, const char *zone, size_t *ret_size)
{
	char path[PATH_MAX];

	if (!timezone_name_is_valid(zone) ||
	    rootpath(root, path, "/" ZONEINFO "%s", zone) < 0)
		return NULL;
	return zone_data(path, ret_size);
}

static bool same_data(const char *a, size_t na, const char *b, size_t nb)
{
	return a && b && na == nb && memcmp(a, b, na) == 0;
}

static void copy_name(char *to, const char *from)
{
	(void)snprintf(to, TIMEZONE_NAME_MAX, "%s", from);
	to[strcspn(to, " \t\r\n")] = '\0';
}

/* Where a link of /etc leads to, below the root; links are not absolute. */
static int link_path(const char *root, const char *target, char *buf)
{
	return target[0] == '/' ? rootpath(root, buf, "%s", target) :
				  rootpath(root, buf, "/etc/%s", target);
}

/* Is `path` that of the zone's data, plainly or seen from /etc? */
static bool is_path_of(const char *root, const char *path, const char *zone)
{
	static const char *const ways[] = { "/", "/etc/../" };
	char other[PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (rootpath(root, other, "%s" ZONEINFO "%s", ways[i],
			     zone) == 0 && strcmp(path, other) == 0)
			return true;
	return false;
}

static void see_localtime(const char *root, struct timezone_seen *s,
			  const char *want, const char *data, size_t size)
{
	_cleanup_free_ char *own = NULL;
	char path[PATH_MAX], target[PATH_MAX];
	const char *zone;
	size_t own_size = 0;
	ssize_t n;

	if (rootpath(root, path, TIMEZONE_LOCALTIME) < 0)
		return;
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0 && errno == ENOENT)
		return;
	if (n < 0 && errno != EINVAL) {
		s->kind = TIMEZONE_UNREADABLE;
		s->err = -errno;
		return;
	}
	s->kind = TIMEZONE_COPY;
	if (n >= 0) {
		target[n] = '\0';
		zone = strstr(target, ZONEINFO);
		if (zone) {
			s->kind = TIMEZONE_LINK;
			copy_name(s->zone, zone + strlen(ZONEINFO));
		}
		if (link_path(root, target, path) < 0)
			return;
	}
	/* The usual link leads to what was just read. */
	if (s->kind == TIMEZONE_LINK && is_path_of(root, path, want)) {
		s->dangling = !data;
		s->same = data != NULL;
		return;
	}
	own = zone_data(path, &own_size);
	s->dangling = n >= 0 && !own;
	s->same = own && (strcmp(s->zone, want) == 0 ||
			  same_data(own, own_size, data, size));
}

static void see_file(const char *root, struct timezone_seen *s,
		     const char *want, const char *data, size_t size)
{
	_cleanup_free_ char *named = NULL;
	char path[PATH_MAX], line[256];
	size_t named_size = 0;
	int r;

	if (rootpath(root, path, TIMEZONE_FILE) < 0)
		return;
	r = file_line(path, line, sizeof(line), NULL);
	if (r == -ENOENT)
		return;
	s->has_file = true;
	if (r < 0)
		return;
	copy_name(s->file, line);
	s->file_same = strcmp(s->file, want) == 0;
	if (s->file_same)
		return;
	named = named_data(root, s->file, &named_size);
	s->file_same = same_data(named, named_size, data, size);
}

/* "L America/Los_Angeles US/Pacific" in tzdata.zi: the name of today. */
static void find_canonical(const char *root, const char *want,
			   char *ret_canonical)
{
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX], *text, *line;
	size_t size;

	if (rootpath(root, path, "/" ZONEINFO "tzdata.zi") < 0 ||
	    file_read(path, TZDATA_ZI_MAX, &data, &size, NULL) < 0)
		return;
	for (text = data; (line = strsep(&text, "\n"));) {
		char *target;

		if (strncmp(line, "L ", 2) != 0)
			continue;
		line += 2;
		target = strsep(&line, " ");
		if (line && strcmp(line, want) == 0) {
			copy_name(ret_canonical, target);
			return;
		}
	}
}

void timezone_see(const char *root, const char *want,
		  struct timezone_seen *ret_seen)
{
	struct timezone_seen s = { .kind = TIMEZONE_ABSENT };
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX];
	struct stat st;
	size_t size = 0;

	data = named_data(root, want, &size);
	s.exists = data != NULL;
	s.zoneinfo = data || (rootpath(root, path, "/" ZONEINFO) == 0 &&
			      stat(path, &st) == 0);
	if (!data && s.zoneinfo)
		find_canonical(root, want, s.canonical);
	see_localtime(root, &s, want, data, size);
	see_file(root, &s, want, data, size);
	*ret_seen = s;
}

int timezone_link(const char *root, const char *zone, struct fault *f)
{
	char path[PATH_MAX], tmp[PATH_MAX], target[PATH_MAX];
	int r;

	r = rootpath(root, path, TIMEZONE_LOCALTIME);
	if (r == 0)
		r = rootpath(root, tmp, "/etc/.localtime.garboard");
	if (r < 0)
		return fault_errno(f, r, TIMEZONE_LOCALTIME, "cannot be set");
	(void)snprintf(target, sizeof(target), "../" ZONEINFO "%s", zone);
	(void)unlink(tmp);	/* left by a crash, or not there */
	if (symlink(target, tmp) < 0)
		return fault_errno(f, -errno, TIMEZONE_LOCALTIME,
				   "cannot be set");
	if (rename(tmp, path) < 0) {
		r = -errno;
		(void)unlink(tmp);
		return fault_errno(f, r, TIMEZONE_LOCALTIME, "cannot be set");
	}
	r = file_sync_parent(path);
	return r < 0 ? fault_errno(f, r, path, "is not on disk") : 0;
}

int timezone_file(const char *root, const char *zone, struct fault *f)
{
	char path[PATH_MAX], text[TIMEZONE_NAME_MAX + 1];
	int n, r;

	r = rootpath(root, path, TIMEZONE_FILE);
	if (r < 0)
		return fault_errno(f, r, TIMEZONE_FILE, "cannot be set");
	n = snprintf(text, sizeof(text), "%s\n", zone);
	return file_write(path, 0644, text, (size_t)n, f);
}
