#include "agent/kmod.h"

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
#define CMDLINE_MAX	 65536
#define DENIALS_MAX	 4096

bool kmod_name_is_valid(const char *name)
{
	size_t n = strlen(name), i;

	if (n == 0 || n >= KMOD_NAME_MAX || name[0] == '-')
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

bool kmod_name_equal(const char *a, const char *b)
{
	return equal_n(a, b, strlen(b));
}

void kmod_name_fold(const char *name, char *buf)
{
	size_t i;

	for (i = 0; i < KMOD_NAME_MAX - 1 && name[i]; i++)
		buf[i] = fold(name[i]);
	buf[i] = '\0';
}

/* Without sysfs: "name size used by state address". */
static enum kmod_live live_by_proc(const char *root, const char *name)
{
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX], *text, *line;
	size_t size;

	if (rootpath(root, path, "/proc/modules") < 0 ||
	    file_read(path, PROC_MODULES_MAX, &data, &size, NULL) < 0)
		return KMOD_NOT_LOADED;
	for (text = data; (line = strsep(&text, "\n"));)
		if (equal_n(name, line, strcspn(line, " ")))
			return strstr(line, " Loading ") ? KMOD_COMING
							 : KMOD_LOADED;
	return KMOD_NOT_LOADED;
}

bool kmod_sysfs_is_there(const char *root)
{
	char path[PATH_MAX];
	struct stat st;

	return rootpath(root, path, "/sys/module") == 0 && stat(path, &st) == 0;
}

enum kmod_live kmod_live(const char *root, bool sysfs, const char *name)
{
	char path[PATH_MAX], folded[KMOD_NAME_MAX], state[32], *end;
	struct stat st;
	int r;

	kmod_name_fold(name, folded);
	if (rootpath(root, path, "/sys/module/") < 0)
		return KMOD_NOT_LOADED;
	end = put_text(path + strlen(path), path + sizeof(path), folded);
	(void)put_text(end, path + sizeof(path), "/initstate");
	r = file_line(path, state, sizeof(state), NULL);
	if (r == 0)
		return strcmp(state, "live") == 0     ? KMOD_LOADED
		       : strcmp(state, "coming") == 0 ? KMOD_COMING
						      : KMOD_NOT_LOADED;
	/* Built-in code has a directory (if parameters), but no state. */
	*end = '\0';
	if (stat(path, &st) == 0)
		return KMOD_BUILT_IN;
	if (!sysfs)
		return live_by_proc(root, name);
	return KMOD_NOT_LOADED;
}

int kmod_release(const char *root, char *buf, size_t size)
{
	struct utsname u;
	char path[PATH_MAX];

	if (rootpath(root, path, "/proc/sys/kernel/osrelease") == 0 &&
	    file_line(path, buf, size, NULL) == 0 && *buf && !strchr(buf, '/'))
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
		r = file_read(path, KMOD_INDEX_MAX, &data, &size, f);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (text = data; !*ret_found && (line = strsep(&text, "\n"));)
		*ret_found = line_names(line, name);
	return 0;
}

/* "alias nf_conntrack_ipv4 nf_conntrack"; patterns are not for names. */
static int index_alias(const char *root, const char *release, const char *name,
		       char *ret_real, struct fault *f)
{
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX], *text, *line;
	size_t size;
	int r;

	r = rootpath(root, path, "/lib/modules/%s/modules.alias", release);
	if (r == 0)
		r = file_read(path, KMOD_INDEX_MAX, &data, &size, f);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (text = data; (line = strsep(&text, "\n"));) {
		char *word = strsep(&line, " "), *alias, *real;

		alias = strsep(&line, " ");
		real = strsep(&line, " ");
		if (!real || strcmp(word, "alias") != 0 ||
		    !kmod_name_equal(name, alias) || !kmod_name_is_valid(real))
			continue;
		kmod_name_fold(real, ret_real);
		return 0;
	}
	return 0;
}

struct alias {
	const char *name;
	char *real;
};

static int alias_line(void *userdata, const char *file, unsigned int number,
		      char *line)
{
	struct alias *a = userdata;
	char *word, *name, *real;

	(void)file;
	(void)number;
	line += strspn(line, " \t");
	word = strsep(&line, " \t");
	if (!line || strcmp(word, "alias") != 0)
		return 0;
	line += strspn(line, " \t");
	name = strsep(&line, " \t");
	if (!line || !kmod_name_equal(a->name, name))
		return 0;
	line += strspn(line, " \t");
	real = strsep(&line, " \t\r");
	if (kmod_name_is_valid(real) && strcmp(real, "off") != 0)
		kmod_name_fold(real, a->real);
	return 0;
}

int kmod_index_find(const char *root, const char *release, const char *name,
		    enum kmod_index *ret_where, char *ret_real, struct fault *f)
{
	char path[PATH_MAX], real[KMOD_NAME_MAX] = "";
	struct stat st;
	bool found;
	int r;

