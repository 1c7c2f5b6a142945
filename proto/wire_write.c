#include "proto/wire_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/ip.h"
#include "common/strlist.h"
#include "proto/desired.h"
#include "proto/order.h"

struct slot {
	const struct wire_field *row;
	void *member;
	size_t *count;		/* of a repeated field, else NULL */
	const char *value;
	const char *base;
	struct fault *f;
};

/* Cut at a character, so that what stays is still UTF-8. */
static void clean_and_cut(char *text, size_t max)
{
	size_t n = strlen(text);

	if (n >= max) {
		n = max - 1;
		while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
			n--;
		text[n] = '\0';
	}
	fault_sanitize(text);
}

static char *copy_text(const struct slot *s, const char *text, size_t max)
{
	char *copy = strdup(text ? text : "");

	if (copy && s->row->flags & WIRE_EVIDENCE)
		clean_and_cut(copy, max);
	return copy;
}

static int put_text(const struct slot *s, char *text)
{
	if (!text)
		return -ENOMEM;
	*(char **)s->member = text;
	return 0;
}

static int write_ip(const struct slot *s, enum wire_kind kind,
		    const void *value, char **ret_text)
{
	char text[IP_TEXT_MAX] = "";

	switch ((int)kind) {
	case WIRE_ADDR:
	case WIRE_ADDRS:
		if (((const struct ip_addr *)value)->family)
			(void)ip_addr_format(value, text);
		break;
	case WIRE_PREFIX:
	case WIRE_PREFIXES:
		if (((const struct ip_prefix *)value)->addr.family)
			(void)ip_prefix_format(value, text);
		break;
	default:
		(void)ip_endpoint_format(value, text);
	}
	*ret_text = copy_text(s, text, sizeof(text));
	return *ret_text ? 0 : -ENOMEM;
}

/* Room for `n` pointers or structs; freed with the message. */
static void *make_list(const struct slot *s, size_t n, size_t element)
{
	void *v = n ? calloc(n, element) : NULL;

	if (v)
		*(void **)s->member = v;
	return v;
}

static size_t list_length(const struct slot *s, size_t n)
{
	if (s->row->flags & WIRE_EVIDENCE && n > s->row->max)
		return (size_t)s->row->max;
	return n;
}

static size_t aux_count(const struct slot *s)
{
	return *(const size_t *)(const void *)(s->base + s->row->aux);
}

static int write_texts(const struct slot *s)
{
	const struct strlist *list = (const void *)s->value;
	size_t n = list_length(s, list->n), i;
	char **v = make_list(s, n, sizeof(*v));

	if (n && !v)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		v[i] = copy_text(s, list->v[i], s->row->text_max);
		if (!v[i])
			return -ENOMEM;
		*s->count = i + 1;
	}
	return 0;
}

static int write_ips(const struct slot *s)
{
	size_t element = s->row->kind == WIRE_ADDRS ? sizeof(struct ip_addr) :
			 s->row->kind == WIRE_PREFIXES ?
						      sizeof(struct ip_prefix) :
						      sizeof(struct ip_endpoint);
	size_t n = list_length(s, aux_count(s)), i;
	const char *from = *(char *const *)(const void *)s->value;
	char **v = make_list(s, n, sizeof(*v));

	if (n && !v)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		int r = write_ip(s, s->row->kind, from + i * element, &v[i]);

		if (r < 0)
			return r;
		*s->count = i + 1;
	}
	return 0;
}

static int put_bytes(ProtobufCBinaryData *d, const void *data, size_t n)
{
	if (n == 0)
		return 0;
	d->data = malloc(n);
	if (!d->data)
		return -ENOMEM;
	memcpy(d->data, data, n);
	d->len = n;
	return 0;
}

static int write_id(const struct slot *s)
{
	if (s->row->aux && !*(const bool *)(s->base + s->row->aux))
		return 0;
	return put_bytes(s->member, s->value, (size_t)s->row->max);
}

static int write_bytes_list(const struct slot *s)
{
	const struct order_bytes *from =
		*(struct order_bytes *const *)(const void *)s->value;
	size_t n = aux_count(s), i;
	ProtobufCBinaryData *v = make_list(s, n, sizeof(*v));

	if (n && !v)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		if (put_bytes(&v[i], from[i].v, from[i].n) < 0)
			return -ENOMEM;
		*s->count = i + 1;
	}
	return 0;
}

