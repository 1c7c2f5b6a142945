#include "proto/desired.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *resource_name(enum resource_id id)
{
	static const char *const names[] = {
		[RESOURCE_KILLSWITCH] = "killswitch",
		[RESOURCE_ROUTING] = "routing",
		[RESOURCE_MODULES] = "modules",
		[RESOURCE_SYSCTL] = "sysctl",
		[RESOURCE_TIMEZONE] = "timezone",
		[RESOURCE_ISCSID] = "iscsid",
		[RESOURCE_SWAP] = "swap",
		[RESOURCE_MOUNTS] = "mounts",
	};
	_Static_assert(sizeof(names) / sizeof(names[0]) == RESOURCE_MAX,
		       "every resource has a name");

	return id < RESOURCE_MAX ? names[id] : NULL;
}

const char *mode_name(enum mode mode)
{
	static const char *const names[] = {
		[MODE_ENFORCE] = "enforce",
		[MODE_OBSERVE] = "observe",
		[MODE_OFF] = "off",
	};
	_Static_assert(sizeof(names) / sizeof(names[0]) == MODE_MAX,
		       "every mode has a name");

	return mode < MODE_MAX ? names[mode] : NULL;
}

struct desired *desired_new(void)
{
	struct desired *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->node = strdup("");
	d->timezone = strdup("Etc/UTC");
	if (!d->node || !d->timezone)
		return desired_free(d);
	return d;
}

static void egress_done(struct desired_egress *e)
{
	size_t i;

	for (i = 0; i < e->n_classes; i++) {
		free(e->classes[i].name);
		free(e->classes[i].pods.v);
		free(e->classes[i].sources.v);
		free(e->classes[i].dns);
	}
	free(e->classes);
	for (i = 0; i < e->n_tunnels; i++) {
		free(e->tunnels[i].name);
		free(e->tunnels[i].endpoints);
	}
	free(e->tunnels);
	free(e->local.v);
	strlist_done(&e->uplinks);
}

static void mount_done(struct desired_mount *m)
{
	free(m->device);
	free(m->path);
	free(m->fs);
}

struct desired *desired_free(struct desired *d)
{
	size_t i;

	if (!d)
		return NULL;
	free(d->node);
	free(d->timezone);
	strlist_done(&d->modules);
	strlist_done(&d->required_features);
	for (i = 0; i < d->n_sysctls; i++) {
		free(d->sysctls[i].key);
		free(d->sysctls[i].value);
	}
	free(d->sysctls);
	for (i = 0; i < d->n_mounts; i++)
		mount_done(&d->mounts[i]);
	free(d->mounts);
	egress_done(&d->egress);
	free(d->cluster.servers);
	free(d);
	return NULL;
}

int desired_add_sysctl(struct desired *d, const char *key, const char *value,
		       bool optional)
{
	struct desired_sysctl item = { .optional = optional };
	struct desired_sysctl *v;

	if (d->n_sysctls >= DESIRED_SYSCTLS_MAX)
		return -E2BIG;
	v = reallocarray(d->sysctls, d->n_sysctls + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	d->sysctls = v;
	item.key = strdup(key);
	item.value = strdup(value);
	if (!item.key || !item.value) {
		free(item.key);
		free(item.value);
		return -ENOMEM;
	}
	v[d->n_sysctls++] = item;
	return 0;
}

int desired_add_mount(struct desired *d, const char *device, const char *path,
		      const char *fs, bool format)
{
	struct desired_mount item = { .format = format }, *v;

	if (d->n_mounts >= DESIRED_MOUNTS_MAX)
		return -E2BIG;
	v = reallocarray(d->mounts, d->n_mounts + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	d->mounts = v;
	item.device = strdup(device);
	item.path = strdup(path);
	item.fs = strdup(fs);
	if (!item.device || !item.path || !item.fs) {
		mount_done(&item);
		return -ENOMEM;
	}
	v[d->n_mounts++] = item;
	return 0;
}

int prefix_list_add(struct prefix_list *list, const struct ip_prefix *p)
{
	struct ip_prefix *v;

	if (list->n >= DESIRED_PREFIXES_MAX)
		return -E2BIG;
	v = reallocarray(list->v, list->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	list->v = v;
	v[list->n++] = *p;
	return 0;
}

bool prefix_list_contains(const struct prefix_list *list,
			  const struct ip_addr *a)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (ip_prefix_contains(&list->v[i], a))
			return true;
	return false;
}
