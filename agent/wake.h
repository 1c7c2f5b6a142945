/*
 * wake.h - "something may have changed" from inotify and netlink groups.
 *
 * Owns its descriptors and event sources. Every event of any of them calls
 * the callback once per burst; the events themselves are drained and
 * thrown away, since they only say "look again" (H33). Lost events (queue
 * overflow, ENOBUFS) count as events.
 */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "common/fault.h"

struct wake;

typedef void (*wake_fn)(void *userdata);

/* `event` is borrowed and outlives the value. */
int wake_new(sd_event *event, wake_fn fn, void *userdata,
	     struct wake **ret_wake, struct fault *f);
struct wake *wake_free(struct wake *w);		/* returns NULL */

/*
 * Watches a file or directory with an inotify mask. Adding a path again is
 * harmless. An absent path is success: its directory is for the caller to
 * watch. Accepts NULL for `w` and does nothing then.
 */
int wake_path(struct wake *w, const char *path, uint32_t mask,
	      struct fault *f);

/*
 * The same for each of `paths` (NULL at the end), which are paths of the
 * node, below `root`. All are tried; the first error is returned.
 */
int wake_paths(struct wake *w, const char *root, const char *const *paths,
	       uint32_t mask, struct fault *f);

/* What a file replaced by rename, or written in place, shows. */
#define WAKE_DIR_MASK                                                         \
	(IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE)

/*
 * Listens to multicast groups (a bit mask) of a netlink protocol. `only`
 * (static, or NULL for all) is a text that a message must start with after
 * its first '@': the device path of a uevent, as in "add@/module/dummy".
 */
int wake_netlink(struct wake *w, int protocol, uint32_t groups,
		 const char *only, struct fault *f);
