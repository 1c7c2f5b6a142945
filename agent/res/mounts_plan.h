/*
 * mounts_plan.h - what is to be done about each mount. Pure. Two items per
 * mount: its path (mounted now) and "PATH (persisted)" (our unit), and
 * "UNIT (persisted)" for each unit of ours that nobody wants any more.
 */
#pragma once

#include "agent/res/mounts_read.h"
#include "agent/res/resource.h"

#define MOUNTS_PERSISTED " (persisted)"

enum mount_step {	/* what comes next to get it mounted */
	MOUNT_NOTHING,
	MOUNT_LOOK,		/* ask what is on the device */
	MOUNT_MAKE,		/* it is blank: make the filesystem */
	MOUNT_MOUNT,		/* the unit, and start it */
};

enum mount_step mount_step(const struct desired_mount *want,
			   const struct mount_seen *seen);

int mounts_plan(const struct desired *want, const void *seen,
		struct item_list *items, struct change_list *changes,
		struct fault *f);
