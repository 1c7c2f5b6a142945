#include "proto/wire_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/ip.h"
#include "common/strlist.h"
#include "proto/desired.h"
#include "proto/order.h"

/* A field on the wire and the place it goes to. */
struct slot {
	const struct wire_message *m;
	const struct wire_field *row;
	const void *member;	/* in protobuf-c's struct */
	size_t count;		/* of a repeated field */
	char *value;		/* where the row's offset points */
	char *base;		/* start of the value, for aux */
	struct fault *f;
};

int wire_refuse(struct fault *f, int err, const struct wire_message *m,
		const struct wire_field *row, const char *why)
{
	char object[FAULT_OBJECT_MAX];

	(void)snprintf(object, sizeof(object), "%s.%s", m->name, row->name);
	return fault_set(f, err, object, "%s", why);
}

static int refuse(const struct slot *s, int err, const char *why)
{
	return wire_refuse(s->f, err, s->m, s->row, why);
}

bool wire_text_clean(const char *text)
{
	_cleanup_free_ char *copy = strdup(text);

	if (!copy)
		return false;
	fault_sanitize(copy);
	return strcmp(copy, text) == 0;
}

/* One text, whatever it becomes: length, cleanliness, syntax. */
static int check_text(const struct slot *s, const char *text, size_t max)
{
	if (!*text && s->row->flags & WIRE_OPTIONAL)
		return 0;
	if (!*text)
		return refuse(s, -EINVAL, "must not be empty");
	if (strlen(text) >= max)
		return refuse(s, -E2BIG, "is too long");
	if (!wire_text_clean(text))
		return refuse(s, -EINVAL,
			      "holds control characters or invalid UTF-8");
	if (s->row->check && !s->row->check(text))
		return refuse(s, -EINVAL, "is not well-formed");
	return 0;
}

static int read_text(const struct slot *s)
{
	const char *text = *(char *const *)s->member;
	int r = check_text(s, text, s->row->max);

	if (r < 0)
		return r;
	memcpy(s->value, text, strlen(text) + 1);
	return 0;
}

static int read_string(const struct slot *s)
{
	const char *text = *(char *const *)s->member;
	int r = check_text(s, text, s->row->max);

	if (r < 0)
		return r;
	free(*(char **)s->value);
	*(char **)s->value = strdup(text);
	return *(char **)s->value ? 0 : -ENOMEM;
}

