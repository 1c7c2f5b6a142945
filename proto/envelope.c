#include "proto/envelope.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

#define CONTEXT "garboard envelope v1"
#define VERSION 1

enum offset {
	AT_VERSION = 4,
	AT_DIRECTION = 5,
	AT_RESERVED = 6,
	AT_CLUSTER = 8,
	AT_NODE = 24,
	AT_KEY = 40,
	AT_EPOCH = 48,
	AT_SEQUENCE = 56,
	AT_BINDING = 64,
	AT_LENGTH = 80,
};
static_assert(AT_LENGTH + 4 == ENVELOPE_HEADER_SIZE, "the header's layout");

static const uint8_t magic[4] = { 'G', 'B', 'E', '1' };

const char *envelope_reason_text(enum envelope_reason reason)
{
	static const char *const texts[] = {
		[ENVELOPE_OK] = "valid",
		[ENVELOPE_TRUNCATED] = "its size is not what it says",
		[ENVELOPE_OVERSIZED] = "it is larger than allowed",
		[ENVELOPE_BAD_MAGIC] = "it is not an envelope",
		[ENVELOPE_WRONG_VERSION] = "its version is not known here",
		[ENVELOPE_WRONG_DIRECTION] = "it goes the other way",
		[ENVELOPE_FOREIGN_CLUSTER] = "it is of another cluster",
		[ENVELOPE_OTHER_NODE] = "it is for another node",
		[ENVELOPE_UNKNOWN_KEY] = "its key is not the valid one",
		[ENVELOPE_BAD_SIGNATURE] = "its signature is wrong",
	};
	static_assert(sizeof(texts) / sizeof(texts[0]) == ENVELOPE_REASON_MAX,
		      "every reason has a text");

	return reason < ENVELOPE_REASON_MAX ? texts[reason] : "unknown reason";
}

static void put64(uint8_t *at, uint64_t v)
{
	v = htobe64(v);
	memcpy(at, &v, sizeof(v));
}

static uint64_t get64(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return be64toh(v);
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return be32toh(v);
}

static void put_header(uint8_t *at, const struct envelope_header *h,
		       const uint8_t id[KEY_ID_SIZE], uint32_t length)
{
	memset(at, 0, ENVELOPE_HEADER_SIZE);
	memcpy(at, magic, sizeof(magic));
	at[AT_VERSION] = VERSION;
	at[AT_DIRECTION] = (uint8_t)h->direction;
	memcpy(at + AT_CLUSTER, h->cluster_id, ENVELOPE_ID_SIZE);
	memcpy(at + AT_NODE, h->node_id, ENVELOPE_ID_SIZE);
	memcpy(at + AT_KEY, id, KEY_ID_SIZE);
	put64(at + AT_EPOCH, h->epoch);
	put64(at + AT_SEQUENCE, h->sequence);
	memcpy(at + AT_BINDING, h->binding, ENVELOPE_BINDING_SIZE);
	length = htobe32(length);
	memcpy(at + AT_LENGTH, &length, sizeof(length));
}

int envelope_sign(const struct envelope_header *header,
		  const struct key *key, const void *payload, size_t size,
		  uint8_t **ret_bytes, size_t *ret_size, struct fault *f)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	uint8_t public_key[KEY_PUBLIC_SIZE], id[KEY_ID_SIZE];
	size_t body = ENVELOPE_HEADER_SIZE + size;
	int r;

	if (size > ENVELOPE_PAYLOAD_MAX)
		return fault_set(f, -E2BIG, "envelope",
				 "payload of %zu bytes is too large", size);
	bytes = malloc(body + KEY_SIGNATURE_SIZE);
	if (!bytes)
		return -ENOMEM;
	key_public(key, public_key);
	key_id(public_key, id);
	put_header(bytes, header, id, (uint32_t)size);
	if (size)
		memcpy(bytes + ENVELOPE_HEADER_SIZE, payload, size);
	r = key_sign(key, CONTEXT, bytes, body, bytes + body, f);
	if (r < 0)
		return r;
	*ret_bytes = take_ptr(bytes);
	*ret_size = body + KEY_SIGNATURE_SIZE;
	return 0;
}

