#include "agent/metrics/render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/status_client.h"
#include "common/parse.h"

/* An age that is not known is the greatest there is (engine.h). */
#define AGE_MAX ((uint64_t)INT64_MAX)

enum kind {
	NUMBER,
	COUNTER,	/* its name is given without _total */
	MICROS,		/* in the document; seconds in the metric */
	EQUALS,		/* 1 where the text is `want`, else 0 */
	PRESENT,	/* 1 where the text is not empty, else 0 */
	LENGTH,		/* of a list */
};

struct metric {
	enum kind kind;
	const char *name, *path, *want, *help;
};

static const struct metric node_metrics[] = {
	{ NUMBER, "garboard_health_status", "health.code", NULL,
	  "Health by the Monitoring Plugins: 0 ok, 1 warning, 2 critical, "
	  "3 unknown." },
	{ EQUALS, "garboard_settled", "settled", "true",
	  "Whether every resource is as desired, and proven so." },
	{ EQUALS, "garboard_node_enrolled", "enrolled", "true",
	  "Whether a coordinator has taken this node in." },
	{ EQUALS, "garboard_node_revoked", "revoked", "true",
	  "Whether the coordinator has cast this node out." },
	{ EQUALS, "garboard_session_up", "session", "up",
	  "Whether the link to the coordinator stands." },
	{ NUMBER, "garboard_order_epoch", "epoch", NULL,
	  "Epoch of the coordinator that is obeyed." },
	{ NUMBER, "garboard_order_sequence", "sequence", NULL,
	  "Sequence number of the last order." },
	{ NUMBER, "garboard_desired_generation", "generation", NULL,
	  "Generation of the desired state that is kept." },
	{ COUNTER, "garboard_agent_starts", "starts", NULL,
	  "Starts of the agent since its state was made." },
	{ PRESENT, "garboard_state_faulty", "state_fault", NULL,
	  "Whether a file of the agent's state is broken." },
	{ EQUALS, "garboard_trial_taken_back", "trial.state", "taken back",
	  "Whether the last desired state was tried and taken back." },
	{ EQUALS, "garboard_carries_endpoint", "carries_endpoint", "true",
	  "Whether this node carries the cluster's virtual address." },
	{ LENGTH, "garboard_uncovered_paths", "uncovered", NULL,
	  "Paths that no layer of the kill-switch sees." },
	{ EQUALS, "garboard_clock_synchronised", "facts.clock_synchronised",
	  "true", "Whether the kernel's clock is synchronised." },
	{ NUMBER, "garboard_memory_addressed_bytes", "facts.memory_total",
	  NULL, "Memory that the kernel addresses." },
	{ NUMBER, "garboard_memory_installed_bytes",
	  "facts.memory_installed", NULL,
	  "Memory that the firmware says is installed; 0 if it does not." },
	{ EQUALS, "garboard_k3s_active", "k3s.unit", "active",
	  "Whether the unit of k3s is active." },
	{ COUNTER, "garboard_k3s_restarts", "k3s.restarts", NULL,
	  "Restarts of k3s by systemd." },
};

static const struct metric resource_metrics[] = {
	{ EQUALS, "garboard_resource_in_sync", "state", "in-sync",
	  "Whether the resource was found as desired." },
	{ EQUALS, "garboard_resource_enforced", "mode", "enforce",
	  "Whether the resource is kept, not only looked at." },
	{ EQUALS, "garboard_resource_settled", "settled", "true",
	  "Whether nothing is left to do for the resource." },
	{ EQUALS, "garboard_resource_contended", "contended", "true",
	  "Whether somebody else keeps changing it." },
	{ COUNTER, "garboard_resource_repairs", "repairs", NULL,
	  "Repairs since the agent's start." },
	{ MICROS, "garboard_resource_proof_age_seconds", "proof_age_usec",
	  NULL, "Time since the resource was last looked at." },
	{ PRESENT, "garboard_resource_faulty", "fault", NULL,
	  "Whether looking at it or changing it failed." },
	{ LENGTH, "garboard_resource_items", "items", NULL,
	  "Items that the resource has." },
	{ LENGTH, "garboard_resource_pending_changes", "pending", NULL,
	  "Changes that are planned and not made." },
};

#define N(table) (sizeof(table) / sizeof((table)[0]))

static void family(FILE *f, bool openmetrics, const struct metric *m)
{
	const char *end = m->kind == COUNTER && !openmetrics ? "_total" : "";

	(void)fprintf(f, "# HELP %s%s %s\n# TYPE %s%s %s\n", m->name, end,
		      m->help, m->name, end,
		      m->kind == COUNTER ? "counter" : "gauge");
}

static void put_label(FILE *f, const char *name, const char *value)
{
	(void)fprintf(f, "%s=\"", name);
	for (; *value; value++)
		if (*value == '\n')
			(void)fputs("\\n", f);
		else if (*value == '"' || *value == '\\')
			(void)fprintf(f, "\\%c", *value);
		else
			(void)fputc(*value, f);
	(void)fputc('"', f);
}

