/*
 * cmd.h - the subcommands of garboard-agent, one function per verb.
 *
 * Two programs share them. garboard-agent is the front: it does itself what
 * needs neither keys nor an event loop nor D-Bus, which is what a timer, a
 * monitoring system and an operator call again and again, and replaces
 * itself by garboard-agentd for the rest. garboard-agentd does everything.
 *
 * Each verb gets its own arguments (argv[0] is the verb), prints to standard
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
/* Nothing was printed or changed; it is for the other program to do. */
#define CMD_ELSEWHERE (-1)

#define CMD_STATE_DIR "/var/lib/garboard"
#define CMD_BUNDLE "/etc/garboard/bundle/bundle"

struct command {
	const char *name;
	const char *usage;	/* what follows the name */
	const char *text;	/* one line of help */
};

extern const struct command commands[];	/* ends with a NULL name */

/* What one program does itself; ends with a NULL name. */
struct cmd_verb {
	const char *name;
	int (*run)(int argc, char **argv);
};

/*
 * Runs the verb of argv[1], or help. The exit code, or CMD_ELSEWHERE for a
 * verb that is not among `verbs` or says so itself.
 */
int cmd_main(int argc, char **argv, const struct cmd_verb *verbs);

int cmd_run(int argc, char **argv);
int cmd_converge(int argc, char **argv);
int cmd_look(int argc, char **argv);	/* converge, as far as one look goes */
int cmd_status(int argc, char **argv);
int cmd_health(int argc, char **argv);
int cmd_disarm(int argc, char **argv);
int cmd_arm(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_killswitch_log(int argc, char **argv);
int cmd_reset_identity(int argc, char **argv);
int cmd_version(int argc, char **argv);

/* Prints the usage of one verb to standard error; returns CMD_USAGE. */
int cmd_usage(const char *name);