static int write_enums(const struct slot *s)
{
	const uint32_t *from = (const void *)s->value;
	size_t n = (size_t)s->row->max;
	uint32_t *v;

	while (n > s->row->min && !from[n - 1])
		n--;
	v = make_list(s, n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	memcpy(v, from, n * sizeof(*v));
	*s->count = n;
	return 0;
}

static bool is_zero(const char *value, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (value[i])
			return false;
	return true;
}

static int write_message(const struct slot *s)
{
	const void *value = s->value;

	if (s->row->kind == WIRE_POINTER)
		value = *(void *const *)(const void *)s->value;
	else if (s->row->aux && !*(const bool *)(s->base + s->row->aux))
		value = NULL;
	else if (s->row->flags & WIRE_ABSENT_ZERO &&
		 is_zero(value, s->row->sub->size))
		value = NULL;
	if (!value)
		return 0;
	return wire_write(s->row->sub, value, s->member, s->f);
}

static int write_messages(const struct slot *s)
{
	size_t n = list_length(s, aux_count(s)), i;
	const char *from = s->value;
	ProtobufCMessage **v = make_list(s, n, sizeof(*v));

	if (n && !v)
		return -ENOMEM;
	if (s->row->kind == WIRE_MESSAGES)
		from = *(char *const *)(const void *)s->value;
	for (i = 0; i < n; i++) {
		int r = wire_write(s->row->sub, from + i * s->row->sub->size,
				   &v[i], s->f);

		if (r < 0)
			return r;
		*s->count = i + 1;
	}
	return 0;
}

static int write_single_text(const struct slot *s)
{
	char *text = NULL;
	int r = 0;

	switch ((int)s->row->kind) {
	case WIRE_TEXT:
		text = copy_text(s, s->value, (size_t)s->row->max);
		break;
	case WIRE_STRING:
		text = copy_text(s, *(char *const *)(const void *)s->value,
				 (size_t)s->row->max);
		break;
	case WIRE_RESOURCE: {
		const char *name = resource_name(
			*(const enum resource_id *)(const void *)s->value);

		text = copy_text(s, name, SIZE_MAX);
		break;
	}
	default:
		r = write_ip(s, s->row->kind, s->value, &text);
	}
	return r < 0 ? r : put_text(s, text);
}

static int write_slot(const struct slot *s)
{
	const struct order_bytes *b;

	switch (s->row->kind) {
	case WIRE_TEXT:
	case WIRE_STRING:
	case WIRE_RESOURCE:
	case WIRE_ADDR:
	case WIRE_PREFIX:
		return write_single_text(s);
	case WIRE_TEXTS:
		return write_texts(s);
	case WIRE_BOOL:
		*(protobuf_c_boolean *)s->member = *(const bool *)s->value;
		return 0;
	case WIRE_U8:
		*(uint32_t *)s->member = *(const uint8_t *)s->value;
		return 0;
	case WIRE_U16:
		*(uint32_t *)s->member =
			*(const uint16_t *)(const void *)s->value;
		return 0;
	case WIRE_U32:
	case WIRE_ENUM:
		memcpy(s->member, s->value, sizeof(uint32_t));
		return 0;
	case WIRE_U64:
		memcpy(s->member, s->value, sizeof(uint64_t));
		return 0;
	case WIRE_ENUMS:
		return write_enums(s);
	case WIRE_ID:
		return write_id(s);
	case WIRE_BYTES:
		b = (const void *)s->value;
		return put_bytes(s->member, b->v, b->n);
	case WIRE_BYTES_LIST:
		return write_bytes_list(s);
	case WIRE_ADDRS:
	case WIRE_PREFIXES:
	case WIRE_ENDPOINTS:
		return write_ips(s);
	case WIRE_MESSAGE:
	case WIRE_POINTER:
		return write_message(s);
	case WIRE_MESSAGES:
	case WIRE_ARRAY:
		return write_messages(s);
	}
	return -EINVAL;
}

static int write_fields(const struct wire_message *m, const void *value,
			ProtobufCMessage *msg, struct fault *f)
{
	size_t i;
	int r;

	for (i = 0; i < m->n_fields; i++) {
		const ProtobufCFieldDescriptor *d =
			protobuf_c_message_descriptor_get_field_by_name(
				m->desc, m->fields[i].name);
		struct slot s = { .row = &m->fields[i], .f = f };

		if (!d)
			return fault_set(f, -ENOSYS, m->name, "%s: no field",
					 m->fields[i].name);
		s.member = (char *)msg + d->offset;
		s.base = value;
		s.value = s.base + s.row->offset;
		if (d->label == PROTOBUF_C_LABEL_REPEATED)
			s.count = (size_t *)(void *)((char *)msg +
						     d->quantifier_offset);
		r = write_slot(&s);
		if (r < 0)
			return r;
	}
	return 0;
}

int wire_write(const struct wire_message *m, const void *value,
	       ProtobufCMessage **ret_msg, struct fault *f)
{
	ProtobufCMessage *msg = calloc(1, m->desc->sizeof_message);
	int r;

	if (!msg)
		return -ENOMEM;
	m->desc->message_init(msg);
	r = write_fields(m, value, msg, f);
	if (r < 0) {
		protobuf_c_message_free_unpacked(msg, NULL);
		return r;
	}
	*ret_msg = msg;
	return 0;
}
