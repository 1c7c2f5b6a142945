#include "coordinator/control_client_internal.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/parse.h"
#include "coordinator/json_bytes.h"
#include "proto/envelope.h"
#include "proto/order.h"
#include "proto/seal.h"
#include "proto/up.h"

#define CALL_TIME (15 * USEC_PER_SEC)	/* what the coordinator has at hand */
#define GRACE (2 * USEC_PER_SEC)	/* it answers deadlines itself */
#define NODES_MAX 16384

static void cleanup_json(json_t **j)
{
	json_decref(*j);
}
#define _cleanup_json_ CLEANUP(cleanup_json)

/* A request that is answered at once; `takes` is released. */
static int ask(struct control *c, json_t *takes, json_t **ret_reply,
	       struct fault *f)
{
	_cleanup_json_ json_t *request = takes;

	if (!request)
		return fault_set(f, -ENOMEM, "control",
				 "out of memory, or text that is not UTF-8");
	return control_call(c, request, clock_boottime() + CALL_TIME,
			    ret_reply, f);
}

static int tell(struct control *c, json_t *takes, struct fault *f)
{
	_cleanup_json_ json_t *reply = NULL;

	return ask(c, takes, &reply, f);
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static int bad_reply(const char *what, struct fault *f)
{
	return fault_set(f, -EPROTO, what,
			 "the coordinator's answer makes no sense: is another "
			 "version running?");
}

int control_info(struct control *c, struct control_info *ret_info,
		 struct fault *f)
{
	_cleanup_json_ json_t *reply = NULL;
	struct control_info info = { 0 };
	int r;

	r = ask(c, json_pack("{ss}", "op", "info"), &reply, f);
	if (r < 0)
		return r;
	if (parse_hex(text_of(reply, "cluster_id"), info.cluster_id, 16) < 0 ||
	    parse_hex(text_of(reply, "seal_key"), info.seal_key, 32) < 0)
		return bad_reply("info", f);
	(void)snprintf(info.cluster, sizeof(info.cluster), "%s",
		       text_of(reply, "cluster"));
	info.epoch = (uint64_t)json_integer_value(
		json_object_get(reply, "epoch"));
	info.spawned = control_spawned(c);
	*ret_info = info;
	return 0;
}

int control_wait(struct control *c, uint64_t revision, usec deadline,
		 struct fault *f)
{
	_cleanup_json_ json_t *request = NULL, *reply = NULL;
	int r;

	request = json_pack("{ss sI sI}", "op", "wait", "revision",
			    (json_int_t)revision, "deadline",
			    (json_int_t)deadline);
	if (!request)
		return fault_set(f, -ENOMEM, "control", "out of memory");
	r = control_call(c, request, deadline + GRACE, &reply, f);
	if (r < 0)
		return r;
	return json_is_true(json_object_get(reply, "changed")) ? 1 : 0;
}

/* ---- nodes ---- */

static usec ago_of(const json_t *o, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(o, key));

	return n < 0 ? CONTROL_NEVER : (usec)n;
}

/* The payload as the node signed it, decoded on this side. */
static int up_of(const json_t *o, const char *key, enum up_kind kind,
		 struct up **ret_up, struct fault *f)
{
	_cleanup_free_ uint8_t *data = NULL;
	struct up *u = NULL;
	size_t size = 0;
	int r;

	r = json_get_bytes(o, key, ENVELOPE_PAYLOAD_MAX, &data, &size);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = up_decode(data, size, &u, f);
	if (r < 0)
		return r;
	if (!u || u->kind != kind) {
		(void)up_free(u);
		return bad_reply(key, f);
	}
	*ret_up = u;
	return 0;
}

static void node_done(struct control_node *n)
{
	(void)up_free(n->hello);
	(void)up_free(n->report);
}

static int read_node(const json_t *o, struct control_node *n, struct fault *f)
{
	int r;

	memset(n, 0, sizeof(*n));
	if (parse_hex(text_of(o, "id"), n->id, sizeof(n->id)) < 0 ||
	    parse_hex(text_of(o, "seal_key"), n->seal_key,
		      sizeof(n->seal_key)) < 0)
		return bad_reply("nodes", f);
	(void)snprintf(n->name, sizeof(n->name), "%s", text_of(o, "name"));
	(void)snprintf(n->held, sizeof(n->held), "%s", text_of(o, "held"));
	n->connected = json_is_true(json_object_get(o, "connected"));
	n->stale = json_is_true(json_object_get(o, "stale"));
	n->revoked = json_is_true(json_object_get(o, "revoked"));
	n->seen_ago = ago_of(o, "seen_ago");
	n->report_ago = ago_of(o, "report_ago");
	r = up_of(o, "hello", UP_HELLO, &n->hello, f);
	if (r == 0)
		r = up_of(o, "report", UP_REPORT, &n->report, f);
	if (r < 0)
		node_done(n);
	return r;
}

