/*
 * streams.h - all streams of the link, and their frames towards the agent.
 *
 * Owns the streams; at most STREAMS_MAX at once. Each STREAM_DIAL is
 * answered by exactly one STREAM_RESULT.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/ip.h"
#include "proto/tls.h"

#define STREAMS_MAX 64

struct streams;

/* The body of one STREAM_RESULT. */
typedef void (*streams_result)(void *userdata, const void *body, size_t size);

int streams_new(sd_event *event, struct tls_ctx *const *tls, usec deadline,
		streams_result result, void *userdata,
		struct streams **ret_streams);
struct streams *streams_free(struct streams *s);
void streams_close(struct streams *s);	/* all of them */

/* Body of STREAM_DIAL. Negative only when it is malformed. */
int streams_dial(struct streams *s, const uint8_t *body, size_t size,
		 const struct ip_endpoint *coordinator);
void streams_refuse(struct streams *s, const uint8_t *body, size_t size,
		    const char *why);
