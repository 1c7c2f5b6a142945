#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cmd.h"

static void help(FILE *to)
{
	const struct command *c;

	(void)fprintf(to, "usage: garboard-agent COMMAND [ARGUMENTS]\n\n");
	for (c = commands; c->name; c++)
		(void)fprintf(to, "  %-16s %s\n", c->name, c->text);
	(void)fprintf(to, "\nSee garboard-agent(8).\n");
}

int main(int argc, char **argv)
{
	const struct command *c;
	int r;

	if (argc < 2) {
		help(stderr);
		return CMD_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
		help(stdout);
		return CMD_OK;
	}
	for (c = commands; c->name; c++)
		if (strcmp(argv[1], c->name) == 0)
			break;
	if (!c->name) {
		(void)fprintf(stderr, "garboard-agent: unknown command %s\n",
			      argv[1]);
		help(stderr);
		return CMD_USAGE;
	}
	r = c->run(argc - 1, argv + 1);
	/* A full disk must not look like success. */
	if (fflush(stdout) == EOF && r == CMD_OK)
		r = CMD_FAILED;
	exit(r);
}
