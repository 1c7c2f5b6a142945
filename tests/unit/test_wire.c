/*
 * proto/order, up, desired_wire: every field of every message perturbed.
 *
 * The walk knows nothing of the messages: it goes through protobuf-c's own
 * descriptors, puts boundary and garbage values into each field in turn,
 * and demands that the result is refused, or that exactly what was put in
 * comes out again. A field that no table row covers cannot pass.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <protobuf-c/protobuf-c.h>

#include "garboard.pb-c.h"
#include "proto/order.h"
#include "proto/up.h"
#include "proto/up_table.h"
#include "proto/wire_shared.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static void addr(const char *text, struct ip_addr *a)
{
	assert_int_equal(ip_addr_parse(text, a), 0);
}

static void prefix(const char *text, struct prefix_list *list)
{
	struct ip_prefix p;

	assert_int_equal(ip_prefix_parse(text, &p), 0);
	assert_int_equal(prefix_list_add(list, &p), 0);
}

static struct desired *sample_desired(void)
{
	struct desired *d = desired_new();
	struct desired_class *c = calloc(1, sizeof(*c));
	struct desired_tunnel *t = calloc(1, sizeof(*t));

	free(d->node);
	d->node = strdup("server-1");
	d->generation = 7;
	d->modes[RESOURCE_ISCSID] = MODE_OBSERVE;
	assert_int_equal(strlist_add(&d->modules, "br_netfilter"), 0);
	assert_int_equal(desired_add_sysctl(d, "net.ipv4.ip_forward", "1",
					    true), 0);
	d->iscsid = true;
	c->name = strdup("vpn");
	prefix("10.44.0.0/20", &c->pods);
	prefix("2001:db8::/64", &c->sources);
	c->mark = 0x2000;
	c->mask = 0x3f00;
	c->dns = calloc(1, sizeof(*c->dns));
	c->n_dns = 1;
	addr("10.64.0.1", &c->dns[0]);
	c->gateway = true;
	d->egress.classes = c;
	d->egress.n_classes = 1;
	t->name = strdup("wg0");
	t->kind = TUNNEL_OPENVPN;
	t->endpoints = calloc(1, sizeof(*t->endpoints));
	t->n_endpoints = 1;
	assert_int_equal(ip_endpoint_parse("198.51.100.7:51820/udp",
					   &t->endpoints[0]), 0);
	t->table = 51820;
	t->priority = 18200;
	d->egress.tunnels = t;
	d->egress.n_tunnels = 1;
	prefix("10.0.0.0/8", &d->egress.local);
	assert_int_equal(strlist_add(&d->egress.uplinks, "eno1"), 0);
	addr("192.0.2.9", &d->cluster.endpoint);
	d->cluster.port = 6443;
	addr("192.0.2.11", &d->cluster.node_address);
	d->cluster.servers = calloc(1, sizeof(*d->cluster.servers));
	d->cluster.n_servers = 1;
	addr("192.0.2.12", &d->cluster.servers[0]);
	assert_int_equal(strlist_add(&d->required_features, "base"), 0);
	return d;
}

static void bytes(struct order_bytes *b, const char *text)
{
	b->v = (uint8_t *)strdup(text);
	b->n = strlen(text);
}

static void sealed(struct sealed *s)
{
	memset(s->ephemeral, 5, sizeof(s->ephemeral));
	s->box = calloc(1, 40);
	s->size = 40;
}

static void founding(struct founding_record *r)
{
	strcpy(r->cluster_uid, "f3b1c2d4-0000-4000-8000-000000000001");
	memset(r->ca_sha256, 9, 32);
	r->has_ca = true;
	strcpy(r->founder, "server-1");
	r->intent = 99;
}

static void sample_configure(struct order_k3s_configure *c)
{
	strcpy(c->node_name, "server-2");
	addr("192.0.2.12", &c->node_ip);
	addr("192.0.2.11", &c->join_address);
	assert_int_equal(strlist_add(&c->tls_sans, "k8s.example.net"), 0);
	assert_int_equal(ip_prefix_parse("10.42.0.0/16", &c->cluster_cidr), 0);
	assert_int_equal(ip_prefix_parse("10.43.0.0/16", &c->service_cidr), 0);
	assert_int_equal(strlist_add(&c->labels, "disk=ssd"), 0);
	assert_int_equal(strlist_add(&c->taints, "a=b:NoSchedule"), 0);
	c->extra = calloc(1, sizeof(*c->extra));
	c->n_extra = 1;
	strcpy(c->extra[0].key, "secrets-encryption");
	assert_int_equal(strlist_add(&c->extra[0].values, "true"), 0);
	sealed(&c->token);
}

static void sample_trust(struct order_trust_update *t)
{
	memset(t->node_id, 4, 16);
	t->has_node_id = true;
	strcpy(t->node_name, "server-1");
	bytes(&t->certificate, "leaf");
	t->ca = calloc(1, sizeof(*t->ca));
	t->n_ca = 1;
	bytes(&t->ca[0], "ca");
	assert_int_equal(strlist_add(&t->addresses, "192.0.2.5:7643"), 0);
}

static struct order *sample_order(enum order_kind kind)
{
	struct order *o = order_new(kind);

	switch (kind) {
	case ORDER_SET_DESIRED:
		o->desired = sample_desired();
		break;
	case ORDER_BLOB:
		o->blob.kind = BLOB_K3S;
		o->blob.size = 100;
		o->blob.offset = 3;
		bytes(&o->blob.data, "chunk");
		break;
	case ORDER_K3S_INSTALL:
		strcpy(o->install.version, "v1.36.4+k3s1");
		o->install.from_image = true;
		break;
	case ORDER_K3S_CONFIGURE:
		sample_configure(&o->configure);
		break;
	case ORDER_K3S_START:
		o->start.mode = START_FOUND;
		o->start.has_intent = true;
		founding(&o->start.intent);
		break;
	case ORDER_K3S_RESET:
		strcpy(o->confirm_node, "server-1");
		break;
	case ORDER_PUT_MANIFEST:
		o->manifest.slot = SLOT_CILIUM;
		bytes(&o->manifest.content, "kind: X");
		assert_int_equal(key_sha256("kind: X", 7, o->manifest.sha256),
				 0);
		break;
	case ORDER_READ_CREDENTIAL:
		o->credential.kind = CREDENTIAL_ADMIN;
		break;
	case ORDER_LEASE:
		o->lease.verb = LEASE_RENEW;
		strcpy(o->lease.holder, "operator@bastion");
		o->lease.term = 4;
		o->lease.duration = 15000000;
		break;
	case ORDER_PROBE:
		o->probe = PROBE_DB_INFO;
		break;
	case ORDER_REBOOT:
		strcpy(o->reason, "kernel update");
		break;
	case ORDER_DISARM:
	case ORDER_ARM:
		strcpy(o->klass.class_name, "vpn");
		strcpy(o->klass.reason, "tunnel moves");
		break;
	case ORDER_TRUST_UPDATE:
		sample_trust(&o->trust);
		break;
	case ORDER_OPEN_STREAM:
		o->stream.target = STREAM_API_SERVER;
		addr("192.0.2.12", &o->stream.server);
		break;
	case ORDER_RECORD_FOUNDING:
		founding(&o->founding);
		break;
	case ORDER_K3S_STOP:
	case ORDER_READ_FACTS:
	case ORDER_KIND_MAX:
		break;
	}
	return o;
}

static void identity(struct identity *i)
{
	strcpy(i->hostname, "server-1");
	strcpy(i->machine_id, "0123456789abcdef0123456789abcdef");
	strcpy(i->serial, "CZ1234");
	assert_int_equal(strlist_add(&i->macs, "52:54:00:00:00:11"), 0);
	assert_int_equal(strlist_add(&i->addresses, "192.0.2.11"), 0);
}

static void k3s(struct k3s_status *s)
{
	strcpy(s->unit_state, "active/running");
	s->restarts = 3;
	memset(s->binary_sha256, 'a', 64);
	assert_int_equal(strlist_add(&s->last_lines, "level=fatal"), 0);
}

static struct up *sample_up(enum up_kind kind)
{
	struct up *u = up_new(kind);
	struct up_resource *r = &u->report.resources[0];

	switch (kind) {
	case UP_HELLO:
		u->hello.epoch = 2;
		u->hello.has_desired = true;
		identity(&u->hello.identity);
		assert_int_equal(strlist_add(&u->hello.features, "base"), 0);
		break;
	case UP_ENROL:
		strcpy(u->enrol.token, "abc.def");
		bytes(&u->enrol.csr, "der");
		identity(&u->enrol.identity);
		break;
	case UP_REPORT:
		u->report.n_resources = 1;
		r->id = RESOURCE_SYSCTL;
		r->worst = 3;
		r->total = 12;
		strcpy(r->writer, "nft[12]");
		assert_int_equal(up_resource_add(r, "vm.x", 3, "0", "1", "by x"),
				 0);
		k3s(&u->report.k3s);
		assert_int_equal(strlist_add(&u->report.tunnels,
					     "wg0 10.9.0.1"), 0);
		assert_int_equal(strlist_add(&u->report.uncovered,
					     "tc on eth0"), 0);
		break;
	case UP_RESULT:
		u->result.sequence = 8;
		u->result.code = RESULT_FAILED;
		strcpy(u->result.text, "no");
		u->result.facts = calloc(1, sizeof(*u->result.facts));
		identity(&u->result.facts->identity);
		founding(&u->result.facts->founding);
		u->result.facts->has_founding = true;
		sealed(&u->result.credential);
		u->result.probe = calloc(1, sizeof(*u->result.probe));
		bytes(&u->result.probe->body, "{}");
		break;
	case UP_HEARTBEAT:
		u->heartbeat.counter = 1;
		break;
	case UP_KIND_MAX:
		break;
	}
	return u;
}

/* ---- the walk ---- */

