/* garboard-agentd: every verb (cmd.h). */
#include <stdio.h>
#include <stdlib.h>

#include "agent/cmd.h"

int main(int argc, char **argv)
{
	static const struct cmd_verb verbs[] = {
		{ "run", cmd_run },
		{ "converge", cmd_converge },
		{ "status", cmd_status },
		{ "health", cmd_health },
		{ "disarm", cmd_disarm },
		{ "arm", cmd_arm },
		{ "explain", cmd_explain },
		{ "killswitch-log", cmd_killswitch_log },
		{ "reset-identity", cmd_reset_identity },
		{ "version", cmd_version },
		{ NULL, NULL },
	};

	exit(cmd_main(argc, argv, verbs));
}
