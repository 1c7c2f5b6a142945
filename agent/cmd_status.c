/* The two verbs that only read the running agent's status socket. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/cmd.h"
#include "agent/status.h"
#include "agent/status_client.h"
#include "agent/verdict.h"
#include "common/cleanup.h"
#include "common/parse.h"

#define STATUS_TIMEOUT (5 * USEC_PER_SEC)

struct options {
	bool json;
	const char *socket;
};

static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "socket", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "o:", longs, NULL)) != -1) {
		if (c == 's')
			o->socket = optarg;
		else if (c == 'o' && strcmp(optarg, "json") == 0)
			o->json = true;
		else if (c != 'o' || strcmp(optarg, "table") != 0)
			return -EINVAL;
	}
	return optind == argc ? 0 : -EINVAL;
}

static const char *get(const struct status_doc *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static const char *get(const struct status_doc *d, const char *fmt, ...)
{
	char path[128];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return status_get(d, path);
}

static void print_age(const char *micros)
{
	uint64_t us = 0;

	(void)parse_u64(micros, UINT64_MAX, &us);
	(void)printf("%" PRIu64 " s ago", us / USEC_PER_SEC);
}

static void print_node(const struct status_doc *d)
{
	const char *node = get(d, "node"), *cluster = get(d, "cluster");

	(void)printf("node      %s\n", *node ? node : "(not named yet)");
	(void)printf("cluster   %s\n", *cluster ? cluster : "(no bundle)");
	(void)printf("session   %s%s%s\n", get(d, "session"),
		     *get(d, "peer") ? ", " : "", get(d, "peer"));
	if (strcmp(get(d, "enrolled"), "true") != 0)
		(void)printf("approve   fingerprint %s\n",
			     get(d, "fingerprint"));
	(void)printf("orders    epoch %s, sequence %s; desired state %s\n",
		     get(d, "epoch"), get(d, "sequence"),
		     get(d, "generation"));
	if (strcmp(get(d, "trial.state"), "on trial") == 0 ||
	    strcmp(get(d, "trial.state"), "taken back") == 0)
		(void)printf("trial     desired state %s: %s\n",
			     get(d, "trial.generation"),
			     get(d, "trial.state"));
	if (*get(d, "state_fault"))
		(void)printf("state     %s\n", get(d, "state_fault"));
	if (*get(d, "k3s.unit"))
		(void)printf("k3s       %s %s, %s restarts%s\n",
			     get(d, "k3s.unit"), get(d, "k3s.version"),
			     get(d, "k3s.restarts"),
			     strcmp(get(d, "carries_endpoint"), "true") == 0 ?
				     "; carries the VIP" : "");
}

static uint64_t number(const struct status_doc *d, const char *path)
{
	uint64_t v = 0;

	(void)parse_u64(get(d, "%s", path), UINT64_MAX, &v);
	return v;
}

static void print_facts(const struct status_doc *d)
{
	uint64_t total = number(d, "facts.memory_total") >> 20;
	uint64_t installed = number(d, "facts.memory_installed") >> 20;

	if (*get(d, "facts.product") || *get(d, "facts.firmware"))
		(void)printf("machine   %s; firmware %s\n",
			     get(d, "facts.product"), get(d, "facts.firmware"));
	if (installed)
		(void)printf("memory    %" PRIu64 " of %" PRIu64
			     " MiB addressed\n", total, installed);
	else if (total)
		(void)printf("memory    %" PRIu64 " MiB addressed (the "
			     "firmware does not say how much is installed)\n",
			     total);
	if (number(d, "facts.disk_size"))
		(void)printf("disk      %" PRIu64 " of %" PRIu64
			     " MiB free below /var/lib\n",
			     number(d, "facts.disk_free") >> 20,
			     number(d, "facts.disk_size") >> 20);
	(void)printf("clock     %ssynchronised\n",
		     strcmp(get(d, "facts.clock_synchronised"), "true") == 0 ?
			     "" : "not ");
}

static void print_uncovered(const struct status_doc *d)
{
	size_t i, n = status_count(d, "uncovered");

	for (i = 0; i < n; i++)
		(void)printf("not covered: %s\n",
			     get(d, "uncovered.%zu.text", i));
}

static void print_resource(const struct status_doc *d, size_t i)
{
	char items[64];
	size_t k, n;

	(void)snprintf(items, sizeof(items), "resources.%zu.items", i);
	n = status_count(d, items);
	(void)printf("%-11s %-8s %-12s %3zu items, looked at ",
		     get(d, "resources.%zu.name", i),
		     get(d, "resources.%zu.mode", i),
		     get(d, "resources.%zu.state", i), n);
	print_age(get(d, "resources.%zu.proof_age_usec", i));
	(void)printf(", %s repairs%s%s\n", get(d, "resources.%zu.repairs", i),
		     strcmp(get(d, "resources.%zu.contended", i), "true") == 0 ?
			     ", contended by " : "",
		     strcmp(get(d, "resources.%zu.contended", i), "true") == 0 ?
			     get(d, "resources.%zu.writer", i) : "");
	if (*get(d, "resources.%zu.fault", i))
		(void)printf("  ! %s\n", get(d, "resources.%zu.fault", i));
	for (k = 0; k < n; k++) {
		const char *state = get(d, "resources.%zu.items.%zu.state", i,
					k);
		const char *reason = get(d, "resources.%zu.items.%zu.reason",
					 i, k);

		if (strcmp(state, "in-sync") == 0)
			continue;
		(void)printf("  %s %s: have %s, want %s%s%s\n", state,
			     get(d, "resources.%zu.items.%zu.key", i, k),
			     get(d, "resources.%zu.items.%zu.have", i, k),
			     get(d, "resources.%zu.items.%zu.want", i, k),
			     *reason ? "; " : "", reason);
	}
}

static int fetch(const struct options *o, char **ret_text,
		 struct status_doc **ret_doc, struct fault *f)
{
	size_t size;
	int r = status_fetch(o->socket, STATUS_TIMEOUT, ret_text, &size, f);

	return r < 0 ? r : status_parse(*ret_text, size, ret_doc, f);
}

int cmd_status(int argc, char **argv)
{
	struct options o = { .socket = STATUS_SOCKET };
	_cleanup_free_ char *text = NULL;
	struct status_doc *d = NULL;
	struct fault f = FAULT_INIT;
	char line[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];
	size_t i;

	if (parse_options(argc, argv, &o) < 0)
		return cmd_usage("status");
	if (fetch(&o, &text, &d, &f) < 0) {
		(void)fprintf(stderr, "garboard-agent: %s\n",
			      fault_str(&f, line, sizeof(line)));
		return CMD_FAILED;
	}
	if (o.json) {
		(void)fputs(text, stdout);
	} else {
		print_node(d);
		print_facts(d);
		print_uncovered(d);
		(void)printf("health    %s - %s\n\n", get(d, "health.name"),
			     get(d, "health.text"));
		for (i = 0; i < status_count(d, "resources"); i++)
			print_resource(d, i);
	}
	(void)status_doc_free(d);
	return CMD_OK;
}

int cmd_health(int argc, char **argv)
{
	struct options o = { .socket = STATUS_SOCKET };
	_cleanup_free_ char *text = NULL;
	struct status_doc *d = NULL;
	struct fault f = FAULT_INIT;
	uint64_t code = VERDICT_UNKNOWN;
	int r;

	if (parse_options(argc, argv, &o) < 0 || o.json) {
		(void)cmd_usage("health");
		return VERDICT_UNKNOWN;
	}
	r = fetch(&o, &text, &d, &f);
	if (r < 0) {
		/* Nobody keeps this node: that is worse than not knowing. */
		code = r == -ENOENT || r == -ECONNREFUSED ? VERDICT_CRITICAL :
							    VERDICT_UNKNOWN;
		(void)printf("GARBOARD %s - %s\n", verdict_name(code), f.text);
		return (int)code;
	}
	if (parse_u64(get(d, "health.code"), VERDICT_UNKNOWN, &code) < 0)
		code = VERDICT_UNKNOWN;
	(void)printf("GARBOARD %s - %s | %s\n", verdict_name(code),
		     get(d, "health.text"), get(d, "health.perfdata"));
	(void)status_doc_free(d);
	return (int)code;
}