struct subject {
	const ProtobufCMessageDescriptor *desc;
	bool orders;
	ProtobufCMessage *root;
	unsigned int refused, kept;
};

static int recode(const struct subject *s, const uint8_t *in, size_t n,
		  uint8_t **out, size_t *out_n)
{
	struct order *o = NULL;
	struct up *u = NULL;
	struct fault f = FAULT_INIT;
	int r;

	if (s->orders) {
		r = order_decode(in, n, &o, &f);
		if (r == 0)
			r = order_encode(o, out, out_n, &f);
	} else {
		r = up_decode(in, n, &u, &f);
		if (r == 0)
			r = up_encode(u, out, out_n, &f);
	}
	if (r < 0 && r != -ENOMEM)
		assert_true(f.err < 0 && f.text[0]);
	order_free(o);
	up_free(u);
	return r;
}

/* Refused, or back exactly as it was. Returns whether it was refused. */
static bool judge_bytes(struct subject *s, const uint8_t *in, size_t n)
{
	uint8_t *out = NULL;
	size_t out_n = 0;
	int r = recode(s, in, n, &out, &out_n);

	if (r < 0) {
		s->refused++;
		return true;
	}
	s->kept++;
	assert_int_equal(out_n, n);
	assert_memory_equal(out, in, n);
	free(out);
	return false;
}

