/*
 * conn.h - one TLS connection from a node, framed or raw, on the loop.
 *
 * Owns the descriptor, TLS and the frame buffers; knows nothing of what the
 * frames mean. Edge-triggered and drained within a bound per turn (FACTS
 * S10: level-triggered bursts are quadratic). While idle it owns no buffer.
 *
 * Its owner hears of everything through conn_ops. conn_close() may be
 * called from inside any callback; after it, or after `closed`, the
 * connection must not be used.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/fault.h"
#include "proto/pki.h"

#define CONN_PEER_MAX 80
/* Of a frame without a certificate: a request and its envelope are smaller. */
#define CONN_STRANGER_MAX (40u * 1024)

struct conn;
struct tls_conn;
struct tls_ctx;

struct conn_ops {
	/* The handshake is done; the peer's identity is known. */
	int (*up)(void *owner, struct conn *c, struct fault *f);
	/* One frame. Negative closes the connection, with that fault. */
	int (*frame)(void *owner, struct conn *c, uint8_t type,
		     const uint8_t *body, size_t size, struct fault *f);
	/* Framed: all queued bytes are out. Raw: read and write until
	 * -EAGAIN; negative closes. */
	int (*ready)(void *owner, struct conn *c, struct fault *f);
	/* Last word, exactly once. */
	void (*closed)(void *owner, struct conn *c, const struct fault *why);
};

/* Takes `fd` on success. `peer` is the address, for people. */
int conn_new(sd_event *event, const struct tls_ctx *ctx, int fd,
	     const char *peer, const struct conn_ops *ops, void *owner,
	     struct conn **ret_conn, struct fault *f);
/* Hands the connection to another owner; nothing is called. */
void conn_set_owner(struct conn *c, const struct conn_ops *ops, void *owner);
void conn_close(struct conn *c, int err, const char *reason);

/* Queues and sends what the socket takes. -ENOBUFS: the peer does not read. */
int conn_send(struct conn *c, uint8_t type, const void *body, size_t size);
size_t conn_queued(const struct conn *c);	/* bytes not yet out */

/* Gives one frame to the owner, as if it had just arrived. */
int conn_frame(struct conn *c, uint8_t type, const uint8_t *body, size_t size,
	       struct fault *f);

/* From the next turn on `ready` owns the byte stream. */
void conn_set_raw(struct conn *c);
/* Another turn even without an event from the socket. */
void conn_kick(struct conn *c);
struct tls_conn *conn_tls(struct conn *c);

const char *conn_peer(const struct conn *c);
const struct pki_identity *conn_identity(const struct conn *c);
