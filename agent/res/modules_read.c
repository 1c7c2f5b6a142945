#include "agent/res/modules_read.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "agent/confdirs.h"
#include "agent/rootpath.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/put.h"

#define PROC_MODULES_MAX (1024 * 1024)
#define CMDLINE_MAX 65536
#define DENIALS_MAX 4096

bool module_name_is_valid(const char *name)
{
	size_t n = strlen(name), i;

	if (n == 0 || n >= MODULE_NAME_MAX || name[0] == '-')
		return false;
	for (i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_' &&
		    name[i] != '-')
			return false;
	return true;
}

static char fold(char c)
{
	return c == '-' ? '_' : c;
}

static bool equal_n(const char *name, const char *other, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!name[i] || fold(name[i]) != fold(other[i]))
			return false;
	return name[n] == '\0';
}

bool module_name_equal(const char *a, const char *b)
{
	return equal_n(a, b, strlen(b));
}

void module_name_fold(const char *name, char *buf)
{
	size_t i;

	for (i = 0; i < MODULE_NAME_MAX - 1 && name[i]; i++)
		buf[i] = fold(name[i]);
	buf[i] = '\0';
}

/* Without sysfs: "name size used by state address". */
static enum module_live live_by_proc(const char *root, const char *name)
{
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX], *text, *line;
	size_t size;

	if (rootpath(root, path, "/proc/modules") < 0 ||
	    file_read(path, PROC_MODULES_MAX, &data, &size, NULL) < 0)
		return MODULE_NOT_LOADED;
	for (text = data; (line = strsep(&text, "\n"));)
		if (equal_n(name, line, strcspn(line, " ")))
			return strstr(line, " Loading ") ? MODULE_COMING :
							   MODULE_LOADED;
	return MODULE_NOT_LOADED;
}

bool module_sysfs_is_there(const char *root)
{
	char path[PATH_MAX];
	struct stat st;

	return rootpath(root, path, "/sys/module") == 0 &&
	       stat(path, &st) == 0;
}

enum module_live module_live(const char *root, bool sysfs, const char *name)
{
	char path[PATH_MAX], folded[MODULE_NAME_MAX], state[32], *end;
	struct stat st;
	int r;

	module_name_fold(name, folded);
	if (rootpath(root, path, "/sys/module/") < 0)
		return MODULE_NOT_LOADED;
	end = put_text(path + strlen(path), path + sizeof(path), folded);
	(void)put_text(end, path + sizeof(path), "/initstate");
	r = file_line(path, state, sizeof(state), NULL);
	if (r == 0)
		return strcmp(state, "live") == 0 ? MODULE_LOADED :
		       strcmp(state, "coming") == 0 ? MODULE_COMING :
						      MODULE_NOT_LOADED;
	/* Built-in code has a directory (if parameters), but no state. */
	*end = '\0';
	if (stat(path, &st) == 0)
		return MODULE_BUILT_IN;
	if (!sysfs)
		return live_by_proc(root, name);
	return MODULE_NOT_LOADED;
}

int module_release(const char *root, char *buf, size_t size)
{
	struct utsname u;
	char path[PATH_MAX];

	if (rootpath(root, path, "/proc/sys/kernel/osrelease") == 0 &&
	    file_line(path, buf, size, NULL) == 0 && *buf &&
	    !strchr(buf, '/'))
		return 0;
	if (uname(&u) < 0)
		return -errno;
	(void)snprintf(buf, size, "%s", u.release);
	return 0;
}

/* "kernel/net/bridge/br_netfilter.ko.xz: ..." names br_netfilter. */
static bool line_names(const char *line, const char *name)
{
	size_t end = strcspn(line, ":");
	const char *base = memrchr(line, '/', end), *dot;

	base = base ? base + 1 : line;
	dot = memmem(base, (size_t)(line + end - base), ".ko", 3);
	return dot && equal_n(name, base, (size_t)(dot - base));
}

