#include "spec/spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "coordinator/cli/verbs.h"
#include "spec/print.h"

const struct cli_option spec_show_options[] = {
	{ "node", 0, "NODE", "only this node (default: all)" },
	{ NULL, 0, NULL, NULL },
};

/* It was read and checked, with everything printed, before we came here. */
int verb_spec_check(struct cli *cli, struct fault *f)
{
	(void)f;
	(void)printf("%s: no errors; %zu servers, %zu workers\n",
		     cli->spec->file, spec_count(cli->spec, SPEC_ROLE_SERVER),
		     spec_count(cli->spec, SPEC_ROLE_WORKER));
	return CLI_DONE;
}

int verb_spec_migrate(struct cli *cli, struct fault *f)
{
	(void)f;
	(void)printf("%s: %s is the newest version; nothing to migrate\n",
		     cli->spec->file, SPEC_API_VERSION);
	return CLI_DONE;
}

static int show(const struct cli *cli, size_t node, struct fault *f)
{
	struct spec_items items = SPEC_ITEMS_INIT;
	_cleanup_free_ char *text = NULL;
	int r;

	r = spec_explain_node(cli->spec, node, &items, f);
	if (r < 0)
		return r;
	r = cli->output == CLI_TABLE ? spec_print_table(&items, &text) :
				       spec_print_json(&items, &text);
	spec_items_done(&items);
	if (r < 0)
		return fault_errno(f, r, cli->spec->file, "cannot show");
	if (cli->output == CLI_TABLE)
		(void)printf("node %s\n", cli->spec->nodes[node].name.v);
	(void)fputs(text, stdout);
	return 0;
}

/* Several nodes are one JSON object by name. */
static int show_all(const struct cli *cli, struct fault *f)
{
	bool json = cli->output != CLI_TABLE;
	int r = 0;

	for (size_t i = 0; i < cli->spec->n_nodes && r == 0; i++) {
		if (json)
			(void)printf("%s\"%s\": ", i ? ", " : "{",
				     cli->spec->nodes[i].name.v);
		r = show(cli, i, f);
	}
	if (json)
		(void)puts("}");
	return r;
}

int verb_spec_show(struct cli *cli, struct fault *f)
{
	const char *name = cli_value(cli, "node");
	size_t node = 0;

	if (!name)
		return show_all(cli, f);
	if (spec_find_node(cli->spec, name, &node) < 0)
		return cli_usage("%s has no node %s", cli->spec->file, name);
	return show(cli, node, f);
}
