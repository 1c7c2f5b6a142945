/* The rows of every message of a node: one per field of garboard.proto. */
#include "proto/up_table.h"

#include <assert.h>
#include <errno.h>
#include <net/if.h>

#include "garboard.pb-c.h"
#include "proto/order_allow.h"
#include "proto/wire_shared.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* What a node tells about itself may be empty and is cleaned when written. */
#define TOLD (WIRE_OPTIONAL | WIRE_EVIDENCE)

static const struct wire_field identity_fields[] = {
	{ "hostname", WIRE_TEXT, TOLD, .offset = offsetof(struct identity, hostname),
	  .max = sizeof(((struct identity *)0)->hostname) },
	{ "machine_id", WIRE_TEXT, TOLD, .offset = offsetof(struct identity, machine_id),
	  .max = sizeof(((struct identity *)0)->machine_id) },
	{ "product_uuid", WIRE_TEXT, TOLD,
	  .offset = offsetof(struct identity, product_uuid),
	  .max = sizeof(((struct identity *)0)->product_uuid) },
	{ "serial", WIRE_TEXT, TOLD, .offset = offsetof(struct identity, serial),
	  .max = sizeof(((struct identity *)0)->serial) },
	{ "macs", WIRE_TEXTS, TOLD, .offset = offsetof(struct identity, macs),
	  .max = UP_LIST_MAX, .text_max = 64 },
	{ "initiator_name", WIRE_TEXT, TOLD,
	  .offset = offsetof(struct identity, initiator_name),
	  .max = sizeof(((struct identity *)0)->initiator_name) },
	{ "boot_id", WIRE_TEXT, TOLD, .offset = offsetof(struct identity, boot_id),
	  .max = sizeof(((struct identity *)0)->boot_id) },
	{ "kernel", WIRE_TEXT, TOLD, .offset = offsetof(struct identity, kernel),
	  .max = sizeof(((struct identity *)0)->kernel) },
	{ "addresses", WIRE_TEXTS, TOLD, .offset = offsetof(struct identity, addresses),
	  .max = UP_LIST_MAX, .text_max = 64 },
	{ "agent_version", WIRE_TEXT, TOLD,
	  .offset = offsetof(struct identity, agent_version),
	  .max = sizeof(((struct identity *)0)->agent_version) },
};

const struct wire_message wire_identity = {
	"Identity", &garboard__v1__identity__descriptor,
	sizeof(struct identity), identity_fields, N(identity_fields), NULL,
};

#define HARDWARE(member) offsetof(struct hardware, member)

static const struct wire_field hardware_fields[] = {
	{ "memory_total", WIRE_U64, 0, .offset = HARDWARE(memory_total) },
	{ "memory_installed", WIRE_U64, 0, .offset = HARDWARE(memory_installed) },
	{ "disk_size", WIRE_U64, 0, .offset = HARDWARE(disk_size) },
	{ "disk_free", WIRE_U64, 0, .offset = HARDWARE(disk_free) },
	{ "firmware", WIRE_TEXT, TOLD, .offset = HARDWARE(firmware),
	  .max = sizeof(((struct hardware *)0)->firmware) },
	{ "product", WIRE_TEXT, TOLD, .offset = HARDWARE(product),
	  .max = sizeof(((struct hardware *)0)->product) },
};

static const struct wire_message hardware = {
	"Hardware", &garboard__v1__hardware__descriptor,
	sizeof(struct hardware), hardware_fields, N(hardware_fields), NULL,
};

