/*
 * rootpath.h - a path of the node below the root that a resource was given.
 *
 * The root is "" in production and a scratch directory in tests. Links are
 * not followed here; absolute links below a scratch root lead out of it.
 */
#pragma once

#include <limits.h>

/* Formats root + path (which starts with "/"). -ENAMETOOLONG. */
int rootpath(const char *root, char buf[PATH_MAX], const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
