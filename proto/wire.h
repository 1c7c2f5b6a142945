/*
 * wire.h - tables that map a protobuf message to a plain value and back.
 *
 * Inside proto/ only. Each message has one table, each field one row; the
 * same row reads, checks, writes and releases, so the directions cannot
 * drift apart (H36). protobuf-c is used for bytes to its own structs; its
 * types do not leave wire.c.
 *
 * Reading accepts only the canonical encoding: what is read must encode to
 * exactly the bytes that came. That refuses unknown fields, fields given
 * twice, explicit defaults, embedded NULs and overlong numbers at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"

struct ProtobufCMessageDescriptor;

enum wire_kind {		/* on the wire -> in the value */
	WIRE_TEXT,		/* string -> char[max] */
	WIRE_STRING,		/* string -> owned char *, at most max - 1 bytes */
	WIRE_TEXTS,		/* repeated string -> struct strlist */
	WIRE_BOOL,		/* bool -> bool */
	WIRE_U8,		/* uint32 -> uint8_t, min to max */
	WIRE_U16,		/* uint32 -> uint16_t */
	WIRE_U32,
	WIRE_U64,
	WIRE_ENUM,		/* enum or uint32 -> int-sized enum */
	WIRE_ENUMS,		/* repeated enum -> enum[max]; zeros at the end
				   of it, beyond min, are not written */
	WIRE_RESOURCE,		/* string -> enum resource_id */
	WIRE_ID,		/* bytes -> uint8_t[max], exactly max */
	WIRE_BYTES,		/* bytes -> struct order_bytes, min to max */
	WIRE_BYTES_LIST,	/* repeated bytes -> order_bytes array */
	WIRE_ADDR,		/* string -> struct ip_addr */
	WIRE_PREFIX,		/* string -> struct ip_prefix */
	WIRE_ADDRS,		/* repeated string -> array, count beside it */
	WIRE_PREFIXES,
	WIRE_ENDPOINTS,
	WIRE_MESSAGE,		/* message -> value in place */
	WIRE_POINTER,		/* message -> owned pointer, NULL: absent */
	WIRE_MESSAGES,		/* repeated message -> owned array */
	WIRE_ARRAY,		/* repeated message -> array in place, max */
};

enum wire_flag {
	WIRE_OPTIONAL = 1,	/* absent, "" or zero length is fine */
	WIRE_EVIDENCE = 2,	/* writing cleans and cuts instead of failing */
	WIRE_ABSENT_ZERO = 4,	/* an all-zero message value is not written */
};

struct wire_message;

struct wire_field {
	const char *name;	/* as in garboard.proto */
	enum wire_kind kind;
	unsigned int flags;
	size_t offset;		/* in the value */
	size_t aux;		/* offset of the count, or of the has_ flag */
	uint64_t min, max;	/* of a number, a length, or a count */
	size_t text_max;	/* of each text in a list, with its NUL */
	bool (*check)(const char *text);
	const struct wire_message *sub;
};

#define WIRE_NO_AUX 0		/* offset 0 is never a count or a flag */

struct wire_message {
	const char *name;
	const struct ProtobufCMessageDescriptor *desc;
	size_t size;		/* of the value */
	const struct wire_field *fields;
	size_t n_fields;
	int (*check)(const void *value, struct fault *f);	/* across fields */
};

/*
 * Reads a whole message into *value (m->size bytes, written only on
 * success). -EBADMSG, -EINVAL, -E2BIG, -ENOMEM.
 */
int wire_decode(const struct wire_message *m, const void *bytes, size_t size,
		void *ret_value, struct fault *f);
int wire_encode(const struct wire_message *m, const void *value,
		uint8_t **ret_bytes, size_t *ret_size, struct fault *f);

/* A message that is one oneof: arms[i] is the message of field i + 1. */
struct wire_oneof {
	const char *name;
	const struct ProtobufCMessageDescriptor *desc;
	const struct wire_message *const *arms;
	size_t n_arms;
};

/* Which arm the bytes begin with; looks at the first tag, allocates nothing. */
int wire_oneof_peek(const struct wire_oneof *o, const void *bytes,
		    size_t size, size_t *ret_arm, struct fault *f);
/* `arm` is wire_oneof_peek()'s; *ret_value has arms[arm]->size bytes. */
int wire_oneof_decode(const struct wire_oneof *o, const void *bytes,
		      size_t size, size_t arm, void *ret_value,
		      struct fault *f);
int wire_oneof_encode(const struct wire_oneof *o, size_t arm,
		      const void *value, uint8_t **ret_bytes,
		      size_t *ret_size, struct fault *f);

/* Releases what the value owns and zeroes it. */
void wire_done(const struct wire_message *m, void *value);

/* Valid UTF-8 without control characters. */
bool wire_text_clean(const char *text);
