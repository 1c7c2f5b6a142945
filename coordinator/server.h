/*
 * server.h - the listening side: who connects, and whose it becomes.
 *
 * Owns the listening sockets and the connections that have not said yet
 * what they are. A connection without a certificate goes to enroll.h, one
 * that names a stream to stream.h, every other to fleet.h. Handshakes at
 * once, and the time each may take, are bounded; above the bound the kernel
 * queue holds the rest (TL-06). Garbage is refused and told once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/fault.h"

#define SERVER_PORT 7643
#define SERVER_YOUNG_MAX 512	/* connections that said nothing yet */
#define SERVER_YOUNG_TIME (10 * USEC_PER_SEC)
#define SERVER_YOUNG_FULL (4 * USEC_PER_SEC)	/* while others wait outside */
#define SERVER_LISTEN_MAX 16

struct enroll;
struct fleet;
struct journal;
struct server;
struct streams;
struct tls_ctx;

struct server_parts {		/* borrowed */
	const struct tls_ctx *tls;
	struct fleet *fleet;
	struct enroll *enroll;
	struct streams *streams;
	struct journal *journal;
};

int server_new(sd_event *event, const struct server_parts *parts,
	       struct server **ret_server, struct fault *f);
struct server *server_free(struct server *s);	/* returns NULL */

/* "192.0.2.5:7643", "[::]:7643". */
int server_listen(struct server *s, const char *address, struct fault *f);
/* The port of the first listening socket. */
int server_port(const struct server *s);
