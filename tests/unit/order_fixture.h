/*
 * order_fixture.h - a scratch node that takes orders: real keys, envelopes
 * and files, no D-Bus, no link. Included once, by a test program, after
 * cmocka.h.
 */
#pragma once

#include <errno.h>
#include <signal.h>

#include "scratch.h"

#include "agent/bus/bus.h"
#include "agent/k3s.h"
#include "agent/orders.h"
#include "common/log.h"
#include "proto/envelope.h"
#include "proto/frame.h"
#include "proto/seal.h"

#define DEADLINE (10 * USEC_PER_SEC)

static const uint8_t cluster[16] = { 0xc1 }, node[16] = { 0x0d },
		     other[16] = { 0xee };

static struct {
	struct key *root, *order, *foreign, *report, *seal;
	struct bundle bundle;
	struct node_state state;
	struct resource_host host;
	struct engine *engine;
	struct k3s *k3s;
	struct orders *orders;
	uint8_t nonce[16];
	uint64_t epoch, sequence;
	struct up *result;		/* the last one emitted */
	unsigned int emitted, identity_changes;
	uint8_t frame_type;
	uint8_t frame[8192];
	size_t frame_size;
	unsigned int frames_before_result;
} t;

static const struct resource *const nothing[RESOURCE_MAX];

static inline int on_send(void *userdata, uint8_t type, const void *body, size_t size)
{
	(void)userdata;
	assert_true(size <= sizeof(t.frame));
	t.frame_type = type;
	memcpy(t.frame, body, size);
	t.frame_size = size;
	t.frames_before_result = t.emitted;
	return 0;
}

static inline void on_emit(void *userdata, const void *payload, size_t size)
{
	struct fault f = FAULT_INIT;

	(void)userdata;
	t.result = up_free(t.result);
	assert_int_equal(up_decode(payload, size, &t.result, &f), 0);
	assert_int_equal(t.result->kind, UP_RESULT);
	t.emitted++;
}

static inline void on_identity(void *userdata)
{
	(void)userdata;
	t.identity_changes++;
}

static inline void start_orders(void)
{
	struct orders_env env = { .state = &t.state,
				  .bundle = &t.bundle,
				  .engine = t.engine,
				  .host = &t.host,
				  .k3s = t.k3s,
				  .report_key = t.report,
				  .seal_key = t.seal,
				  .send = on_send,
				  .emit = on_emit,
				  .identity_changed = on_identity };

	assert_int_equal(orders_new(&env, &t.orders), 0);
	orders_session(t.orders, t.nonce);
}

static inline void give_statement(uint64_t epoch)
{
	struct statement st = { .epoch = epoch };
	uint8_t bytes[STATEMENT_SIZE];
	struct fault f = FAULT_INIT;

	memcpy(st.cluster_id, cluster, 16);
	key_public(t.order, st.order_key);
	assert_int_equal(statement_sign(&st, t.root, bytes, &f), 0);
	assert_int_equal(orders_statement(t.orders, bytes, sizeof(bytes), &f),
			 0);
}

static inline int make_node(bool enrolled)
{
	struct engine_params p = engine_params_default();
	struct fault f = FAULT_INIT;

	memset(t.nonce, 0x4e, sizeof(t.nonce));
	t.epoch = 1;
	t.sequence = 0;
	t.emitted = t.identity_changes = t.frame_type = 0;
	t.result = up_free(t.result);
	assert_int_equal(state_load(scratch_state, 0, &t.state, &f), 0);
	if (enrolled)
		assert_int_equal(state_set_identity(&t.state, node, "n1", &f),
				 0);
	memcpy(t.bundle.cluster_id, cluster, 16);
	key_public(t.root, t.bundle.trust_root);
	t.host.root = scratch;
	t.host.state_dir = scratch_state;
	assert_int_equal(sd_event_new(&t.host.event), 0);
	assert_int_equal(bus_new(t.host.event, "unix:path=/nonexistent",
				 &t.host.bus, &f), 0);
	assert_int_equal(engine_new(&t.host, nothing, &p, &t.engine), 0);
	assert_int_equal(k3s_new(&t.host, NULL, NULL, &t.k3s), 0);
	start_orders();
	give_statement(1);
	return 0;
}

static inline int begin(void **state)
{
	(void)state;
	strcpy(scratch, "/tmp/garboard-test-XXXXXX");
	if (!mkdtemp(scratch))
		return -1;
	(void)snprintf(scratch_state, sizeof(scratch_state), "%s/state",
		       scratch);
	return make_node(true);
}

