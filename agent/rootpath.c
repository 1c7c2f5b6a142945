#include "agent/rootpath.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int rootpath(const char *root, char buf[PATH_MAX], const char *fmt, ...)
{
	va_list ap;
	int n, m;

	n = snprintf(buf, PATH_MAX, "%s", root ? root : "");
	if (n < 0 || n >= PATH_MAX)
		return -ENAMETOOLONG;
	va_start(ap, fmt);
	m = vsnprintf(buf + n, (size_t)(PATH_MAX - n), fmt, ap);
	va_end(ap);
	return m < 0 || m >= PATH_MAX - n ? -ENAMETOOLONG : 0;
}
