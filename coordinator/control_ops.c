#include "coordinator/control_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/parse.h"
#include "coordinator/enroll.h"
#include "coordinator/fleet.h"
#include "coordinator/journal.h"
#include "coordinator/json_bytes.h"
#include "coordinator/signer.h"
#include "coordinator/store.h"
#include "coordinator/stream.h"
#include "proto/envelope.h"

#define PAGE_BYTES (1024 * 1024)	/* of node states, per reply */
#define SECRET_MAX (64 * 1024)
#define TOKENS_MAX 10000
#define OWN_CONTEXT "store %s"

/* ---- reading requests ---- */

static const char *text_of(const json_t *request, const char *key)
{
	const char *text = json_string_value(json_object_get(request, key));

	return text ? text : "";
}

static uint64_t number_of(const json_t *request, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(request, key));

	return n > 0 ? (uint64_t)n : 0;
}

static int node_of(struct client *c, const json_t *request,
		   struct fleet_node **ret_node, struct fault *f)
{
	const char *name = text_of(request, "node");
	struct fleet_node *n = fleet_by_name(client_parts(c)->fleet, name);

	if (!n)
		return fault_set(f, -ENOENT, name,
				 "no such node is enrolled: see garboard node "
				 "list and garboard enroll list");
	*ret_node = n;
	return 0;
}

static int put(json_t *reply, const char *key, json_t *takes_value)
{
	return json_object_set_new(reply, key, takes_value) == 0 ? 0 : -ENOMEM;
}

static json_t *hex(const uint8_t *bytes, size_t size)
{
	char text[2 * 32 + 1];

	format_hex(bytes, size, text);
	return json_string(text);
}

/* ---- the cluster ---- */

static int op_info(struct client *c, const json_t *request, json_t *reply,
		   struct fault *f)
{
	const struct control_parts *p = client_parts(c);
	const struct signer *s = p->signer;
	int r;

	(void)request, (void)f;
	if ((r = put(reply, "cluster", json_string(p->cluster))) < 0 ||
	    (r = put(reply, "cluster_id", hex(signer_cluster_id(s), 16))) < 0 ||
	    (r = put(reply, "seal_key", hex(signer_seal_key(s), 32))) < 0)
		return r;
	return put(reply, "epoch", json_integer((json_int_t)signer_epoch(s)));
}

/* ---- nodes ---- */

static json_int_t ago(usec now, usec then, usec wall_now, usec wall_then)
{
	if (then)
		return (json_int_t)(now - then);
	/* From before this coordinator began: the wall clock has to do. */
	if (wall_then && wall_then <= wall_now)
		return (json_int_t)(wall_now - wall_then);
	return -1;
}

static json_t *node_json(struct fleet_node *n, usec now, usec wall)
{
	json_t *o;

	o = json_pack("{ss sb sb sb ss ss sI sI sI}", "name", n->row.name,
		      "connected", n->session != NULL, "stale", n->stale,
		      "revoked", n->row.state != STORE_NODE_ACTIVE, "held",
		      n->held, "peer", fleet_peer(n), "seen_ago",
		      ago(now, n->seen, wall, n->row.seen_at), "report_ago",
		      ago(now, n->reported, wall, n->row.reported_at),
		      "enrolled_at", (json_int_t)n->row.enrolled_at);
	if (!o)
		return NULL;
	if (put(o, "id", hex(n->row.id, 16)) < 0 ||
	    put(o, "seal_key", hex(n->row.seal_key, 32)) < 0 ||
	    put(o, "report_key", hex(n->row.report_key, 32)) < 0 ||
	    (n->row.hello.data &&
	     put(o, "hello",
		 json_bytes(n->row.hello.data, n->row.hello.size)) < 0) ||
	    (n->row.report.data &&
	     put(o, "report",
		 json_bytes(n->row.report.data, n->row.report.size)) < 0)) {
		json_decref(o);
		return NULL;
	}
	return o;
}

/* A page from index "from" on; "next" is there when more follow. */
static int op_nodes(struct client *c, const json_t *request, json_t *reply,
		    struct fault *f)
{
	struct fleet *fleet = client_parts(c)->fleet;
	usec now = clock_boottime(), wall = clock_realtime();
	size_t i = (size_t)number_of(request, "from"), bytes = 0;
	json_t *list = json_array();
	int r;

