#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <protobuf-c/protobuf-c.h>

#include "common/cleanup.h"
#include "common/strlist.h"
#include "proto/desired.h"
#include "proto/order.h"
#include "proto/wire_read.h"
#include "proto/wire_write.h"

static void free_message(ProtobufCMessage *msg)
{
	protobuf_c_message_free_unpacked(msg, NULL);
}
DEFINE_CLEANUP(message, ProtobufCMessage, free_message)
#define _cleanup_message_ CLEANUP(cleanup_message)

static int pack(const ProtobufCMessage *msg, uint8_t **ret_bytes,
		size_t *ret_size)
{
	size_t size = protobuf_c_message_get_packed_size(msg);
	uint8_t *bytes = malloc(size ? size : 1);

	if (!bytes)
		return -ENOMEM;
	*ret_size = protobuf_c_message_pack(msg, bytes);
	*ret_bytes = bytes;
	return 0;
}

static int unpack(const char *name, const ProtobufCMessageDescriptor *desc,
		  const void *bytes, size_t size, ProtobufCMessage **ret_msg,
		  struct fault *f)
{
	_cleanup_message_ ProtobufCMessage *msg = NULL;
	_cleanup_free_ uint8_t *back = NULL;
	size_t back_size = 0;
	int r;

	msg = protobuf_c_message_unpack(desc, NULL, size, bytes);
	if (!msg)
		return fault_set(f, -EBADMSG, name, "is malformed");
	if (msg->n_unknown_fields > 0)
		return fault_set(f, -EBADMSG, name, "has an unknown field %u",
				 msg->unknown_fields[0].tag);
	r = pack(msg, &back, &back_size);
	if (r < 0)
		return r;
	if (back_size != size || memcmp(back, bytes, size) != 0)
		return fault_set(f, -EBADMSG, name,
				 "is not in its one canonical encoding");
	*ret_msg = take_ptr(msg);
	return 0;
}

/* Fills a scratch value, so that the caller's is written only on success. */
static int read_value(const struct wire_message *m,
		      const ProtobufCMessage *msg, void *ret_value,
		      struct fault *f)
{
	_cleanup_free_ void *value = calloc(1, m->size ? m->size : 1);
	int r;

	if (!value)
		return -ENOMEM;
	r = wire_read(m, msg, value, f);
	if (r < 0) {
		wire_done(m, value);
		return r;
	}
	memcpy(ret_value, value, m->size);
	return 0;
}

int wire_decode(const struct wire_message *m, const void *bytes, size_t size,
		void *ret_value, struct fault *f)
{
	_cleanup_message_ ProtobufCMessage *msg = NULL;
	int r = unpack(m->name, m->desc, bytes, size, &msg, f);

	return r < 0 ? r : read_value(m, msg, ret_value, f);
}

/* What we send must pass the judgement of the one who receives it. */
static int judge(const struct wire_message *m, const ProtobufCMessage *msg,
		 struct fault *f)
{
	_cleanup_free_ void *value = calloc(1, m->size ? m->size : 1);
	int r;

	if (!value)
		return -ENOMEM;
	r = wire_read(m, msg, value, f);
	wire_done(m, value);
	return r;
}

int wire_encode(const struct wire_message *m, const void *value,
		uint8_t **ret_bytes, size_t *ret_size, struct fault *f)
{
	_cleanup_message_ ProtobufCMessage *msg = NULL;
	int r;

	r = wire_write(m, value, &msg, f);
	if (r == 0)
		r = judge(m, msg, f);
	return r < 0 ? r : pack(msg, ret_bytes, ret_size);
}

int wire_oneof_peek(const struct wire_oneof *o, const void *bytes,
		    size_t size, size_t *ret_arm, struct fault *f)
{
	const uint8_t *p = bytes;
	unsigned int tag = 0;

	if (size > 0)
		tag = p[0] & 0x7f;
	if (size > 1 && p[0] & 0x80)
		tag |= (unsigned int)p[1] << 7;	/* a third byte is no tag of ours */
	if (tag >> 3 == 0 || tag >> 3 > o->n_arms || (tag & 7) != 2)
		return fault_set(f, -EBADMSG, o->name,
				 "is empty or of an unknown kind");
	*ret_arm = (tag >> 3) - 1;
	return 0;
}