static const struct wire_field hello_fields[] = {
	{ "nonce", WIRE_ID, 0, .offset = offsetof(struct up_hello, nonce),
	  .max = UP_NONCE_SIZE },
	{ "epoch", WIRE_U64, 0, .offset = offsetof(struct up_hello, epoch) },
	{ "sequence", WIRE_U64, 0, .offset = offsetof(struct up_hello, sequence) },
	{ "generation", WIRE_U64, 0, .offset = offsetof(struct up_hello, generation) },
	{ "desired_sha256", WIRE_ID, WIRE_OPTIONAL,
	  .offset = offsetof(struct up_hello, desired_sha256),
	  .aux = offsetof(struct up_hello, has_desired), .max = 32 },
	{ "identity", WIRE_MESSAGE, 0, .offset = offsetof(struct up_hello, identity),
	  .sub = &wire_identity },
	{ "features", WIRE_TEXTS, 0, .offset = offsetof(struct up_hello, features),
	  .max = UP_LIST_MAX, .text_max = 64 },
	{ "hardware", WIRE_MESSAGE, WIRE_OPTIONAL | WIRE_ABSENT_ZERO,
	  .offset = offsetof(struct up_hello, hardware), .sub = &hardware },
};

static const struct wire_message hello = {
	"Hello", &garboard__v1__hello__descriptor, sizeof(struct up_hello),
	hello_fields, N(hello_fields), NULL,
};

static const struct wire_field enrol_fields[] = {
	{ "token", WIRE_TEXT, WIRE_OPTIONAL, .offset = offsetof(struct up_enrol, token),
	  .max = UP_TOKEN_MAX },
	{ "report_key", WIRE_ID, 0, .offset = offsetof(struct up_enrol, report_key),
	  .max = KEY_PUBLIC_SIZE },
	{ "seal_key", WIRE_ID, 0, .offset = offsetof(struct up_enrol, seal_key),
	  .max = KEY_PUBLIC_SIZE },
	{ "csr", WIRE_BYTES, 0, .offset = offsetof(struct up_enrol, csr),
	  .max = UP_CSR_MAX },
	{ "identity", WIRE_MESSAGE, 0, .offset = offsetof(struct up_enrol, identity),
	  .sub = &wire_identity },
};

static const struct wire_message enrol = {
	"EnrolRequest", &garboard__v1__enrol_request__descriptor,
	sizeof(struct up_enrol), enrol_fields, N(enrol_fields), NULL,
};

static const struct wire_field item_fields[] = {
	{ "key", WIRE_STRING, WIRE_EVIDENCE, .offset = offsetof(struct up_item, key),
	  .max = UP_TEXT_MAX },
	{ "state", WIRE_U8, 0, .offset = offsetof(struct up_item, state),
	  .max = UP_ITEM_STATES - 1 },
	{ "have", WIRE_STRING, TOLD, .offset = offsetof(struct up_item, have),
	  .max = UP_TEXT_MAX },
	{ "want", WIRE_STRING, TOLD, .offset = offsetof(struct up_item, want),
	  .max = UP_TEXT_MAX },
	{ "reason", WIRE_STRING, TOLD, .offset = offsetof(struct up_item, reason),
	  .max = UP_TEXT_MAX },
};

static const struct wire_message item = {
	"Item", &garboard__v1__item__descriptor, sizeof(struct up_item),
	item_fields, N(item_fields), NULL,
};

static const struct wire_field resource_fields[] = {
	{ "name", WIRE_RESOURCE, 0, .offset = offsetof(struct up_resource, id) },
	{ "mode", WIRE_ENUM, 0, .offset = offsetof(struct up_resource, mode),
	  .max = MODE_MAX - 1 },
	{ "worst", WIRE_U8, 0, .offset = offsetof(struct up_resource, worst),
	  .max = UP_ITEM_STATES - 1 },
	{ "total", WIRE_U32, 0, .offset = offsetof(struct up_resource, total) },
	{ "items", WIRE_MESSAGES, WIRE_EVIDENCE,
	  .offset = offsetof(struct up_resource, items),
	  .aux = offsetof(struct up_resource, n_items), .max = UP_ITEMS_MAX,
	  .sub = &item },
	{ "repairs", WIRE_U64, 0, .offset = offsetof(struct up_resource, repairs) },
	{ "contended", WIRE_BOOL, 0, .offset = offsetof(struct up_resource, contended) },
	{ "writer", WIRE_TEXT, TOLD, .offset = offsetof(struct up_resource, writer),
	  .max = sizeof(((struct up_resource *)0)->writer) },
	{ "fault", WIRE_TEXT, TOLD, .offset = offsetof(struct up_resource, fault),
	  .max = UP_TEXT_MAX },
	{ "proof_age", WIRE_U64, 0, .offset = offsetof(struct up_resource, proof_age) },
};

