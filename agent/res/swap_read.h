/*
 * swap_read.h - what swap there is, now and at the next boot. Only reads,
 * but for the two functions that make and remove a mask.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/unitname.h"
#include "common/fault.h"

#define SWAP_ACTIVE_MAX 64
#define SWAP_UNITS_MAX 32
#define SWAP_PATH_MAX 512

struct swap_active {
	char path[SWAP_PATH_MAX];	/* as /proc/swaps, unescaped */
	char unit[UNITNAME_MAX];	/* "": the path makes no name */
	uint64_t size, used;		/* kB */
};

enum swap_mask {
	SWAP_UNMASKED,		/* no file of that name in /etc */
	SWAP_MASKED,		/* a link to /dev/null */
	SWAP_OTHER,		/* somebody's own unit file */
	SWAP_MASK_UNKNOWN,	/* could not be read */
};

/* A unit that would bring swap at the next boot, or swap.target itself. */
struct swap_unit {
	char name[UNITNAME_MAX];
	char by[UNITNAME_MAX];	/* what starts it, beside swap.target; or "" */
	enum swap_mask mask;
	bool ours;		/* recorded as masked by us */
	bool present;		/* it exists, or is always to be masked */
};

struct swap_seen {
	struct swap_active v[SWAP_ACTIVE_MAX];
	size_t n;
	int err;			/* /proc/swaps could not be read */
	struct swap_unit units[SWAP_UNITS_MAX];
	size_t n_units;
	uint64_t available;		/* MemAvailable, kB; 0: not known */
	unsigned int fstab_entries;
	unsigned int fstab_line;	/* of the first */
	char fstab_first[SWAP_PATH_MAX];
	/* filled by the resource */
	char failed[FAULT_TEXT_MAX];	/* why the last attempt did nothing */
	bool turning_off, reloading;
};

#define SWAP_TARGET "swap.target"

/* All but what only the resource knows. */
void swap_see(const char *root, struct swap_seen *seen);
struct swap_unit *swap_seen_unit(struct swap_seen *seen, const char *name);
/* Adds it when it is not there; NULL when there is no room. */
struct swap_unit *swap_seen_add(struct swap_seen *seen, const char *root,
				const char *name, const char *by);

/* The link, made in one step and flushed. -EEXIST: there is something. */
int swap_mask_make(const char *root, const char *unit, struct fault *f);
/* Only a link to /dev/null is removed; an absent one is success. */
int swap_mask_remove(const char *root, const char *unit, struct fault *f);
