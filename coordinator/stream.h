/*
 * stream.h - Unix sockets here, TCP targets behind a node.
 *
 * Owns listening sockets below STATE/run and the streams accepted on them.
 * Each accepted connection becomes one signed OpenStream order; the link
 * then dials us, names the stream's id, and the two are joined with bounded
 * buffers, so back-pressure is the kernel's. An id works once, for the node
 * it was ordered from. The bytes are never looked at: TLS to the Kubernetes
 * API runs end to end inside.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/fault.h"
#include "proto/order.h"

#define STREAM_MAX 256		/* open at once */
#define STREAM_LISTENERS_MAX 256
#define STREAM_OPEN_TIME (20 * USEC_PER_SEC)
#define STREAM_ID_SIZE 16

struct conn;
struct fleet;
struct fleet_node;
struct journal;
struct streams;
struct stream_listener;

/* `dir` is STATE/run, made here (0700). All others are borrowed. */
int streams_new(sd_event *event, const char *dir, struct fleet *fleet,
		struct journal *journal, struct streams **ret_streams,
		struct fault *f);
struct streams *streams_free(struct streams *s);	/* returns NULL */

/* `server` is for STREAM_API_SERVER, else NULL. */
int stream_listen(struct streams *s, const struct fleet_node *n,
		  enum stream_target target, const struct ip_addr *server,
		  struct stream_listener **ret_listener, struct fault *f);
const char *stream_listener_path(const struct stream_listener *l);
/* Streams of it end as well. */
void stream_listener_free(struct stream_listener *l);

/* Ends every stream through that node (revocation). */
void streams_end_node(struct streams *s, const struct fleet_node *n);

/* Takes over a connection that named a stream. -EACCES: not expected. */
int stream_join(struct streams *s, struct conn *c, const uint8_t *id,
		size_t id_size, struct fault *f);
