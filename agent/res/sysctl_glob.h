/*
 * sysctl_glob.h - which keys the spec wants, wildcards included.
 *
 * "net.ipv4.conf.*.rp_filter" stands for that key of every link that there
 * is; a key of its own, or one that is excluded, is in no wildcard
 * (sysctl.d(5)). Where several wildcards match, the last one counts.
 */
#pragma once

#include <stdint.h>

#include "common/strlist.h"
#include "proto/desired.h"

#define SYSCTL_GLOB_MAX 4096		/* keys of one wildcard */
#define SYSCTL_NOT_WANTED SIZE_MAX

/* Which of the first `n` keys of the spec, in any spelling, is `path`. */
size_t sysctl_want_key(const struct desired *want, size_t n,
		       const char *path);
/* Which wildcard decides about `path`, if no key of its own does. */
size_t sysctl_want_glob(const struct desired *want, const char *path);
/* Has it a value by either? */
bool sysctl_wants(const struct desired *want, const char *path);

/* Does the pattern, itself canonical, stand for that key? */
bool sysctl_glob_matches(const char *pattern, const char *path);
/* The keys below `root` that there are now. -E2BIG, -ENOMEM. */
int sysctl_glob_expand(const char *root, const char *pattern,
		       struct strlist *ret_paths);
