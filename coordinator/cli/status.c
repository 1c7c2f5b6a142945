#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/parse.h"
#include "coordinator/cli/node_json.h"
#include "coordinator/cli/verbs.h"
#include "coordinator/control_client.h"
#include "spec/spec.h"

const struct cli_option events_options[] = {
	{ "limit", 0, "N", "the last N (default 50, at most 1000)" },
	{ NULL, 0, NULL, NULL },
};

struct tally {
	size_t nodes, connected, in_sync, held;
	bool unseen;	/* something could not be told */
};

static void count(const struct control_nodes *nodes, struct tally *t)
{
	for (size_t i = 0; i < nodes->n; i++) {
		const struct control_node *n = &nodes->v[i];

		if (n->revoked)
			continue;
		t->nodes++;
		t->connected += n->connected && !n->stale;
		t->held += n->held[0] != '\0';
		if (!n->connected || n->stale || !n->report)
			t->unseen = true;
		else
			t->in_sync += strcmp(node_json_worst(n), "in sync") == 0;
	}
}

/* Nodes of the spec that nobody enrolled yet, as rows of their own. */
static int add_missing(const struct spec *spec,
		       const struct control_nodes *nodes, json_t *list,
		       struct tally *t)
{
	for (size_t i = 0; spec && i < spec->n_nodes; i++) {
		const char *name = spec->nodes[i].name.v;

		if (control_nodes_find(nodes, name))
			continue;
		t->unseen = true;
		if (json_array_append_new(
			    list, json_pack("{ss ss ss ss ss ss}", "name", name,
					    "state", "not enrolled", "seen",
					    "never", "worst", "", "id", "",
					    "note", "in the spec only")) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int print_status(const struct cli *cli, json_t *list,
			const struct tally *t)
{
	static const struct cli_column columns[] = {
		{ "NODE", "name" },   { "STATE", "state" }, { "SEEN", "seen" },
		{ "WORST", "worst" }, { "NOTE", "note" },   { NULL, NULL },
	};
	json_t *o;
	int r;

	if (cli->output == CLI_TABLE) {
		r = cli_print_list(cli, list, columns);
		(void)printf("%zu nodes, %zu connected, %zu in sync, %zu "
			     "held\n",
			     t->nodes, t->connected, t->in_sync, t->held);
		return r;
	}
	o = json_pack("{ss sO sI sI sI sI}", "cluster", cli->name, "nodes",
		      list, "total", (json_int_t)t->nodes, "connected",
		      (json_int_t)t->connected, "in_sync",
		      (json_int_t)t->in_sync, "held", (json_int_t)t->held);
	r = o ? cli_print_json(o) : -ENOMEM;
	json_decref(o);
	return r;
}

/* A coordinator started just for this question hears of nodes in a while. */
#define LISTEN_TIME (3 * USEC_PER_SEC)

static int collect(struct control *c, struct control_nodes *ret_nodes,
		   struct fault *f)
{
	usec deadline = clock_boottime() + LISTEN_TIME;
	struct control_info info;
	struct tally t;
	int r;

	if ((r = control_info(c, &info, f)) < 0 ||
	    (r = control_nodes(c, ret_nodes, f)) < 0 || !info.spawned)
		return r;
	for (;;) {
		t = (struct tally){ 0 };
		count(ret_nodes, &t);
		if (!t.unseen)
			return 0;
		r = control_wait(c, ret_nodes->revision, deadline, f);
		if (r <= 0)
			return r;
		control_nodes_done(ret_nodes);
		r = control_nodes(c, ret_nodes, f);
		if (r < 0)
			return r;
	}
}

int verb_status(struct cli *cli, struct fault *f)
{
	struct control *c CLEANUP(control_freep) = NULL;
	struct control_nodes nodes = { 0 };
	struct tally t = { 0 };
	json_t *list = NULL;
	int r;

	r = cli_control(cli, &c, f);
	if (r == 0)
		r = collect(c, &nodes, f);
	if (r == 0) {
		count(&nodes, &t);
		list = node_json_list(&nodes);
		r = list ? add_missing(cli->spec, &nodes, list, &t) : -ENOMEM;
	}
	if (r == 0)
		r = print_status(cli, list, &t);
	json_decref(list);
	control_nodes_done(&nodes);
	if (r < 0)
		return r;
	return t.unseen ? CLI_INCOMPLETE :
	       t.in_sync < t.nodes || t.held ? CLI_FAILED : CLI_DONE;
}

int verb_events(struct cli *cli, struct fault *f)
{
	static const struct cli_column columns[] = {
		{ "TIME", "time" }, { "STAGE", "stage" }, { "NODE", "node" },
		{ "EVENT", "text" }, { NULL, NULL },
	};
	struct control *c CLEANUP(control_freep) = NULL;
	const char *text = cli_value(cli, "limit");
	json_t *reply = NULL, *list, *e;
	uint32_t limit = 50;
	size_t index;
	int r;

	if (text && parse_u32(text, &limit) < 0)
		return cli_usage("--limit %s is no number", text);
	if ((r = cli_control(cli, &c, f)) < 0 ||
	    (r = cli_ask(c, json_pack("{ss si}", "op", "events", "limit",
				      (int)limit), &reply, f)) < 0)
		return r;
	list = json_object_get(reply, "events");
	json_array_foreach(list, index, e) {
		time_t at = (time_t)(json_integer_value(
					     json_object_get(e, "at")) /
				     (json_int_t)USEC_PER_SEC);
		char when[32] = "";
		struct tm tm;

		if (gmtime_r(&at, &tm))
			(void)strftime(when, sizeof(when),
				       "%Y-%m-%dT%H:%M:%SZ", &tm);
		(void)json_object_set_new(e, "time", json_string(when));
	}
	r = cli_print_list(cli, list, columns);
	json_decref(reply);
	return r;
}
