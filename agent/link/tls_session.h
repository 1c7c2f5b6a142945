/*
 * tls_session.h - frames over one established TLS connection.
 *
 * Owns the connection. Answers PING, sends its own, and calls the peer dead
 * when nothing came for three intervals. Reading can be held back while the
 * other side of the link does not keep up. No policy: what frames mean is
 * the owner's.
 *
 * The owner's callbacks come from the loop. `frame` must not free the
 * session (it returns negative to end it); `down` comes once, last, and may.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/fault.h"
#include "proto/tls.h"

struct tls_session;

struct tls_session_owner {
	int (*frame)(void *userdata, uint8_t type, const uint8_t *body,
		     size_t size);
	/* The queue towards the peer has room again. */
	void (*drained)(void *userdata);
	void (*down)(void *userdata, int r, const struct fault *f);
	void *userdata;
};

/* Takes `conn` on success. */
int tls_session_new(sd_event *event, struct tls_conn *conn, usec ping,
		    const struct tls_session_owner *owner,
		    struct tls_session **ret_session);
struct tls_session *tls_session_free(struct tls_session *s);

/* Queues; -ENOBUFS when the peer does not read, -E2BIG. */
int tls_session_send(struct tls_session *s, uint8_t type, const void *body,
		     size_t size);
/* Bytes not yet sent: the owner stops feeding when it is much. */
size_t tls_session_queued(const struct tls_session *s);
void tls_session_hold(struct tls_session *s, bool hold);
