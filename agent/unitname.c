#include "agent/unitname.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_dots(const char *part, size_t n)
{
	return (n == 1 && part[0] == '.') ||
	       (n == 2 && part[0] == '.' && part[1] == '.');
}

/* Appends one part of the path, escaped; NULL when it does not fit. */
static char *put_part(char *w, const char *end, const char *part, size_t n,
		      bool first)
{
	size_t i;

	for (i = 0; i < n; i++) {
		unsigned char c = (unsigned char)part[i];
		bool plain = isalnum(c) || strchr(":_", c) ||
			     (c == '.' && !(first && i == 0));

		if (end - w < 5)
			return NULL;
		if (plain)
			*w++ = (char)c;
		else
			w += snprintf(w, 5, "\\x%02x", c);
	}
	return w;
}

int unitname_from_path(const char *path, const char *suffix,
		       char ret_name[UNITNAME_MAX])
{
	char name[UNITNAME_MAX], *w = name;
	const char *end = name + sizeof(name);
	size_t n;

	if (*path != '/')
		return -EINVAL;
	for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
		n = strcspn(path, "/");
		if (is_dots(path, n))
			return -EINVAL;
		if (w != name)
			*w++ = '-';
		w = put_part(w, end, path, n, w == name);
		if (!w)
			return -ENAMETOOLONG;
		path += n;
	}
	if (w == name)		/* the root itself */
		*w++ = '-';
	n = strlen(suffix);
	if ((size_t)(end - w) <= n)
		return -ENAMETOOLONG;
	(void)memcpy(w, suffix, n + 1);
	(void)memcpy(ret_name, name, (size_t)(w - name) + n + 1);
	return 0;
}
