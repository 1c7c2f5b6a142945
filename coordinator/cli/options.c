#include "coordinator/cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "spec/spec.h"

static const struct cli_option globals[] = {
	{ "cluster", 'c', "CLUSTER", "the cluster to act on" },
	{ "file", 'f', "FILE", "its spec (default: ./cluster.yaml)" },
	{ "output", 'o', "table|json|yaml", "form of what is printed" },
	{ "dry-run", 0, NULL, "the same as --check" },
	{ "check", 0, NULL, "change nothing, say what would change" },
	{ "state", 0, "DIR", "state directory (also GARBOARD_STATE)" },
	{ "help", 'h', NULL, "this text, or the verb's" },
	{ NULL, 0, NULL, NULL },
};

int cli_usage(const char *fmt, ...)
{
	va_list ap;

	(void)fputs("garboard: ", stderr);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
	return CLI_USAGE;
}

const char *cli_next(const struct cli *cli, const char *name, size_t *at)
{
	for (; *at < cli->n_given; (*at)++) {
		const struct cli_given *g = &cli->given[*at];

		if (strcmp(g->option->name, name) == 0) {
			(*at)++;
			return g->value ? g->value : "";
		}
	}
	return NULL;
}

const char *cli_value(const struct cli *cli, const char *name)
{
	size_t at = 0;

	return cli_next(cli, name, &at);
}

/* ---- help ---- */

static void print_options(const struct cli_option *o)
{
	char left[64], letter[8] = "    ";

	for (; o && o->name; o++) {
		if (!o->help)
			continue;
		(void)snprintf(letter, sizeof(letter), o->letter ? "-%c, " :
								   "    ",
			       o->letter);
		(void)snprintf(left, sizeof(left), "%s--%s%s%s", letter,
			       o->name, o->value ? " " : "",
			       o->value ? o->value : "");
		(void)printf("  %-32s %s\n", left, o->help);
	}
}

static void print_verb_line(const struct cli_verb *v)
{
	char left[64];

	(void)snprintf(left, sizeof(left), "%s%s%s%s%s", v->name,
		       v->sub ? " " : "", v->sub ? v->sub : "",
		       v->args ? " " : "", v->args ? v->args : "");
	(void)printf("  %-32s %s\n", left, v->help);
}

static int help(const struct cli_verb *verb)
{
	if (verb) {
		(void)printf("usage: garboard %s%s%s%s%s [OPTIONS]\n\n%s\n",
			     verb->name, verb->sub ? " " : "",
			     verb->sub ? verb->sub : "",
			     verb->args ? " " : "",
			     verb->args ? verb->args : "", verb->help);
		if (verb->options)
			(void)printf("\noptions:\n");
		print_options(verb->options);
	} else {
		(void)printf("usage: garboard VERB [OPTIONS]\n\nBrings k3s "
			     "clusters up on bare metal and keeps their nodes "
			     "as the spec says.\n\nverbs:\n");
		for (const struct cli_verb *v = cli_verbs; v->run; v++)
			print_verb_line(v);
	}
	(void)printf("\nglobal options:\n");
	print_options(globals);
	(void)printf("\nexit: 0 done or in sync, 1 failed, 2 usage or spec, 3 "
		     "changes pending (--exit-code),\n4 refused by a guard, 5 "
		     "something could not be observed. See garboard(1).\n");
	return CLI_DONE;
}

/* ---- reading ---- */

static const struct cli_option *find_long(const struct cli_option *o,
					  const char *name, size_t n)
{
	for (; o && o->name; o++)
		if (strlen(o->name) == n && strncmp(o->name, name, n) == 0)
			return o;
	return NULL;
}

static const struct cli_option *find_letter(const struct cli_option *o,
					    char letter)
{
	for (; o && o->name; o++)
		if (o->letter && o->letter == letter)
			return o;
	return NULL;
}

/* The verb's own options win: `enroll bundle -o DIR`. */
static const struct cli_option *find_option(const struct cli *cli,
					    const char *arg,
					    const char **ret_inline)
{
	const struct cli_option *own = cli->verb ? cli->verb->options : NULL;
	const struct cli_option *o;

	*ret_inline = NULL;
	if (arg[1] == '-') {
		size_t n = strcspn(arg + 2, "=");

		if (arg[2 + n] == '=')
			*ret_inline = arg + 2 + n + 1;
		o = find_long(own, arg + 2, n);
		return o ? o : find_long(globals, arg + 2, n);
	}
	if (arg[2])
		*ret_inline = arg + 2;
	o = find_letter(own, arg[1]);
	return o ? o : find_letter(globals, arg[1]);
}

static int set_output(struct cli *cli, const char *value)
{
	static const char *const names[CLI_OUTPUT_MAX] = {
		[CLI_TABLE] = "table",
		[CLI_JSON] = "json",
		[CLI_YAML] = "yaml",
	};

	for (int i = 0; i < CLI_OUTPUT_MAX; i++) {
		if (strcmp(names[i], value) == 0) {
			cli->output = (enum cli_output)i;
			return CLI_DONE;
		}
	}
	return cli_usage("-o %s: table, json or yaml", value);
}

static int set_global(struct cli *cli, const struct cli_option *o,
		      const char *value)
{
	switch (o - globals) {
	case 0:
		cli->cluster = value;
		return CLI_DONE;
	case 1:
		cli->file = value;
		return CLI_DONE;
	case 2:
		return set_output(cli, value);
	case 3:
	case 4:
		cli->check = true;
		return CLI_DONE;
	case 5:
		cli->state = value;
		return CLI_DONE;
	}
	return CLI_DONE;
}

static bool is_global(const struct cli_option *o)
{
	return o >= globals && o < globals + sizeof(globals) / sizeof(*globals);
}

