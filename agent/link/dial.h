/*
 * dial.h - one attempt to reach an address: TCP, and TLS where asked, within
 * a deadline. Nothing blocks.
 *
 * The callback comes exactly once, from the loop, never from dial_new(). It
 * may free the dial, and must do so some time. On success it is given the
 * connection, which is then its own.
 */
#pragma once

#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/ip.h"
#include "proto/tls.h"

struct dial;

/*
 * r 0: `conn` (with TLS) or `fd` (without) belongs to the callee. Negative:
 * `f` tells why; -ETIMEDOUT is the deadline.
 */
typedef void (*dial_done)(void *userdata, int r, int fd, struct tls_conn *conn,
			  const struct fault *f);

/* `tls` NULL: plain TCP. It is used in this call only. */
int dial_new(sd_event *event, const struct ip_addr *addr, uint16_t port,
	     const struct tls_ctx *tls, usec deadline, dial_done done,
	     void *userdata, struct dial **ret_dial, struct fault *f);
struct dial *dial_free(struct dial *d);	/* cancels; returns NULL */