static int read_page(const json_t *reply, struct control_nodes *nodes,
		     struct fault *f)
{
	const json_t *list = json_object_get(reply, "nodes");
	size_t n = json_array_size(list);
	void *grown;
	int r;

	if (!json_is_array(list) || nodes->n + n > NODES_MAX)
		return bad_reply("nodes", f);
	if (n == 0)
		return 0;
	grown = reallocarray(nodes->v, nodes->n + n, sizeof(*nodes->v));
	if (!grown)
		return fault_set(f, -ENOMEM, "nodes", "out of memory");
	nodes->v = grown;
	for (size_t i = 0; i < n; i++) {
		r = read_node(json_array_get(list, i), &nodes->v[nodes->n], f);
		if (r < 0)
			return r;
		nodes->n++;
	}
	return 0;
}

static int compare_name(const void *a, const void *b)
{
	const struct control_node *x = a, *y = b;

	return strcmp(x->name, y->name);
}

int control_nodes(struct control *c, struct control_nodes *ret_nodes,
		  struct fault *f)
{
	struct control_nodes nodes = { 0 };
	json_int_t from = 0;
	int r;

	do {
		_cleanup_json_ json_t *reply = NULL;
		json_int_t next;

		r = ask(c, json_pack("{ss sI}", "op", "nodes", "from", from),
			&reply, f);
		if (r == 0)
			r = read_page(reply, &nodes, f);
		if (r < 0) {
			control_nodes_done(&nodes);
			return r;
		}
		next = json_integer_value(json_object_get(reply, "next"));
		/* The first page's: what changes meanwhile is told again. */
		if (from == 0)
			nodes.revision = (uint64_t)json_integer_value(
				json_object_get(reply, "revision"));
		from = next > from ? next : 0;
	} while (from);
	if (nodes.n)
		qsort(nodes.v, nodes.n, sizeof(*nodes.v), compare_name);
	*ret_nodes = nodes;
	return 0;
}

const struct control_node *control_nodes_find(const struct control_nodes *nodes,
					      const char *name)
{
	for (size_t i = 0; i < nodes->n; i++)
		if (!nodes->v[i].revoked &&
		    strcmp(nodes->v[i].name, name) == 0)
			return &nodes->v[i];
	return NULL;
}

void control_nodes_done(struct control_nodes *nodes)
{
	for (size_t i = 0; i < nodes->n; i++)
		node_done(&nodes->v[i]);
	free(nodes->v);
	*nodes = (struct control_nodes){ 0 };
}

/* ---- orders ---- */

int control_order_begin(struct control *c, const char *node,
			const struct order *order, usec deadline,
			uint32_t *ret_ticket, struct fault *f)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	_cleanup_json_ json_t *request = NULL;
	const struct order_row *row = order_row(order->kind);
	size_t size = 0;
	int r;

	r = order_encode(order, &bytes, &size, f);
	if (r < 0)
		return r;
	if (row && size > row->limit)
		return fault_set(f, -E2BIG, row->name,
				 "has %zu bytes, at most %zu", size,
				 row->limit);
	request = json_pack("{ss ss sI so*}", "op", "order", "node", node,
			    "deadline", (json_int_t)deadline, "order",
			    json_bytes(bytes, size));
	if (!request)
		return fault_set(f, -ENOMEM, node, "out of memory");
	return control_begin(c, request, deadline + GRACE, ret_ticket, f);
}

int control_order_finish(struct control *c, uint32_t ticket, usec deadline,
			 struct up **ret_result, struct fault *f)
{
	_cleanup_json_ json_t *reply = NULL;
	struct up *u = NULL;
	int r;

	r = control_await(c, ticket, deadline + GRACE, &reply, f);
	if (r < 0)
		return r;
	r = up_of(reply, "result", UP_RESULT, &u, f);
	if (r < 0)
		return r;
	if (!u)
		return bad_reply("order", f);
	*ret_result = u;
	return 0;
}

int control_order(struct control *c, const char *node,
		  const struct order *order, usec deadline,
		  struct up **ret_result, struct fault *f)
{
	uint32_t ticket = 0;
	int r;

	r = control_order_begin(c, node, order, deadline, &ticket, f);
	if (r < 0)
		return r;
	return control_order_finish(c, ticket, deadline, ret_result, f);
}

int control_listen_stream(struct control *c, const char *node, int target,
			  const char *server, char **ret_path,
			  struct fault *f)
{
	_cleanup_json_ json_t *reply = NULL;
	char *path;
	int r;

