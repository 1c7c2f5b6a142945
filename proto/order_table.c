/* The rows of every order: one per field of garboard.proto. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "garboard.pb-c.h"
#include "proto/order.h"
#include "proto/order_allow.h"
#include "proto/wire_shared.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const struct wire_field sealed_fields[] = {
	{ "ephemeral", WIRE_ID, 0, .offset = offsetof(struct sealed, ephemeral),
	  .max = KEY_PUBLIC_SIZE },
	{ "box", WIRE_BYTES, 0, .offset = offsetof(struct sealed, box),
	  .max = SEAL_BOX_MAX },
};
/* The box is read as struct order_bytes. */
static_assert(offsetof(struct sealed, size) - offsetof(struct sealed, box) ==
	      offsetof(struct order_bytes, n), "box and size are order_bytes");

const struct wire_message wire_sealed = {
	"Sealed", &garboard__v1__sealed__descriptor, sizeof(struct sealed),
	sealed_fields, N(sealed_fields), NULL,
};

static const struct wire_field founding_fields[] = {
	{ "cluster_uid", WIRE_TEXT, WIRE_OPTIONAL,
	  .offset = offsetof(struct founding_record, cluster_uid),
	  .max = ORDER_NAME_MAX, .check = allow_uid },
	{ "ca_sha256", WIRE_ID, WIRE_OPTIONAL,
	  .offset = offsetof(struct founding_record, ca_sha256),
	  .aux = offsetof(struct founding_record, has_ca), .max = 32 },
	{ "founder", WIRE_TEXT, 0, .offset = offsetof(struct founding_record, founder),
	  .max = ORDER_NAME_MAX, .check = allow_node_name },
	{ "intent", WIRE_U64, 0, .offset = offsetof(struct founding_record, intent) },
};

const struct wire_message wire_founding = {
	"FoundingRecord", &garboard__v1__founding_record__descriptor,
	sizeof(struct founding_record), founding_fields, N(founding_fields),
	NULL,
};

static const struct wire_field set_desired_fields[] = {
	{ "desired", WIRE_POINTER, 0, 0, .sub = &wire_desired },
};

static const struct wire_message set_desired = {
	"SetDesired", &garboard__v1__set_desired__descriptor,
	sizeof(struct desired *), set_desired_fields, N(set_desired_fields),
	NULL,
};

static const struct wire_field blob_fields[] = {
	{ "kind", WIRE_ENUM, 0, .offset = offsetof(struct order_blob, kind),
	  .min = 1, .max = BLOB_KIND_MAX - 1 },
	{ "size", WIRE_U64, 0, .offset = offsetof(struct order_blob, size),
	  .min = 1, .max = ORDER_BLOB_MAX },
	{ "sha256", WIRE_ID, 0, .offset = offsetof(struct order_blob, sha256),
	  .max = 32 },
	{ "offset", WIRE_U64, 0, .offset = offsetof(struct order_blob, offset),
	  .max = ORDER_BLOB_MAX },
	{ "data", WIRE_BYTES, 0, .offset = offsetof(struct order_blob, data),
	  .max = ORDER_CHUNK_MAX },
};

static int check_blob(const void *value, struct fault *f)
{
	const struct order_blob *b = value;

	if (b->offset > b->size || b->data.n > b->size - b->offset)
		return fault_set(f, -EINVAL, "Blob.offset",
				 "the chunk ends beyond the blob");
	return 0;
}

static const struct wire_message blob = {
	"Blob", &garboard__v1__blob__descriptor, sizeof(struct order_blob),
	blob_fields, N(blob_fields), check_blob,
};

static const struct wire_field install_fields[] = {
	{ "sha256", WIRE_ID, 0, .offset = offsetof(struct order_k3s_install, sha256),
	  .max = 32 },
	{ "version", WIRE_TEXT, 0, .offset = offsetof(struct order_k3s_install, version),
	  .max = ORDER_NAME_MAX, .check = allow_version },
	{ "from_image", WIRE_BOOL, 0,
	  .offset = offsetof(struct order_k3s_install, from_image) },
};

static const struct wire_message install = {
	"K3sInstall", &garboard__v1__k3s_install__descriptor,
	sizeof(struct order_k3s_install), install_fields, N(install_fields),
	NULL,
};

