/*
 * frame.h - length-prefixed frames over a non-blocking byte stream.
 *
 * On the wire: u32 length of the body (big endian), u8 type, body. Each
 * channel has a closed table of types with a limit, checked when the header
 * is complete and before anything is allocated; the buffer then grows with
 * what really arrived. An idle reader and an empty writer own no memory.
 *
 * Reader and writer are pure but for the two *_fd() functions. Both are
 * embedded in their owner; *_done() accepts a zeroed one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"

#define FRAME_HEADER_SIZE 5

enum frame_channel {
	FRAME_TLS,		/* link <-> coordinator */
	FRAME_LINK,		/* agent <-> link, /run/garboard/link.sock */
	FRAME_CONTROL,		/* garboard verbs <-> serve, control.sock */
	FRAME_CHANNEL_MAX,
};

enum frame_type {
	/* FRAME_TLS */
	FRAME_ENVELOPE = 1,	/* either way */
	FRAME_STATEMENT = 2,	/* down */
	FRAME_STREAM_HELLO = 3,	/* first of a stream: stream_id 16 */
	FRAME_PING = 4,		/* body is returned by the PONG, <= 8 bytes */
	FRAME_PONG = 5,

	/* FRAME_LINK */
	FRAME_SESSION_UP = 16,	/* link->agent: address text */
	FRAME_SESSION_DOWN = 17,	/* link->agent: reason text */
	FRAME_LINK_ENVELOPE = 18,	/* either way */
	FRAME_LINK_STATEMENT = 19,	/* link->agent */
	FRAME_STREAM_DIAL = 20,	/* agent->link: stream_id 16, u16 port, text */
	FRAME_STREAM_RESULT = 21,	/* link->agent: stream_id, i32 errno, text */
	FRAME_CSR = 22,		/* link->agent: DER (first, and for renewal) */
	FRAME_CERTIFICATE = 23,	/* agent->link: frame_pack_list() of DER */
	FRAME_NEED_ENROL = 24,	/* link->agent: empty; CSR follows */
	FRAME_ADDRESSES = 25,	/* agent->link: "addr:port\n" repeated */

	/* FRAME_CONTROL: JSON bodies */
	FRAME_REQUEST = 32,
	FRAME_EVENT = 33,
	FRAME_REPLY = 34,
};

/* Limit of the body in bytes; -1 when the channel has no such type. */
long frame_limit(enum frame_channel channel, uint8_t type);

/*
 * One whole frame; `body` is valid during the call only. Returns 0, or a
 * negative errno which stops the feed and is returned by it; a handler
 * that destroyed the reader must return negative.
 */
typedef int (*frame_handler)(void *userdata, uint8_t type,
			     const uint8_t *body, size_t size);

struct frame_reader {
	enum frame_channel channel;
	uint8_t header[FRAME_HEADER_SIZE];
	size_t have_header;
	uint8_t *body;
	size_t size, have, room;
	size_t most;	/* of a body; 0: only the limit of its type */
};

void frame_reader_init(struct frame_reader *r, enum frame_channel channel);
void frame_reader_done(struct frame_reader *r);

/*
 * Takes all of `data`. -EPROTO unknown type, -E2BIG over the limit,
 * -ENOMEM, or what the handler returned. After an error the stream is lost:
 * close it.
 */
int frame_reader_feed(struct frame_reader *r, const void *data, size_t size,
		      frame_handler handler, void *userdata, struct fault *f);

/*
 * Reads a non-blocking fd until it would block (bounded per call, so other
 * sources get their turn). 0: come back when readable. -EPIPE: the peer
 * closed between frames; -ECONNRESET: inside one.
 */
int frame_reader_fd(struct frame_reader *r, int fd, frame_handler handler,
		    void *userdata, struct fault *f);

#define FRAME_WRITER_MAX (4UL * 1024 * 1024)

struct frame_writer {
	enum frame_channel channel;
	uint8_t *buf;
	size_t start, end, room;
};

void frame_writer_init(struct frame_writer *w, enum frame_channel channel);
void frame_writer_done(struct frame_writer *w);

/*
 * Queues a copy. -E2BIG over the type's limit, -EPROTO unknown type,
 * -ENOBUFS when FRAME_WRITER_MAX would be exceeded (the peer does not read).
 */
int frame_writer_put(struct frame_writer *w, uint8_t type, const void *body,
		     size_t size);
bool frame_writer_empty(const struct frame_writer *w);
/* The bytes to send now, and how many of them went out. */
size_t frame_writer_peek(const struct frame_writer *w, const uint8_t **ret_data);
void frame_writer_consumed(struct frame_writer *w, size_t n);

/* To a socket. 0: all is out. 1: wait for writable. Negative errno. */
int frame_writer_fd(struct frame_writer *w, int fd);

/*
 * Lists of byte strings inside one body, each u32-length prefixed.
 * frame_unpack_next() moves *at; 1: an item, 0: the end, -EBADMSG.
 */
int frame_pack_list(const void *const *items, const size_t *sizes, size_t n,
		    uint8_t **ret_bytes, size_t *ret_size);
int frame_unpack_next(const uint8_t *bytes, size_t size, size_t *at,
		      const uint8_t **ret_item, size_t *ret_item_size);
