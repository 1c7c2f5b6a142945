/*
 * order.h - the closed table of orders, as plain values.
 *
 * An order reaches this code only after its envelope was verified. Decoding
 * is strict: an unknown field anywhere, a repeated scalar, a value out of
 * its enum, a wrong length, a control character, a malformed name or
 * address is refused with the field's name. No order carries a path, a unit
 * name, an argv or unit text (DESIGN section 7). What an order means is the
 * agent's business; this module knows its shape, its size limit and the
 * states in which it is legal.
 *
 * A struct order owns what it points to. Fixed arrays are NUL-terminated.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"
#include "common/strlist.h"
#include "proto/desired.h"
#include "proto/seal.h"

#define ORDER_NAME_MAX 64	/* labels: node, class, holder */
#define ORDER_TEXT_MAX 256	/* reasons */
#define ORDER_CHUNK_MAX (256 * 1024)
#define ORDER_BLOB_MAX (UINT64_C(4) << 30)
#define ORDER_MANIFEST_MAX (512 * 1024)
#define ORDER_LIST_MAX 128	/* SANs, labels, taints, entries */
#define ORDER_VALUES_MAX 64	/* of one config entry */
#define ORDER_VALUE_MAX 1024

enum order_kind {		/* field number in message Order, minus 1 */
	ORDER_SET_DESIRED,
	ORDER_BLOB,
	ORDER_K3S_INSTALL,
	ORDER_K3S_CONFIGURE,
	ORDER_K3S_START,
	ORDER_K3S_STOP,
	ORDER_K3S_RESET,
	ORDER_PUT_MANIFEST,
	ORDER_READ_FACTS,
	ORDER_READ_CREDENTIAL,
	ORDER_LEASE,
	ORDER_PROBE,
	ORDER_REBOOT,
	ORDER_DISARM,
	ORDER_ARM,
	ORDER_TRUST_UPDATE,
	ORDER_OPEN_STREAM,
	ORDER_RECORD_FOUNDING,
	ORDER_KIND_MAX,
};

enum order_state {		/* of the node; bits */
	ORDER_WHEN_UNENROLLED = 1,
	ORDER_WHEN_ENROLLED = 2,
};

struct order_row {
	const char *name;	/* "K3sInstall" */
	size_t limit;		/* of the encoded order, bytes */
	unsigned int states;	/* enum order_state */
	bool changes;		/* of the node; else it only reads */
};

const struct order_row *order_row(enum order_kind kind);

struct order_bytes {
	uint8_t *v;
	size_t n;
};

/* ---- one struct per order; the numbers of enums are those of the wire ---- */

enum blob_kind { BLOB_K3S = 1, BLOB_CHART, BLOB_IMAGES, BLOB_KIND_MAX };

struct order_blob {
	enum blob_kind kind;
	uint64_t size;		/* of the whole blob */
	uint8_t sha256[32];	/* of the whole blob */
	uint64_t offset;	/* of this chunk; offset + data.n <= size */
	struct order_bytes data;
};

struct order_k3s_install {
	uint8_t sha256[32];	/* of the binary */
	char version[ORDER_NAME_MAX];	/* "v1.36.4+k3s1" */
	bool from_image;	/* already on the node, not a blob */
};

struct config_entry {
	char key[ORDER_NAME_MAX];	/* CONFIG_KEY_ALLOWED */
	struct strlist values;
	bool list;		/* else exactly one value */
};

struct order_k3s_configure {
	bool agent;
	char node_name[ORDER_NAME_MAX];
	struct ip_addr node_ip;
	struct ip_addr join_address;	/* family 0: the founder */
	bool cluster_init;	/* never together with join_address */
	struct strlist tls_sans;	/* addresses and DNS names */
	struct ip_prefix cluster_cidr, service_cidr;	/* family 0: none */
	struct strlist labels;	/* "key=value" */
	struct strlist taints;	/* "key[=value]:Effect" */
	struct config_entry *extra;
	size_t n_extra;
	struct sealed token;	/* box NULL: keep the one on the node */
};

struct founding_record {
	char cluster_uid[ORDER_NAME_MAX];	/* "": only intended */
	uint8_t ca_sha256[32];
	bool has_ca;
	char founder[ORDER_NAME_MAX];
	uint64_t intent;	/* 0: none */
};

enum start_mode {
	START_FOUND = 1,
	START_JOIN,
	START_RESUME,
	START_RESTART,
	START_MODE_MAX,
};

