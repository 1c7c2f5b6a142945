/*
 * stream.h - one stream: a local TCP connection joined to a TLS connection
 * of its own towards the coordinator.
 *
 * The target is dialled first, so that "refused" is known at once; then the
 * coordinator, where the first frame is STREAM_HELLO with the ticket. After
 * it bytes are pumped both ways through two bounded buffers: a side that
 * does not read stops the other (the kernel's back-pressure), and each
 * direction ends on its own (half-close). What is inside is not looked at.
 */
#pragma once

#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/ip.h"
#include "proto/tls.h"

#define STREAM_ID_SIZE 16

struct stream;

struct stream_target {
	uint8_t id[STREAM_ID_SIZE];
	struct ip_endpoint local;	/* to join to */
	struct ip_endpoint coordinator;	/* of the session */
};

struct stream_owner {
	/* Once: 0 when joined, else why not (then `closed` follows). */
	void (*result)(void *userdata, const uint8_t id[STREAM_ID_SIZE], int r,
		       const char *text);
	/* Last; the stream may be freed in it. */
	void (*closed)(void *userdata, struct stream *s);
	void *userdata;
};

/* `tls` is where the owner keeps its current context; borrowed. */
int stream_new(sd_event *event, const struct stream_target *target,
	       struct tls_ctx *const *tls, usec deadline,
	       const struct stream_owner *owner, struct stream **ret_stream,
	       struct fault *f);
struct stream *stream_free(struct stream *s);
