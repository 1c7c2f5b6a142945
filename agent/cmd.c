#include "agent/cmd.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const struct command commands[] = {
	{ "run",
	  "[--state-dir DIR] [--run-dir DIR] [--bundle FILE] "
	  "[--trial SECONDS] [--debug]",
	  "keep this node as desired (what the service runs)" },
	{ "converge",
	  "[--check] [--exit-code] [--spec FILE [--node NAME]] "
	  "[--only RES,..] [-o table|json]",
	  "bring this node into its desired state once" },
	{ "status", "[-o table|json]",
	  "what the running agent sees" },
	{ "health", "",
	  "one line for a monitoring system, exit code 0 to 3" },
	{ "disarm", "--local --reason TEXT [--state-dir DIR] CLASS",
	  "open an egress class from the console" },
	{ "arm", "--local --reason TEXT [--state-dir DIR] CLASS",
	  "close it again" },
	{ "explain",
	  "[--from ADDR] [--mark M] [--in DEV] [--proto tcp|udp|icmp] "
	  "[--port N] [--sport N] [--uid N|kernel] [--state-dir DIR] "
	  "[-o text|json] DEST",
	  "what becomes of a packet on this node, and who decides it" },
	{ "killswitch-log", "[--since DAY] [--state-dir DIR] [-o text|json]",
	  "when each layer of the kill-switch stood, with every gap" },
	{ "reset-identity", "--confirm [--state-dir DIR]",
	  "forget who this node is, so that it can be enrolled anew" },
	{ "version", "", "print the version" },
	{ NULL, NULL, NULL },
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

static void help(FILE *to)
{
	const struct command *c;

	(void)fprintf(to, "usage: garboard-agent COMMAND [ARGUMENTS]\n\n");
	for (c = commands; c->name; c++)
		(void)fprintf(to, "  %-16s %s\n", c->name, c->text);
	(void)fprintf(to, "\nSee garboard-agent(8).\n");
}

static bool is_command(const char *name)
{
	const struct command *c;

	for (c = commands; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return true;
	return false;
}

int cmd_main(int argc, char **argv, const struct cmd_verb *verbs)
{
	const struct cmd_verb *v;
	int r;

	if (argc < 2) {
		help(stderr);
		return CMD_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
		help(stdout);
		return CMD_OK;
	}
	if (!is_command(argv[1])) {
		(void)fprintf(stderr, "garboard-agent: unknown command %s\n",
			      argv[1]);
		help(stderr);
		return CMD_USAGE;
	}
	for (v = verbs; v->name; v++)
		if (strcmp(argv[1], v->name) == 0)
			break;
	r = v->name ? v->run(argc - 1, argv + 1) : CMD_ELSEWHERE;
	/* A full disk must not look like success. */
	if (fflush(stdout) == EOF && r == CMD_OK)
		r = CMD_FAILED;
	return r;
}
