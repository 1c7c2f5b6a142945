#include "coordinator/cli/node_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"
#include "coordinator/cli/cli.h"
#include "coordinator/control_client.h"
#include "coordinator/twins.h"
#include "proto/up.h"

/* The numbers are those of the wire (up.h): from best to worst. */
static const char *const item_states[UP_ITEM_STATES] = {
	"in sync", "pending", "absent", "drifted", "blocked", "unobservable",
};

static const char *state_name(uint8_t state)
{
	return state < UP_ITEM_STATES ? item_states[state] : "unknown";
}

const char *node_json_state(const struct control_node *n)
{
	if (n->revoked)
		return "revoked";
	if (n->held[0])
		return "held";
	if (n->stale)
		return "stale";
	return n->connected ? "connected" : "away";
}

/*
 * What is only observed is told in the note, and does not count: nobody
 * asked for it to be put right.
 */
static const struct up_resource *worst_resource(const struct up_report *r)
{
	const struct up_resource *worst = NULL;

	for (size_t i = 0; i < r->n_resources; i++)
		if (r->resources[i].mode == MODE_ENFORCE &&
		    r->resources[i].worst > 0 &&
		    (!worst || r->resources[i].worst > worst->worst))
			worst = &r->resources[i];
	return worst;
}

const char *node_json_worst(const struct control_node *n)
{
	const struct up_resource *worst;

	if (!n->report)
		return "";
	worst = worst_resource(&n->report->report);
	/* MN-03: in sync is not enough where a path has no layer. */
	if ((!worst || worst->worst == 0) && n->report->report.uncovered.n)
		return "not covered";
	return state_name(worst ? worst->worst : 0);
}

static void note_observed(const struct up_report *r, char *buf, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < r->n_resources && used < size; i++)
		if (r->resources[i].mode == MODE_OBSERVE &&
		    r->resources[i].worst > 0)
			used += (size_t)snprintf(
				buf + used, size - used, "%s%s",
				used ? ", " : "only observed, and not so: ",
				resource_name(r->resources[i].id));
}

const char *node_json_note(const struct control_node *n, char *buf,
			   size_t size)
{
	const struct up_resource *r;

	buf[0] = '\0';
	if (n->held[0]) {
		(void)snprintf(buf, size, "%s", n->held);
		return buf;
	}
	if (!n->report)
		return buf;
	r = worst_resource(&n->report->report);
	if (!r && n->report->report.uncovered.n)
		(void)snprintf(buf, size, "%s",
			       n->report->report.uncovered.v[0]);
	else if (!r)
		note_observed(&n->report->report, buf, size);
	else if (r->fault[0])
		(void)snprintf(buf, size, "%s: %s", resource_name(r->id),
			       r->fault);
	else if (r->contended)
		(void)snprintf(buf, size, "%s: %s keeps undoing it",
			       resource_name(r->id),
			       r->writer[0] ? r->writer : "somebody");
	else if (r->n_items)
		(void)snprintf(buf, size, "%s: %s %s%s%s",
			       resource_name(r->id), r->items[0].key,
			       state_name(r->items[0].state),
			       r->items[0].reason[0] ? ": " : "",
			       r->items[0].reason);
	return buf;
}

static int put(json_t *o, const char *key, json_t *takes_value)
{
	return json_object_set_new(o, key, takes_value);
}

static json_t *node_short(const struct control_node *n)
{
	char id[33], seen[32], note[512];

	format_hex(n->id, sizeof(n->id), id);
	return json_pack("{ss ss ss ss ss ss}", "name", n->name, "state",
			 node_json_state(n), "seen",
			 cli_ago(n->seen_ago, seen, sizeof(seen)), "worst",
			 node_json_worst(n), "id", id, "note",
			 node_json_note(n, note, sizeof(note)));
}

/* Behind what the note says already; both nodes name the other one. */
static void note_twin(json_t *node, const struct twin *t, const char *other)
{
	const char *old = json_string_value(json_object_get(node, "note"));
	char note[512];

	(void)snprintf(note, sizeof(note), "%.300s%s%s %.60s is also that of "
		       "node %.63s", old ? old : "", old && *old ? "; " : "",
		       twin_kind_name(t->kind), t->value, other);
	fault_sanitize(note);
	(void)json_object_set_new(node, "note", json_string(note));
}

static void note_twins(const struct control_nodes *nodes, json_t *list)
{
	const struct identity **ids = calloc(nodes->n + 1, sizeof(*ids));
	struct twin *twins = NULL;
	size_t n = 0, i;

	for (i = 0; ids && i < nodes->n; i++)
		if (!nodes->v[i].revoked && nodes->v[i].hello)
			ids[i] = &nodes->v[i].hello->hello.identity;
	if (ids)
		(void)twins_find(ids, nodes->n, &twins, &n);
	for (i = 0; i < n; i++) {
		note_twin(json_array_get(list, twins[i].a), &twins[i],
			  nodes->v[twins[i].b].name);
		note_twin(json_array_get(list, twins[i].b), &twins[i],
			  nodes->v[twins[i].a].name);
	}
	free(twins);
	free(ids);
}

