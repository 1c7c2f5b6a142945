#include <errno.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "coordinator/cli/verbs.h"
#include "coordinator/control_client.h"
#include "coordinator/wipe.h"

const struct cli_option wipe_options[] = {
	{ "yes", 0, NULL, "do it; without it nothing is changed" },
	{ "expect", 0, "CLUSTER-ID", "refuse any other cluster" },
	{ NULL, 0, NULL, NULL },
};

int verb_node_wipe(struct cli *cli, struct fault *f)
{
	struct control *c CLEANUP(control_freep) = NULL;
	bool yes = cli_value(cli, "yes") != NULL;
	int r = cli_check_expected(cli, f);

	if (r != CLI_DONE)
		return r;
	if (!yes && !cli->check) {
		(void)fault_set(f, -EPERM, cli->args[0],
				"loses its k3s data and credentials: say "
				"--yes. Nothing was changed");
		return CLI_REFUSED;
	}
	r = cli_control(cli, &c, f);
	if (r == 0)
		r = cli_await_nodes(cli, c, f);
	if (r == 0)
		r = wipe_node(cli->spec, c, cli->args[0], cli->check, f);
	if (r == -EPERM)
		return CLI_REFUSED;
	if (r == -EAGAIN)
		return CLI_INCOMPLETE;
	if (r < 0)
		return r == -ENOENT ? CLI_USAGE : r;
	(void)printf(cli->check ? "would wipe k3s on %s\n" :
		     "%s is wiped: `garboard up` begins again with it\n",
		     cli->args[0]);
	return CLI_DONE;
}
