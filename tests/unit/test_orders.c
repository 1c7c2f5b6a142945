/* Orders from envelope to result, with real keys and a scratch node. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

static int on_send(void *userdata, uint8_t type, const void *body, size_t size)
{
	(void)userdata;
	assert_true(size <= sizeof(t.frame));
	t.frame_type = type;
	memcpy(t.frame, body, size);
	t.frame_size = size;
	t.frames_before_result = t.emitted;
	return 0;
}

static void on_emit(void *userdata, const void *payload, size_t size)
{
	struct fault f = FAULT_INIT;

	(void)userdata;
	t.result = up_free(t.result);
	assert_int_equal(up_decode(payload, size, &t.result, &f), 0);
	assert_int_equal(t.result->kind, UP_RESULT);
	t.emitted++;
}

static void on_identity(void *userdata)
{
	(void)userdata;
	t.identity_changes++;
}

static void start_orders(void)
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

static void give_statement(uint64_t epoch)
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

static int make_node(bool enrolled)
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

static int begin(void **state)
{
	(void)state;
	strcpy(scratch, "/tmp/garboard-test-XXXXXX");
	if (!mkdtemp(scratch))
		return -1;
	(void)snprintf(scratch_state, sizeof(scratch_state), "%s/state",
		       scratch);
	return make_node(true);
}

static int begin_unenrolled(void **state)
{
	(void)state;
	strcpy(scratch, "/tmp/garboard-test-XXXXXX");
	if (!mkdtemp(scratch))
		return -1;
	(void)snprintf(scratch_state, sizeof(scratch_state), "%s/state",
		       scratch);
	return make_node(false);
}

static void stop(void)
{
	t.orders = orders_free(t.orders);
	t.k3s = k3s_free(t.k3s);
	t.engine = engine_free(t.engine);
	t.host.bus = bus_free(t.host.bus);
	t.host.event = sd_event_unref(t.host.event);
	state_done(&t.state);
}

static int end(void **state)
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

static void wrap(const struct forge *g, const void *payload, size_t size,
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

static int send_as(const struct forge *g, const struct order *o)
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
static enum result_code send_order(struct order *o)
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

static void set_bytes(struct order_bytes *b, const char *text)
{
	b->v = (uint8_t *)strdup(text);
	b->n = strlen(text);
}

static struct order *manifest(const char *text)
{
	struct order *o = order_new(ORDER_PUT_MANIFEST);

	o->manifest.slot = SLOT_KUBE_VIP;
	set_bytes(&o->manifest.content, text);
	(void)key_sha256(text, strlen(text), o->manifest.sha256);
	return o;
}

#define MANIFEST \
	"/var/lib/rancher/k3s/server/manifests/garboard-kube-vip.yaml"

static bool exists(const char *path)
{
	return access(scratch_path(path), F_OK) == 0;
}

/* ---- acceptance ---- */