json_t *node_json_list(const struct control_nodes *nodes)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < nodes->n; i++) {
		if (json_array_append_new(list, node_short(&nodes->v[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	if (list)
		note_twins(nodes, list);
	return list;
}

static json_t *texts(const struct strlist *list)
{
	json_t *a = json_array();

	for (size_t i = 0; a && i < list->n; i++)
		(void)json_array_append_new(a, json_string(list->v[i]));
	return a;
}

static json_t *identity_json(const struct identity *i)
{
	json_t *o = json_pack("{ss ss ss ss ss ss ss ss}", "hostname",
			      i->hostname, "machine_id", i->machine_id,
			      "product_uuid", i->product_uuid, "serial",
			      i->serial, "initiator_name", i->initiator_name,
			      "boot_id", i->boot_id, "kernel", i->kernel,
			      "agent_version", i->agent_version);

	if (o) {
		(void)put(o, "macs", texts(&i->macs));
		(void)put(o, "addresses", texts(&i->addresses));
	}
	return o;
}

static json_t *hardware_json(const struct hardware *h)
{
	return json_pack("{sI sI sI sI ss ss}", "memory_total",
			 (json_int_t)h->memory_total, "memory_installed",
			 (json_int_t)h->memory_installed, "disk_size",
			 (json_int_t)h->disk_size, "disk_free",
			 (json_int_t)h->disk_free, "firmware", h->firmware,
			 "product", h->product);
}

static json_t *resource_json(const struct up_resource *r)
{
	json_t *items = json_array(), *o;

	for (size_t i = 0; items && i < r->n_items; i++)
		(void)json_array_append_new(
			items,
			json_pack("{ss ss ss ss ss}", "key", r->items[i].key,
				  "state", state_name(r->items[i].state),
				  "have", r->items[i].have, "want",
				  r->items[i].want, "reason",
				  r->items[i].reason));
	o = json_pack("{ss ss ss sI sI sb ss ss so*}", "name",
		      resource_name(r->id), "mode", mode_name(r->mode),
		      "worst", state_name(r->worst), "total",
		      (json_int_t)r->total, "repairs", (json_int_t)r->repairs,
		      "contended", r->contended, "writer", r->writer, "fault",
		      r->fault, "not_in_sync", items);
	return o;
}

static json_t *k3s_json(const struct k3s_status *k)
{
	json_t *o = json_pack("{ss si ss ss sb ss ss sb}", "unit",
			      k->unit_state, "restarts", (int)k->restarts,
			      "version", k->version, "binary_sha256",
			      k->binary_sha256, "has_data", k->has_data,
			      "config_sha256", k->config_sha256, "ca_sha256",
			      k->ca_sha256, "unit_foreign", k->unit_foreign);

	if (o)
		(void)put(o, "last_lines", texts(&k->last_lines));
	return o;
}

static void put_report(json_t *o, const struct up_report *r)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < r->n_resources; i++)
		(void)json_array_append_new(list,
					    resource_json(&r->resources[i]));
	(void)put(o, "resources", list);
	(void)put(o, "k3s", k3s_json(&r->k3s));
	(void)put(o, "carries_endpoint", json_boolean(r->carries_endpoint));
	(void)put(o, "settled", json_boolean(r->settled));
	(void)put(o, "tunnels", texts(&r->tunnels));
	(void)put(o, "uncovered", texts(&r->uncovered));
}

json_t *node_json_full(const struct control_node *n)
{
	json_t *o = node_short(n);
	char ago[32];

	if (!o)
		return NULL;
	(void)put(o, "reported",
		  json_string(cli_ago(n->report_ago, ago, sizeof(ago))));
	if (n->hello) {
		const struct up_hello *h = &n->hello->hello;

		(void)put(o, "identity", identity_json(&h->identity));
		(void)put(o, "hardware", hardware_json(&h->hardware));
		(void)put(o, "features", texts(&h->features));
		(void)put(o, "generation",
			  json_integer((json_int_t)h->generation));
	}
	if (n->report)
		put_report(o, &n->report->report);
	return o;
}

/* ---- for people ---- */

#define DEPTH_MAX 6

static void print_value(const json_t *v, int depth, FILE *out);

static void print_indent(int depth, FILE *out)
{
	(void)fprintf(out, "%*s", 2 * depth, "");
}

static void print_object(const json_t *v, int depth, FILE *out)
{
	const char *key;
	json_t *member;

	json_object_foreach((json_t *)v, key, member) {
		bool deep = json_is_object(member) ||
			    (json_is_array(member) && json_array_size(member));

		print_indent(depth, out);
		(void)fprintf(out, "%s:%s", key, deep ? "\n" : " ");
		print_value(member, depth + 1, out);
	}
}

static void print_array(const json_t *v, int depth, FILE *out)
{
	size_t index;
	json_t *member;

	if (json_array_size(v) == 0)
		(void)fputs("none\n", out);
	json_array_foreach(v, index, member) {
		print_indent(depth, out);
		(void)fputs(json_is_object(member) ? "-\n" : "- ", out);
		print_value(member, depth + 1, out);
	}
}

static void print_value(const json_t *v, int depth, FILE *out)
{
	char text[1100];

	if (json_is_object(v) && depth < DEPTH_MAX) {
		print_object(v, depth, out);
	} else if (json_is_array(v) && depth < DEPTH_MAX) {
		print_array(v, depth, out);
	} else if (json_is_string(v)) {
		(void)snprintf(text, sizeof(text), "%s", json_string_value(v));
		fault_sanitize(text);
		(void)fprintf(out, "%s\n", text[0] ? text : "-");
	} else if (json_is_integer(v)) {
		(void)fprintf(out, "%lld\n", (long long)json_integer_value(v));
	} else {
		(void)fprintf(out, "%s\n", json_is_true(v) ? "yes" : "no");
	}
}

int node_json_print(const json_t *full, FILE *out)
{
	print_object(full, 0, out);
	return 0;
}