static const struct wire_field entry_fields[] = {
	{ "key", WIRE_TEXT, 0, .offset = offsetof(struct config_entry, key),
	  .max = ORDER_NAME_MAX, .check = allow_config_key },
	{ "values", WIRE_TEXTS, 0, .offset = offsetof(struct config_entry, values),
	  .max = ORDER_VALUES_MAX, .text_max = ORDER_VALUE_MAX },
	{ "list", WIRE_BOOL, 0, .offset = offsetof(struct config_entry, list) },
};

static int check_entry(const void *value, struct fault *f)
{
	const struct config_entry *e = value;
	size_t i;

	if (!e->list && e->values.n != 1)
		return fault_set(f, -EINVAL, e->key, "takes exactly one value");
	for (i = 0; i < e->values.n; i++)
		if (!order_config_value_allowed(e->key, e->values.v[i]))
			return fault_set(f, -EINVAL, e->key,
					 "does not allow this value");
	return 0;
}

static const struct wire_message entry = {
	"ConfigEntry", &garboard__v1__config_entry__descriptor,
	sizeof(struct config_entry), entry_fields, N(entry_fields),
	check_entry,
};

static const struct wire_field configure_fields[] = {
	{ "agent", WIRE_BOOL, 0, .offset = offsetof(struct order_k3s_configure, agent) },
	{ "node_name", WIRE_TEXT, 0,
	  .offset = offsetof(struct order_k3s_configure, node_name),
	  .max = ORDER_NAME_MAX, .check = allow_node_name },
	{ "node_ip", WIRE_ADDR, 0,
	  .offset = offsetof(struct order_k3s_configure, node_ip) },
	{ "join_address", WIRE_ADDR, WIRE_OPTIONAL,
	  .offset = offsetof(struct order_k3s_configure, join_address) },
	{ "cluster_init", WIRE_BOOL, 0,
	  .offset = offsetof(struct order_k3s_configure, cluster_init) },
	{ "tls_sans", WIRE_TEXTS, 0,
	  .offset = offsetof(struct order_k3s_configure, tls_sans),
	  .max = ORDER_LIST_MAX, .text_max = 254, .check = allow_san },
	{ "cluster_cidr", WIRE_PREFIX, WIRE_OPTIONAL,
	  .offset = offsetof(struct order_k3s_configure, cluster_cidr) },
	{ "service_cidr", WIRE_PREFIX, WIRE_OPTIONAL,
	  .offset = offsetof(struct order_k3s_configure, service_cidr) },
	{ "labels", WIRE_TEXTS, 0,
	  .offset = offsetof(struct order_k3s_configure, labels),
	  .max = ORDER_LIST_MAX, .text_max = 384, .check = order_is_label },
	{ "taints", WIRE_TEXTS, 0,
	  .offset = offsetof(struct order_k3s_configure, taints),
	  .max = ORDER_LIST_MAX, .text_max = 400, .check = order_is_taint },
	{ "extra", WIRE_MESSAGES, 0,
	  .offset = offsetof(struct order_k3s_configure, extra),
	  .aux = offsetof(struct order_k3s_configure, n_extra),
	  .max = ORDER_LIST_MAX, .sub = &entry },
	{ "token", WIRE_MESSAGE, WIRE_OPTIONAL | WIRE_ABSENT_ZERO,
	  .offset = offsetof(struct order_k3s_configure, token),
	  .sub = &wire_sealed },
};

static int check_configure(const void *value, struct fault *f)
{
	const struct order_k3s_configure *c = value;

	if (c->cluster_init && (c->agent || c->join_address.family))
		return fault_set(f, -EINVAL, "K3sConfigure.cluster_init",
				 "a founder neither joins nor is a worker");
	if (c->agent && !c->join_address.family)
		return fault_set(f, -EINVAL, "K3sConfigure.join_address",
				 "a worker needs an address to join");
	return 0;
}

static const struct wire_message configure = {
	"K3sConfigure", &garboard__v1__k3s_configure__descriptor,
	sizeof(struct order_k3s_configure), configure_fields,
	N(configure_fields), check_configure,
};

static const struct wire_field start_fields[] = {
	{ "mode", WIRE_ENUM, 0, .offset = offsetof(struct order_k3s_start, mode),
	  .min = 1, .max = START_MODE_MAX - 1 },
	{ "intent", WIRE_MESSAGE, WIRE_OPTIONAL,
	  .offset = offsetof(struct order_k3s_start, intent),
	  .aux = offsetof(struct order_k3s_start, has_intent),
	  .sub = &wire_founding },
};

