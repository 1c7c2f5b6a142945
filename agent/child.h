/*
 * child.h - bulk work in a process of its own: hashing a binary, reading a
 * journal. The loop never waits for it.
 *
 * The child is a fork of the agent that runs one function with one pipe as
 * its output and then ends; it never execs, and inherits nothing it could
 * disturb: no frame is sent and no socket of the parent is used in it.
 * `done` is called exactly once unless the child is freed before, which
 * kills it. Output above the limit or a missed deadline is a failure.
 */
#pragma once

#include <stddef.h>
#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/fault.h"

#define CHILD_OUTPUT_MAX 65536

struct child;

/* Writes its answer to `out`; 0 or a negative errno with a fault. */
typedef int (*child_work)(void *arg, int out, struct fault *f);

/*
 * `r`: 0 or negative errno (-ETIMEDOUT, or that of the work, whose fault
 * text arrives as `output`). `output` has a NUL beyond `size`. The child is
 * freed after the call; the callee must not free it.
 */
typedef void (*child_done)(void *userdata, int r, const char *output,
			   size_t size);

int child_start(sd_event *event, child_work work, void *arg, usec deadline,
		child_done done, void *userdata, struct child **ret_child,
		struct fault *f);
/* Kills it and forgets it; returns NULL, accepts NULL. */
struct child *child_free(struct child *c);

/* For use inside the work: writes all of it or fails. */
int child_write(int out, const void *data, size_t size);
