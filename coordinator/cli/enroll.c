#include "coordinator/enroll.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/parse.h"
#include "coordinator/cli/verbs.h"
#include "coordinator/control_client.h"

#define TOKEN_LIFE "24h"

const struct cli_option enroll_token_options[] = {
	{ "node", 0, "NODE", "bind it to this name" },
	{ "count", 0, "N", "make several" },
	{ "life", 0, "TIME", "how long it may be used (default " TOKEN_LIFE
			     ")" },
	{ NULL, 0, NULL, NULL },
};

const struct cli_option enroll_approve_options[] = {
	{ "name", 0, "NODE", "the node's name (default: its hostname)" },
	{ NULL, 0, NULL, NULL },
};

static json_t *token_request(const struct cli *cli, json_int_t count,
			     usec life)
{
	const char *node = cli_value(cli, "node");

	return json_pack("{ss ss sI sI}", "op", "token", "node",
			 node ? node : "", "count", count, "life",
			 (json_int_t)life);
}

static int read_life(const struct cli *cli, usec *ret_life)
{
	const char *text = cli_value(cli, "life");

	if (cli_duration(text ? text : TOKEN_LIFE, ret_life) < 0)
		return cli_usage("--life %s: such as 90s, 15m, 24h or 7d",
				 text);
	return CLI_DONE;
}

/* The one place where tokens are shown: they were asked for. */
int verb_enroll_token(struct cli *cli, struct fault *f)
{
	struct control *c CLEANUP(control_freep) = NULL;
	const char *text = cli_value(cli, "count");
	json_t *reply = NULL, *list, *token;
	uint32_t count = 1;
	size_t index;
	usec life = 0;
	int r;

	if ((r = read_life(cli, &life)) != CLI_DONE)
		return r;
	if (text && (parse_u32(text, &count) < 0 || count == 0))
		return cli_usage("--count %s is no number", text);
	if (count > 1 && cli_value(cli, "node"))
		return cli_usage("--node binds one token, not %u", count);
	if ((r = cli_control(cli, &c, f)) < 0 ||
	    (r = cli_ask(c, token_request(cli, count, life), &reply, f)) < 0)
		return r;
	list = json_object_get(reply, "tokens");
	if (cli->output != CLI_TABLE)
		r = cli_print_json(list);
	else
		json_array_foreach(list, index, token)
			(void)puts(json_string_value(token));
	json_decref(reply);
	return r;
}

int verb_enroll_list(struct cli *cli, struct fault *f)
{
	static const struct cli_column columns[] = {
		{ "FINGERPRINT", "fingerprint" },
		{ "HOSTNAME", "hostname" },
		{ "ADDRESS", "address" },
		{ "APPROVED AS", "approved_as" },
		{ "REJECTED", "rejected" },
		{ "WHY IT WAITS", "reason" },
		{ NULL, NULL },
	};
	struct control *c CLEANUP(control_freep) = NULL;
	json_t *reply = NULL;
	int r;

	if ((r = cli_control(cli, &c, f)) < 0 ||
	    (r = cli_ask(c, json_pack("{ss}", "op", "enroll_list"), &reply,
			 f)) < 0)
		return r;
	r = cli_print_list(cli, json_object_get(reply, "waiting"), columns);
	json_decref(reply);
	return r;
}

static int decide(struct cli *cli, const char *op, const char *done,
		  struct fault *f)
{
	struct control *c CLEANUP(control_freep) = NULL;
	const char *name = cli_value(cli, "name");
	json_t *reply = NULL;
	int r;

	if (cli->check) {
		(void)printf("would ask: %s %s\n", op, cli->args[0]);
		return CLI_DONE;
	}
	r = cli_control(cli, &c, f);
	if (r < 0)
		return r;
	r = cli_ask(c,
		    json_pack("{ss ss ss}", "op", op, "fingerprint",
			      cli->args[0], "name", name ? name : ""),
		    &reply, f);
	if (r < 0)
		return r;
	json_decref(reply);
	(void)printf("%s %s\n", cli->args[0], done);
	return CLI_DONE;
}

int verb_enroll_approve(struct cli *cli, struct fault *f)
{
	return decide(cli, "enroll_approve", "approved", f);
}

int verb_enroll_reject(struct cli *cli, struct fault *f)
{
	return decide(cli, "enroll_reject", "rejected", f);
}
