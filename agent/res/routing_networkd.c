#include "agent/res/routing_networkd.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/confdirs.h"
#include "agent/rootpath.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/parse.h"

#define MAIN_FILE "/etc/systemd/networkd.conf"
#define DROPINS "systemd/networkd.conf.d"
#define CGROUP "/sys/fs/cgroup/system.slice/systemd-networkd.service"
#define BLANKS " \t\r"
#define STAT_MAX 4096
#define STAT_STARTED 19		/* words after the name; proc(5) counts 22 */

static const char ours[] =
	"# Kept by garboard-agent(8). Without this systemd-networkd takes away\n"
	"# the rules and routes of others, a closed class's among them, each\n"
	"# time it starts. It reads this only then.\n"
	"[Network]\n"
	"ManageForeignRoutingPolicyRules=no\n"
	"ManageForeignRoutes=no\n";

static const char *const key_names[] = {
	[NETWORKD_RULES] = "ManageForeignRoutingPolicyRules",
	[NETWORKD_ROUTES] = "ManageForeignRoutes",
};
_Static_assert(sizeof(key_names) / sizeof(key_names[0]) == NETWORKD_KEY_MAX,
	       "every key has a name");

const char *routing_networkd_key_name(enum routing_networkd_key key)
{
	return key_names[key];
}

bool routing_networkd_opted_out(const struct routing_networkd *n)
{
	size_t i;

	for (i = 0; i < NETWORKD_KEY_MAX; i++)
		if (!n->keys[i].off)
			return false;
	return true;
}

bool routing_networkd_is_late(const struct routing_networkd *n)
{
	return n->pid && n->started <= n->changed;
}

/* ---- its settings ---- */

struct reader {
	struct routing_networkd *n;
	const char *file;	/* of the line before: sections end with it */
	bool network;		/* inside [Network] */
};

/* As systemd reads a boolean: 1, 0, or negative for what it ignores. */
static int boolean(const char *text)
{
	static const char *const words[][6] = {
		{ "0", "no", "n", "false", "f", "off" },
		{ "1", "yes", "y", "true", "t", "on" },
	};
	size_t v, i;

	for (v = 0; v < 2; v++)
		for (i = 0; i < 6; i++)
			if (strcasecmp(text, words[v][i]) == 0)
				return (int)v;
	return -EINVAL;
}

static char *trimmed(char *text)
{
	size_t n;

	text += strspn(text, BLANKS);
	n = strlen(text);
	while (n > 0 && strchr(BLANKS, text[n - 1]))
		text[--n] = '\0';
	return text;
}

static int read_line(void *userdata, const char *file, unsigned int number,
		     char *line)
{
	struct reader *rd = userdata;
	size_t i;
	char *value;
	int on;

	if (file != rd->file) {
		rd->file = file;
		rd->network = false;
	}
	line = trimmed(line);
	if (*line == '[')
		rd->network = strcmp(line, "[Network]") == 0;
	value = strchr(line, '=');
	if (!rd->network || *line == '#' || *line == ';' || !value)
		return 0;
	*value++ = '\0';
	on = boolean(trimmed(value));
	for (i = 0; i < NETWORKD_KEY_MAX && on >= 0; i++) {
		if (strcmp(trimmed(line), key_names[i]) != 0)
			continue;
		rd->n->keys[i].off = !on;
		(void)snprintf(rd->n->keys[i].where,
			       sizeof(rd->n->keys[i].where), "%s:%u", file,
			       number);
	}
	return 0;
}

static void unreadable(struct routing_networkd *n, int err, const char *path)
{
	n->unreadable = true;
	(void)fault_errno(&n->fault, err, path, "cannot be read");
}

/* The newest change of content, name or owner, of files and directories. */
static void note_change(const char *root, const char *path,
			struct routing_networkd *n)
{
	char full[PATH_MAX];
	struct stat st;
	usec at;

	if (rootpath(root, full, "%s", path) < 0 || stat(full, &st) < 0)
		return;
	at = (usec)st.st_ctim.tv_sec * USEC_PER_SEC +
	     (usec)st.st_ctim.tv_nsec / 1000;
	if (at > n->changed)
		n->changed = at;
}

static void see_main(const char *root, struct reader *rd)
{
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX];
	size_t size;
	int r = rootpath(root, path, MAIN_FILE);

	if (r == 0)
		r = file_read(path, CONFDIRS_FILE_SIZE_MAX, &data, &size,
			      NULL);
	if (r == 0)
		(void)confdirs_text(MAIN_FILE, data, read_line, rd);
	else if (r != -ENOENT)
		unreadable(rd->n, r, MAIN_FILE);
	note_change(root, MAIN_FILE, rd->n);
}

