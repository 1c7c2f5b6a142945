/*
 * cmd.h - the subcommands of garboard-agent, one function per verb.
 *
 * Each gets its own arguments (argv[0] is the verb), prints to standard
 * output and error, and returns the exit code (DESIGN section 10): 0 done
 * or in sync, 1 failed, 2 usage or invalid spec, 3 changes pending (only
 * with --exit-code), 4 refused, 5 incomplete. health returns those of the
 * Monitoring Plugins. None of them ends the process.
 */
#pragma once

#define CMD_OK 0
#define CMD_FAILED 1
#define CMD_USAGE 2
#define CMD_PENDING 3
#define CMD_REFUSED 4
#define CMD_INCOMPLETE 5

#define CMD_STATE_DIR "/var/lib/garboard"
#define CMD_BUNDLE "/etc/garboard/bundle/bundle"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *usage;	/* what follows the name */
	const char *text;	/* one line of help */
};

extern const struct command commands[];	/* ends with a NULL name */

int cmd_run(int argc, char **argv);
int cmd_converge(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_health(int argc, char **argv);
int cmd_disarm(int argc, char **argv);
int cmd_arm(int argc, char **argv);
int cmd_reset_identity(int argc, char **argv);
int cmd_version(int argc, char **argv);

/* Prints the usage of one verb to standard error; returns CMD_USAGE. */
int cmd_usage(const char *name);