static bool judge(struct subject *s)
{
	size_t n = protobuf_c_message_get_packed_size(s->root);
	uint8_t *in = malloc(n ? n : 1);
	bool refused;

	protobuf_c_message_pack(s->root, in);
	refused = judge_bytes(s, in, n);
	free(in);
	return refused;
}

static bool is_free_text(const char *field)
{
	static const char *const free_texts[] = {
		"reason", "holder", "values", "value", "text", "have", "want",
		"key", "fault", "writer", "hostname", "machine_id",
		"product_uuid", "serial", "macs", "initiator_name", "boot_id",
		"kernel", "addresses", "agent_version", "features", "token",
		"unit_state", "version", "last_lines", "leftovers",
	};
	size_t i;

	for (i = 0; i < N(free_texts); i++)
		if (strcmp(free_texts[i], field) == 0)
			return true;
	return false;
}

static void perturb_string(struct subject *s, const char *field, char **at)
{
	static char big[70001];
	static const struct {
		const char *text;
		bool never;	/* refused in every field */
		bool path;	/* refused in every typed field */
	} t[] = {
		{ "", false, false }, { "a", false, false },
		{ "a\nb", true, true }, { "\033[31m", true, true },
		{ "\xff\xfe", true, true }, { "\xc2\x9b" "0m", true, true },
		{ "../../etc/passwd", false, true },
		{ "/etc/shadow", false, true }, { "-x", false, true },
		{ "$(id)", false, true }, { "a b", false, true },
		{ big, true, true },
	};
	char *saved = *at;
	size_t i;

	memset(big, 'a', sizeof(big) - 1);
	for (i = 0; i < N(t); i++) {
		bool refused;

		*at = (char *)(uintptr_t)t[i].text;
		refused = judge(s);
		if (t[i].never && !refused)
			fail_msg("%s took forbidden text %zu", field, i);
		if (s->orders && t[i].path && !is_free_text(field) && !refused)
			fail_msg("%s took \"%s\"", field, t[i].text);
	}
	*at = saved;
}

