#include "agent/res/sysctl_unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/res/sysctl_files.h"
#include "agent/unitname.h"
#include "common/cleanup.h"

struct sysctl_ask {
	struct sysctl_asks *owner;
	struct systemd1_job *job;
	struct sysctl_ask *next;
	char *path, *value;
};

int sysctl_unit_name(const char *path, char *buf, size_t size)
{
	char full[SYSCTL_KEY_MAX + 1], name[UNITNAME_MAX];
	int n, r;

	n = snprintf(full, sizeof(full), "/%s", path);
	if (n >= (int)sizeof(full))
		return -ENAMETOOLONG;
	r = unitname_from_path(full, ".service", name);
	if (r < 0)
		return r;
	n = snprintf(buf, size, "garboard-sysctl@%s", name);
	return n >= (int)size ? -ENAMETOOLONG : 0;
}

static void ask_free(struct sysctl_ask *k)
{
	systemd1_cancel(k->job);
	free(k->path);
	free(k->value);
	free(k);
}

/* Out of the list before it is told: what is told may ask again. */
static void on_job(void *userdata, int r, const char *text)
{
	struct sysctl_ask *k = userdata, **at;
	struct sysctl_asks *a = k->owner;

	k->job = NULL;
	for (at = &a->first; *at != k; at = &(*at)->next)
		continue;
	*at = k->next;
	a->done(a->userdata, k->path, k->value, r, text);
	ask_free(k);
}

bool sysctl_is_asked(const struct sysctl_asks *a, const char *path)
{
	const struct sysctl_ask *k;

	for (k = a->first; k; k = k->next)
		if (strcmp(k->path, path) == 0)
			return true;
	return false;
}

int sysctl_ask(struct sysctl_asks *a, struct bus *bus, const char *path,
	       const char *value, struct fault *f)
{
	char unit[SYSTEMD1_UNIT_NAME_MAX];
	struct sysctl_ask *k;
	int r;

	if (sysctl_is_asked(a, path))
		return 0;
	r = sysctl_unit_name(path, unit, sizeof(unit));
	if (r < 0)
		return fault_errno(f, r, path, "is too long for a unit");
	k = calloc(1, sizeof(*k));
	if (!k)
		return fault_set(f, -ENOMEM, path, "out of memory");
	*k = (struct sysctl_ask){ .owner = a, .path = strdup(path),
				  .value = strdup(value) };
	if (!k->path || !k->value)
		r = fault_set(f, -ENOMEM, path, "out of memory");
	else
		r = systemd1_call(bus, SYSTEMD1_START, unit, SYSCTL_UNIT_USEC,
				  on_job, k, &k->job, f);
	if (r < 0) {
		ask_free(k);
		return r;
	}
	k->next = a->first;
	a->first = k;
	return 0;
}

void sysctl_asks_cancel(struct sysctl_asks *a)
{
	struct sysctl_ask *k;

	while ((k = a->first)) {
		a->first = k->next;
		ask_free(k);
	}
}