/* False: the document does not say. */
static bool value_of(const struct status_doc *d, const struct metric *m,
		     const char *path, uint64_t *ret_value)
{
	const char *text = status_get(d, path);
	uint64_t v = 0;

	switch (m->kind) {
	case NUMBER:
	case COUNTER:
		if (parse_u64(text, UINT64_MAX, &v) < 0)
			return false;
		break;
	case MICROS:
		if (parse_u64(text, AGE_MAX, &v) < 0)
			return false;
		break;
	case EQUALS:
		if (!*text)
			return false;
		v = strcmp(text, m->want) == 0;
		break;
	case PRESENT:
		v = *text != '\0';
		break;
	case LENGTH:
		v = status_count(d, path);
		break;
	}
	*ret_value = v;
	return true;
}

static void put_value(FILE *f, const struct metric *m, uint64_t v)
{
	if (m->kind == MICROS)
		(void)fprintf(f, " %" PRIu64 ".%06" PRIu64 "\n", v / 1000000,
			      v % 1000000);
	else
		(void)fprintf(f, " %" PRIu64 "\n", v);
}

static void put_node(FILE *f, bool openmetrics, const struct status_doc *d)
{
	size_t i;
	uint64_t v;

	(void)fputs("# HELP garboard_node_info Who this node is.\n"
		    "# TYPE garboard_node_info gauge\n"
		    "garboard_node_info{", f);
	put_label(f, "node", status_get(d, "node"));
	(void)fputc(',', f);
	put_label(f, "cluster", status_get(d, "cluster"));
	(void)fputc(',', f);
	put_label(f, "version", status_get(d, "version"));
	(void)fputs("} 1\n", f);
	for (i = 0; i < N(node_metrics); i++) {
		const struct metric *m = &node_metrics[i];

		if (!value_of(d, m, m->path, &v))
			continue;
		family(f, openmetrics, m);
		(void)fprintf(f, "%s%s", m->name,
			      m->kind == COUNTER ? "_total" : "");
		put_value(f, m, v);
	}
}

static const char *resource_get(const struct status_doc *d, size_t i,
				const char *field, char path[static 96])
{
	(void)snprintf(path, 96, "resources.%zu.%s", i, field);
	return status_get(d, path);
}

static void put_resources(FILE *f, bool openmetrics,
			  const struct status_doc *d,
			  const struct metric *m, size_t n)
{
	char path[96];
	uint64_t v;
	size_t i;

	if (n)
		family(f, openmetrics, m);
	for (i = 0; i < n; i++) {
		const char *name = resource_get(d, i, "name", path);

		(void)resource_get(d, i, m->path, path);
		if (!value_of(d, m, path, &v))
			continue;
		(void)fprintf(f, "%s%s{", m->name,
			      m->kind == COUNTER ? "_total" : "");
		put_label(f, "resource", name);
		(void)fputc('}', f);
		put_value(f, m, v);
	}
}

/* The state by its name, for a human; rules use _in_sync. */
static void put_states(FILE *f, const struct status_doc *d, size_t n)
{
	char path[96];
	size_t i;

	if (n)
		(void)fputs("# HELP garboard_resource_state The worst state "
			    "of its items, and who contends it.\n"
			    "# TYPE garboard_resource_state gauge\n", f);
	for (i = 0; i < n; i++) {
		(void)fputs("garboard_resource_state{", f);
		put_label(f, "resource", resource_get(d, i, "name", path));
		(void)fputc(',', f);
		put_label(f, "state", resource_get(d, i, "state", path));
		(void)fputc(',', f);
		put_label(f, "writer", resource_get(d, i, "writer", path));
		(void)fputs("} 1\n", f);
	}
}

static void put_document(FILE *f, bool openmetrics, const struct status_doc *d)
{
	size_t i, n = status_count(d, "resources");

	if (n > METRICS_RESOURCES_MAX)
		n = METRICS_RESOURCES_MAX;
	put_node(f, openmetrics, d);
	put_states(f, d, n);
	for (i = 0; i < N(resource_metrics); i++)
		put_resources(f, openmetrics, d, &resource_metrics[i], n);
}

int metrics_render(const struct status_doc *doc, bool openmetrics,
		   char **ret_text, size_t *ret_size)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	int bad;

	if (!f)
		return -ENOMEM;
	(void)fprintf(f, "# HELP garboard_agent_up Whether the agent answers."
			 "\n# TYPE garboard_agent_up gauge\n"
			 "garboard_agent_up %d\n", doc != NULL);
	if (doc)
		put_document(f, openmetrics, doc);
	if (openmetrics)
		(void)fputs("# EOF\n", f);
	bad = ferror(f);
	if (fclose(f) != 0 || bad) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
	*ret_size = size;
	return 0;
}
