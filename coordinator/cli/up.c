#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "coordinator/bringup.h"
#include "coordinator/cli/verbs.h"
#include "coordinator/control_client.h"

#define SCALE_ENV "GARBOARD_TIME_SCALE"	/* tests: divides every wait */

const struct cli_option up_options[] = {
	{ "limit", 0, "NODE", "touch only this node" },
	{ "only", 0, "STAGE", "run only this stage" },
	{ "exit-code", 0, NULL, "with --check: exit 3 when changes are pending" },
	{ "plain", 0, NULL, "lines instead of a live display" },
	{ NULL, 0, NULL, NULL },
};
const struct cli_option plan_options[] = {
	{ "limit", 0, "NODE", "look only at this node" },
	{ "only", 0, "STAGE", "look only at this stage" },
	{ "exit-code", 0, NULL, "exit 3 when changes are pending" },
	{ "plain", 0, NULL, "lines instead of a live display" },
	{ NULL, 0, NULL, NULL },
};
const struct cli_option verify_options[] = {
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

static int run(struct cli *cli, bringup_verb verb, bool check, struct fault *f)
{
	struct control *c CLEANUP(control_freep) = NULL;
	struct bringup_options o = {
		.check = check,
		.exit_code = cli_value(cli, "exit-code") != NULL,
		.limit = cli_value(cli, "limit"),
		.only = cli_value(cli, "only"),
		.scale = time_scale(),
	};
	int r;

	o.style = cli->output != CLI_TABLE ?
			  PROGRESS_JSON :
			  progress_style_for(stdout,
					     cli_value(cli, "plain") != NULL);
	r = cli_control(cli, &c, f);
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
