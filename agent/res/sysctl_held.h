/*
 * sysctl_held.h - keys of /proc/sys: read and written, below a root.
 *
 * Holds a descriptor per key, so that a look is one pread() each; a key that
 * went (its module, its link) and came again is opened anew. Every file that
 * is opened is watched by inotify, as a fast path only: most side effects
 * raise no event (FACTS S9), the read is the truth. Remembers what the
 * kernel refused, for a while. Decides nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/clock.h"

struct wake;		/* agent/wake.h */

#define SYSCTL_READ_MAX 4096	/* bytes of one value; longer ones are cut */
/* More keys than these are opened for each look (wildcards, many links). */
#define SYSCTL_HELD_MAX 256
/* A refused value is tried again after this long, or when it changes. */
#define SYSCTL_REFUSAL_USEC (300 * USEC_PER_SEC)

struct sysctl_held {
	char *path;
	int fd;			/* for pread; -1: not open */
	bool read_only;
	bool used;		/* mark and sweep per observation */
	bool beyond;		/* our write was refused: a unit has to do it */
	int refused;		/* negative errno, or 0 */
	usec refused_at;
	char *refused_value, *refused_note;
};

struct sysctl_helds {
	const char *root;
	struct wake *wake;	/* borrowed; may be NULL */
	struct sysctl_held *v;
	size_t n;
};

/* Pointers are good until the next get or sweep. NULL: not there. */
struct sysctl_held *sysctl_held_find(struct sysctl_helds *all,
				     const char *path);
/* Adds it when it is not there; NULL without memory. */
struct sysctl_held *sysctl_held_get(struct sysctl_helds *all,
				    const char *path);
/* Drops all that were not `used` since the last time, and clears the marks. */
void sysctl_held_sweep(struct sysctl_helds *all);
void sysctl_helds_done(struct sysctl_helds *all);

/* Folded (sysctl_fold()). -ENOENT: no such key now; -EISDIR: no key at all. */
int sysctl_held_read(struct sysctl_helds *all, struct sysctl_held *h,
		     char buf[SYSCTL_READ_MAX]);
/* One write: the kernel takes the value as a whole or not at all. */
int sysctl_held_write(const struct sysctl_helds *all, const char *path,
		      const char *value);
/* Is it its network link that is missing? Asked of absent keys only. */
bool sysctl_held_lacks_link(const struct sysctl_helds *all, const char *path);

void sysctl_held_refuse(struct sysctl_held *h, const char *value, int err,
			const char *note);
/* Forgets a refusal that is old. */
void sysctl_held_age(struct sysctl_held *h);