	(void)f;
	r = put(reply, "nodes", list);
	for (; r == 0 && i < fleet_count(fleet) && bytes < PAGE_BYTES; i++) {
		struct fleet_node *n = fleet_at(fleet, i);

		bytes += 1024 + n->row.hello.size + n->row.report.size;
		if (json_array_append_new(list, node_json(n, now, wall)) < 0)
			r = -ENOMEM;
	}
	if (r == 0 && i < fleet_count(fleet))
		r = put(reply, "next", json_integer((json_int_t)i));
	if (r < 0)
		return r;
	return put(reply, "revision",
		   json_integer((json_int_t)fleet_revision(fleet)));
}

static void answer_wait(struct deferred *d, bool changed)
{
	struct client *c = d->client;
	json_t *reply = json_pack("{sI sb}", "id", d->id, "changed", changed);

	deferred_free(d);
	if (reply)
		client_reply(c, reply);
}

static int on_wait_over(sd_event_source *source, uint64_t now, void *userdata)
{
	(void)source, (void)now;
	answer_wait(userdata, false);
	return 0;
}

static int op_wait(struct client *c, const json_t *request, json_t *reply,
		   struct fault *f)
{
	struct fleet *fleet = client_parts(c)->fleet;
	uint64_t revision = number_of(request, "revision");
	struct deferred *d;
	int r;

	(void)reply;
	/* Not at once: a client that lists and waits must leave us room. */
	if (fleet_revision(fleet) > revision)
		fleet_notify(fleet);
	d = client_defer(c, request, f);
	if (!d)
		return f->err;
	d->revision = revision;
	r = sd_event_add_time(client_event(c), &d->timer, CLOCK_BOOTTIME,
			      number_of(request, "deadline"), 0, on_wait_over,
			      d);
	if (r < 0) {
		deferred_free(d);
		return fault_errno(f, r, "wait", "no timer");
	}
	return 1;
}

void control_ops_changed(struct client *c)
{
	uint64_t revision = fleet_revision(client_parts(c)->fleet);
	struct deferred *d, *next;

	for (d = LIST_FIRST(client_deferred(c)); d; d = next) {
		next = LIST_NEXT(d, link);
		if (d->timer && revision > d->revision)
			answer_wait(d, true);
	}
}

/* Listeners of the node's streams go with the clients that hold them. */
static int op_revoke(struct client *c, const json_t *request, json_t *reply,
		     struct fault *f)
{
	struct control_parts *p = client_parts(c);
	struct fleet_node *n = NULL;
	int r;

	(void)reply;
	r = node_of(c, request, &n, f);
	if (r < 0)
		return r;
	streams_end_node(p->streams, n);
	return fleet_revoke(p->fleet, n, f);
}

/* ---- orders ---- */

static void on_answer(void *userdata, int err, const uint8_t *result,
		      size_t size, const struct fault *why)
{
	struct deferred *d = userdata;
	struct client *c = d->client;
	json_int_t id = d->id;
	json_t *reply;

	deferred_free(d);
	if (err < 0) {
		client_fail(c, id, why);
		return;
	}
	reply = json_pack("{sI so*}", "id", id, "result",
			  json_bytes(result, size));
	if (reply)
		client_reply(c, reply);
}

static int op_order(struct client *c, const json_t *request, json_t *reply,
		    struct fault *f)
{
	_cleanup_free_ uint8_t *order = NULL;
	struct fleet_node *n = NULL;
	struct deferred *d;
	size_t size = 0;
	int r;

	(void)reply;
	r = node_of(c, request, &n, f);
	if (r < 0)
		return r;
	r = json_get_bytes(request, "order", ENVELOPE_PAYLOAD_MAX, &order,
			   &size);
	if (r < 0)
		return fault_errno(f, r, "order", "is not readable");
	d = client_defer(c, request, f);
	if (!d)
		return f->err;
	r = fleet_order(client_parts(c)->fleet, n, order, size,
			number_of(request, "deadline"), on_answer, d,
			&d->order, f);
	if (r < 0) {
		d->order = NULL;
		deferred_free(d);
		return r;
	}
	return 1;
}

