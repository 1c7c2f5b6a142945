/*
 * control_spawn.h - a coordinator for the lifetime of this process.
 *
 * A socket pair ties both: the child says it is ready by one byte and ends
 * when our side closes, however we end.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "common/fault.h"

struct spawned {
	pid_t pid;
	int fd;		/* -1: none */
};

#define SPAWNED_NONE ((struct spawned){ 0, -1 })

/*
 * Runs this program again as `serve --for-parent` and waits until it
 * listens. `interrupt_fd` readable: -EINTR. The child tells its own cause
 * of failure on standard error.
 */
int control_spawn(const char *state, const char *const *listen,
		  size_t n_listen, int interrupt_fd,
		  struct spawned *ret_child, struct fault *f);
void control_spawned_done(struct spawned *child);
