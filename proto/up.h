/*
 * up.h - what a node says, as plain values: hello, enrolment, report,
 * result, heartbeat. The counterpart of order.h for payloads of up
 * envelopes, with the same strictness in both directions.
 *
 * Texts from a node are evidence written by a machine that may be hostile:
 * they are bounded, valid UTF-8 and without control characters when they
 * leave up_decode(). A struct up owns what it points to.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"
#include "common/strlist.h"
#include "proto/desired.h"
#include "proto/order.h"
#include "proto/seal.h"

#define UP_TEXT_MAX 1024	/* longer is cut by up_encode() */
#define UP_ITEMS_MAX 1024	/* per resource */
#define UP_LIST_MAX 64		/* macs, addresses, last lines, leftovers */
#define UP_TOKEN_MAX 256
#define UP_CSR_MAX 8192
#define UP_BODY_MAX 65536	/* of a probe */
#define UP_NONCE_SIZE 16

enum up_kind {			/* field number in message Up, minus 1 */
	UP_HELLO,
	UP_ENROL,
	UP_REPORT,
	UP_RESULT,
	UP_HEARTBEAT,
	UP_KIND_MAX,
};

struct up_row {
	const char *name;	/* "Hello" */
	size_t limit;
	unsigned int states;	/* enum order_state of the node */
};

const struct up_row *up_row(enum up_kind kind);

/* All NUL-terminated; "" where the node cannot tell. */
struct identity {
	char hostname[256];
	char machine_id[64];
	char product_uuid[64];
	char serial[128];
	struct strlist macs;
	char initiator_name[256];
	char boot_id[64];
	char kernel[128];
	struct strlist addresses;
	char agent_version[64];
};

/* Observed and never set; 0 and "" where the node cannot tell. */
struct hardware {
	uint64_t memory_total;		/* bytes the kernel addresses */
	uint64_t memory_installed;	/* bytes, by SMBIOS */
	uint64_t disk_size, disk_free;	/* bytes, below /var/lib */
	char firmware[192];		/* vendor, version, date */
	char product[192];		/* vendor, name */
};

struct up_hello {
	uint8_t nonce[UP_NONCE_SIZE];
	uint64_t epoch, sequence;	/* of the last order acted on */
	uint64_t generation;		/* of the accepted desired state */
	uint8_t desired_sha256[32];
	bool has_desired;
	struct identity identity;
	struct strlist features;
	struct hardware hardware;
};

struct up_enrol {
	char token[UP_TOKEN_MAX];	/* "": waiting for approval */
	uint8_t report_key[32];
	uint8_t seal_key[32];
	struct order_bytes csr;
	struct identity identity;
};

#define UP_ITEM_STATES 6		/* enum item_state of the agent */

struct up_item {
	char *key;
	uint8_t state;			/* enum item_state */
	char *have, *want, *reason;	/* never NULL */
};

struct up_resource {
	enum resource_id id;
	enum mode mode;
	uint8_t worst;			/* enum item_state */
	uint32_t total;
	struct up_item *items;
	size_t n_items;
	uint64_t repairs;
	bool contended;
	char writer[128];
	char fault[UP_TEXT_MAX];
	uint64_t proof_age;		/* microseconds */
};

struct k3s_status {
	char unit_state[64];		/* "active/running" */
	uint32_t restarts;
	char version[ORDER_NAME_MAX];
	char binary_sha256[65];		/* hex, or "" */
	struct strlist last_lines;
	bool has_data;
	char config_sha256[65];
	char ca_sha256[65];
	bool unit_foreign;
};

struct up_report {
	uint64_t counter, generation;
	struct up_resource resources[RESOURCE_MAX];
	size_t n_resources;
	struct k3s_status k3s;
	bool carries_endpoint;
	bool settled;
	struct strlist tunnels;		/* "wg0 10.61.0.10", of a gateway */
	struct strlist uncovered;	/* by no layer of the kill-switch */
};

struct up_heartbeat {
	uint64_t counter, generation;
};

enum result_code { RESULT_DONE, RESULT_FAILED, RESULT_REFUSED, RESULT_CODE_MAX };

struct up_facts {
	struct identity identity;
	struct k3s_status k3s;
	struct founding_record founding;
	bool has_founding;
	struct strlist vip_interfaces;
	struct strlist leftovers;
	uint64_t clock;			/* microseconds, wall */
	bool clock_synchronised;
	struct hardware hardware;
};

struct up_probe {
	bool ok;
	char text[UP_TEXT_MAX];
	uint32_t status;
	struct order_bytes body;
};

struct up_result {
	uint64_t epoch, sequence;	/* of the order answered */
	enum result_code code;
	char text[UP_TEXT_MAX];
	struct up_facts *facts;		/* NULL but for ReadFacts */
	struct sealed credential;	/* box NULL: none */
	struct up_probe *probe;		/* NULL but for Probe */
};

struct up {
	enum up_kind kind;
	union {
		struct up_hello hello;
		struct up_enrol enrol;
		struct up_report report;
		struct up_result result;
		struct up_heartbeat heartbeat;
	};
};

struct up *up_new(enum up_kind kind);	/* zeroed; NULL: no memory */
struct up *up_free(struct up *u);	/* returns NULL */

/*
 * Whether a line of k3s's log tells why it ended: level=fatal before :6443
 * is open, afterwards an error "Shutdown request received: " with a quoted
 * cause (the bare one that follows any end says nothing).
 */
bool k3s_line_is_cause(const char *line);

/* Release what an embedded value owns, and zero it. */
void identity_done(struct identity *i);
void k3s_status_done(struct k3s_status *s);

/* Appends a copy; NULL text is "". -E2BIG above UP_ITEMS_MAX, -ENOMEM. */
int up_resource_add(struct up_resource *r, const char *key, uint8_t state,
		    const char *have, const char *want, const char *reason);

int up_decode(const void *bytes, size_t size, struct up **ret_up,
	      struct fault *f);
/* Texts are cleaned and cut to their limits; lists are cut as well. */
int up_encode(const struct up *u, uint8_t **ret_bytes, size_t *ret_size,
	      struct fault *f);