void control_ops_release(struct client *c)
{
	struct held_listener *l;
	struct deferred *d;

	while ((d = LIST_FIRST(client_deferred(c)))) {
		if (d->order)
			fleet_order_cancel(d->order);
		deferred_free(d);
	}
	while ((l = LIST_FIRST(client_listeners(c)))) {
		LIST_REMOVE(l, link);
		stream_listener_free(l->listener);
		free(l);
	}
}

/* ---- streams ---- */

static struct held_listener *find_listener(struct client *c, const char *key)
{
	struct held_listener *l;

	LIST_FOREACH(l, client_listeners(c), link)
		if (strcmp(l->key, key) == 0)
			return l;
	return NULL;
}

static int new_listener(struct client *c, struct fleet_node *n,
			const json_t *request, const char *key,
			struct held_listener **ret_held, struct fault *f)
{
	const char *server = text_of(request, "server");
	uint64_t target = number_of(request, "target");
	struct held_listener *l;
	struct ip_addr addr;
	int r;

	if (target == 0 || target >= STREAM_TARGET_MAX)
		return fault_set(f, -EINVAL, "target", "no such target");
	if (server[0] && ip_addr_parse(server, &addr) < 0)
		return fault_set(f, -EINVAL, server, "is no address");
	l = calloc(1, sizeof(*l));
	if (!l)
		return fault_set(f, -ENOMEM, key, "out of memory");
	(void)snprintf(l->key, sizeof(l->key), "%s", key);
	r = stream_listen(client_parts(c)->streams, n,
			  (enum stream_target)target,
			  server[0] ? &addr : NULL, &l->listener, f);
	if (r < 0) {
		free(l);
		return r;
	}
	LIST_INSERT_HEAD(client_listeners(c), l, link);
	*ret_held = l;
	return 0;
}

static int op_listen_stream(struct client *c, const json_t *request,
			    json_t *reply, struct fault *f)
{
	struct held_listener *l;
	struct fleet_node *n = NULL;
	char key[256];
	int r;

	r = node_of(c, request, &n, f);
	if (r < 0)
		return r;
	(void)snprintf(key, sizeof(key), "%s %u %.64s", n->row.name,
		       (unsigned int)number_of(request, "target"),
		       text_of(request, "server"));
	l = find_listener(c, key);
	r = l ? 0 : new_listener(c, n, request, key, &l, f);
	if (r < 0)
		return r;
	return put(reply, "path",
		   json_string(stream_listener_path(l->listener)));
}

/* ---- what is kept ---- */

static int op_secret_put(struct client *c, const json_t *request,
			 json_t *reply, struct fault *f)
{
	struct control_parts *p = client_parts(c);
	const char *name = text_of(request, "name");
	_cleanup_free_ uint8_t *data = NULL;
	struct sealed sealed = { 0 };
	char context[SEAL_CONTEXT_MAX];
	size_t size = 0;
	int r;

	(void)reply;
	if (!parse_is_label(name))
		return fault_set(f, -EINVAL, name, "is no name of a secret");
	r = json_get_bytes(request, "data", SECRET_MAX, &data, &size);
	if (r < 0)
		return fault_errno(f, r, name, "is not readable");
	(void)snprintf(context, sizeof(context), OWN_CONTEXT, name);
	r = signer_seal(p->signer, context, data, size, &sealed, f);
	key_wipe(data, size);
	if (r == 0)
		r = store_secret_put(p->store, name, sealed.ephemeral,
				     sealed.box, sealed.size, f);
	sealed_done(&sealed);
	return r;
}

static int reply_plain(struct client *c, const char *context,
		       const struct sealed *sealed, json_t *reply,
		       struct fault *f)
{
	uint8_t *plain = NULL;
	size_t size = 0;
	int r;

	r = signer_unseal(client_parts(c)->signer, context, sealed, &plain,
			  &size, f);
	if (r < 0)
		return r;
	r = put(reply, "data", json_bytes(plain, size));
	key_wipe(plain, size);
	free(plain);
	return r;
}

