/*
 * The console's way to open a class, and to close it again: it works when
 * no coordinator can be reached, and it is the only one beside a signed
 * order (DESIGN 5.1). Who did it and why goes to the journal.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include "agent/armed.h"
#include "agent/cmd.h"
#include "agent/lockdown_keep.h"
#include "agent/lock.h"
#include "common/parse.h"

#define REASON_MAX 256

struct options {
	bool local;
	const char *reason, *class_name, *state_dir;
};

static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "local", no_argument, NULL, 'l' },
		{ "reason", required_argument, NULL, 'r' },
		{ "state-dir", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'l')
			o->local = true;
		else if (c == 'r')
			o->reason = optarg;
		else if (c == 's')
			o->state_dir = optarg;
		else
			return -EINVAL;
	}
	if (optind + 1 != argc || !parse_is_label(argv[optind]))
		return -EINVAL;
	o->class_name = argv[optind];
	return o->local && o->reason && *o->reason &&
			       strlen(o->reason) < REASON_MAX ?
		       0 :
		       -EINVAL;
}

static int set_class(int argc, char **argv,
		     int (*set)(const char *state_dir, const char *name,
				struct fault *f))
{
	struct options o = { .state_dir = CMD_STATE_DIR };
	struct fault f = FAULT_INIT;
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4], reason[REASON_MAX];
	int r;

	if (parse_options(argc, argv, &o) < 0)
		return cmd_usage(argv[0]);
	r = set(o.state_dir, o.class_name, &f);
	if (r == -ENOENT) {
		(void)fprintf(stderr,
			      "garboard-agent: no class %s was ever armed "
			      "here; nothing was changed\n", o.class_name);
		return CMD_REFUSED;
	}
	if (r < 0) {
		(void)fprintf(stderr, "garboard-agent: %s\n",
			      fault_str(&f, text, sizeof(text)));
		return CMD_FAILED;
	}
	(void)snprintf(reason, sizeof(reason), "%s", o.reason);
	fault_sanitize(reason);
	(void)sd_journal_print(LOG_NOTICE,
			       "class %s: %s on the console by uid %u: %s",
			       o.class_name, argv[0], (unsigned int)getuid(),
			       reason);
	r = lock_nudge(o.state_dir);
	/* With no agent to do it, the next boot must know all the same. */
	if (r < 0 && lockdown_keep(o.state_dir, NULL, &f) < 0)
		(void)fprintf(stderr, "garboard-agent: %s\n",
			      fault_str(&f, text, sizeof(text)));
	(void)printf("class %s: %s; %s\n", o.class_name,
		     strcmp(argv[0], "arm") == 0 ? "armed" : "disarmed",
		     r == 0 ? "the agent was told" :
			      "no agent runs: it takes effect when one does");
	return CMD_OK;
}

int cmd_disarm(int argc, char **argv)
{
	return set_class(argc, argv, armed_disarm);
}

int cmd_arm(int argc, char **argv)
{
	return set_class(argc, argv, armed_arm);
}
