/*
 * envelope.h - the signed outer wrapper of every order and every report.
 *
 * A fixed binary header (big endian) over exact payload bytes and an
 * Ed25519 signature over "garboard envelope v1" NUL header payload. All of
 * it is checked before any payload byte is parsed (DESIGN section 7):
 *
 *   0 magic "GBE1"   4 version 1   5 direction   6 reserved 0 (2 bytes)
 *   8 cluster id 16  24 node id 16 (zero before enrolment)
 *  40 key id 8       48 epoch 8    56 sequence 8
 *  64 binding 16     80 payload length 4   84 payload, then signature 64
 *
 * down: binding is the nonce of the session's Hello (of an enrolment: the
 * first 16 bytes of SHA-256 of the EnrolRequest payload); (epoch, sequence)
 * strictly increases. up: binding is the boot id, epoch the agent's start
 * counter, sequence a counter.
 *
 * Nothing here keeps state, reads a clock or logs. Verification returns a
 * reason, so that a caller can log each of them once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"
#include "proto/keys.h"

#define ENVELOPE_ID_SIZE 16
#define ENVELOPE_BINDING_SIZE 16
#define ENVELOPE_HEADER_SIZE 84
#define ENVELOPE_PAYLOAD_MAX (1024 * 1024)
#define ENVELOPE_MAX \
	(ENVELOPE_HEADER_SIZE + ENVELOPE_PAYLOAD_MAX + KEY_SIGNATURE_SIZE)

enum envelope_direction {
	ENVELOPE_DOWN = 1,
	ENVELOPE_UP = 2,
};

struct envelope_header {
	enum envelope_direction direction;
	uint8_t cluster_id[ENVELOPE_ID_SIZE];
	uint8_t node_id[ENVELOPE_ID_SIZE];
	uint8_t key_id[KEY_ID_SIZE];
	uint64_t epoch;
	uint64_t sequence;
	uint8_t binding[ENVELOPE_BINDING_SIZE];
	uint32_t length;		/* of the payload, bytes */
};

struct envelope {
	struct envelope_header header;
	const uint8_t *payload;		/* inside the caller's buffer */
};

enum envelope_reason {
	ENVELOPE_OK = 0,
	ENVELOPE_TRUNCATED,		/* shorter than it says, or trailing */
	ENVELOPE_OVERSIZED,
	ENVELOPE_BAD_MAGIC,
	ENVELOPE_WRONG_VERSION,
	ENVELOPE_WRONG_DIRECTION,
	ENVELOPE_FOREIGN_CLUSTER,
	ENVELOPE_OTHER_NODE,
	ENVELOPE_UNKNOWN_KEY,
	ENVELOPE_BAD_SIGNATURE,
	ENVELOPE_REASON_MAX,
};

/* What a receiver accepts; all members are required. */
struct envelope_expect {
	enum envelope_direction direction;
	uint8_t cluster_id[ENVELOPE_ID_SIZE];
	uint8_t node_id[ENVELOPE_ID_SIZE];	/* zero: before enrolment */
	uint8_t public_key[KEY_PUBLIC_SIZE];	/* Ed25519 */
};

/* "envelope of another cluster" and the like; never NULL. */
const char *envelope_reason_text(enum envelope_reason reason);

/*
 * Builds and signs. `header`'s key_id and length are filled in here. The
 * result is one heap block. -E2BIG above ENVELOPE_PAYLOAD_MAX.
 */
int envelope_sign(const struct envelope_header *header,
		  const struct key *key, const void *payload, size_t size,
		  uint8_t **ret_bytes, size_t *ret_size, struct fault *f);

/*
 * Pure: reads the frame of it (magic, version, sizes) without any trust.
 * For routing by node id, and for an EnrolRequest, whose key is inside: the
 * coordinator then decodes that payload, and must call envelope_verify()
 * with the key found there (proof of possession) before using it.
 */
enum envelope_reason envelope_peek(const void *bytes, size_t size,
				   struct envelope *ret_envelope);

/* Everything of envelope_peek(), then ids, key id and signature. */
enum envelope_reason envelope_verify(const void *bytes, size_t size,
				     const struct envelope_expect *expect,
				     struct envelope *ret_envelope);

enum envelope_order {
	ENVELOPE_NEXT,			/* newer than the last: may be acted on */
	ENVELOPE_REPEATED,		/* exactly the last: answer, do not redo */
	ENVELOPE_STALE,			/* older: refuse */
};

/* Pure rule of (epoch, sequence); the epoch weighs more. */
enum envelope_order envelope_compare(uint64_t last_epoch,
				     uint64_t last_sequence, uint64_t epoch,
				     uint64_t sequence);