static void see_dropins(const char *root, struct reader *rd)
{
	/* A file that is gone has changed the directory. */
	static const char *const dirs[] = {
		"/etc/" DROPINS, "/run/" DROPINS, "/usr/local/lib/" DROPINS,
		"/usr/lib/" DROPINS,
	};
	CLEANUP(strlist_done) struct strlist files = STRLIST_INIT;
	size_t i;
	int r = confdirs_lines(root, DROPINS, read_line, rd, &rd->n->fault);

	if (r == 0)
		r = confdirs_list(root, DROPINS, &files, &rd->n->fault);
	if (r < 0)
		rd->n->unreadable = true;
	for (i = 0; i < files.n; i++)
		note_change(root, files.v[i], rd->n);
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		note_change(root, dirs[i], rd->n);
}

static bool is_written(const char *root)
{
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX];
	size_t size;

	return rootpath(root, path, ROUTING_NETWORKD_FILE) == 0 &&
	       file_read(path, CONFDIRS_FILE_SIZE_MAX, &data, &size, NULL) ==
		       0 &&
	       strcmp(data, ours) == 0;
}

/* ---- the process ---- */

/* Clock ticks after the boot; the name may hold blanks and brackets. */
static int parse_started(char *stat, uint64_t *ret_ticks)
{
	char *at = strrchr(stat, ')'), *word = NULL;
	size_t i;

	if (!at || !*++at)
		return -EBADMSG;
	at++;
	for (i = 0; i <= STAT_STARTED; i++) {
		word = strsep(&at, " ");
		if (!word)
			return -EBADMSG;
	}
	return parse_u64(word, UINT64_MAX / USEC_PER_SEC, ret_ticks);
}

static int read_started(const char *root, uint32_t pid, usec *ret_started)
{
	char path[PATH_MAX], text[STAT_MAX];
	uint64_t ticks = 0;
	long hz = sysconf(_SC_CLK_TCK);
	int r = rootpath(root, path, "/proc/%u/stat", pid);

	if (r == 0)
		r = file_line(path, text, sizeof(text), NULL);
	if (r == 0)
		r = parse_started(text, &ticks);
	if (r < 0)
		return r;
	*ret_started = clock_realtime() - clock_boottime() +
		       ticks * USEC_PER_SEC / (uint64_t)(hz > 0 ? hz : 100);
	return 0;
}

/* Without D-Bus, which is not there when the agent starts. */
static void see_process(const char *root, struct routing_networkd *n)
{
	char path[PATH_MAX], line[STAT_MAX];
	uint32_t pid;

	if (rootpath(root, path, CGROUP "/cgroup.procs") < 0 ||
	    file_line(path, line, sizeof(line), NULL) < 0)
		return;
	line[strcspn(line, "\n")] = '\0';
	if (parse_u32(line, &pid) == 0 && pid > 0 && pid <= INT_MAX &&
	    read_started(root, pid, &n->started) == 0)
		n->pid = (int)pid;
}

/* ---- */

static bool is_installed(const char *root)
{
	static const char *const paths[] = {
		"/usr/lib/systemd/systemd-networkd",
		"/lib/systemd/systemd-networkd",
	};
	char full[PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (rootpath(root, full, "%s", paths[i]) == 0 &&
		    access(full, F_OK) == 0)
			return true;
	return false;
}

void routing_networkd_see(const char *root, struct routing_networkd *ret)
{
	struct reader rd = { .n = ret };

	*ret = (struct routing_networkd){ .installed = is_installed(root) };
	if (!ret->installed)
		return;
	see_main(root, &rd);
	see_dropins(root, &rd);
	ret->written = is_written(root);
	see_process(root, ret);
}

int routing_networkd_write(const char *root, struct fault *f)
{
	char path[PATH_MAX];
	int r = rootpath(root, path, "/etc/" DROPINS);

	if (r < 0)
		return fault_errno(f, r, ROUTING_NETWORKD_FILE,
				   "cannot be written");
	r = file_mkdirs(path, 0755, f);
	if (r == 0)
		r = rootpath(root, path, ROUTING_NETWORKD_FILE);
	return r < 0 ? r : file_write(path, 0644, ours, strlen(ours), f);
}
