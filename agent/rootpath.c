#include "agent/rootpath.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int rootpath(const char *root, char buf[PATH_MAX], const char *fmt, ...)
{
	size_t n = root ? strlen(root) : 0, k;
	va_list ap;
	int m;

	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	(void)memcpy(buf, root ? root : "", n + 1);
	k = strcspn(fmt, "%");
	if (!fmt[k]) {
		if (k >= PATH_MAX - n)
			return -ENAMETOOLONG;
		(void)memcpy(buf + n, fmt, k + 1);
		return 0;
	}
	va_start(ap, fmt);
	m = vsnprintf(buf + n, PATH_MAX - n, fmt, ap);
	va_end(ap);
	return m < 0 || m >= (int)(PATH_MAX - n) ? -ENAMETOOLONG : 0;
}
