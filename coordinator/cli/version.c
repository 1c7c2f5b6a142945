#include <stdio.h>

#include "coordinator/cli/verbs.h"
#include "spec/spec.h"

int verb_version(struct cli *cli, struct fault *f)
{
	json_t *o;
	int r;

	(void)f;
	if (cli->output == CLI_TABLE) {
		(void)printf("garboard %s (spec %s)\n", GARBOARD_VERSION,
			     SPEC_API_VERSION);
		return CLI_DONE;
	}
	o = json_pack("{ss ss}", "version", GARBOARD_VERSION, "spec",
		      SPEC_API_VERSION);
	r = o ? cli_print_json(o) : -1;
	json_decref(o);
	return r;
}