static int check_start(const void *value, struct fault *f)
{
	const struct order_k3s_start *s = value;

	if (s->mode == START_FOUND && (!s->has_intent || !s->intent.intent))
		return fault_set(f, -EINVAL, "K3sStart.intent",
				 "founding needs a recorded intent");
	return 0;
}

static const struct wire_message start = {
	"K3sStart", &garboard__v1__k3s_start__descriptor,
	sizeof(struct order_k3s_start), start_fields, N(start_fields),
	check_start,
};

static const struct wire_message stop = {
	"K3sStop", &garboard__v1__k3s_stop__descriptor, 0, NULL, 0, NULL,
};

static const struct wire_field reset_fields[] = {
	{ "confirm_node", WIRE_TEXT, 0, 0, .max = ORDER_NAME_MAX,
	  .check = allow_node_name },
};

static const struct wire_message reset = {
	"K3sReset", &garboard__v1__k3s_reset__descriptor, ORDER_NAME_MAX,
	reset_fields, N(reset_fields), NULL,
};

static const struct wire_field manifest_fields[] = {
	{ "slot", WIRE_ENUM, 0, .offset = offsetof(struct order_put_manifest, slot),
	  .min = 1, .max = SLOT_MAX - 1 },
	{ "content", WIRE_BYTES, 0,
	  .offset = offsetof(struct order_put_manifest, content),
	  .max = ORDER_MANIFEST_MAX },
	{ "sha256", WIRE_ID, 0, .offset = offsetof(struct order_put_manifest, sha256),
	  .max = 32 },
};

static int check_manifest(const void *value, struct fault *f)
{
	const struct order_put_manifest *p = value;
	uint8_t digest[KEY_SHA256_SIZE];

	if (key_sha256(p->content.v, p->content.n, digest) < 0 ||
	    memcmp(digest, p->sha256, sizeof(digest)) != 0)
		return fault_set(f, -EINVAL, "PutManifest.sha256",
				 "is not the digest of the content");
	return 0;
}

static const struct wire_message manifest = {
	"PutManifest", &garboard__v1__put_manifest__descriptor,
	sizeof(struct order_put_manifest), manifest_fields,
	N(manifest_fields), check_manifest,
};

static const struct wire_message facts = {
	"ReadFacts", &garboard__v1__read_facts__descriptor, 0, NULL, 0, NULL,
};

static const struct wire_field credential_fields[] = {
	{ "kind", WIRE_ENUM, 0, .offset = offsetof(struct order_read_credential, kind),
	  .min = 1, .max = CREDENTIAL_KIND_MAX - 1 },
	{ "seal_key", WIRE_ID, 0,
	  .offset = offsetof(struct order_read_credential, seal_key), .max = 32 },
};

static const struct wire_message credential = {
	"ReadCredential", &garboard__v1__read_credential__descriptor,
	sizeof(struct order_read_credential), credential_fields,
	N(credential_fields), NULL,
};

static const struct wire_field lease_fields[] = {
	{ "verb", WIRE_ENUM, 0, .offset = offsetof(struct order_lease, verb),
	  .min = 1, .max = LEASE_VERB_MAX - 1 },
	{ "holder", WIRE_TEXT, 0, .offset = offsetof(struct order_lease, holder),
	  .max = ORDER_TEXT_MAX },
	{ "term", WIRE_U64, 0, .offset = offsetof(struct order_lease, term) },
	{ "duration", WIRE_U64, 0, .offset = offsetof(struct order_lease, duration),
	  .max = UINT64_C(3600) * 1000000 },
};

static const struct wire_message lease = {
	"Lease", &garboard__v1__lease__descriptor, sizeof(struct order_lease),
	lease_fields, N(lease_fields), NULL,
};

static const struct wire_field probe_fields[] = {
	{ "kind", WIRE_ENUM, 0, 0, .min = 1, .max = PROBE_KIND_MAX - 1 },
};

static const struct wire_message probe = {
	"Probe", &garboard__v1__probe__descriptor, sizeof(enum probe_kind),
	probe_fields, N(probe_fields), NULL,
};

static const struct wire_field reboot_fields[] = {
	{ "reason", WIRE_TEXT, 0, 0, .max = ORDER_TEXT_MAX },
};

static const struct wire_message reboot_message = {
	"Reboot", &garboard__v1__reboot__descriptor, ORDER_TEXT_MAX,
	reboot_fields, N(reboot_fields), NULL,
};