	r = ask(c,
		json_pack("{ss ss si ss}", "op", "listen_stream", "node", node,
			  "target", target, "server", server ? server : ""),
		&reply, f);
	if (r < 0)
		return r;
	path = strdup(text_of(reply, "path"));
	if (!path)
		return fault_set(f, -ENOMEM, node, "out of memory");
	*ret_path = path;
	return 0;
}

/* ---- what is kept ---- */

int control_secret_put(struct control *c, const char *name, const void *data,
		       size_t size, struct fault *f)
{
	if (size > CONTROL_SECRET_MAX)
		return fault_set(f, -E2BIG, name, "at most %d bytes",
				 CONTROL_SECRET_MAX);
	return tell(c,
		    json_pack("{ss ss so*}", "op", "secret_put", "name", name,
			      "data", json_bytes(data, size)),
		    f);
}

static int read_secret(struct control *c, json_t *takes, char **ret_data,
		       size_t *ret_size, struct fault *f)
{
	_cleanup_json_ json_t *reply = NULL;
	uint8_t *data = NULL;
	size_t size = 0;
	int r;

	r = ask(c, takes, &reply, f);
	if (r < 0)
		return r;
	r = json_get_bytes(reply, "data", CONTROL_SECRET_MAX, &data, &size);
	if (r < 0)
		return bad_reply("secret", f);
	*ret_data = (char *)data;
	*ret_size = size;
	return 0;
}

int control_secret_get(struct control *c, const char *name, char **ret_data,
		       size_t *ret_size, struct fault *f)
{
	return read_secret(c,
			   json_pack("{ss ss}", "op", "secret_get", "name",
				     name),
			   ret_data, ret_size, f);
}

void control_secret_free(char *data, size_t size)
{
	if (data)
		key_wipe(data, size);
	free(data);
}

int control_unseal(struct control *c, const struct sealed *sealed,
		   const char *context, char **ret_data, size_t *ret_size,
		   struct fault *f)
{
	return read_secret(
		c,
		json_pack("{ss ss so* so*}", "op", "unseal", "context",
			  context, "ephemeral",
			  json_bytes(sealed->ephemeral,
				     sizeof(sealed->ephemeral)),
			  "box", json_bytes(sealed->box, sealed->size)),
		ret_data, ret_size, f);
}

int control_founding_get(struct control *c,
			 struct founding_record *ret_record, struct fault *f)
{
	_cleanup_json_ json_t *reply = NULL;
	struct founding_record rec = { 0 };
	const char *ca;
	int r;

	r = ask(c, json_pack("{ss}", "op", "founding_get"), &reply, f);
	if (r < 0)
		return r;
	ca = text_of(reply, "ca_sha256");
	rec.has_ca = ca[0] != '\0';
	if ((rec.has_ca && parse_hex(ca, rec.ca_sha256, 32) < 0) ||
	    parse_u64(text_of(reply, "intent"), UINT64_MAX, &rec.intent) < 0)
		return bad_reply("founding record", f);
	(void)snprintf(rec.cluster_uid, sizeof(rec.cluster_uid), "%s",
		       text_of(reply, "cluster_uid"));
	(void)snprintf(rec.founder, sizeof(rec.founder), "%s",
		       text_of(reply, "founder"));
	*ret_record = rec;
	return 0;
}

int control_founding_put(struct control *c,
			 const struct founding_record *record, struct fault *f)
{
	char ca[65] = "", intent[32];

	if (record->has_ca)
		format_hex(record->ca_sha256, 32, ca);
	(void)snprintf(intent, sizeof(intent), "%llu",
		       (unsigned long long)record->intent);
	return tell(c,
		    json_pack("{ss ss ss ss ss}", "op", "founding_put",
			      "cluster_uid", record->cluster_uid, "ca_sha256",
			      ca, "founder", record->founder, "intent",
			      intent),
		    f);
}

int control_value_get(struct control *c, const char *name, char **ret_text,
		      struct fault *f)
{
	_cleanup_json_ json_t *reply = NULL;
	char *text;
	int r;

	r = ask(c, json_pack("{ss ss}", "op", "value_get", "name", name),
		&reply, f);
	if (r < 0)
		return r;
	text = strdup(text_of(reply, "text"));
	if (!text)
		return fault_set(f, -ENOMEM, name, "out of memory");
	*ret_text = text;
	return 0;
}

int control_value_put(struct control *c, const char *name, const char *text,
		      struct fault *f)
{
	return tell(c,
		    json_pack("{ss ss ss}", "op", "value_put", "name", name,
			      "text", text),
		    f);
}

int control_event(struct control *c, const char *stage, const char *node,
		  const char *text, struct fault *f)
{
	return tell(c,
		    json_pack("{ss ss ss ss}", "op", "event", "stage",
			      stage ? stage : "", "node", node ? node : "",
			      "text", text),
		    f);
}
