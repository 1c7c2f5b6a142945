#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/cmd.h"
#include "agent/lock.h"
#include "agent/state.h"

#define LINK_DIR "/var/lib/garboard-link"

static int parse_options(int argc, char **argv, const char **dir,
			 bool *confirmed)
{
	static const struct option longs[] = {
		{ "confirm", no_argument, NULL, 'c' },
		{ "state-dir", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'c')
			*confirmed = true;
		else if (c == 's')
			*dir = optarg;
		else
			return -EINVAL;
	}
	return optind == argc ? 0 : -EINVAL;
}

int cmd_reset_identity(int argc, char **argv)
{
	const char *dir = CMD_STATE_DIR;
	struct fault f = FAULT_INIT;
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];
	struct node_state s;
	bool confirmed = false;
	int r;

	if (parse_options(argc, argv, &dir, &confirmed) < 0)
		return cmd_usage("reset-identity");
	if (!confirmed) {
		(void)fprintf(stderr,
			      "garboard-agent: this forgets the keys, the "
			      "orders and the desired state of this node; it "
			      "must be enrolled anew. What is armed stays "
			      "armed. Repeat with --confirm\n");
		return CMD_USAGE;
	}
	if (lock_is_taken(dir)) {
		(void)fprintf(stderr, "garboard-agent: stop "
				      "garboard-agent.service first\n");
		return CMD_REFUSED;
	}
	r = state_load(dir, clock_boottime(), &s, &f);
	if (r >= 0) {
		fault_clear(&f);
		r = state_reset_identity(&s, &f);
		state_done(&s);
	}
	if (r == 0 && strcmp(dir, CMD_STATE_DIR) == 0) {
		(void)unlink(LINK_DIR "/tls.key");
		(void)unlink(LINK_DIR "/tls.crt");
	}
	if (r < 0)
		(void)fprintf(stderr, "garboard-agent: %s\n",
			      fault_str(&f, text, sizeof(text)));
	return r < 0 ? CMD_FAILED : CMD_OK;
}