static const struct wire_message resource = {
	"ResourceReport", &garboard__v1__resource_report__descriptor,
	sizeof(struct up_resource), resource_fields, N(resource_fields), NULL,
};

static const struct wire_field k3s_fields[] = {
	{ "unit_state", WIRE_TEXT, TOLD, .offset = offsetof(struct k3s_status, unit_state),
	  .max = sizeof(((struct k3s_status *)0)->unit_state) },
	{ "restarts", WIRE_U32, 0, .offset = offsetof(struct k3s_status, restarts) },
	{ "version", WIRE_TEXT, TOLD, .offset = offsetof(struct k3s_status, version),
	  .max = ORDER_NAME_MAX },
	{ "binary_sha256", WIRE_TEXT, WIRE_OPTIONAL,
	  .offset = offsetof(struct k3s_status, binary_sha256), .max = 65,
	  .check = allow_hex64 },
	{ "last_lines", WIRE_TEXTS, TOLD,
	  .offset = offsetof(struct k3s_status, last_lines), .max = UP_LIST_MAX,
	  .text_max = UP_TEXT_MAX },
	{ "has_data", WIRE_BOOL, 0, .offset = offsetof(struct k3s_status, has_data) },
	{ "config_sha256", WIRE_TEXT, WIRE_OPTIONAL,
	  .offset = offsetof(struct k3s_status, config_sha256), .max = 65,
	  .check = allow_hex64 },
	{ "ca_sha256", WIRE_TEXT, WIRE_OPTIONAL,
	  .offset = offsetof(struct k3s_status, ca_sha256), .max = 65,
	  .check = allow_hex64 },
	{ "unit_foreign", WIRE_BOOL, 0,
	  .offset = offsetof(struct k3s_status, unit_foreign) },
};

const struct wire_message wire_k3s_status = {
	"K3sStatus", &garboard__v1__k3s_status__descriptor,
	sizeof(struct k3s_status), k3s_fields, N(k3s_fields), NULL,
};

static const struct wire_field report_fields[] = {
	{ "counter", WIRE_U64, 0, .offset = offsetof(struct up_report, counter) },
	{ "generation", WIRE_U64, 0, .offset = offsetof(struct up_report, generation) },
	{ "resources", WIRE_ARRAY, 0, .offset = offsetof(struct up_report, resources),
	  .aux = offsetof(struct up_report, n_resources), .max = RESOURCE_MAX,
	  .sub = &resource },
	{ "k3s", WIRE_MESSAGE, 0, .offset = offsetof(struct up_report, k3s),
	  .sub = &wire_k3s_status },
	{ "carries_endpoint", WIRE_BOOL, 0,
	  .offset = offsetof(struct up_report, carries_endpoint) },
	{ "settled", WIRE_BOOL, 0, .offset = offsetof(struct up_report, settled) },
	{ "tunnels", WIRE_TEXTS, 0, .offset = offsetof(struct up_report, tunnels),
	  .max = UP_LIST_MAX, .text_max = IF_NAMESIZE + IP_TEXT_MAX },
	{ "uncovered", WIRE_TEXTS, TOLD,
	  .offset = offsetof(struct up_report, uncovered), .max = UP_LIST_MAX,
	  .text_max = UP_TEXT_MAX },
};

static const struct wire_message report = {
	"Report", &garboard__v1__report__descriptor, sizeof(struct up_report),
	report_fields, N(report_fields), NULL,
};

