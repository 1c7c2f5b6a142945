#include "agent/forwarding.h"

#include <string.h>

#include "agent/res/sysctl_files.h"

static bool is_forwarding(const char *path)
{
	static const char *const tails[] = { "forwarding", "rp_filter",
					     "accept_ra", "disable_ipv6" };
	const char *tail = strrchr(path, '/');
	size_t i;

	if (strcmp(path, "net/ipv4/ip_forward") == 0)
		return true;
	if (strncmp(path, "net/ipv4/conf/", 14) != 0 &&
	    strncmp(path, "net/ipv6/conf/", 14) != 0)
		return false;
	for (i = 0; i < sizeof(tails) / sizeof(tails[0]); i++)
		if (strcmp(tail + 1, tails[i]) == 0)
			return true;
	return false;
}

static const char *value_of(const struct desired *d, const char *path)
{
	char other[SYSCTL_KEY_MAX];
	size_t i;

	for (i = 0; i < d->n_sysctls; i++)
		if (sysctl_key_path(d->sysctls[i].key, other,
				    sizeof(other)) == 0 &&
		    sysctl_same_knob(path, other))
			return d->sysctls[i].value;
	return NULL;
}

/* Some key of `a` that `b` has not, or with another value. */
static bool one_way(const struct desired *a, const struct desired *b)
{
	char path[SYSCTL_KEY_MAX];
	size_t i;

	for (i = 0; i < a->n_sysctls; i++) {
		const char *v;

		if (sysctl_key_path(a->sysctls[i].key, path,
				    sizeof(path)) < 0 ||
		    !is_forwarding(path))
			continue;
		v = b ? value_of(b, path) : NULL;
		if (!v || !sysctl_value_equal(v, a->sysctls[i].value))
			return true;
	}
	return false;
}

bool forwarding_changes(const struct desired *now, const struct desired *next)
{
	if (next->modes[RESOURCE_SYSCTL] != MODE_ENFORCE)
		return false;
	if (now && now->modes[RESOURCE_SYSCTL] != MODE_ENFORCE)
		now = NULL;
	return one_way(next, now) || (now && one_way(now, next));
}
