/*
 * garboard-agent: does itself what costs little, and becomes garboard-agentd
 * for the rest (cmd.h). It links neither libcrypto nor libsystemd, whose
 * loading would take longer than all it does (docs/performance.md).
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/cmd.h"

#define BESIDE "garboard-agentd"			/* in the build tree */
#define INSTALLED "../lib/garboard/garboard-agentd"	/* seen from sbin */

/*
 * Found by where this program is, not by where it was called from: whoever
 * may write there could as well replace this program.
 */
static int become_agentd(char **argv)
{
	static const char *const places[] = { BESIDE, INSTALLED };
	char path[PATH_MAX + sizeof(INSTALLED)];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *end;
	size_t i;

	path[n > 0 ? n : 0] = '\0';
	end = strrchr(path, '/');
	for (i = 0; end && i < sizeof(places) / sizeof(places[0]); i++) {
		memcpy(end + 1, places[i], strlen(places[i]) + 1);
		(void)execv(path, argv);
		if (errno != ENOENT)
			break;
	}
	(void)fprintf(stderr, "garboard-agent: garboard-agentd: %s\n",
		      strerror(errno));
	return CMD_FAILED;
}

int main(int argc, char **argv)
{
	static const struct cmd_verb verbs[] = {
		{ "converge", cmd_look },
		{ "status", cmd_status },
		{ "health", cmd_health },
		{ "version", cmd_version },
		{ NULL, NULL },
	};
	int r = cmd_main(argc, argv, verbs);

	if (r == CMD_ELSEWHERE)
		r = become_agentd(argv);
	exit(r);
}