static void perturb_bytes(struct subject *s, ProtobufCBinaryData *at)
{
	static uint8_t big[600000];
	static const size_t sizes[] = { 0, 1, 15, 16, 17, 31, 32, 33, 600000 };
	ProtobufCBinaryData saved = *at;
	size_t i;

	for (i = 0; i < N(sizes); i++) {
		at->data = big;
		at->len = sizes[i];
		if (judge(s) == false)
			assert_int_not_equal(sizes[i], 600000);
	}
	*at = saved;
}

static void perturb_number(struct subject *s,
			   const ProtobufCFieldDescriptor *d, void *at)
{
	static const uint64_t values[] = {
		0, 1, 2, 3, 4, 5, 6, 7, 255, 256, 65535, 65536, INT32_MAX,
		UINT32_MAX, UINT64_MAX,
	};
	bool is_enum = d->type == PROTOBUF_C_TYPE_ENUM;
	size_t size = d->type == PROTOBUF_C_TYPE_UINT64 ? 8 : 4, i;
	uint64_t saved = 0;

	memcpy(&saved, at, size);
	for (i = 0; i < N(values); i++) {
		memcpy(at, &values[i], size);
		if (judge(s) == false && is_enum)
			assert_true((uint32_t)values[i] < 7);
	}
	memcpy(at, &saved, size);
}

static void walk(struct subject *s, ProtobufCMessage *m);

static void perturb_one(struct subject *s, const ProtobufCFieldDescriptor *d,
			void *at)
{
	switch (d->type) {
	case PROTOBUF_C_TYPE_STRING:
		perturb_string(s, d->name, at);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		perturb_bytes(s, at);
		break;
	case PROTOBUF_C_TYPE_MESSAGE: {
		ProtobufCMessage *saved = *(ProtobufCMessage **)at;

		if (!saved)
			break;
		walk(s, saved);
		if (d->label != PROTOBUF_C_LABEL_REPEATED) {
			*(ProtobufCMessage **)at = NULL;
			(void)judge(s);
			*(ProtobufCMessage **)at = saved;
		}
		break;
	}
	default:
		perturb_number(s, d, at);
	}
}

/* One element many times over: too many must be refused. */
static void perturb_count(struct subject *s, const ProtobufCFieldDescriptor *d,
			  void *at, size_t *n)
{
	size_t size = d->type == PROTOBUF_C_TYPE_BYTES ?
			      sizeof(ProtobufCBinaryData) :
		      d->type == PROTOBUF_C_TYPE_ENUM ? 4 : sizeof(void *);
	char *saved = *(char **)at, *many = calloc(5000, size);
	size_t saved_n = *n, i;

	for (i = 0; i < 5000; i++)
		memcpy(many + i * size, saved, size);
	*(char **)at = many;
	*n = 2;
	(void)judge(s);
	*n = 5000;
	assert_true(judge(s));
	*n = 0;
	(void)judge(s);
	*(char **)at = saved;
	*n = saved_n;
	free(many);
}

static void walk(struct subject *s, ProtobufCMessage *m)
{
	unsigned int i;

	for (i = 0; i < m->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *d = &m->descriptor->fields[i];
		void *at = (char *)m + d->offset;
		size_t *n = (size_t *)(void *)((char *)m +
					       d->quantifier_offset);

		if (d->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
			if (*(uint32_t *)(void *)n == d->id)
				walk(s, *(ProtobufCMessage **)at);
			continue;
		}
		if (d->label != PROTOBUF_C_LABEL_REPEATED) {
			perturb_one(s, d, at);
			continue;
		}
		/* A sample must be full, or a field would go untested. */
		if (*n == 0)
			continue;
		perturb_one(s, d, *(void **)at);
		perturb_count(s, d, at, n);
	}
}