struct order_k3s_start {
	enum start_mode mode;
	struct founding_record intent;	/* required for START_FOUND */
	bool has_intent;
};

enum manifest_slot {
	SLOT_KUBE_VIP = 1,
	SLOT_CILIUM,
	SLOT_CRDS,
	SLOT_EGRESS,
	SLOT_MAX,
};

struct order_put_manifest {
	enum manifest_slot slot;
	struct order_bytes content;
	uint8_t sha256[32];	/* of content; checked when decoded */
};

enum credential_kind {
	CREDENTIAL_ADMIN = 1,
	CREDENTIAL_TOKEN,
	CREDENTIAL_KIND_MAX,
};

struct order_read_credential {
	enum credential_kind kind;
	uint8_t seal_key[32];	/* X25519 public, who may read it */
};

enum lease_verb { LEASE_ACQUIRE = 1, LEASE_RENEW, LEASE_RELEASE, LEASE_VERB_MAX };

struct order_lease {
	enum lease_verb verb;
	char holder[ORDER_TEXT_MAX];
	uint64_t term;		/* fencing */
	uint64_t duration;	/* microseconds, at most an hour */
};

enum probe_kind {
	PROBE_ADDRESS_FREE = 1,
	PROBE_DB_INFO,
	PROBE_CARRIES_ENDPOINT,
	PROBE_KIND_MAX,
};

struct order_class {		/* Disarm, Arm */
	char class_name[ORDER_NAME_MAX];
	char reason[ORDER_TEXT_MAX];	/* never empty */
};

struct order_trust_update {
	uint8_t node_id[16];
	bool has_node_id;
	char node_name[ORDER_NAME_MAX];	/* "": keep */
	struct order_bytes certificate;	/* DER; n 0: none */
	struct order_bytes *ca;		/* DER */
	size_t n_ca;
	bool revoke;
	struct strlist addresses;	/* "addr:port"; empty: keep */
};

enum stream_target {
	STREAM_API_LOCAL = 1,
	STREAM_API_ENDPOINT,
	STREAM_API_SERVER,
	STREAM_TARGET_MAX,
};

struct order_open_stream {
	uint8_t stream_id[16];
	enum stream_target target;
	struct ip_addr server;	/* only with STREAM_API_SERVER */
};

struct order {
	enum order_kind kind;
	union {
		struct desired *desired;	/* SET_DESIRED */
		struct order_blob blob;
		struct order_k3s_install install;
		struct order_k3s_configure configure;
		struct order_k3s_start start;
		char confirm_node[ORDER_NAME_MAX];	/* K3S_RESET */
		struct order_put_manifest manifest;
		struct order_read_credential credential;
		struct order_lease lease;
		enum probe_kind probe;
		char reason[ORDER_TEXT_MAX];		/* REBOOT */
		struct order_class klass;		/* DISARM, ARM */
		struct order_trust_update trust;
		struct order_open_stream stream;
		struct founding_record founding;	/* RECORD_FOUNDING */
	};
};

/* Zeroed, of that kind (SET_DESIRED without a desired); NULL: no memory. */
struct order *order_new(enum order_kind kind);
struct order *order_free(struct order *o);	/* returns NULL */

/* Payload of a down envelope to a value. -EBADMSG, -EINVAL, -E2BIG. */
int order_decode(const void *bytes, size_t size, struct order **ret_order,
		 struct fault *f);
/* Checks as order_decode() does, so what it makes is never refused. */
int order_encode(const struct order *o, uint8_t **ret_bytes, size_t *ret_size,
		 struct fault *f);

/* ---- allow-lists, also for the spec's checks ---- */

enum config_key_rule {
	CONFIG_KEY_UNKNOWN,
	CONFIG_KEY_OWNED,	/* Garboard derives it: refused by name */
	CONFIG_KEY_ALLOWED,
};

enum config_key_rule order_config_key(const char *key);
/* Also judges "*-arg" values: no paths, nothing that opens the API. */
bool order_config_value_allowed(const char *key, const char *value);
bool order_is_device(const char *text);	/* a name below /dev/disk/by-* */
bool order_is_mount_point(const char *text);	/* none of the system's own */
bool order_is_label(const char *text);	/* "example.org/disk=ssd" */
bool order_is_taint(const char *text);	/* "gateway=true:NoSchedule" */
