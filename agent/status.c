#include "agent/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/facts.h"
#include "agent/hardware.h"
#include "agent/json.h"
#include "agent/k3s.h"
#include "agent/trial.h"
#include "agent/uncovered.h"
#include "agent/verdict.h"
#include "common/parse.h"

static void put_items(struct json *j, const struct item_list *items)
{
	size_t i;

	json_open(j, "items", '[');
	for (i = 0; i < items->n; i++) {
		const struct item *it = &items->v[i];

		json_open(j, NULL, '{');
		json_text(j, "key", it->key);
		json_text(j, "state", item_state_name(it->state));
		json_text(j, "have", it->have);
		json_text(j, "want", it->want);
		json_text(j, "reason", it->reason);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_changes(struct json *j, const char *key,
			const struct change_list *list)
{
	size_t i;

	json_open(j, key, '[');
	for (i = 0; i < list->n; i++) {
		json_open(j, NULL, '{');
		json_text(j, "op", change_op_name(list->v[i].op));
		json_text(j, "key", list->v[i].key);
		json_text(j, "have", list->v[i].have);
		json_text(j, "want", list->v[i].want);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_resource(struct json *j, enum resource_id id,
			 const struct engine_resource *r)
{
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];

	json_open(j, NULL, '{');
	json_text(j, "name", resource_name(id));
	json_text(j, "mode", mode_name(r->mode));
	json_text(j, "state", r->looked ?
		    item_state_name(item_list_worst(r->items)) : "unobservable");
	json_bool(j, "settled", r->settled);
	json_bool(j, "contended", r->contended);
	json_text(j, "writer", r->writer);
	json_number(j, "repairs", r->repairs);
	json_number(j, "proof_age_usec", r->proof_age);
	json_text(j, "fault", r->fault->err ?
		    fault_str(r->fault, text, sizeof(text)) : "");
	put_items(j, r->items);
	put_changes(j, "pending", r->plan);
	put_changes(j, "last", r->done);
	json_close(j, '}');
}

static void put_resources(struct json *j, const struct engine_report *report)
{
	size_t i;

	json_open(j, "resources", '[');
	for (i = 0; report->desired && i < RESOURCE_MAX; i++)
		if (report->v[i].present)
			put_resource(j, i, &report->v[i]);
	json_close(j, ']');
}

static void put_k3s(struct json *j, const struct k3s *k, bool withhold)
{
	struct k3s_status s;
	size_t i;

	if (!k || k3s_status_copy(k, &s) < 0)
		return;
	json_open(j, "k3s", '{');
	json_text(j, "unit", s.unit_state);
	json_number(j, "restarts", s.restarts);
	json_text(j, "version", s.version);
	json_bool(j, "has_data", s.has_data);
	json_bool(j, "unit_foreign", s.unit_foreign);
	json_bool(j, "lines_withheld", withhold);
	json_open(j, "last_lines", '[');
	for (i = 0; !withhold && i < s.last_lines.n; i++)
		json_text(j, NULL, s.last_lines.v[i]);
	json_close(j, ']');
	json_close(j, '}');
	k3s_status_done(&s);
}

static void put_node(struct json *j, const struct status_input *in)
{
	const struct desired *d = engine_desired(in->engine);
	char id[33] = "";

	if (in->state->enrolled)
		format_hex(in->state->node_id, 16, id);
	json_text(j, "version", GARBOARD_VERSION);
	json_text(j, "node", d && *d->node ? d->node : in->state->node_name);
	json_text(j, "node_id", id);
	json_text(j, "cluster", in->cluster);
	json_bool(j, "enrolled", in->state->enrolled);
	json_bool(j, "revoked", in->state->revoked);
	json_text(j, "session", in->session);
	json_text(j, "peer", in->peer);
	json_text(j, "fingerprint", in->fingerprint);
	json_number(j, "epoch", in->state->epoch);
	json_number(j, "sequence", in->state->sequence);
	json_number(j, "starts", in->state->starts);
	json_text(j, "state_fault", in->state_fault);
	json_bool(j, "carries_endpoint",
		  d && facts_carries(&d->cluster.endpoint));
}

/* Observed and never set (B07, B08). */
static void put_facts(struct json *j)
{
	struct hardware hw;

	hardware_read("", &hw);
	json_open(j, "facts", '{');
	json_number(j, "memory_total", hw.memory_total);
	json_number(j, "memory_installed", hw.memory_installed);
	json_number(j, "disk_size", hw.disk_size);
	json_number(j, "disk_free", hw.disk_free);
	json_text(j, "firmware", hw.firmware);
	json_text(j, "product", hw.product);
	json_bool(j, "clock_synchronised", facts_clock_synchronised());
	json_close(j, '}');
}

static void put_trial(struct json *j, const struct trial_status *t)
{
	json_open(j, "trial", '{');
	json_text(j, "state", t->running ? "on trial" :
				t->returned ? "taken back" : "none");
	json_number(j, "generation", t->generation);
	json_bool(j, "applied", t->applied);
	json_number(j, "left_usec", t->left);
	json_close(j, '}');
}

static void put_verdict(struct json *j, const struct status_input *in,
			const struct engine_report *report,
			const struct trial_status *trial)
{
	struct verdict_input vi = { .engine = report,
				    .trial = trial,
				    .uncovered = uncovered_get(in->uncovered),
				    .enrolled = in->state->enrolled,
				    .session = strcmp(in->session, "up") == 0,
				    .state_fault = in->state_fault };
	struct verdict v;

	verdict_make(&vi, &v);
	json_open(j, "health", '{');
	json_number(j, "code", v.code);
	json_text(j, "name", verdict_name(v.code));
	json_text(j, "text", v.text);
	json_text(j, "perfdata", v.perfdata);
	json_close(j, '}');
}

static void put_uncovered(struct json *j, const struct uncovered_paths *p)
{
	size_t i;

	json_open(j, "uncovered", '[');
	for (i = 0; i < p->n; i++) {
		json_open(j, NULL, '{');
		json_text(j, "path", p->v[i].path);
		json_text(j, "device", p->v[i].device);
		json_bool(j, "critical", p->v[i].critical);
		json_text(j, "text", p->v[i].text);
		json_close(j, '}');
	}
	json_close(j, ']');
}

int status_document(const struct status_input *in, usec now, char **ret_text,
		    size_t *ret_size)
{
	struct engine_report report;
	struct trial_status trial;
	struct json j;

	trial_status(in->trial, now, &trial);
	engine_report(in->engine, now, &report);
	json_init(&j);
	json_open(&j, NULL, '{');
	put_node(&j, in);
	put_facts(&j);
	json_bool(&j, "settled", report.settled);
	json_number(&j, "generation", report.generation);
	put_trial(&j, &trial);
	put_verdict(&j, in, &report, &trial);
	put_uncovered(&j, uncovered_get(in->uncovered));
	put_resources(&j, &report);
	put_k3s(&j, in->k3s, in->stranger);
	json_close(&j, '}');
	return json_done(&j, ret_text, ret_size);
}
