/*
 * defaults.h - what the baseline of a node is when a spec says nothing
 * (REQUIREMENTS, constants). Internal to spec/.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SPEC_DEFAULT_TIMEZONE "Etc/UTC"

struct default_sysctl { const char *key, *value; };

extern const char *const defaults_modules[];		/* NULL at the end */
extern const char *const defaults_longhorn_modules[];
extern const struct default_sysctl defaults_sysctls[];	/* key NULL */
extern const char *const defaults_never_tunnelled[];	/* prefixes */

/* "net.ipv4.ip_forward" and "net/ipv4/ip_forward" are one key. */
bool defaults_same_sysctl(const char *a, const char *b);