static void perturb(struct subject *s, const uint8_t *in, size_t n)
{
	static const uint8_t unknown[] = { 0xf8, 0x07, 0x01 };
	uint8_t *copy = malloc(n + 64);
	size_t i;
	int bit;

	assert_false(judge_bytes(s, in, n));	/* positive control */
	s->root = protobuf_c_message_unpack(s->desc, NULL, n, in);
	walk(s, s->root);
	assert_false(judge(s));			/* the walk restored it */
	protobuf_c_message_free_unpacked(s->root, NULL);
	/* An unknown field at the end, a cut end, the whole thing twice. */
	memcpy(copy, in, n);
	memcpy(copy + n, unknown, sizeof(unknown));
	assert_true(judge_bytes(s, copy, n + sizeof(unknown)));
	for (i = 0; i < n; i++)
		(void)judge_bytes(s, in, i);
	for (i = 0; i < n; i++)
		for (bit = 0; bit < 8; bit++) {
			copy[i] ^= (uint8_t)(1u << bit);
			(void)judge_bytes(s, copy, n);
			copy[i] ^= (uint8_t)(1u << bit);
		}
	free(copy);
}

static void every_field_of_every_order(void **state)
{
	int kind;

	(void)state;
	for (kind = 0; kind < ORDER_KIND_MAX; kind++) {
		struct subject s = { &garboard__v1__order__descriptor, true,
				     NULL, 0, 0 };
		struct order *o = sample_order((enum order_kind)kind);
		struct fault f = FAULT_INIT;
		uint8_t *in = NULL;
		size_t n = 0;

		if (order_encode(o, &in, &n, &f) < 0)
			fail_msg("%s: %s", f.object, f.text);
		perturb(&s, in, n);
		assert_true(s.refused > 0);
		free(in);
		order_free(o);
	}
}

static void every_field_of_every_up(void **state)
{
	int kind;

	(void)state;
	for (kind = 0; kind < UP_KIND_MAX; kind++) {
		struct subject s = { &garboard__v1__up__descriptor, false,
				     NULL, 0, 0 };
		struct up *u = sample_up((enum up_kind)kind);
		struct fault f = FAULT_INIT;
		uint8_t *in = NULL;
		size_t n = 0;

		if (up_encode(u, &in, &n, &f) < 0)
			fail_msg("%s: %s", f.object, f.text);
		perturb(&s, in, n);
		free(in);
		up_free(u);
	}
}

/* Recursively: a field of the .proto without a row would be dropped. */
static void check_rows(const struct wire_message *m)
{
	size_t i;

	assert_int_equal(m->desc->n_fields, m->n_fields);
	for (i = 0; i < m->n_fields; i++) {
		const ProtobufCFieldDescriptor *d =
			protobuf_c_message_descriptor_get_field_by_name(
				m->desc, m->fields[i].name);

		assert_non_null(d);
		if (m->fields[i].sub) {
			assert_ptr_equal(m->fields[i].sub->desc, d->descriptor);
			check_rows(m->fields[i].sub);
		}
		if (d->label == PROTOBUF_C_LABEL_REPEATED)
			assert_true(m->fields[i].max > 0);
	}
}

static void every_field_has_a_row(void **state)
{
	size_t i;

	(void)state;
	assert_int_equal(garboard__v1__order__descriptor.n_fields,
			 ORDER_KIND_MAX);
	assert_int_equal(garboard__v1__up__descriptor.n_fields, UP_KIND_MAX);
	for (i = 0; i < ORDER_KIND_MAX; i++) {
		check_rows(wire_order_arms[i]);
		assert_string_equal(order_row((enum order_kind)i)->name,
				    wire_order_arms[i]->name);
	}
	for (i = 0; i < UP_KIND_MAX; i++) {
		check_rows(up_arms[i]);
		assert_string_equal(up_row((enum up_kind)i)->name,
				    up_arms[i]->name);
	}
}

static void garbage(void **state)
{
	struct subject s[] = {
		{ &garboard__v1__order__descriptor, true, NULL, 0, 0 },
		{ &garboard__v1__up__descriptor, false, NULL, 0, 0 },
	};
	uint8_t in[200];
	int i;

	(void)state;
	srand(3);
	for (i = 0; i < 20000; i++) {
		size_t n = (size_t)rand() % sizeof(in), j;

		for (j = 0; j < n; j++)
			in[j] = (uint8_t)(rand() % 4 ? rand() % 32 : rand());
		(void)judge_bytes(&s[i % 2], in, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_has_a_row),
		cmocka_unit_test(every_field_of_every_order),
		cmocka_unit_test(every_field_of_every_up),
		cmocka_unit_test(garbage),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
