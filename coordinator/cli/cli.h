/*
 * cli.h - one invocation of garboard: what was asked, of which cluster.
 *
 * A verb is a row of the table in verbs.c with one function. cli_run()
 * finds it, reads its options (global ones may stand anywhere), settles the
 * target, prints the banner that names it (B18) and calls the function.
 * Unknown verbs, options and clusters are exit 2 before anything runs (B15,
 * B17); nothing ever falls back to another cluster (B19).
 *
 * A verb's function returns an exit code (enum cli_exit), or a negative
 * errno with the fault, which is printed and is exit 1. Results go to
 * standard output, everything else to standard error. Secrets are never
 * printed by a listing (B123).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/fault.h"

struct control;
struct spec;

#define CLI_PATH_MAX 4096
#define CLI_NAME_MAX 64
#define CLI_OPTIONS_MAX 64	/* given in one invocation */
#define CLI_DEFAULT_SPEC "cluster.yaml"

enum cli_exit {			/* DESIGN section 10 */
	CLI_DONE = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_PENDING = 3,
	CLI_REFUSED = 4,
	CLI_INCOMPLETE = 5,
};

enum cli_output {
	CLI_TABLE,
	CLI_JSON,
	CLI_YAML,		/* the JSON text, which is YAML too */
	CLI_OUTPUT_MAX,
};

enum cli_need {			/* of a verb; bits */
	CLI_NEEDS_NOTHING = 0,
	CLI_NEEDS_SPEC = 1,	/* -f, or ./cluster.yaml */
	CLI_NEEDS_CLUSTER = 2,	/* an initialised state directory */
	CLI_NEEDS_NAME = 4,	/* a cluster's name, for init */
	CLI_TAKES_SPEC = 8,	/* reads -f when it is given */
	CLI_NO_BANNER = 16,
};

struct cli_option {
	const char *name;	/* "listen"; NULL ends the table */
	char letter;		/* 0: none */
	const char *value;	/* what it takes, "ADDR:PORT"; NULL: nothing */
	const char *help;	/* NULL: not shown */
};

struct cli_given {
	const struct cli_option *option;
	const char *value;
};

struct cli {
	const struct cli_verb *verb;
	const char *cluster, *file, *state;	/* as given, or NULL */
	enum cli_output output;
	bool check;
	struct cli_given given[CLI_OPTIONS_MAX];
	size_t n_given;
	const char **args;	/* positional, after the verb */
	size_t n_args;
	/* the target, once settled */
	char name[CLI_NAME_MAX];
	char state_dir[CLI_PATH_MAX];
	uint8_t cluster_id[16];
	bool initialised;
	struct spec *spec;
};

struct cli_verb {
	const char *name;
	const char *sub;	/* second word, or NULL */
	const char *args;	/* "NODE", "[NODE]" or NULL, for the usage */
	size_t min_args, max_args;
	unsigned int needs;	/* enum cli_need */
	const struct cli_option *options;	/* of its own, or NULL */
	const char *help;
	int (*run)(struct cli *cli, struct fault *f);
};

/* In the order of the help; `run` NULL ends the table. */
extern const struct cli_verb cli_verbs[];

int cli_run(int argc, char **argv);

/* ---- for verbs ---- */

/* The value of the verb's option, or NULL; "" for one without a value. */
const char *cli_value(const struct cli *cli, const char *name);
/* The next value of a repeated option from *at on; NULL: no more. */
const char *cli_next(const struct cli *cli, const char *name, size_t *at);

/* Prints "garboard: TEXT" and returns CLI_USAGE. */
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A connection to the coordinator of the target, started when needed. */
int cli_control(const struct cli *cli, struct control **ret_control,
		struct fault *f);
/* One request; `takes` is released. */
int cli_ask(struct control *c, json_t *takes, json_t **ret_reply,
	    struct fault *f);

struct cli_column {
	const char *title;
	const char *key;	/* a text or integer member */
};

/*
 * Prints an array of objects by the output format. Control characters in
 * text of nodes are replaced. `columns` ends with a NULL title.
 */
int cli_print_list(const struct cli *cli, json_t *list,
		   const struct cli_column *columns);
/* JSON and YAML alike; a table is the verb's own business. */
int cli_print_json(json_t *value);

/* "12 s", "3 min", "5 h", "2 d", "never" (CONTROL_NEVER). */
const char *cli_ago(usec ago, char *buf, size_t size);
/* "90s", "15m", "24h", "7d" to microseconds. */
int cli_duration(const char *text, usec *ret_duration);

/* ---- target.c ---- */
/* Settles name, state directory, spec. CLI_DONE or CLI_USAGE/REFUSED. */
int cli_target(struct cli *cli, struct fault *f);
void cli_banner(const struct cli *cli);
/* Writes the file that names the cluster of a state directory. */
int cli_target_write(const char *state, const char *name,
		     const uint8_t cluster_id[16], struct fault *f);