static inline int begin_unenrolled(void **state)
{
	(void)state;
	strcpy(scratch, "/tmp/garboard-test-XXXXXX");
	if (!mkdtemp(scratch))
		return -1;
	(void)snprintf(scratch_state, sizeof(scratch_state), "%s/state",
		       scratch);
	return make_node(false);
}

static inline void stop(void)
{
	t.orders = orders_free(t.orders);
	t.k3s = k3s_free(t.k3s);
	t.engine = engine_free(t.engine);
	t.host.bus = bus_free(t.host.bus);
	t.host.event = sd_event_unref(t.host.event);
	state_done(&t.state);
}

static inline int end(void **state)
{
	char command[128];

	(void)state;
	stop();
	t.result = up_free(t.result);
	(void)snprintf(command, sizeof(command), "rm -rf %s", scratch);
	return system(command);
}

/* ---- sending ---- */

struct forge {			/* what differs from an honest envelope */
	const struct key *key;
	const uint8_t *cluster, *node, *binding;
	enum envelope_direction direction;
	uint64_t epoch, sequence;
};

static inline void wrap(const struct forge *g, const void *payload, size_t size,
		 uint8_t **ret_bytes, size_t *ret_size)
{
	struct envelope_header h = {
		.direction = g->direction ? g->direction : ENVELOPE_DOWN,
		.epoch = g->epoch ? g->epoch : t.epoch,
		.sequence = g->sequence ? g->sequence : t.sequence,
	};
	struct fault f = FAULT_INIT;

	memcpy(h.cluster_id, g->cluster ? g->cluster : cluster, 16);
	memcpy(h.node_id, g->node ? g->node : t.state.node_id, 16);
	memcpy(h.binding, g->binding ? g->binding : t.nonce, 16);
	assert_int_equal(envelope_sign(&h, g->key ? g->key : t.order, payload,
				       size, ret_bytes, ret_size, &f), 0);
}

static inline int send_as(const struct forge *g, const struct order *o)
{
	uint8_t *payload = NULL, *bytes = NULL;
	struct fault f = FAULT_INIT;
	size_t size, n;
	int r;

	assert_int_equal(order_encode(o, &payload, &size, &f), 0);
	wrap(g, payload, size, &bytes, &n);
	r = orders_receive(t.orders, bytes, n, &f);
	free(payload);
	free(bytes);
	return r;
}

/* The next honest order; waits for its result. Takes the order. */
static inline enum result_code send_order(struct order *o)
{
	const struct forge honest = { 0 };
	usec until = clock_boottime() + DEADLINE;
	unsigned int before = t.emitted;

	t.sequence++;
	assert_int_equal(send_as(&honest, o), 0);
	(void)order_free(o);
	while (t.emitted == before && clock_boottime() < until)
		(void)sd_event_run(t.host.event, USEC_PER_SEC);
	assert_int_equal(t.emitted, before + 1);
	assert_int_equal(t.result->result.sequence, t.sequence);
	return t.result->result.code;
}

static inline void set_bytes(struct order_bytes *b, const char *text)
{
	b->v = (uint8_t *)strdup(text);
	b->n = strlen(text);
}

static inline struct order *manifest(const char *text)
{
	struct order *o = order_new(ORDER_PUT_MANIFEST);

	o->manifest.slot = SLOT_KUBE_VIP;
	set_bytes(&o->manifest.content, text);
	(void)key_sha256(text, strlen(text), o->manifest.sha256);
	return o;
}

#define MANIFEST \
	"/var/lib/rancher/k3s/server/manifests/garboard-kube-vip.yaml"

static inline bool exists(const char *path)
{
	return access(scratch_path(path), F_OK) == 0;
}

static inline int make_keys(void **state)
{
	struct fault f = FAULT_INIT;
	sigset_t chld;

	(void)state;
	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &chld, NULL);
	log_set_level(LOG_LEVEL_ERROR);
	key_init();
	return key_generate(KEY_ED25519, &t.root, &f) ||
	       key_generate(KEY_ED25519, &t.order, &f) ||
	       key_generate(KEY_ED25519, &t.foreign, &f) ||
	       key_generate(KEY_ED25519, &t.report, &f) ||
	       key_generate(KEY_X25519, &t.seal, &f);
}

static inline int free_keys(void **state)
{
	(void)state;
	key_free(t.root);
	key_free(t.order);
	key_free(t.foreign);
	key_free(t.report);
	key_free(t.seal);
	return 0;
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

