/*
 * sysctl_unit.h - asks systemd to set one key that the kernel refuses to us.
 *
 * Some keys need a capability that the agent does without (FACTS S5), or are
 * behind a read-only /proc/sys of its own. garboard-sysctl@KEY.service runs
 * "systemd-sysctl --prefix=/KEY", which reads the files of sysctl.d and
 * writes that key alone: nobody else's settings are applied again. So our
 * own file comes first. A job's "done" proves nothing: read the key.
 */
#pragma once

#include "agent/bus/systemd1.h"

#define SYSCTL_UNIT_USEC (15 * USEC_PER_SEC)

struct sysctl_ask;

/* `r` and `text` as of bus_done, `value` what was to be reached. */
typedef void (*sysctl_ask_done)(void *userdata, const char *path,
				const char *value, int r, const char *text);

struct sysctl_asks {
	struct sysctl_ask *first;
	sysctl_ask_done done;
	void *userdata;
};

/* "garboard-sysctl@kernel-kptr_restrict.service". -ENAMETOOLONG. */
int sysctl_unit_name(const char *path, char *buf, size_t size);

/* Starts it; one that is under way already is success. */
int sysctl_ask(struct sysctl_asks *a, struct bus *bus, const char *path,
	       const char *value, struct fault *f);
/* Is it under way? */
bool sysctl_is_asked(const struct sysctl_asks *a, const char *path);
/* Forgets all that is under way; systemd goes on with it. */
void sysctl_asks_cancel(struct sysctl_asks *a);