static int index_has(const char *root, const char *release, const char *file,
		     const char *name, bool *ret_found, struct fault *f)
{
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX], *text, *line;
	size_t size;
	int r;

	*ret_found = false;
	r = rootpath(root, path, "/lib/modules/%s/%s", release, file);
	if (r == 0)
		r = file_read(path, MODULE_INDEX_MAX, &data, &size, f);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (text = data; !*ret_found && (line = strsep(&text, "\n"));)
		*ret_found = line_names(line, name);
	return 0;
}

/* "alias nf_conntrack_ipv4 nf_conntrack"; patterns are not for names. */
static int index_alias(const char *root, const char *release,
		       const char *name, char *ret_real, struct fault *f)
{
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX], *text, *line;
	size_t size;
	int r;

	r = rootpath(root, path, "/lib/modules/%s/modules.alias", release);
	if (r == 0)
		r = file_read(path, MODULE_INDEX_MAX, &data, &size, f);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (text = data; (line = strsep(&text, "\n"));) {
		char *word = strsep(&line, " "), *alias, *real;

		alias = strsep(&line, " ");
		real = strsep(&line, " ");
		if (!real || strcmp(word, "alias") != 0 ||
		    !module_name_equal(name, alias) ||
		    !module_name_is_valid(real))
			continue;
		module_name_fold(real, ret_real);
		return 0;
	}
	return 0;
}

int module_index_find(const char *root, const char *release,
		      const char *name, enum module_index *ret_where,
		      char *ret_real, struct fault *f)
{
	char path[PATH_MAX], real[MODULE_NAME_MAX] = "";
	struct stat st;
	bool found;
	int r;

	r = rootpath(root, path, "/lib/modules/%s/modules.dep", release);
	if (r < 0)
		return r;
	*ret_real = '\0';
	if (stat(path, &st) < 0) {
		/* Hidden (ProtectKernelModules=) is not gone (MO-03). */
		*ret_where = errno == ENOENT ? MODULE_INDEX_UNKNOWN :
					       MODULE_INDEX_UNREADABLE;
		return 0;
	}
	r = index_has(root, release, "modules.builtin", name, &found, f);
	if (r == 0 && found) {
		*ret_where = MODULE_INDEX_BUILT_IN;
		return 0;
	}
	if (r == 0)
		r = index_has(root, release, "modules.dep", name, &found, f);
	if (r == 0 && !found)
		r = index_alias(root, release, name, real, f);
	if (r < 0)
		return r;
	*ret_where = found || *real ? MODULE_INDEX_FILE : MODULE_INDEX_ABSENT;
	memcpy(ret_real, real, sizeof(real));
	return 0;
}

