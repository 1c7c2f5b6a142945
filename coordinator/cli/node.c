#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/parse.h"
#include "coordinator/cli/node_json.h"
#include "coordinator/cli/verbs.h"
#include "coordinator/control_client.h"

static int fetch(const struct cli *cli, struct control **ret_control,
		 struct control_nodes *ret_nodes, struct fault *f)
{
	int r;

	r = cli_control(cli, ret_control, f);
	return r < 0 ? r : control_nodes(*ret_control, ret_nodes, f);
}

int verb_node_list(struct cli *cli, struct fault *f)
{
	static const struct cli_column columns[] = {
		{ "NODE", "name" },	  { "STATE", "state" },
		{ "SEEN", "seen" },	  { "WORST", "worst" },
		{ "ID", "id" },		  { "NOTE", "note" },
		{ NULL, NULL },
	};
	struct control *c CLEANUP(control_freep) = NULL;
	struct control_nodes nodes = { 0 };
	json_t *list;
	int r;

	r = fetch(cli, &c, &nodes, f);
	if (r < 0)
		return r;
	list = node_json_list(&nodes);
	r = list ? cli_print_list(cli, list, columns) : -ENOMEM;
	json_decref(list);
	control_nodes_done(&nodes);
	return r;
}

int verb_node_describe(struct cli *cli, struct fault *f)
{
	struct control *c CLEANUP(control_freep) = NULL;
	struct control_nodes nodes = { 0 };
	const struct control_node *n;
	json_t *o;
	int r;

	r = fetch(cli, &c, &nodes, f);
	if (r < 0)
		return r;
	n = control_nodes_find(&nodes, cli->args[0]);
	if (!n) {
		control_nodes_done(&nodes);
		return fault_set(f, -ENOENT, cli->args[0],
				 "no such node: see garboard node list");
	}
	o = node_json_full(n);
	if (!o)
		r = -ENOMEM;
	else if (cli->output == CLI_TABLE)
		r = node_json_print(o, stdout);
	else
		r = cli_print_json(o);
	json_decref(o);
	control_nodes_done(&nodes);
	return r;
}

int verb_node_revoke(struct cli *cli, struct fault *f)
{
	struct control *c CLEANUP(control_freep) = NULL;
	json_t *reply = NULL;
	int r;

	if (cli->check) {
		(void)printf("would revoke %s and end its session\n",
			     cli->args[0]);
		return CLI_DONE;
	}
	r = cli_control(cli, &c, f);
	if (r < 0)
		return r;
	r = cli_ask(c, json_pack("{ss ss}", "op", "revoke", "node",
				 cli->args[0]), &reply, f);
	if (r < 0)
		return r;
	json_decref(reply);
	(void)printf("%s is revoked: its session ended and its certificate is "
		     "refused from now on\n", cli->args[0]);
	return CLI_DONE;
}