static const struct wire_field facts_fields[] = {
	{ "identity", WIRE_MESSAGE, 0, .offset = offsetof(struct up_facts, identity),
	  .sub = &wire_identity },
	{ "k3s", WIRE_MESSAGE, 0, .offset = offsetof(struct up_facts, k3s),
	  .sub = &wire_k3s_status },
	{ "founding", WIRE_MESSAGE, WIRE_OPTIONAL,
	  .offset = offsetof(struct up_facts, founding),
	  .aux = offsetof(struct up_facts, has_founding), .sub = &wire_founding },
	{ "vip_interfaces", WIRE_TEXTS, TOLD,
	  .offset = offsetof(struct up_facts, vip_interfaces), .max = UP_LIST_MAX,
	  .text_max = 16, .check = allow_interface },
	{ "leftovers", WIRE_TEXTS, TOLD, .offset = offsetof(struct up_facts, leftovers),
	  .max = UP_LIST_MAX, .text_max = UP_TEXT_MAX },
	{ "clock", WIRE_U64, 0, .offset = offsetof(struct up_facts, clock) },
	{ "clock_synchronised", WIRE_BOOL, 0,
	  .offset = offsetof(struct up_facts, clock_synchronised) },
	{ "hardware", WIRE_MESSAGE, WIRE_OPTIONAL | WIRE_ABSENT_ZERO,
	  .offset = offsetof(struct up_facts, hardware), .sub = &hardware },
};

static const struct wire_message facts = {
	"Facts", &garboard__v1__facts__descriptor, sizeof(struct up_facts),
	facts_fields, N(facts_fields), NULL,
};

static const struct wire_field probe_fields[] = {
	{ "ok", WIRE_BOOL, 0, .offset = offsetof(struct up_probe, ok) },
	{ "text", WIRE_TEXT, TOLD, .offset = offsetof(struct up_probe, text),
	  .max = UP_TEXT_MAX },
	{ "status", WIRE_U32, 0, .offset = offsetof(struct up_probe, status) },
	{ "body", WIRE_BYTES, WIRE_OPTIONAL, .offset = offsetof(struct up_probe, body),
	  .max = UP_BODY_MAX },
};

static const struct wire_message probe = {
	"ProbeResult", &garboard__v1__probe_result__descriptor,
	sizeof(struct up_probe), probe_fields, N(probe_fields), NULL,
};

static const struct wire_field result_fields[] = {
	{ "epoch", WIRE_U64, 0, .offset = offsetof(struct up_result, epoch) },
	{ "sequence", WIRE_U64, 0, .offset = offsetof(struct up_result, sequence) },
	{ "code", WIRE_ENUM, 0, .offset = offsetof(struct up_result, code),
	  .max = RESULT_CODE_MAX - 1 },
	{ "text", WIRE_TEXT, TOLD, .offset = offsetof(struct up_result, text),
	  .max = UP_TEXT_MAX },
	{ "facts", WIRE_POINTER, WIRE_OPTIONAL,
	  .offset = offsetof(struct up_result, facts), .sub = &facts },
	{ "credential", WIRE_MESSAGE, WIRE_OPTIONAL | WIRE_ABSENT_ZERO,
	  .offset = offsetof(struct up_result, credential), .sub = &wire_sealed },
	{ "probe", WIRE_POINTER, WIRE_OPTIONAL,
	  .offset = offsetof(struct up_result, probe), .sub = &probe },
};

static const struct wire_message result = {
	"OrderResult", &garboard__v1__order_result__descriptor,
	sizeof(struct up_result), result_fields, N(result_fields), NULL,
};

static const struct wire_field heartbeat_fields[] = {
	{ "counter", WIRE_U64, 0, .offset = offsetof(struct up_heartbeat, counter) },
	{ "generation", WIRE_U64, 0,
	  .offset = offsetof(struct up_heartbeat, generation) },
};

static const struct wire_message heartbeat = {
	"Heartbeat", &garboard__v1__heartbeat__descriptor,
	sizeof(struct up_heartbeat), heartbeat_fields, N(heartbeat_fields),
	NULL,
};

const struct wire_message *const up_arms[UP_KIND_MAX] = {
	[UP_HELLO] = &hello,
	[UP_ENROL] = &enrol,
	[UP_REPORT] = &report,
	[UP_RESULT] = &result,
	[UP_HEARTBEAT] = &heartbeat,
};
