/*
 * lock.h - one running agent per state directory, and how to nudge it.
 *
 * The lock is a flock(2) on STATE/lock, so it dies with its process and is
 * never stale (MN-02). The file holds the pid of the holder, which is only
 * believed while the lock is held.
 */
#pragma once

#include <stdbool.h>

#include "common/fault.h"

/* -EBUSY: another agent runs. The lock is held while the fd is open. */
int lock_take(const char *state_dir, int *ret_fd, struct fault *f);

bool lock_is_taken(const char *state_dir);

/* Makes the running agent look again (SIGHUP); -ESRCH: none runs. */
int lock_nudge(const char *state_dir);