static int op_secret_get(struct client *c, const json_t *request,
			 json_t *reply, struct fault *f)
{
	const char *name = text_of(request, "name");
	struct store_blob box = { NULL, 0 };
	char context[SEAL_CONTEXT_MAX];
	struct sealed sealed;
	int r;

	r = store_secret_get(client_parts(c)->store, name, sealed.ephemeral,
			     &box, f);
	if (r == -ENOENT)
		return fault_set(f, r, name, "no such secret is kept");
	if (r < 0)
		return r;
	sealed.box = box.data;
	sealed.size = box.size;
	(void)snprintf(context, sizeof(context), OWN_CONTEXT, name);
	r = reply_plain(c, context, &sealed, reply, f);
	free(box.data);
	return r;
}

static int op_unseal(struct client *c, const json_t *request, json_t *reply,
		     struct fault *f)
{
	const char *context = text_of(request, "context");
	_cleanup_free_ uint8_t *box = NULL;
	struct sealed sealed;
	size_t size = 0;
	int r;

	/* What the store keeps is asked for by name, never as a box. */
	if (strncmp(context, OWN_CONTEXT, strcspn(OWN_CONTEXT, "%")) == 0)
		return fault_set(f, -EACCES, context, "is the store's own");
	r = json_get_exact(request, "ephemeral", sealed.ephemeral,
			   sizeof(sealed.ephemeral));
	if (r == 0)
		r = json_get_bytes(request, "box", SEAL_BOX_MAX, &box, &size);
	if (r < 0)
		return fault_errno(f, r, "box", "is not readable");
	sealed.box = box;
	sealed.size = size;
	return reply_plain(c, context, &sealed, reply, f);
}

static int op_founding_get(struct client *c, const json_t *request,
			   json_t *reply, struct fault *f)
{
	struct store_founding rec;
	int r;

	(void)request;
	r = store_founding_get(client_parts(c)->store, &rec, f);
	if (r == -ENOENT)
		return fault_set(f, r, "founding record", "there is none");
	if (r < 0)
		return r;
	if ((r = put(reply, "cluster_uid", json_string(rec.cluster_uid))) < 0 ||
	    (r = put(reply, "founder", json_string(rec.founder))) < 0 ||
	    (rec.has_ca &&
	     (r = put(reply, "ca_sha256", hex(rec.ca_sha256, 32))) < 0))
		return r;
	return put(reply, "intent", json_sprintf("%llu", (unsigned long long)
								 rec.intent));
}

static int op_founding_put(struct client *c, const json_t *request,
			   json_t *reply, struct fault *f)
{
	struct store_founding rec = { 0 };
	const char *ca = text_of(request, "ca_sha256");

	(void)reply;
	rec.has_ca = ca[0] != '\0';
	if ((rec.has_ca && parse_hex(ca, rec.ca_sha256, 32) < 0) ||
	    parse_u64(text_of(request, "intent"), UINT64_MAX, &rec.intent) < 0)
		return fault_set(f, -EINVAL, "founding record",
				 "is not readable");
	(void)snprintf(rec.cluster_uid, sizeof(rec.cluster_uid), "%s",
		       text_of(request, "cluster_uid"));
	(void)snprintf(rec.founder, sizeof(rec.founder), "%s",
		       text_of(request, "founder"));
	return store_founding_put(client_parts(c)->store, &rec, f);
}

static int op_value_get(struct client *c, const json_t *request,
			json_t *reply, struct fault *f)
{
	const char *name = text_of(request, "name");
	_cleanup_free_ char *text = NULL;
	int r;

	r = store_value_get(client_parts(c)->store, name, &text, f);
	if (r == -ENOENT)
		return fault_set(f, r, name, "no such value is kept");
	return r < 0 ? r : put(reply, "text", json_string(text));
}

static int op_value_put(struct client *c, const json_t *request,
			json_t *reply, struct fault *f)
{
	const char *name = text_of(request, "name");

	(void)reply;
	if (!name[0] || strlen(name) >= 128)
		return fault_set(f, -EINVAL, name, "is no name of a value");
	return store_value_put(client_parts(c)->store, name,
			       text_of(request, "text"), f);
}

static int op_event(struct client *c, const json_t *request, json_t *reply,
		    struct fault *f)
{
	struct store_event e = { .at = clock_realtime() };

