/*
 * control.h - the socket over which verbs use a running coordinator.
 *
 * STATE/control.sock, 0600, and only our own uid (or root) by SO_PEERCRED.
 * Frames of proto/frame.h (FRAME_CONTROL) with one JSON object each:
 *
 *   request  {"id": N, "op": NAME, ...}
 *   reply    {"id": N, ...}  or  {"id": N, "error": -ERRNO,
 *             "object": TEXT, "text": TEXT}
 *
 * Replies may come in another order. Everything a client asked for
 * (orders, listeners, waiting) ends with its connection. Byte strings are
 * base64 (json_bytes.h), ids hexadecimal. The table of requests is
 * control_ops.c; orders are encoded by the client, so that this side does
 * not know what they mean. Secrets pass here as values: never log a body.
 */
#pragma once

#include <stddef.h>
#include <systemd/sd-event.h>

#include "common/fault.h"

#define CONTROL_SOCKET "control.sock"
#define CONTROL_CLIENTS_MAX 64
#define CONTROL_REQUESTS_MAX 2048	/* unanswered, per client */

struct control_server;
struct enroll;
struct fleet;
struct journal;
struct signer;
struct store;
struct streams;

struct control_parts {		/* borrowed */
	const char *cluster;
	struct store *store;
	struct signer *signer;
	struct fleet *fleet;
	struct enroll *enroll;
	struct streams *streams;
	struct journal *journal;
};

/* Replaces a socket left over: the caller holds the lock of STATE. */
int control_server_new(sd_event *event, const char *path,
		       const struct control_parts *parts,
		       struct control_server **ret_server, struct fault *f);
struct control_server *control_server_free(struct control_server *s);
size_t control_server_clients(const struct control_server *s);
/* Called when the last client went. */
void control_server_on_idle(struct control_server *s,
			    void (*fn)(void *userdata), void *userdata);
