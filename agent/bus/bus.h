/*
 * bus.h - the agent's one connection to the D-Bus system bus.
 *
 * Owns the connection, attaches it to the event loop, and connects again
 * with back-off when D-Bus is not there yet, goes, or is restarted. A bus
 * that is down is a state, not an error: bus_new() succeeds, calls return
 * -ENOTCONN, and listeners hear when it comes up. Nothing here blocks,
 * except *_read() functions, which are for one-shots and have a timeout.
 *
 * Callbacks run from the event loop only, never from inside the function
 * that asked for them. Any handle may be freed inside any callback. All
 * handles are freed before the bus is.
 *
 * Without an event loop (NULL) only *_read() functions work.
 *
 * Needs in units/: AF_UNIX, and the file /run/dbus/system_bus_socket. No
 * capability: uid 0 suffices for systemd1 and timedate1 (FACTS S5).
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/fault.h"

struct bus;
struct bus_listener;

#define BUS_CALL_USEC (25 * USEC_PER_SEC)	/* a call without a wish */
#define BUS_RETRY_BASE_USEC (100 * USEC_PER_MSEC)
#define BUS_RETRY_CAP_USEC (10 * USEC_PER_SEC)

/*
 * `address` NULL: DBUS_SYSTEM_BUS_ADDRESS, else the usual socket. The event
 * loop is referenced. Fails for lack of memory only.
 */
int bus_new(sd_event *event, const char *address, struct bus **ret_bus,
	    struct fault *f);
struct bus *bus_free(struct bus *b);	/* returns NULL */

bool bus_is_up(const struct bus *b);	/* false for NULL */
sd_bus *bus_connection(struct bus *b);	/* borrowed; NULL while down */
sd_event *bus_event(struct bus *b);	/* borrowed; may be NULL */

/* Called with true when the bus came up and with false when it went. */
typedef void (*bus_listener_fn)(void *userdata, bool up);

int bus_listen(struct bus *b, bus_listener_fn fn, void *userdata,
	       struct bus_listener **ret_listener);
struct bus_listener *bus_unlisten(struct bus_listener *l); /* NULL is fine */

/*
 * The end of one call: `r` is 0 or a negative errno (-ETIMEDOUT after the
 * deadline, -ENOTCONN when the bus went), `text` says why ("" for 0).
 */
typedef void (*bus_done)(void *userdata, int r, const char *text);

/* Errno and text of an answer; 0 and "" when it is no error. */
int bus_reply_error(sd_bus_message *m, const char **ret_text);