	(void)reply;
	(void)snprintf(e.stage, sizeof(e.stage), "%s",
		       text_of(request, "stage"));
	(void)snprintf(e.node, sizeof(e.node), "%s", text_of(request, "node"));
	(void)snprintf(e.text, sizeof(e.text), "%s", text_of(request, "text"));
	fault_sanitize(e.text);
	return store_event_add(client_parts(c)->store, &e, f);
}

static int event_json(const struct store_event *e, void *arg)
{
	json_t *o = json_pack("{sI sI ss ss ss}", "id", (json_int_t)e->id,
			      "at", (json_int_t)e->at, "stage", e->stage,
			      "node", e->node, "text", e->text);

	return json_array_append_new(arg, o) == 0 ? 0 : -ENOMEM;
}

static int op_events(struct client *c, const json_t *request, json_t *reply,
		     struct fault *f)
{
	uint64_t limit = number_of(request, "limit");
	json_t *list = json_array();
	int r;

	r = put(reply, "events", list);
	if (r < 0)
		return r;
	journal_flush(client_parts(c)->journal);
	return store_events(client_parts(c)->store,
			    limit && limit < 1000 ? limit : 1000, event_json,
			    list, f);
}

/* ---- enrolment ---- */

static int op_token(struct client *c, const json_t *request, json_t *reply,
		    struct fault *f)
{
	uint64_t count = number_of(request, "count");
	char text[ENROLL_TOKEN_TEXT + 1];
	json_t *list = json_array();
	int r;

	r = put(reply, "tokens", list);
	if (r < 0)
		return r;
	if (count == 0 || count > TOKENS_MAX)
		return fault_set(f, -EINVAL, "token", "1 to %d at once",
				 TOKENS_MAX);
	/* One transaction: all of them or none. */
	r = store_begin(client_parts(c)->store, f);
	if (r < 0)
		return r;
	for (uint64_t i = 0; r == 0 && i < count; i++) {
		r = enroll_token(client_parts(c)->store,
				 text_of(request, "node"),
				 number_of(request, "life"), text, f);
		if (r == 0 && json_array_append_new(list, json_string(text)))
			r = -ENOMEM;
	}
	key_wipe(text, sizeof(text));
	if (r == 0)
		journal_note(client_parts(c)->journal, "enrolment",
			     text_of(request, "node"),
			     "%llu tokens were made",
			     (unsigned long long)count);
	if (r < 0) {
		(void)store_end(client_parts(c)->store, false, NULL);
		return r;
	}
	return store_end(client_parts(c)->store, true, f);
}

static int op_enroll_list(struct client *c, const json_t *request,
			  json_t *reply, struct fault *f)
{
	json_t *list = NULL;
	int r;

	(void)request;
	r = enroll_list(client_parts(c)->enroll, &list, f);
	return r < 0 ? r : put(reply, "waiting", list);
}

static int op_enroll_approve(struct client *c, const json_t *request,
			     json_t *reply, struct fault *f)
{
	(void)reply;
	return enroll_approve(client_parts(c)->enroll,
			      text_of(request, "fingerprint"),
			      text_of(request, "name"), f);
}

static int op_enroll_reject(struct client *c, const json_t *request,
			    json_t *reply, struct fault *f)
{
	(void)reply;
	return enroll_reject(client_parts(c)->enroll,
			     text_of(request, "fingerprint"), f);
}

static const struct {
	const char *name;
	control_op op;
} ops[] = {
	{ "info", op_info },
	{ "nodes", op_nodes },
	{ "wait", op_wait },
	{ "revoke", op_revoke },
	{ "order", op_order },
	{ "listen_stream", op_listen_stream },
	{ "secret_put", op_secret_put },
	{ "secret_get", op_secret_get },
	{ "unseal", op_unseal },
	{ "founding_get", op_founding_get },
	{ "founding_put", op_founding_put },
	{ "value_get", op_value_get },
	{ "value_put", op_value_put },
	{ "event", op_event },
	{ "events", op_events },
	{ "token", op_token },
	{ "enroll_list", op_enroll_list },
	{ "enroll_approve", op_enroll_approve },
	{ "enroll_reject", op_enroll_reject },
};

control_op control_ops_find(const char *name)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (strcmp(ops[i].name, name) == 0)
			return ops[i].op;
	return NULL;
}
