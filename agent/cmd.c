#include "agent/cmd.h"

#include <stdio.h>
#include <string.h>

const struct command commands[] = {
	{ "run", cmd_run,
	  "[--state-dir DIR] [--run-dir DIR] [--bundle FILE] [--debug]",
	  "keep this node as desired (what the service runs)" },
	{ "converge", cmd_converge,
	  "[--check] [--exit-code] [--spec FILE [--node NAME]] "
	  "[--only RES,..] [-o table|json]",
	  "bring this node into its desired state once" },
	{ "status", cmd_status, "[-o table|json]",
	  "what the running agent sees" },
	{ "health", cmd_health, "",
	  "one line for a monitoring system, exit code 0 to 3" },
	{ "disarm", cmd_disarm, "--local --reason TEXT [--state-dir DIR] CLASS",
	  "open an egress class from the console" },
	{ "arm", cmd_arm, "--local --reason TEXT [--state-dir DIR] CLASS",
	  "close it again" },
	{ "reset-identity", cmd_reset_identity, "--confirm [--state-dir DIR]",
	  "forget who this node is, so that it can be enrolled anew" },
	{ "version", cmd_version, "", "print the version" },
	{ NULL, NULL, NULL, NULL },
};

int cmd_usage(const char *name)
{
	const struct command *c;

	for (c = commands; c->name; c++)
		if (strcmp(c->name, name) == 0)
			(void)fprintf(stderr,
				      "usage: garboard-agent %s %s\n",
				      c->name, c->usage);
	return CMD_USAGE;
}

int cmd_version(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return cmd_usage("version");
	(void)printf("garboard-agent %s\n", GARBOARD_VERSION);
	return CMD_OK;
}