static int denials_add(struct module_denials *d, const char *name,
		       const char *cause)
{
	struct module_denial *v;

	if (d->n >= DENIALS_MAX)
		return -E2BIG;
	v = reallocarray(d->v, d->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	d->v = v;
	v[d->n] = (struct module_denial){ strdup(name), strdup(cause) };
	d->n++;
	return v[d->n - 1].name && v[d->n - 1].cause ? 0 : -ENOMEM;
}

/* "install NAME /bin/false" is the other way to forbid a module. */
static bool forbids(const char *command)
{
	size_t n;
	const char *base;

	command += strspn(command, " \t");
	n = strcspn(command, " \t;|&#");
	base = memrchr(command, '/', n);
	if (base) {
		n -= (size_t)(base + 1 - command);
		command = base + 1;
	}
	return (n == 5 && memcmp(command, "false", 5) == 0) ||
	       (n == 4 && memcmp(command, "true", 4) == 0) ||
	       (n == 1 && *command == ':');
}

/* "alias NAME off": the name stands for nothing. */
static bool is_off(const char *target)
{
	return strncmp(target, "off", 3) == 0 &&
	       strchr(" \t\r", target[3]) != NULL;
}

static int deny_line(void *userdata, const char *file, unsigned int number,
		     char *line)
{
	char cause[PATH_MAX + 64], *word, *name;

	line += strspn(line, " \t");
	word = strsep(&line, " \t");
	if (!line || *word == '#')
		return 0;
	line += strspn(line, " \t");
	name = strsep(&line, " \t\r");
	if (line)
		line += strspn(line, " \t");
	if (strcmp(word, "blacklist") != 0 &&
	    (strcmp(word, "install") != 0 || !line || !forbids(line)) &&
	    (strcmp(word, "alias") != 0 || !line || !is_off(line)))
		return 0;
	(void)snprintf(cause, sizeof(cause), "%s:%u (%s)", file, number, word);
	return denials_add(userdata, name, cause);
}

static int deny_cmdline(const char *root, struct module_denials *d,
			struct fault *f)
{
	static const char *const keys[] = {
		"module_blacklist=", "modprobe.blacklist=",
	};
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX], cause[128], *text, *word, *name;
	size_t size, i;
	int r;

	r = rootpath(root, path, "/proc/cmdline");
	if (r == 0)
		r = file_read(path, CMDLINE_MAX, &data, &size, f);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (text = data; (word = strsep(&text, " \n"));) {
		for (i = 0; i < 2; i++)
			if (strncmp(word, keys[i], strlen(keys[i])) == 0)
				break;
		if (i == 2)
			continue;
		(void)snprintf(cause, sizeof(cause), "kernel command line "
			       "(%.*s)", (int)strlen(keys[i]) - 1, keys[i]);
		word += strlen(keys[i]);
		while (r == 0 && (name = strsep(&word, ",")))
			r = denials_add(d, name, cause);
	}
	return r;
}

int module_denials_read(const char *root, struct module_denials *ret_denials,
			struct fault *f)
{
	struct module_denials d = { NULL, 0 };
	int r;

	r = deny_cmdline(root, &d, f);
	if (r == 0)
		r = confdirs_lines(root, "modprobe.d", deny_line, &d, f);
	if (r < 0) {
		module_denials_done(&d);
		return r;
	}
	*ret_denials = d;
	return 0;
}

const char *module_denials_find(const struct module_denials *d,
				const char *name)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		if (module_name_equal(d->v[i].name, name))
			return d->v[i].cause;
	return NULL;
}

void module_denials_done(struct module_denials *d)
{
	size_t i;

	for (i = 0; i < d->n; i++) {
		free(d->v[i].name);
		free(d->v[i].cause);
	}
	free(d->v);
	*d = (struct module_denials){ NULL, 0 };
}

bool module_loading_is_disabled(const char *root)
{
	char path[PATH_MAX], value[16];

	return rootpath(root, path, "/proc/sys/kernel/modules_disabled") == 0 &&
	       file_line(path, value, sizeof(value), NULL) == 0 &&
	       strcmp(value, "1") == 0;
}

bool module_loading_is_impossible(const char *root)
{
	char path[PATH_MAX];
	struct stat st;

	return rootpath(root, path, "/proc/modules") == 0 &&
	       stat(path, &st) < 0 && errno == ENOENT;
}

static int own_line(void *userdata, const char *file, unsigned int number,
		    char *line)
{
	size_t n;

	(void)file;
	(void)number;
	line += strspn(line, " \t");
	n = strcspn(line, " \t\r");
	line[n] = '\0';
	if (!*line || *line == '#' || *line == ';')
		return 0;
	return strlist_add(userdata, line);
}

int module_own_read(const char *root, struct strlist *ret_names,
		    struct fault *f)
{
	_cleanup_free_ char *data = NULL;
	struct strlist names = STRLIST_INIT;
	char path[PATH_MAX];
	size_t size;
	int r;

	r = rootpath(root, path, "%s", MODULES_OWN_FILE);
	if (r == 0)
		r = file_read(path, CONFDIRS_FILE_SIZE_MAX, &data, &size, f);
	if (r == 0)
		r = confdirs_text(MODULES_OWN_FILE, data, own_line, &names);
	if (r < 0 && r != -ENOENT) {
		strlist_done(&names);
		return r;
	}
	*ret_names = names;
	return 0;
}