static int read_texts(const struct slot *s)
{
	char *const *texts = *(char **const *)s->member;
	size_t i;
	int r;

	for (i = 0; i < s->count; i++) {
		r = check_text(s, texts[i], s->row->text_max);
		if (r < 0)
			return r;
		r = strlist_add((struct strlist *)(void *)s->value, texts[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_number(const struct slot *s)
{
	uint64_t v;

	if (s->row->kind == WIRE_U64)
		v = *(const uint64_t *)s->member;
	else
		v = *(const uint32_t *)s->member;
	if (v < s->row->min || (s->row->max && v > s->row->max))
		return refuse(s, -ERANGE, "is out of range");
	switch ((int)s->row->kind) {
	case WIRE_U8:
		*(uint8_t *)s->value = (uint8_t)v;
		break;
	case WIRE_U16:
		*(uint16_t *)(void *)s->value = (uint16_t)v;
		break;
	case WIRE_U64:
		*(uint64_t *)(void *)s->value = v;
		break;
	default:
		*(uint32_t *)(void *)s->value = (uint32_t)v;
	}
	return 0;
}

static int read_enums(const struct slot *s)
{
	const uint32_t *v = *(uint32_t *const *)s->member;
	size_t i;

	if (s->count < s->row->min || s->count > s->row->max)
		return refuse(s, -EINVAL, "has another number of entries");
	for (i = 0; i < s->count; i++) {
		if (v[i] >= s->row->text_max)
			return refuse(s, -ERANGE, "is out of range");
		((uint32_t *)(void *)s->value)[i] = v[i];
	}
	return 0;
}

static int read_resource(const struct slot *s)
{
	const char *text = *(char *const *)s->member;
	int i;

	for (i = 0; i < RESOURCE_MAX; i++) {
		if (strcmp(text, resource_name((enum resource_id)i)) != 0)
			continue;
		*(enum resource_id *)(void *)s->value = (enum resource_id)i;
		return 0;
	}
	return refuse(s, -EINVAL, "names no resource");
}

static int read_id(const struct slot *s)
{
	const ProtobufCBinaryData *d = s->member;

	if (d->len == 0 && s->row->flags & WIRE_OPTIONAL)
		return 0;
	if (d->len != s->row->max)
		return refuse(s, -EINVAL, "has the wrong length");
	memcpy(s->value, d->data, d->len);
	if (s->row->aux)
		*(bool *)(s->base + s->row->aux) = true;
	return 0;
}

static int copy_bytes(const struct slot *s, const ProtobufCBinaryData *d,
		      struct order_bytes *ret)
{
	if (d->len == 0 && s->row->flags & WIRE_OPTIONAL)
		return 0;
	if (d->len > s->row->max)
		return refuse(s, -E2BIG, "is too long");
	if (d->len == 0)
		return refuse(s, -EINVAL, "must not be empty");
	ret->v = malloc(d->len);
	if (!ret->v)
		return -ENOMEM;
	memcpy(ret->v, d->data, d->len);
	ret->n = d->len;
	return 0;
}

/* An owned array of `count` zeroed elements, its count at aux. */
static void *make_array(const struct slot *s, size_t element)
{
	void *v = NULL;

	if (s->count == 0)
		return NULL;
	v = calloc(s->count, element);
	if (!v)
		return NULL;
	*(void **)(void *)s->value = v;
	*(size_t *)(void *)(s->base + s->row->aux) = s->count;
	return v;
}

static int read_bytes_list(const struct slot *s)
{
	const ProtobufCBinaryData *d =
		*(ProtobufCBinaryData *const *)s->member;
	struct order_bytes *v = make_array(s, sizeof(*v));
	struct slot one = *s;
	struct wire_field row = *s->row;
	size_t i;
	int r;

	if (s->count && !v)
		return -ENOMEM;
	row.max = row.text_max;
	one.row = &row;
	for (i = 0; i < s->count; i++) {
		r = copy_bytes(&one, &d[i], &v[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Only the one text that formatting gives back: one value, one encoding. */
static int parse_ip(const struct slot *s, const char *text, void *ret)
{
	char back[IP_TEXT_MAX];
	bool good;

	switch ((int)s->row->kind) {
	case WIRE_ADDR:
	case WIRE_ADDRS:
		good = ip_addr_parse(text, ret) == 0 &&
		       strcmp(ip_addr_format(ret, back), text) == 0;
		break;
	case WIRE_PREFIX:
	case WIRE_PREFIXES:
		good = ip_prefix_parse(text, ret) == 0 &&
		       strcmp(ip_prefix_format(ret, back), text) == 0;
		break;
	default:
		good = ip_endpoint_parse(text, ret) == 0 &&
		       strcmp(ip_endpoint_format(ret, back), text) == 0;
	}
	return good ? 0 : refuse(s, -EINVAL, "is not an address as we write it");
}

static int read_ip(const struct slot *s)
{
	const char *text = *(char *const *)s->member;

	if (!*text && s->row->flags & WIRE_OPTIONAL)
		return 0;
	return parse_ip(s, text, s->value);
}

static int read_ips(const struct slot *s)
{
	char *const *texts = *(char **const *)s->member;
	size_t element = s->row->kind == WIRE_ADDRS ? sizeof(struct ip_addr) :
			 s->row->kind == WIRE_PREFIXES ?
						      sizeof(struct ip_prefix) :
						      sizeof(struct ip_endpoint);
	char *v = make_array(s, element);
	size_t i;
	int r;

	if (s->count && !v)
		return -ENOMEM;
	for (i = 0; i < s->count; i++) {
		r = parse_ip(s, texts[i], v + i * element);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_message(const struct slot *s)
{
	const ProtobufCMessage *sub = *(ProtobufCMessage *const *)s->member;

	if (!sub && s->row->flags & WIRE_OPTIONAL)
		return 0;
	if (!sub)
		return refuse(s, -EINVAL, "is missing");
	if (s->row->aux)
		*(bool *)(s->base + s->row->aux) = true;
	return wire_read(s->row->sub, sub, s->value, s->f);
}

static int read_pointer(const struct slot *s)
{
	const ProtobufCMessage *sub = *(ProtobufCMessage *const *)s->member;
	void *v;

	if (!sub && s->row->flags & WIRE_OPTIONAL)
		return 0;
	if (!sub)
		return refuse(s, -EINVAL, "is missing");
	v = calloc(1, s->row->sub->size);
	if (!v)
		return -ENOMEM;
	*(void **)(void *)s->value = v;
	return wire_read(s->row->sub, sub, v, s->f);
}

static int read_messages(const struct slot *s)
{
	ProtobufCMessage *const *subs = *(ProtobufCMessage **const *)s->member;
	char *v = s->value;
	size_t i;
	int r;

	if (s->row->kind == WIRE_MESSAGES)
		v = make_array(s, s->row->sub->size);
	else
		*(size_t *)(void *)(s->base + s->row->aux) = s->count;
	if (s->count && !v)
		return -ENOMEM;
	for (i = 0; i < s->count; i++) {
		r = wire_read(s->row->sub, subs[i],
			      v + i * s->row->sub->size, s->f);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_slot(const struct slot *s)
{
	switch (s->row->kind) {
	case WIRE_TEXT:
		return read_text(s);
	case WIRE_STRING:
		return read_string(s);
	case WIRE_TEXTS:
		return read_texts(s);
	case WIRE_BOOL:
		*(bool *)s->value = *(const protobuf_c_boolean *)s->member;
		return 0;
	case WIRE_U8:
	case WIRE_U16:
	case WIRE_U32:
	case WIRE_U64:
	case WIRE_ENUM:
		return read_number(s);
	case WIRE_ENUMS:
		return read_enums(s);
	case WIRE_RESOURCE:
		return read_resource(s);
	case WIRE_ID:
		return read_id(s);
	case WIRE_BYTES:
		return copy_bytes(s, s->member,
				  (struct order_bytes *)(void *)s->value);
	case WIRE_BYTES_LIST:
		return read_bytes_list(s);
	case WIRE_ADDR:
	case WIRE_PREFIX:
		return read_ip(s);
	case WIRE_ADDRS:
	case WIRE_PREFIXES:
	case WIRE_ENDPOINTS:
		return read_ips(s);
	case WIRE_MESSAGE:
		return read_message(s);
	case WIRE_POINTER:
		return read_pointer(s);
	case WIRE_MESSAGES:
	case WIRE_ARRAY:
		return read_messages(s);
	}
	return -EINVAL;
}

int wire_read(const struct wire_message *m, const ProtobufCMessage *msg,
	      void *value, struct fault *f)
{
	size_t i;
	int r;

	if (msg->n_unknown_fields > 0)
		return fault_set(f, -EBADMSG, m->name,
				 "has an unknown field %u",
				 msg->unknown_fields[0].tag);
	for (i = 0; i < m->n_fields; i++) {
		const ProtobufCFieldDescriptor *d =
			protobuf_c_message_descriptor_get_field_by_name(
				m->desc, m->fields[i].name);
		struct slot s = { .m = m, .row = &m->fields[i], .f = f };

		if (!d)
			return wire_refuse(f, -ENOSYS, m, s.row, "has no field");
		s.member = (const char *)msg + d->offset;
		s.base = value;
		s.value = s.base + s.row->offset;
		if (d->label == PROTOBUF_C_LABEL_REPEATED) {
			s.count = *(const size_t *)(const void *)(
				(const char *)msg + d->quantifier_offset);
			if (s.count > s.row->max)
				return refuse(&s, -E2BIG, "has too many entries");
			if (s.count < s.row->min)
				return refuse(&s, -EINVAL, "has too few entries");
		}
		r = read_slot(&s);
		if (r < 0)
			return r;
	}
	return m->check ? m->check(value, f) : 0;
}
