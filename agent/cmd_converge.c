#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/cmd.h"
#include "agent/cmd_converge.h"
#include "agent/converge.h"
#include "agent/json.h"
#include "agent/lock.h"
#include "common/cleanup.h"
#include "spec/derive.h"
#include "spec/spec.h"

#define DEADLINE (120 * USEC_PER_SEC)
#define LIMIT_ARGUMENT 256

struct options {
	bool check, exit_code, json;
	const char *spec, *node, *state_dir;
	uint32_t only;
};

static int parse_only(const char *text, uint32_t *ret_mask)
{
	char copy[LIMIT_ARGUMENT], *next = copy, *name;
	uint32_t mask = 0;
	size_t i;

	if (strlen(text) >= sizeof(copy))
		return -E2BIG;
	memcpy(copy, text, strlen(text) + 1);
	while ((name = strsep(&next, ","))) {
		for (i = 0; i < RESOURCE_MAX; i++)
			if (strcmp(name, resource_name(i)) == 0)
				break;
		if (i == RESOURCE_MAX) {
			(void)fprintf(stderr,
				      "garboard-agent: no resource \"%s\"\n",
				      name);
			return -EINVAL;
		}
		mask |= UINT32_C(1) << i;
	}
	*ret_mask = mask;
	return 0;
}

static int set_option(int c, const char *arg, struct options *o)
{
	switch (c) {
	case 'c':
		o->check = true;
		return 0;
	case 'e':
		o->exit_code = true;
		return 0;
	case 'f':
		o->spec = arg;
		return 0;
	case 'n':
		o->node = arg;
		return 0;
	case 'd':
		o->state_dir = arg;
		return 0;
	case 'r':
		return parse_only(arg, &o->only);
	case 'o':
		o->json = strcmp(arg, "json") == 0;
		return o->json || strcmp(arg, "table") == 0 ? 0 : -EINVAL;
	default:
		return -EINVAL;
	}
}

static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "check", no_argument, NULL, 'c' },
		{ "dry-run", no_argument, NULL, 'c' },
		{ "exit-code", no_argument, NULL, 'e' },
		{ "spec", required_argument, NULL, 'f' },
		{ "node", required_argument, NULL, 'n' },
		{ "only", required_argument, NULL, 'r' },
		{ "state-dir", required_argument, NULL, 'd' },
		{ NULL, 0, NULL, 0 },
	};
	int c, r;

	while ((c = getopt_long(argc, argv, "f:o:", longs, NULL)) != -1) {
		r = set_option(c, optarg, o);
		if (r < 0)
			return r;
	}
	return optind == argc ? 0 : -EINVAL;
}

/* ---- where the desired state comes from ---- */

static int pick_node(const struct spec *spec, const char *name,
		     size_t *ret_node)
{
	char host[256] = "";

	*ret_node = 0;
	if (spec->one_box)
		return 0;
	if (!name) {
		(void)gethostname(host, sizeof(host) - 1);
		name = host;
	}
	if (spec_find_node(spec, name, ret_node) == 0)
		return 0;
	(void)fprintf(stderr,
		      "garboard-agent: %s has no node %s; name it with "
		      "--node\n", spec->file, name);
	return -ENOENT;
}

static int from_spec(const struct options *o, struct desired **ret_desired,
		     struct fault *f)
{
	struct spec_problems problems = SPEC_PROBLEMS_INIT;
	char line[SPEC_PROBLEM_LINE_MAX];
	struct spec *spec = NULL;
	size_t i, node;
	int r;

	r = spec_load(o->spec, SPEC_ONE_BOX, &problems, &spec, f);
	for (i = 0; i < problems.n; i++)
		(void)fprintf(stderr, "%s\n",
			      spec_problem_format(o->spec, &problems.v[i],
						  line));
	spec_problems_done(&problems);
	if (r == 0)
		r = pick_node(spec, o->node, &node);
	if (r == 0)
		r = spec_derive_node(spec, node, ret_desired, f);
	(void)spec_free(spec);
	return r;
}

/* ---- what is printed ---- */