enum envelope_reason envelope_peek(const void *bytes, size_t size,
				   struct envelope *ret_envelope)
{
	const uint8_t *at = bytes;
	struct envelope e = { 0 };

	if (size > ENVELOPE_MAX)
		return ENVELOPE_OVERSIZED;
	if (size < sizeof(magic))
		return ENVELOPE_TRUNCATED;
	if (memcmp(at, magic, sizeof(magic)) != 0)
		return ENVELOPE_BAD_MAGIC;
	if (size < ENVELOPE_HEADER_SIZE + KEY_SIGNATURE_SIZE)
		return ENVELOPE_TRUNCATED;
	/* The reserved bytes are for a later version to use. */
	if (at[AT_VERSION] != VERSION || at[AT_RESERVED] || at[AT_RESERVED + 1])
		return ENVELOPE_WRONG_VERSION;
	if (at[AT_DIRECTION] != ENVELOPE_DOWN &&
	    at[AT_DIRECTION] != ENVELOPE_UP)
		return ENVELOPE_WRONG_DIRECTION;
	e.header.direction = (enum envelope_direction)at[AT_DIRECTION];
	e.header.length = get32(at + AT_LENGTH);
	if (e.header.length > ENVELOPE_PAYLOAD_MAX)
		return ENVELOPE_OVERSIZED;
	if (e.header.length !=
	    size - ENVELOPE_HEADER_SIZE - KEY_SIGNATURE_SIZE)
		return ENVELOPE_TRUNCATED;
	memcpy(e.header.cluster_id, at + AT_CLUSTER, ENVELOPE_ID_SIZE);
	memcpy(e.header.node_id, at + AT_NODE, ENVELOPE_ID_SIZE);
	memcpy(e.header.key_id, at + AT_KEY, KEY_ID_SIZE);
	e.header.epoch = get64(at + AT_EPOCH);
	e.header.sequence = get64(at + AT_SEQUENCE);
	memcpy(e.header.binding, at + AT_BINDING, ENVELOPE_BINDING_SIZE);
	e.payload = at + ENVELOPE_HEADER_SIZE;
	*ret_envelope = e;
	return ENVELOPE_OK;
}

enum envelope_reason envelope_verify(const void *bytes, size_t size,
				     const struct envelope_expect *expect,
				     struct envelope *ret_envelope)
{
	enum envelope_reason why;
	uint8_t id[KEY_ID_SIZE];
	struct envelope e;
	size_t body;

	why = envelope_peek(bytes, size, &e);
	if (why != ENVELOPE_OK)
		return why;
	if (e.header.direction != expect->direction)
		return ENVELOPE_WRONG_DIRECTION;
	if (memcmp(e.header.cluster_id, expect->cluster_id,
		   ENVELOPE_ID_SIZE) != 0)
		return ENVELOPE_FOREIGN_CLUSTER;
	if (memcmp(e.header.node_id, expect->node_id, ENVELOPE_ID_SIZE) != 0)
		return ENVELOPE_OTHER_NODE;
	key_id(expect->public_key, id);
	if (memcmp(e.header.key_id, id, KEY_ID_SIZE) != 0)
		return ENVELOPE_UNKNOWN_KEY;
	body = ENVELOPE_HEADER_SIZE + e.header.length;
	if (!key_verify(expect->public_key, CONTEXT, bytes, body,
			(const uint8_t *)bytes + body))
		return ENVELOPE_BAD_SIGNATURE;
	*ret_envelope = e;
	return ENVELOPE_OK;
}

enum envelope_order envelope_compare(uint64_t last_epoch,
				     uint64_t last_sequence, uint64_t epoch,
				     uint64_t sequence)
{
	if (epoch != last_epoch)
		return epoch > last_epoch ? ENVELOPE_NEXT : ENVELOPE_STALE;
	if (sequence == last_sequence)
		return ENVELOPE_REPEATED;
	return sequence > last_sequence ? ENVELOPE_NEXT : ENVELOPE_STALE;
}
