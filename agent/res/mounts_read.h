/*
 * mounts_read.h - what is there of the mounts that are wanted. Only reads.
 *
 * The agent's own /dev holds no devices, so a stable name is looked up in
 * udev's database; mounts are those of PID 1, not of our own namespace.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/disk/note.h"
#include "agent/unitname.h"
#include "common/fault.h"
#include "proto/desired.h"

enum mount_point {
	POINT_FREE,		/* an empty directory, or nothing yet */
	POINT_FILLED,		/* what is in it would be hidden */
	POINT_OTHER,		/* a link, a file, or not readable */
};

enum mount_unit {
	MOUNT_UNIT_ABSENT,
	MOUNT_UNIT_SAME,
	MOUNT_UNIT_DIFFERS,	/* ours, and another text or not enabled */
	MOUNT_UNIT_FOREIGN,
};

struct mount_seen {
	char unit[UNITNAME_MAX];	/* "var-lib-x.mount"; "": no name */
	char name[UNITNAME_MAX];	/* of its notes: "var-lib-x" */
	bool present;			/* the device, with its number */
	unsigned int major, minor;
	bool mounted, right, shared;	/* right: from that device */
	char source[256], fs[32];	/* of what is mounted */
	enum mount_point point;
	enum mount_unit file;
	unsigned int fstab_line;	/* that mounts this path; 0: none */
	bool answered;			/* in this boot, about this device */
	struct disk_seen answer;
	/* filled by the resource */
	bool working;
	char failed[FAULT_TEXT_MAX];
};

struct mounts_seen {
	struct mount_seen v[DESIRED_MOUNTS_MAX];	/* as desired.mounts */
	size_t n;
	struct {
		char unit[UNITNAME_MAX], path[256];
	} left[DESIRED_MOUNTS_MAX];	/* ours, and no longer wanted */
	size_t n_left;
};

void mount_see(const char *root, const char *state_dir,
	       const struct desired_mount *want, struct mount_seen *seen);

/* The unit's text; -E2BIG. */
int mount_unit_text(const struct desired_mount *want, char *buf, size_t size);
/* Writes the unit and its link; only over what is ours. */
int mount_unit_write(const char *root, const struct desired_mount *want,
		     const char *unit, struct fault *f);
/* Removes both, where the file is ours. */
int mount_unit_remove(const char *root, const char *unit, struct fault *f);