static void print_line(const struct converge_entry *e)
{
	const char *res = resource_name(e->resource);

	switch (e->kind) {
	case CONVERGE_OK:
		(void)printf("ok        %s %s\n", res, e->key);
		return;
	case CONVERGE_CHANGED:
		(void)printf("changed   %s %s: %s -> %s\n", res, e->key,
			     *e->have ? e->have : "(nothing)",
			     *e->want ? e->want : "(nothing)");
		return;
	case CONVERGE_LEFT:
		(void)printf("%-9s %s %s%s%s\n", item_state_name(e->state),
			     res, e->key, *e->reason ? ": " : "", e->reason);
		return;
	case CONVERGE_LINE_MAX:
		return;
	}
}

static void print_table(const struct converge_result *r, bool check)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		print_line(&r->v[i]);
	(void)printf("%zu ok, %zu %s, %zu not as desired\n",
		     r->count[CONVERGE_OK], r->count[CONVERGE_CHANGED],
		     check ? "would be changed" : "changed",
		     r->count[CONVERGE_LEFT]);
	if (check)
		(void)printf("nothing was changed (--check)\n");
}

static void print_json(const struct converge_result *r, bool check)
{
	static const char *const kinds[] = { "ok", "changed", "left" };
	_cleanup_free_ char *text = NULL;
	struct json j;
	size_t i, size;

	json_init(&j);
	json_open(&j, NULL, '{');
	json_bool(&j, "check", check);
	json_number(&j, "ok", r->count[CONVERGE_OK]);
	json_number(&j, "changed", r->count[CONVERGE_CHANGED]);
	json_number(&j, "left", r->count[CONVERGE_LEFT]);
	json_open(&j, "items", '[');
	for (i = 0; i < r->n; i++) {
		const struct converge_entry *e = &r->v[i];

		json_open(&j, NULL, '{');
		json_text(&j, "resource", resource_name(e->resource));
		json_text(&j, "key", e->key);
		json_text(&j, "result", kinds[e->kind]);
		if (e->kind == CONVERGE_CHANGED)
			json_text(&j, "op", change_op_name(e->op));
		else
			json_text(&j, "state", item_state_name(e->state));
		json_text(&j, "have", e->have);
		json_text(&j, "want", e->want);
		json_text(&j, "reason", e->reason);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	if (json_done(&j, &text, &size) == 0)
		(void)fputs(text, stdout);
}

static int exit_code(const struct converge_result *r, const struct options *o)
{
	if (r->unobservable)
		return CMD_INCOMPLETE;
	if (r->count[CONVERGE_LEFT])
		return CMD_FAILED;
	if (o->exit_code && r->count[CONVERGE_CHANGED])
		return CMD_PENDING;
	return CMD_OK;
}

/* Can it be read twice, here and by the other program? */
static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 || S_ISREG(st.st_mode);
}

int cmd_converge_by(int argc, char **argv, const struct converge_way *way)
{
	struct options o = { .state_dir = CMD_STATE_DIR, .only = UINT32_MAX };
	struct converge_params p = { .deadline = DEADLINE,
				     .root = "",
				     .registry = resource_registry };
	struct converge_result result;
	struct desired *desired = NULL;
	struct fault f = FAULT_INIT;
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];
	int r;

	if (parse_options(argc, argv, &o) < 0)
		return cmd_usage("converge");
	if (!way->stored && (!o.spec || !is_file(o.spec)))
		return CMD_ELSEWHERE;
	r = o.spec ? from_spec(&o, &desired, &f) :
		     way->stored(o.state_dir, &desired, &f);
	if (r < 0) {
		if (f.err)
			(void)fprintf(stderr, "garboard-agent: %s\n",
				      fault_str(&f, text, sizeof(text)));
		return o.spec ? CMD_USAGE : CMD_FAILED;
	}
	p.check = o.check;
	p.only = o.only;
	p.state_dir = o.state_dir;
	r = way->converge(&p, desired, &result, &f);
	if (r > 0)
		return CMD_ELSEWHERE;
	if (r < 0) {
		(void)fprintf(stderr, "garboard-agent: %s\n",
			      fault_str(&f, text, sizeof(text)));
		return CMD_FAILED;
	}
	/* An agent that runs keeps closed what was armed here just now. */
	if (!o.check && result.count[CONVERGE_CHANGED])
		(void)lock_nudge(o.state_dir);
	if (o.json)
		print_json(&result, o.check);
	else
		print_table(&result, o.check);
	r = exit_code(&result, &o);
	converge_result_done(&result);
	return r;
}

int cmd_look(int argc, char **argv)
{
	static const struct converge_way way = { NULL, converge_look };

	return cmd_converge_by(argc, argv, &way);
}