int wire_oneof_decode(const struct wire_oneof *o, const void *bytes,
		      size_t size, size_t arm, void *ret_value,
		      struct fault *f)
{
	const ProtobufCFieldDescriptor *d =
		protobuf_c_message_descriptor_get_field(o->desc,
							(unsigned int)arm + 1);
	_cleanup_message_ ProtobufCMessage *msg = NULL;
	ProtobufCMessage *sub = NULL;
	uint32_t found = 0;
	int r;

	if (!d)
		return fault_set(f, -EBADMSG, o->name, "has no kind %zu", arm);
	r = unpack(o->name, o->desc, bytes, size, &msg, f);
	if (r < 0)
		return r;
	memcpy(&found, (const char *)msg + d->quantifier_offset, sizeof(found));
	memcpy(&sub, (const char *)msg + d->offset, sizeof(sub));
	if (found != arm + 1 || !sub)
		return fault_set(f, -EBADMSG, o->name, "is another kind");
	return read_value(o->arms[arm], sub, ret_value, f);
}

int wire_oneof_encode(const struct wire_oneof *o, size_t arm,
		      const void *value, uint8_t **ret_bytes,
		      size_t *ret_size, struct fault *f)
{
	const ProtobufCFieldDescriptor *d =
		protobuf_c_message_descriptor_get_field(o->desc,
							(unsigned int)arm + 1);
	_cleanup_message_ ProtobufCMessage *msg = NULL;
	ProtobufCMessage *sub = NULL;
	uint32_t tag = (uint32_t)arm + 1;
	int r;

	if (arm >= o->n_arms || !d)
		return fault_set(f, -EINVAL, o->name, "has no kind %zu", arm);
	msg = calloc(1, o->desc->sizeof_message);
	if (!msg)
		return -ENOMEM;
	o->desc->message_init(msg);
	r = wire_write(o->arms[arm], value, &sub, f);
	if (r < 0)
		return r;
	memcpy((char *)msg + d->quantifier_offset, &tag, sizeof(tag));
	memcpy((char *)msg + d->offset, &sub, sizeof(sub));
	r = judge(o->arms[arm], sub, f);
	return r < 0 ? r : pack(msg, ret_bytes, ret_size);
}

static void array_done(const struct wire_field *row, void *member, size_t n)
{
	char *v = row->kind == WIRE_ARRAY ? member : *(void **)member;
	size_t i;

	for (i = 0; v && i < n; i++)
		wire_done(row->sub, v + i * row->sub->size);
	if (row->kind != WIRE_ARRAY)
		free(v);
}

static void field_done(const struct wire_field *row, char *base)
{
	void *member = base + row->offset;
	struct order_bytes *b;
	size_t i, n;

	switch ((int)row->kind) {
	case WIRE_STRING:
	case WIRE_ADDRS:
	case WIRE_PREFIXES:
	case WIRE_ENDPOINTS:
		free(*(void **)member);
		break;
	case WIRE_BYTES:
		free(((struct order_bytes *)member)->v);
		break;
	case WIRE_BYTES_LIST:
		memcpy(&n, base + row->aux, sizeof(n));
		b = *(struct order_bytes **)member;
		for (i = 0; b && i < n; i++)
			free(b[i].v);
		free(b);
		break;
	case WIRE_TEXTS:
		strlist_done(member);
		break;
	case WIRE_MESSAGE:
		wire_done(row->sub, member);
		break;
	case WIRE_POINTER:
		if (*(void **)member)
			wire_done(row->sub, *(void **)member);
		free(*(void **)member);
		break;
	case WIRE_MESSAGES:
	case WIRE_ARRAY:
		memcpy(&n, base + row->aux, sizeof(n));
		array_done(row, member, n);
		break;
	default:
		break;
	}
}

void wire_done(const struct wire_message *m, void *value)
{
	size_t i;

	for (i = 0; i < m->n_fields; i++)
		field_done(&m->fields[i], value);
	memset(value, 0, m->size);
}