static void honest_order_is_done_and_kept(void **state)
{
	struct node_state again;
	struct fault f = FAULT_INIT;
	struct stat st;

	(void)state;
	assert_int_equal(send_order(manifest("a: 1\n")), RESULT_DONE);
	assert_string_equal(t.result->result.text, "changed");
	assert_int_equal(stat(scratch_path(MANIFEST), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(send_order(manifest("a: 1\n")), RESULT_DONE);
	assert_string_equal(t.result->result.text, "unchanged");
	assert_int_equal(state_load(scratch_state, 0, &again, &f), 0);
	assert_int_equal(again.sequence, 2);
	assert_int_equal(again.epoch, 1);
	state_done(&again);
}

static void repeated_order_is_answered_not_redone(void **state)
{
	const struct forge honest = { 0 };
	struct order *o = manifest("a: 1\n"), *differs = manifest("a: 2\n");

	(void)state;
	t.sequence = 5;
	assert_int_equal(send_as(&honest, o), 0);
	assert_int_equal(unlink(scratch_path(MANIFEST)), 0);
	assert_int_equal(send_as(&honest, o), 0);
	assert_int_equal(t.emitted, 2);
	assert_int_equal(t.result->result.sequence, 5);
	assert_string_equal(t.result->result.text, "changed");
	assert_false(exists(MANIFEST));
	/* Other bytes under a number that was used are no repetition. */
	assert_true(send_as(&honest, differs) < 0);
	assert_int_equal(t.emitted, 2);
	assert_false(exists(MANIFEST));
	/* It is answered in a later session and by a restarted agent, too. */
	stop();
	(void)make_node(false);
	assert_true(t.state.enrolled);
	memset(t.nonce, 0x77, sizeof(t.nonce));
	orders_session(t.orders, t.nonce);
	t.sequence = 5;
	assert_int_equal(send_as(&honest, o), 0);
	assert_string_equal(t.result->result.text, "changed");
	assert_false(exists(MANIFEST));
	order_free(o);
	order_free(differs);
}

static void interrupted_order_is_not_redone(void **state)
{
	const struct forge honest = { 0 };
	struct order *o = manifest("a: 1\n");
	struct fault f = FAULT_INIT;

	(void)state;
	/* The number was taken, then the power went. */
	t.sequence = 3;
	assert_int_equal(state_set_order(&t.state, 1, 3, &f), 0);
	assert_int_equal(send_as(&honest, o), 0);
	assert_int_equal(t.result->result.code, RESULT_FAILED);
	assert_non_null(strstr(t.result->result.text, "outcome unknown"));
	assert_false(exists(MANIFEST));
	order_free(o);
}

static void forged_orders_change_nothing(void **state)
{
	uint8_t elsewhere[16] = { 1 };
	const struct forge forgeries[] = {
		{ .cluster = other, .sequence = 10 },
		{ .node = other, .sequence = 10 },
		{ .key = t.foreign, .sequence = 10 },
		{ .binding = elsewhere, .sequence = 10 },
		{ .direction = ENVELOPE_UP, .sequence = 10 },
		{ .epoch = 2, .sequence = 10 },
		{ .sequence = 1 },	/* older than the last one */
	};
	struct order *o = manifest("forged: true\n");
	size_t i;

	(void)state;
	t.sequence = 1;
	assert_int_equal(send_order(manifest("a: 1\n")), RESULT_DONE);
	assert_int_equal(unlink(scratch_path(MANIFEST)), 0);
	for (i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++) {
		assert_true(send_as(&forgeries[i], o) < 0);
		assert_int_equal(t.emitted, 1);
		assert_int_equal(t.state.sequence, 2);
		assert_false(exists(MANIFEST));
	}
	order_free(o);
}

static void any_changed_byte_is_noticed(void **state)
{
	const struct forge honest = { .sequence = 9 };
	struct order *o = manifest("a: 1\n");
	uint8_t *payload = NULL, *bytes = NULL;
	struct fault f = FAULT_INIT;
	size_t size, n, i;

	(void)state;
	assert_int_equal(order_encode(o, &payload, &size, &f), 0);
	wrap(&honest, payload, size, &bytes, &n);
	for (i = 0; i < n; i++) {
		fault_clear(&f);
		bytes[i] ^= 1;
		assert_true(orders_receive(t.orders, bytes, n, &f) < 0);
		bytes[i] ^= 1;
		fault_clear(&f);
		assert_true(orders_receive(t.orders, bytes, i, &f) < 0);
	}
	assert_int_equal(t.emitted, 0);
	assert_false(exists(MANIFEST));
	assert_int_equal(orders_receive(t.orders, bytes, n, &f), 0);
	assert_true(exists(MANIFEST));
	order_free(o);
	free(payload);
	free(bytes);
}

static void unknown_field_is_refused(void **state)
{
	const struct forge honest = { .sequence = 1 };
	/* Order { read_facts {} } and a field of number 99. */
	static const uint8_t payload[] = { 0x4a, 0x00, 0x98, 0x06, 0x01 };
	uint8_t *bytes = NULL;
	struct fault f = FAULT_INIT;
	size_t n;

	(void)state;
	wrap(&honest, payload, sizeof(payload), &bytes, &n);
	assert_int_equal(orders_receive(t.orders, bytes, n, &f), 0);
	assert_int_equal(t.result->result.code, RESULT_REFUSED);
	free(bytes);
}

static void older_statement_is_refused(void **state)
{
	struct statement st = { .epoch = 1 };
	uint8_t bytes[STATEMENT_SIZE];
	struct fault f = FAULT_INIT;

	(void)state;
	give_statement(4);
	assert_int_equal(t.state.sequence, 0);
	memcpy(st.cluster_id, cluster, 16);
	key_public(t.foreign, st.order_key);
	assert_int_equal(statement_sign(&st, t.root, bytes, &f), 0);
	assert_true(orders_statement(t.orders, bytes, sizeof(bytes), &f) < 0);
	/* Nor a second key for the same epoch, nor one of another root. */
	st.epoch = 4;
	assert_int_equal(statement_sign(&st, t.root, bytes, &f), 0);
	assert_true(orders_statement(t.orders, bytes, sizeof(bytes), &f) < 0);
	st.epoch = 9;
	assert_int_equal(statement_sign(&st, t.foreign, bytes, &f), 0);
	assert_true(orders_statement(t.orders, bytes, sizeof(bytes), &f) < 0);
	assert_int_equal(t.state.epoch, 4);
}

static void nothing_before_enrolment_but_enrolment(void **state)
{
	struct order *o = order_new(ORDER_TRUST_UPDATE);

	(void)state;
	assert_int_equal(send_order(manifest("a: 1\n")), RESULT_REFUSED);
	assert_false(exists(MANIFEST));
	memcpy(o->trust.node_id, node, 16);
	o->trust.has_node_id = true;
	strcpy(o->trust.node_name, "n1");
	set_bytes(&o->trust.certificate, "leaf");
	o->trust.ca = calloc(1, sizeof(*o->trust.ca));
	o->trust.n_ca = 1;
	set_bytes(&o->trust.ca[0], "root");
	assert_int_equal(send_order(o), RESULT_DONE);
	assert_int_equal(t.identity_changes, 1);
	assert_memory_equal(t.state.node_id, node, 16);
	/* The certificate follows the result: the link hangs up on it. */
	assert_int_equal(t.frame_type, FRAME_CERTIFICATE);
	assert_int_equal(t.frames_before_result, 2);
	assert_memory_equal(t.frame, "\0\0\0\4leaf\0\0\0\4root", 16);
	assert_int_equal(send_order(manifest("a: 1\n")), RESULT_DONE);
}

static void id_of_an_enrolled_node_stays(void **state)
{
	struct order *o = order_new(ORDER_TRUST_UPDATE);

	(void)state;
	memcpy(o->trust.node_id, other, 16);
	o->trust.has_node_id = true;
	assert_int_equal(send_order(o), RESULT_REFUSED);
	assert_memory_equal(t.state.node_id, node, 16);
}

static void revoked_node_takes_no_orders(void **state)
{
	const struct forge honest = { .sequence = 50 };
	struct order *o = order_new(ORDER_TRUST_UPDATE), *m;

	(void)state;
	o->trust.revoke = true;
	assert_int_equal(send_order(o), RESULT_DONE);
	m = manifest("a: 1\n");
	assert_int_equal(send_as(&honest, m), -EKEYREVOKED);
	assert_false(exists(MANIFEST));
	order_free(m);
}

/* ---- handlers ---- */

static struct order *desired_for(const char *name)
{
	struct order *o = order_new(ORDER_SET_DESIRED);

	o->desired = desired_new();
	free(o->desired->node);
	o->desired->node = strdup(name);
	o->desired->generation = 12;
	o->desired->cluster.port = 6443;
	o->desired->cluster.servers = calloc(1, sizeof(struct ip_addr));
	o->desired->cluster.n_servers = 1;
	(void)ip_addr_parse("192.0.2.11", &o->desired->cluster.servers[0]);
	return o;
}

static void desired_state_survives(void **state)
{
	struct desired *d = NULL;
	struct fault f = FAULT_INIT;

	(void)state;
	assert_int_equal(send_order(desired_for("n2")), RESULT_REFUSED);
	assert_null(engine_desired(t.engine));
	assert_int_equal(orders_stored_desired(&t.state, &d, &f), 1);
	assert_int_equal(send_order(desired_for("n1")), RESULT_DONE);
	assert_int_equal(engine_desired(t.engine)->generation, 12);
	stop();
	(void)make_node(false);
	assert_int_equal(orders_restore_desired(&t.state, t.engine, &f), 0);
	assert_int_equal(engine_desired(t.engine)->generation, 12);
}

static void facts_are_read(void **state)
{
	(void)state;
	put("/etc/machine-id", "0123456789abcdef0123456789abcdef\n");
	put("/var/lib/rancher/k3s/server/token", "K10secret::server:x");
	assert_int_equal(send_order(order_new(ORDER_READ_FACTS)), RESULT_DONE);
	assert_non_null(t.result->result.facts);
	assert_string_equal(t.result->result.facts->identity.machine_id,
			    "0123456789abcdef0123456789abcdef");
	/* K3-01: what an earlier life left is named. */
	assert_true(strlist_has(&t.result->result.facts->leftovers,
				"/var/lib/rancher/k3s/server/token"));
	assert_false(t.result->result.facts->has_founding);
}

static void lease_has_one_holder(void **state)
{
	struct order *o = order_new(ORDER_LEASE);

	(void)state;
	o->lease = (struct order_lease){ LEASE_ACQUIRE, "alice", 3,
					 60 * USEC_PER_SEC };
	assert_int_equal(send_order(o), RESULT_DONE);
	o = order_new(ORDER_LEASE);
	o->lease = (struct order_lease){ LEASE_ACQUIRE, "bob", 4,
					 60 * USEC_PER_SEC };
	assert_int_equal(send_order(o), RESULT_REFUSED);
	assert_non_null(strstr(t.result->result.text, "held by alice"));
	o = order_new(ORDER_LEASE);
	o->lease = (struct order_lease){ LEASE_RELEASE, "alice", 3, 0 };
	assert_int_equal(send_order(o), RESULT_DONE);
	/* The term is remembered: an old holder cannot come back (fencing). */
	o = order_new(ORDER_LEASE);
	o->lease = (struct order_lease){ LEASE_ACQUIRE, "alice", 3,
					 60 * USEC_PER_SEC };
	assert_int_equal(send_order(o), RESULT_REFUSED);
	o = order_new(ORDER_LEASE);
	o->lease = (struct order_lease){ LEASE_ACQUIRE, "bob", 4,
					 60 * USEC_PER_SEC };
	assert_int_equal(send_order(o), RESULT_DONE);
}

static struct order *founding(const char *uid)
{
	struct order *o = order_new(ORDER_RECORD_FOUNDING);

	strcpy(o->founding.founder, "n1");
	strcpy(o->founding.cluster_uid, uid);
	o->founding.intent = 77;
	return o;
}

static void co02_founding_is_not_overwritten(void **state)
{
	(void)state;
	assert_int_equal(send_order(founding("")), RESULT_DONE);
	assert_int_equal(send_order(founding("aaaa")), RESULT_DONE);
	assert_int_equal(send_order(founding("bbbb")), RESULT_REFUSED);
	assert_int_equal(send_order(founding("")), RESULT_REFUSED);
	assert_string_equal(t.state.founding.cluster_uid, "aaaa");
	assert_int_equal(send_order(founding("aaaa")), RESULT_DONE);
}

static struct order *stream(const char *server)
{
	struct order *o = order_new(ORDER_OPEN_STREAM);

	memset(o->stream.stream_id, 0x5a, 16);
	o->stream.target = server ? STREAM_API_SERVER : STREAM_API_LOCAL;
	if (server)
		(void)ip_addr_parse(server, &o->stream.server);
	return o;
}

static void streams_only_go_where_desired(void **state)
{
	const struct forge honest = { 0 };
	struct order *o = stream(NULL);
	uint8_t id[16];

	(void)state;
	assert_int_equal(send_order(stream(NULL)), RESULT_REFUSED);
	assert_int_equal(send_order(desired_for("n1")), RESULT_DONE);
	assert_int_equal(send_order(stream("192.0.2.99")), RESULT_REFUSED);
	assert_int_equal(t.frame_type, 0);
	t.sequence++;
	assert_int_equal(send_as(&honest, o), 0);
	assert_int_equal(t.frame_type, FRAME_STREAM_DIAL);
	assert_memory_equal(t.frame + 16, "\x19\x2b" "127.0.0.1", 11);
	/* The answer waits for the link's, and repeats do not dial again. */
	t.frame_type = 0;
	assert_int_equal(send_as(&honest, o), 0);
	assert_int_equal(t.frame_type, 0);
	assert_int_equal(t.emitted, 3);
	memset(id, 0x5a, sizeof(id));
	orders_stream_result(t.orders, id, -ECONNREFUSED, "refused");
	assert_int_equal(t.emitted, 4);
	assert_int_equal(t.result->result.code, RESULT_FAILED);
	order_free(o);
}

static struct order *configure(bool found)
{
	struct order *o = order_new(ORDER_K3S_CONFIGURE);
	uint8_t public_key[KEY_PUBLIC_SIZE];
	struct fault f = FAULT_INIT;

	strcpy(o->configure.node_name, "n1");
	(void)ip_addr_parse("192.0.2.11", &o->configure.node_ip);
	o->configure.cluster_init = found;
	if (!found)
		(void)ip_addr_parse("192.0.2.12", &o->configure.join_address);
	assert_int_equal(strlist_add(&o->configure.tls_sans, "192.0.2.10"), 0);
	key_public(t.seal, public_key);
	assert_int_equal(seal_to(public_key,
				 "k3s token for "
				 "0d000000000000000000000000000000",
				 "sesame0123", 10, &o->configure.token, &f),
			 0);
	return o;
}

static void a44_same_configuration_changes_nothing(void **state)
{
	_cleanup_free_ char *token = NULL;
	struct fault f = FAULT_INIT;
	struct stat st;
	size_t n;

	(void)state;
	assert_int_equal(send_order(configure(true)), RESULT_DONE);
	assert_string_equal(t.result->result.text, "changed");
	assert_int_equal(file_read(scratch_path("/etc/rancher/k3s/"
						"garboard-token"),
				   100, &token, &n, &f), 0);
	assert_string_equal(token, "sesame0123");
	assert_int_equal(stat(scratch_path("/etc/rancher/k3s/garboard-token"),
			      &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(send_order(configure(true)), RESULT_DONE);
	assert_string_equal(t.result->result.text, "unchanged");
	assert_int_equal(send_order(configure(false)), RESULT_DONE);
	assert_string_equal(t.result->result.text, "changed");
}

static void foreign_files_are_refused(void **state)
{
	(void)state;
	put("/etc/rancher/k3s/config.yaml.d/50-mine.yaml",
	    "tls-san:\n- other\n");
	assert_int_equal(send_order(configure(true)), RESULT_REFUSED);
	assert_non_null(strstr(t.result->result.text, "50-mine.yaml"));
	assert_non_null(strstr(t.result->result.text, "tls-san"));
	assert_false(exists("/etc/rancher/k3s/config.yaml"));
	/* An appending key, and one that is not ours, may stay. */
	put("/etc/rancher/k3s/config.yaml.d/50-mine.yaml",
	    "tls-san+:\n- other\nkubelet-arg: [a=b]\n");
	assert_int_equal(send_order(configure(true)), RESULT_DONE);
	put("/etc/systemd/system/k3s.service", "[Service]\nExecStart=/x\n");
	assert_int_equal(send_order(configure(true)), RESULT_REFUSED);
	put("/etc/rancher/k3s/config.yaml", "node-name: mine\n");
	assert_int_equal(send_order(configure(true)), RESULT_REFUSED);
}

static struct order *blob(const char *all, size_t offset, size_t n)
{
	struct order *o = order_new(ORDER_BLOB);

	o->blob.kind = BLOB_K3S;
	o->blob.size = strlen(all);
	o->blob.offset = offset;
	(void)key_sha256(all, strlen(all), o->blob.sha256);
	o->blob.data.v = malloc(n);
	memcpy(o->blob.data.v, all + offset, n);
	o->blob.data.n = n;
	return o;
}

static struct order *install(const char *content)
{
	struct order *o = order_new(ORDER_K3S_INSTALL);

	strcpy(o->install.version, "v1.36.4+k3s1");
	(void)key_sha256(content, strlen(content), o->install.sha256);
	return o;
}

static void binary_is_verified_before_it_is_placed(void **state)
{
	static const char program[] = "#!/bin/sh\nexit 0\n";
	struct order *o;
	struct stat st;

	(void)state;
	assert_int_equal(send_order(install(program)), RESULT_REFUSED);
	/* Out of order, then in order. */
	assert_int_equal(send_order(blob(program, 4, 4)), RESULT_REFUSED);
	assert_int_equal(send_order(blob(program, 0, 8)), RESULT_DONE);
	assert_int_equal(send_order(install(program)), RESULT_REFUSED);
	assert_int_equal(send_order(blob(program, 8, sizeof(program) - 9)),
			 RESULT_DONE);
	scratch_dir("/usr/local/bin");
	assert_int_equal(send_order(install(program)), RESULT_DONE);
	assert_int_equal(stat(scratch_path("/usr/local/bin/k3s"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	/* From the image: what is there must be what the spec says. */
	o = install("something else");
	o->install.from_image = true;
	assert_int_equal(send_order(o), RESULT_FAILED);
	assert_non_null(strstr(t.result->result.text, "has SHA-256"));
	assert_string_equal(t.state.install.version, "v1.36.4+k3s1");
}

static void corrupt_blob_is_thrown_away(void **state)
{
	struct order *o = blob("abcdef", 0, 6);

	(void)state;
	o->blob.sha256[0] ^= 1;
	assert_int_equal(send_order(o), RESULT_FAILED);
	assert_int_equal(send_order(install("abcdef")), RESULT_REFUSED);
}

static struct order *start(enum start_mode mode)
{
	struct order *o = order_new(ORDER_K3S_START);

	o->start.mode = mode;
	if (mode == START_FOUND) {
		o->start.has_intent = true;
		strcpy(o->start.intent.founder, "n1");
		o->start.intent.intent = 5;
	}
	return o;
}

static void co02_no_second_cluster(void **state)
{
	static const char program[] = "#!/bin/sh\nexit 0\n";

	(void)state;
	assert_int_equal(send_order(start(START_FOUND)), RESULT_REFUSED);
	scratch_dir("/usr/local/bin");
	assert_int_equal(send_order(blob(program, 0, sizeof(program) - 1)),
			 RESULT_DONE);
	assert_int_equal(send_order(install(program)), RESULT_DONE);
	/* A joiner's configuration founds nothing, and the other way round. */
	assert_int_equal(send_order(configure(false)), RESULT_DONE);
	assert_int_equal(send_order(start(START_FOUND)), RESULT_REFUSED);
	assert_int_equal(send_order(configure(true)), RESULT_DONE);
	assert_int_equal(send_order(start(START_JOIN)), RESULT_REFUSED);
	/* Data of an earlier life. */
	scratch_dir("/var/lib/rancher/k3s/server/db/etcd/member/wal");
	assert_int_equal(send_order(start(START_FOUND)), RESULT_REFUSED);
	assert_non_null(strstr(t.result->result.text, "second cluster"));
	assert_false(t.state.has_founding);
	/* Without it all is fine but D-Bus, which this node lacks; by then
	 * the intent is on disk. */
	assert_int_equal(rmdir(scratch_path("/var/lib/rancher/k3s/server/db/"
					    "etcd/member/wal")), 0);
	assert_int_equal(send_order(start(START_FOUND)), RESULT_FAILED);
	assert_non_null(strstr(t.result->result.text, "D-Bus"));
	assert_true(t.state.has_founding);
	assert_int_equal(t.state.founding.intent, 5);
	/* A binary that was changed since is not started. */
	put("/usr/local/bin/k3s", "#!/bin/sh\nevil\n");
	assert_int_equal(send_order(start(START_FOUND)), RESULT_FAILED);
	assert_non_null(strstr(t.result->result.text, "has SHA-256"));
}

static void credential_leaves_sealed(void **state)
{
	struct order *o = order_new(ORDER_READ_CREDENTIAL);
	struct fault f = FAULT_INIT;
	uint8_t *plain = NULL;
	size_t n;

	(void)state;
	o->credential.kind = CREDENTIAL_ADMIN;
	assert_int_equal(send_order(o), RESULT_FAILED);
	put("/var/lib/rancher/k3s/server/tls/server-ca.crt", "CA\nPEM\n");
	put("/var/lib/rancher/k3s/server/tls/client-admin.crt", "CERT\n");
	put("/var/lib/rancher/k3s/server/tls/client-admin.key", "KEY\n");
	o = order_new(ORDER_READ_CREDENTIAL);
	o->credential.kind = CREDENTIAL_ADMIN;
	key_public(t.seal, o->credential.seal_key);
	assert_int_equal(send_order(o), RESULT_DONE);
	assert_int_equal(seal_open(t.seal,
				   "credential from "
				   "0d000000000000000000000000000000",
				   &t.result->result.credential, &plain, &n,
				   &f), 0);
	assert_string_equal((char *)plain,
			    "{\"ca\":\"CA\\nPEM\\n\",\"cert\":\"CERT\\n\","
			    "\"key\":\"KEY\\n\"}");
	free(plain);
}

static void what_is_not_there_is_refused(void **state)
{
	struct order *o = order_new(ORDER_PROBE);

	(void)state;
	o->probe = PROBE_DB_INFO;
	assert_int_equal(send_order(o), RESULT_REFUSED);
	o = order_new(ORDER_K3S_RESET);
	strcpy(o->confirm_node, "n1");
	assert_int_equal(send_order(o), RESULT_REFUSED);
	o = order_new(ORDER_DISARM);
	strcpy(o->klass.class_name, "vpn");
	strcpy(o->klass.reason, "test");
	assert_int_equal(send_order(o), RESULT_REFUSED);
	o = order_new(ORDER_REBOOT);
	strcpy(o->reason, "test");
	assert_int_equal(send_order(o), RESULT_FAILED);
}

static int make_keys(void **state)
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

static int free_keys(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(honest_order_is_done_and_kept),
		CASE(repeated_order_is_answered_not_redone),
		CASE(interrupted_order_is_not_redone),
		CASE(forged_orders_change_nothing),
		CASE(any_changed_byte_is_noticed),
		CASE(unknown_field_is_refused),
		CASE(older_statement_is_refused),
		cmocka_unit_test_setup_teardown(
			nothing_before_enrolment_but_enrolment,
			begin_unenrolled, end),
		CASE(id_of_an_enrolled_node_stays),
		CASE(revoked_node_takes_no_orders),
		CASE(desired_state_survives),
		CASE(facts_are_read),
		CASE(lease_has_one_holder),
		CASE(co02_founding_is_not_overwritten),
		CASE(streams_only_go_where_desired),
		CASE(a44_same_configuration_changes_nothing),
		CASE(foreign_files_are_refused),
		CASE(binary_is_verified_before_it_is_placed),
		CASE(corrupt_blob_is_thrown_away),
		CASE(co02_no_second_cluster),
		CASE(credential_leaves_sealed),
		CASE(what_is_not_there_is_refused),
	};

	return cmocka_run_group_tests_name("orders", tests, make_keys,
					   free_keys);
}
