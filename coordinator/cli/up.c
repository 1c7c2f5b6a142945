#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/parse.h"
#include "coordinator/bringup.h"
#include "coordinator/cli/verbs.h"
#include "coordinator/control_client.h"
#include "spec/spec.h"

#define DIAL_TIME (65 * USEC_PER_SEC)	/* above the link's longest pause */
#define SCALE_ENV "GARBOARD_TIME_SCALE"	/* tests: divides every wait */

const struct cli_option up_options[] = {
	{ "limit", 0, "NODE", "touch only this node" },
	{ "only", 0, "STAGE", "run only this stage" },
	{ "plan", 0, "DIGEST", "only if this is still the plan" },
	{ "expect", 0, "CLUSTER-ID", "refuse any other cluster" },
	{ "exit-code", 0, NULL, "with --check: exit 3 when changes are pending" },
	{ "plain", 0, NULL, "lines instead of a live display" },
	{ NULL, 0, NULL, NULL },
};
const struct cli_option plan_options[] = {
	{ "limit", 0, "NODE", "look only at this node" },
	{ "only", 0, "STAGE", "look only at this stage" },
	{ "expect", 0, "CLUSTER-ID", "refuse any other cluster" },
	{ "exit-code", 0, NULL, "exit 3 when changes are pending" },
	{ "plain", 0, NULL, "lines instead of a live display" },
	{ NULL, 0, NULL, NULL },
};
const struct cli_option verify_options[] = {
	{ "expect", 0, "CLUSTER-ID", "refuse any other cluster" },
	{ "plain", 0, NULL, "lines instead of a live display" },
	{ NULL, 0, NULL, NULL },
};

typedef int (*bringup_verb)(const struct spec *spec, struct control *control,
			    const struct bringup_options *options, FILE *out,
			    struct fault *f);

static double time_scale(void)
{
	const char *text = getenv(SCALE_ENV);
	double scale = text ? strtod(text, NULL) : 1;

	return scale >= 1 && scale <= 1000 ? scale : 1;
}

/* Nodes of the spec that are enrolled and not here yet. */
static size_t missing(const struct spec *spec, const struct control_nodes *all)
{
	const struct control_node *n;
	size_t count = 0;

	for (size_t i = 0; i < spec->n_nodes; i++) {
		n = control_nodes_find(all, spec->nodes[i].name.v);
		count += n && !(n->connected && n->hello && n->report);
	}
	return count;
}

/*
 * A coordinator that was started for this verb is found by the nodes only
 * when they dial again. Who does not come in time is judged by the stages.
 */
int cli_await_nodes(const struct cli *cli, struct control *c, struct fault *f)
{
	const struct spec *spec = cli->spec;
	usec deadline = clock_boottime() + DIAL_TIME;
	struct control_nodes nodes = { 0 };
	struct control_info info;
	bool told = false;
	size_t n;
	int r;

	r = control_info(c, &info, f);
	if (r < 0 || !info.spawned)
		return r;
	do {
		r = control_nodes(c, &nodes, f);
		if (r < 0)
			return r;
		n = missing(spec, &nodes);
		if (n && !told)
			(void)fprintf(stderr,
				      "garboard: no coordinator was running; "
				      "waiting for %zu nodes to dial in\n", n);
		told = true;
		r = n ? control_wait(c, nodes.revision, deadline, f) : 0;
		control_nodes_done(&nodes);
	} while (r > 0);
	return r;
}

/* For automation, which cannot read the banner (B14). */
int cli_check_expected(const struct cli *cli, struct fault *f)
{
	const char *expected = cli_value(cli, "expect");
	char id[33];

	format_hex(cli->cluster_id, sizeof(cli->cluster_id), id);
	if (!expected || strcmp(expected, id) == 0)
		return CLI_DONE;
	(void)fault_set(f, -EACCES, "--expect",
			"names cluster %.64s, but %s belongs to cluster %s; "
			"nothing was changed", expected, cli->state_dir, id);
	return CLI_REFUSED;
}

/* A digest that no plan can have is a slip of the hand, not another plan. */
static int check_plan(const struct cli *cli)
{
	const char *plan = cli_value(cli, "plan");

	if (plan && (strlen(plan) != 64 ||
		     strspn(plan, "0123456789abcdef") != 64))
		return cli_usage("--plan takes the 64 hex digits that "
				 "`garboard plan` ends with");
	if (plan && cli->check)
		return cli_usage("--plan has no meaning with --check");
	return CLI_DONE;
}

static int run(struct cli *cli, bringup_verb verb, bool check, struct fault *f)
{
	struct control *c CLEANUP(control_freep) = NULL;
	struct bringup_options o = {
		.check = check,
		.exit_code = cli_value(cli, "exit-code") != NULL,
		.limit = cli_value(cli, "limit"),
		.only = cli_value(cli, "only"),
		.plan = cli_value(cli, "plan"),
		.scale = time_scale(),
	};
	int r;

	r = cli_check_expected(cli, f);
	if (r == CLI_DONE)
		r = check_plan(cli);
	if (r != CLI_DONE)
		return r;
	o.style = cli->output != CLI_TABLE ?
			  PROGRESS_JSON :
			  progress_style_for(stdout,
					     cli_value(cli, "plain") != NULL);
	r = cli_control(cli, &c, f);
	if (r == 0)
		r = cli_await_nodes(cli, c, f);
	return r < 0 ? r : verb(cli->spec, c, &o, stdout, f);
}

int verb_up(struct cli *cli, struct fault *f)
{
	return run(cli, bringup_up, cli->check, f);
}

int verb_plan(struct cli *cli, struct fault *f)
{
	return run(cli, bringup_up, true, f);
}

int verb_verify(struct cli *cli, struct fault *f)
{
	return run(cli, bringup_verify, true, f);
}

int verb_doctor(struct cli *cli, struct fault *f)
{
	return run(cli, bringup_doctor, true, f);
}