static const struct wire_field class_fields[] = {
	{ "class_name", WIRE_TEXT, 0, .offset = offsetof(struct order_class, class_name),
	  .max = ORDER_NAME_MAX, .check = allow_node_name },
	{ "reason", WIRE_TEXT, 0, .offset = offsetof(struct order_class, reason),
	  .max = ORDER_TEXT_MAX },
};

static const struct wire_message disarm = {
	"Disarm", &garboard__v1__disarm__descriptor,
	sizeof(struct order_class), class_fields, N(class_fields), NULL,
};

static const struct wire_message arm = {
	"Arm", &garboard__v1__arm__descriptor, sizeof(struct order_class),
	class_fields, N(class_fields), NULL,
};

static const struct wire_field trust_fields[] = {
	{ "node_id", WIRE_ID, WIRE_OPTIONAL,
	  .offset = offsetof(struct order_trust_update, node_id),
	  .aux = offsetof(struct order_trust_update, has_node_id), .max = 16 },
	{ "node_name", WIRE_TEXT, WIRE_OPTIONAL,
	  .offset = offsetof(struct order_trust_update, node_name),
	  .max = ORDER_NAME_MAX, .check = allow_node_name },
	{ "certificate", WIRE_BYTES, WIRE_OPTIONAL,
	  .offset = offsetof(struct order_trust_update, certificate), .max = 8192 },
	{ "ca", WIRE_BYTES_LIST, 0, .offset = offsetof(struct order_trust_update, ca),
	  .aux = offsetof(struct order_trust_update, n_ca), .max = 8,
	  .text_max = 8192 },
	{ "revoke", WIRE_BOOL, 0, .offset = offsetof(struct order_trust_update, revoke) },
	{ "addresses", WIRE_TEXTS, 0,
	  .offset = offsetof(struct order_trust_update, addresses), .max = 16,
	  .text_max = IP_TEXT_MAX, .check = allow_endpoint },
};

static const struct wire_message trust = {
	"TrustUpdate", &garboard__v1__trust_update__descriptor,
	sizeof(struct order_trust_update), trust_fields, N(trust_fields),
	NULL,
};

static const struct wire_field stream_fields[] = {
	{ "stream_id", WIRE_ID, 0,
	  .offset = offsetof(struct order_open_stream, stream_id), .max = 16 },
	{ "target", WIRE_ENUM, 0, .offset = offsetof(struct order_open_stream, target),
	  .min = 1, .max = STREAM_TARGET_MAX - 1 },
	{ "server", WIRE_ADDR, WIRE_OPTIONAL,
	  .offset = offsetof(struct order_open_stream, server) },
};

static int check_stream(const void *value, struct fault *f)
{
	const struct order_open_stream *s = value;

	if ((s->target == STREAM_API_SERVER) != (s->server.family != 0))
		return fault_set(f, -EINVAL, "OpenStream.server",
				 "goes with the target of a server only");
	return 0;
}

static const struct wire_message stream = {
	"OpenStream", &garboard__v1__open_stream__descriptor,
	sizeof(struct order_open_stream), stream_fields, N(stream_fields),
	check_stream,
};

static const struct wire_field record_fields[] = {
	{ "record", WIRE_MESSAGE, 0, 0, .sub = &wire_founding },
};

static const struct wire_message record = {
	"RecordFounding", &garboard__v1__record_founding__descriptor,
	sizeof(struct founding_record), record_fields, N(record_fields),
	NULL,
};

const struct wire_message *const wire_order_arms[ORDER_KIND_MAX] = {
	[ORDER_SET_DESIRED] = &set_desired,
	[ORDER_BLOB] = &blob,
	[ORDER_K3S_INSTALL] = &install,
	[ORDER_K3S_CONFIGURE] = &configure,
	[ORDER_K3S_START] = &start,
	[ORDER_K3S_STOP] = &stop,
	[ORDER_K3S_RESET] = &reset,
	[ORDER_PUT_MANIFEST] = &manifest,
	[ORDER_READ_FACTS] = &facts,
	[ORDER_READ_CREDENTIAL] = &credential,
	[ORDER_LEASE] = &lease,
	[ORDER_PROBE] = &probe,
	[ORDER_REBOOT] = &reboot_message,
	[ORDER_DISARM] = &disarm,
	[ORDER_ARM] = &arm,
	[ORDER_TRUST_UPDATE] = &trust,
	[ORDER_OPEN_STREAM] = &stream,
	[ORDER_RECORD_FOUNDING] = &record,
};