	r = rootpath(root, path, "/lib/modules/%s/modules.dep", release);
	if (r < 0)
		return r;
	*ret_real = '\0';
	if (stat(path, &st) < 0) {
		/* Hidden (ProtectKernelModules=) is not gone (MO-03). */
		*ret_where = errno == ENOENT ? KMOD_INDEX_UNKNOWN
					     : KMOD_INDEX_UNREADABLE;
		return 0;
	}
	r = index_has(root, release, "modules.builtin", name, &found, f);
	if (r == 0 && found) {
		*ret_where = KMOD_INDEX_BUILT_IN;
		return 0;
	}
	if (r == 0)
		r = index_has(root, release, "modules.dep", name, &found, f);
	if (r == 0 && !found)
		r = confdirs_lines(root, "modprobe.d", alias_line,
				   &(struct alias){ name, real }, f);
	if (r == 0 && !found && !*real)
		r = index_alias(root, release, name, real, f);
	if (r < 0)
		return r;
	*ret_where = found || *real ? KMOD_INDEX_FILE : KMOD_INDEX_ABSENT;
	memcpy(ret_real, real, sizeof(real));
	return 0;
}

static int denials_add(struct kmod_denials *d, const char *name,
		       const char *cause)
{
	struct kmod_denial *v;

	if (d->n >= DENIALS_MAX)
		return -E2BIG;
	v = reallocarray(d->v, d->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	d->v = v;
	v[d->n] = (struct kmod_denial){strdup(name), strdup(cause)};
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

static int deny_cmdline(const char *root, struct kmod_denials *d,
			struct fault *f)
{
	static const char *const keys[] = {
		"module_blacklist=",
		"modprobe.blacklist=",
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
		(void)snprintf(cause, sizeof(cause),
			       "kernel command line "
			       "(%.*s)",
			       (int)strlen(keys[i]) - 1, keys[i]);
		word += strlen(keys[i]);
		while (r == 0 && (name = strsep(&word, ",")))
			r = denials_add(d, name, cause);
	}
	return r;
}

int kmod_denials_read(const char *root, struct kmod_denials *ret_denials,
		      struct fault *f)
{
	struct kmod_denials d = {NULL, 0};
	int r;

	r = deny_cmdline(root, &d, f);
	if (r == 0)
		r = confdirs_lines(root, "modprobe.d", deny_line, &d, f);
	if (r < 0) {
		kmod_denials_done(&d);
		return r;
	}
	*ret_denials = d;
	return 0;
}

const char *kmod_denials_find(const struct kmod_denials *d, const char *name)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		if (kmod_name_equal(d->v[i].name, name))
			return d->v[i].cause;
	return NULL;
}

void kmod_denials_done(struct kmod_denials *d)
{
	size_t i;

	for (i = 0; i < d->n; i++) {
		free(d->v[i].name);
		free(d->v[i].cause);
	}
	free(d->v);
	*d = (struct kmod_denials){NULL, 0};
}

bool kmod_loading_is_disabled(const char *root)
{
	char path[PATH_MAX], value[16];

	return rootpath(root, path, "/proc/sys/kernel/modules_disabled") == 0 &&
	       file_line(path, value, sizeof(value), NULL) == 0 &&
	       strcmp(value, "1") == 0;
}

bool kmod_loading_is_impossible(const char *root)
{
	char path[PATH_MAX];
	struct stat st;

	return rootpath(root, path, "/proc/modules") == 0 &&
	       stat(path, &st) < 0 && errno == ENOENT;
}

bool kmod_obstacle_text(const struct kmod_obstacle *o, char *buf, size_t size)
{
	if (o->impossible)
		(void)snprintf(buf, size,
			       "kernel %s cannot load modules, and "
			       "does not tell whether this one is built in",
			       o->release);
	else if (o->disabled)
		(void)snprintf(buf, size,
			       "kernel.modules_disabled is 1: "
			       "nothing can be loaded before a reboot");
	else if (o->denied)
		(void)snprintf(buf, size,
			       "deny-listed by %s; remove that "
			       "entry or take the module out of the spec",
			       o->denied);
	else if (o->where == KMOD_INDEX_UNKNOWN)
		(void)snprintf(buf, size,
			       "needs a reboot into the installed "
			       "kernel: /lib/modules/%s is not there",
			       o->release);
	else if (o->where == KMOD_INDEX_ABSENT)
		(void)snprintf(buf, size,
			       "kernel %s has no such module; "
			       "correct its name or install the package that "
			       "brings it",
			       o->release);
	else
		return false;
	return true;
}

bool kmod_is_there(const char *root, const char *name, char *buf, size_t size)
{
	CLEANUP(kmod_denials_done) struct kmod_denials d = {NULL, 0};
	char release[128] = "", real[KMOD_NAME_MAX];
	struct kmod_obstacle o = {.release = release};
	enum kmod_live live;

	*buf = '\0';
	live = kmod_live(root, kmod_sysfs_is_there(root), name);
	if (live == KMOD_LOADED || live == KMOD_BUILT_IN)
		return true;
	if (live == KMOD_COMING ||
	    kmod_release(root, release, sizeof(release)) < 0 ||
	    kmod_index_find(root, release, name, &o.where, real, NULL) < 0)
		return false;
	if (o.where == KMOD_INDEX_BUILT_IN)
		return true;
	o.disabled = kmod_loading_is_disabled(root);
	o.impossible = kmod_loading_is_impossible(root);
	(void)kmod_denials_read(root, &d, NULL);
	o.denied = kmod_denials_find(&d, name);
	(void)kmod_obstacle_text(&o, buf, size);
	return false;
}
