#include "agent/res/iscsid_read.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "agent/confdirs.h"
#include "agent/rootpath.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/parse.h"

#define NAME_FILE_MAX 16384
#define BLANKS " \t\r\n"

static bool all_hex(const char *p, size_t n)
{
	size_t i;

	if (strlen(p) != n)
		return false;
	for (i = 0; i < n; i++)
		if (!isxdigit((unsigned char)p[i]))
			return false;
	return true;
}

/* "iqn.2024-05.org.example" and then, at will, ":" and the rest. */
static bool iqn_is_valid(const char *name)
{
	static const char shape[] = "iqn.dddd-dd.";
	size_t i;

	for (i = 0; shape[i]; i++)
		if (shape[i] == 'd' ? !isdigit((unsigned char)name[i]) :
				      shape[i] != name[i])
			return false;
	if (!isalnum((unsigned char)name[i]))
		return false;
	for (; name[i]; i++)
		if (!isalnum((unsigned char)name[i]) &&
		    !strchr(".-:_", name[i]))
			return false;
	return true;
}

bool iscsid_name_is_valid(const char *name)
{
	if (strlen(name) >= ISCSID_NAME_MAX)
		return false;
	if (strncmp(name, "iqn.", 4) == 0)
		return iqn_is_valid(name);
	if (strncmp(name, "eui.", 4) == 0)
		return all_hex(name + 4, 16);
	return strncmp(name, "naa.", 4) == 0 &&
	       (all_hex(name + 4, 16) || all_hex(name + 4, 32));
}

static bool is_placeholder(const char *name)
{
	static const char *const words[] = {
		"GENERATE", "PLACEHOLDER", "REPLACE", "CHANGE-ME", "CHANGEME",
		"TODO", "FIXME", "XXXX", /* placeholder words, all of them */
		"TBD", "FILL-ME", "SET-ME", "BLOCKED",
		"<",
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasestr(name, words[i]))
			return true;
	return *name == '\0';
}

/* The last InitiatorName counts, as for iscsid itself. */
enum iscsid_name iscsid_name_parse(char *text, char *ret_name)
{
	static const char key[] = "InitiatorName=";
	const char *found = "";
	bool generate = false;
	char *line;

	while ((line = strsep(&text, "\n"))) {
		size_t n;

		line += strspn(line, BLANKS);
		if (strncmp(line, "GenerateName=yes", 16) == 0)
			generate = true;
		if (strncmp(line, key, sizeof(key) - 1) != 0)
			continue;
		line += sizeof(key) - 1;
		line += strspn(line, BLANKS);
		for (n = strlen(line); n > 0 && strchr(BLANKS, line[n - 1]);)
			line[--n] = '\0';
		found = line;
	}
	(void)snprintf(ret_name, ISCSID_NAME_MAX, "%s", found);
	if (generate || is_placeholder(found))
		return ISCSID_NAME_PLACEHOLDER;
	return iscsid_name_is_valid(found) ? ISCSID_NAME_VALID :
					     ISCSID_NAME_INVALID;
}

enum iscsid_name iscsid_name_read(const char *root, char *ret_name,
				  int *ret_err)
{
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX];
	size_t size;
	int r;

	*ret_name = '\0';
	*ret_err = 0;
	r = rootpath(root, path, ISCSID_NAME_FILE);
	if (r == 0)
		r = file_read(path, NAME_FILE_MAX, &data, &size, NULL);
	if (r == -ENOENT)
		return ISCSID_NAME_ABSENT;
	if (r < 0) {
		*ret_err = r;
		return ISCSID_NAME_UNREADABLE;
	}
	return iscsid_name_parse(data, ret_name);
}

int iscsid_name_write(const char *root, struct fault *f)
{
	char path[PATH_MAX], text[256], hex[17];
	uint8_t bytes[8];
	int n, r;

	r = rootpath(root, path, "/etc/iscsi");
	if (r < 0)
		return fault_errno(f, r, ISCSID_NAME_FILE, "cannot be made");
	r = file_mkdirs(path, 0755, f);
	if (r < 0)
		return r;
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return fault_errno(f, -EIO, ISCSID_NAME_FILE,
				   "no random bytes");
	format_hex(bytes, sizeof(bytes), hex);
	n = snprintf(text, sizeof(text),
		     "# Made by garboard-agent for this node alone. If two "
		     "nodes share it,\n# targets drop each other's sessions."
		     "\nInitiatorName=" ISCSID_NAME_PREFIX "%s\n", hex);
	r = rootpath(root, path, ISCSID_NAME_FILE);
	if (r < 0)
		return fault_errno(f, r, ISCSID_NAME_FILE, "cannot be made");
	return file_write(path, 0600, text, (size_t)n, f);
}

static bool exists(const char *root, const char *path)
{
	char full[PATH_MAX];
	struct stat st;

	return rootpath(root, full, "%s", path) == 0 && stat(full, &st) == 0;
}

bool iscsid_is_installed(const char *root)
{
	return exists(root, "/usr/sbin/iscsid") || exists(root, "/sbin/iscsid");
}

int iscsid_sessions(const char *root)
{
	_cleanup_closedir_ DIR *d = NULL;
	char path[PATH_MAX];
	struct dirent *de;
	int n = 0;

	if (rootpath(root, path, "/sys/class/iscsi_session") < 0)
		return -ENAMETOOLONG;
	d = opendir(path);
	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while ((de = readdir(d)))
		n += de->d_name[0] != '.';
	return n;
}

/* A devnode pattern for sd devices inside a blacklist section. */
static int multipath_line(void *userdata, const char *file,
			  unsigned int number, char *line)
{
	int *state = userdata;	/* 0: outside, 1: in blacklist, 2: found */

	(void)file;
	(void)number;
	line += strspn(line, BLANKS);
	if (*line == '#' || *line == '!' || *state == 2)
		return 0;
	if (strncmp(line, "blacklist", 9) == 0 &&
	    strchr(" \t{", line[9]))
		*state = 1;
	if (*state == 1 && strstr(line, "devnode") && strstr(line, "^sd"))
		*state = 2;
	else if (*state == 1 && strchr(line, '}'))
		*state = 0;
	return 0;
}

bool iscsid_multipath_is_tamed(const char *root)
{
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX];
	int state = 0;
	size_t size;

	if (rootpath(root, path, "/etc/multipath.conf") == 0 &&
	    file_read(path, CONFDIRS_FILE_SIZE_MAX, &data, &size, NULL) == 0)
		(void)confdirs_text("/etc/multipath.conf", data,
				    multipath_line, &state);
	if (state != 2) {
		state = 0;
		(void)confdirs_lines(root, "multipath/conf.d", multipath_line,
				     &state, NULL);
	}
	return state == 2;
}