/* *i moves over the value where it is an argument of its own. */
static int take_option(struct cli *cli, int argc, char **argv, int *i,
		       bool *ret_help)
{
	const char *value, *arg = argv[*i];
	const struct cli_option *o = find_option(cli, arg, &value);

	if (!o)
		return cli_usage("unknown option %s: see garboard %s%s--help",
				 arg, cli->verb ? cli->verb->name : "",
				 cli->verb ? " " : "");
	if (o->value && !value) {
		if (*i + 1 >= argc)
			return cli_usage("%s needs %s", arg, o->value);
		value = argv[++*i];
	} else if (!o->value && value) {
		return cli_usage("%s takes no value", arg);
	}
	if (is_global(o)) {
		*ret_help |= strcmp(o->name, "help") == 0;
		return set_global(cli, o, value);
	}
	if (cli->n_given == CLI_OPTIONS_MAX)
		return cli_usage("too many options");
	cli->given[cli->n_given++] = (struct cli_given){ o, value };
	return CLI_DONE;
}

/* Words before any option that takes a value is read must be known. */
static size_t verb_words(const char *first, const char *second,
			 const struct cli_verb **ret_verb)
{
	const struct cli_verb *alone = NULL;

	for (const struct cli_verb *v = cli_verbs; v->run; v++) {
		if (strcmp(v->name, first) != 0)
			continue;
		if (!v->sub) {
			alone = v;
		} else if (second && strcmp(v->sub, second) == 0) {
			*ret_verb = v;
			return 2;
		}
	}
	*ret_verb = alone;
	return alone ? 1 : 0;
}

static bool is_group(const char *name)
{
	for (const struct cli_verb *v = cli_verbs; v->run; v++)
		if (v->sub && strcmp(v->name, name) == 0)
			return true;
	return false;
}

/* Finds the verb first, so that its own options can be told apart. */
static int find_verb(struct cli *cli, int argc, char **argv)
{
	const char *words[2] = { NULL, NULL };
	const char *value;
	size_t n = 0;

	for (int i = 1; i < argc && n < 2; i++) {
		if (argv[i][0] != '-' || !argv[i][1]) {
			words[n++] = argv[i];
			continue;
		}
		/* a global option before the verb may take the next word */
		const struct cli_option *o = find_option(cli, argv[i], &value);

		if (o && o->value && !value)
			i++;
	}
	if (n == 0)
		return CLI_DONE;
	if (verb_words(words[0], words[1], &cli->verb) > 0)
		return CLI_DONE;
	if (strcmp(words[0], "help") == 0)
		return CLI_DONE;
	if (is_group(words[0]))
		return cli_usage("%s needs a second word: see garboard --help",
				 words[0]);
	return cli_usage("unknown verb %s: see garboard --help", words[0]);
}

static int take_word(struct cli *cli, const char *word, size_t *words)
{
	size_t own = cli->verb ? (cli->verb->sub ? 2 : 1) : 1;

	if ((*words)++ < own)
		return CLI_DONE;
	if (!cli->verb || cli->n_args >= cli->verb->max_args)
		return cli_usage("unexpected argument %s", word);
	cli->args[cli->n_args++] = word;
	return CLI_DONE;
}

static int read_arguments(struct cli *cli, int argc, char **argv,
			  bool *ret_help)
{
	bool only_words = false;
	size_t words = 0;
	int r = CLI_DONE;

	for (int i = 1; i < argc && r == CLI_DONE; i++) {
		if (!only_words && strcmp(argv[i], "--") == 0)
			only_words = true;
		else if (!only_words && argv[i][0] == '-' && argv[i][1])
			r = take_option(cli, argc, argv, &i, ret_help);
		else
			r = take_word(cli, argv[i], &words);
	}
	if (r == CLI_DONE && !cli->verb)
		*ret_help |= words > 0;		/* the word "help" */
	return r;
}

static int call(struct cli *cli)
{
	struct fault f = FAULT_INIT;
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX];
	int r;

	if (cli->n_args < cli->verb->min_args)
		return cli_usage("%s%s%s needs %s", cli->verb->name,
				 cli->verb->sub ? " " : "",
				 cli->verb->sub ? cli->verb->sub : "",
				 cli->verb->args);
	r = cli_target(cli, &f);
	if (r == CLI_DONE) {
		/* Started by a verb, that verb has named the target. */
		if (!(cli->verb->needs & CLI_NO_BANNER) &&
		    !cli_value(cli, "for-parent"))
			cli_banner(cli);
		r = cli->verb->run(cli, &f);
	}
	if (r == -ENOSYS && !f.err)
		(void)fault_errno(&f, r, cli->verb->name, "cannot run");
	if (r < 0 && !f.err)
		(void)fault_errno(&f, r, cli->verb->name, "failed");
	if (f.err && r != CLI_DONE)
		(void)fprintf(stderr, "garboard: error: %s\n",
			      fault_str(&f, text, sizeof(text)));
	return r < 0 ? CLI_FAILED : r;
}

int cli_run(int argc, char **argv)
{
	struct cli cli = { 0 };
	_cleanup_free_ const char **args = NULL;
	bool wants_help = false;
	int r;

	args = calloc((size_t)argc + 1, sizeof(*args));
	if (!args)
		return CLI_FAILED;
	cli.args = args;
	r = find_verb(&cli, argc, argv);
	if (r == CLI_DONE)
		r = read_arguments(&cli, argc, argv, &wants_help);
	if (r != CLI_DONE)
		return r;
	if (wants_help)
		return help(cli.verb);
	if (!cli.verb)
		return cli_usage("which verb? see garboard --help");
	r = call(&cli);
	(void)spec_free(cli.spec);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		(void)cli_usage("cannot write the output");
		return CLI_FAILED;
	}
	return r;
}
