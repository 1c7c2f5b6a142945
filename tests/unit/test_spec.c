/* spec/: positions, the example, placeholders, the document layer. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "proto/order.h"
#include "spec/k3s_config.h"
#include "spec/placeholder.h"
#include "spec/print.h"
#include "spec/reserved.h"
#include "spec/rules.h"
#include "spec/spec.h"
#include "spec/yaml.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define EXAMPLE "tests/unit/data/cluster.example.yaml"

static void example_has_only_what_comes_later(void **state)
{
	struct spec_problems p = SPEC_PROBLEMS_INIT;
	struct spec *spec = NULL;
	struct fault f = FAULT_INIT;
	size_t i, singles = 0;

	(void)state;
	assert_int_equal(spec_load(EXAMPLE, 0, &p, &spec, &f), 0);
	assert_int_equal(p.errors, 0);
	/* And one gateway, which is a choice. */
	assert_int_equal(p.n, 5);
	for (i = 0; i < p.n; i++)
		singles += strcmp(p.v[i].code, "gateway-single") == 0;
	assert_int_equal(singles, 1);
	for (i = 0; i < p.n; i++)
		assert_true(strcmp(p.v[i].code, "gateway-single") == 0 ||
			    strcmp(p.v[i].code, "not-yet-supported") == 0);
	assert_int_equal(spec->n_nodes, 5);
	assert_string_equal(spec->cluster.v, "prod");
	assert_int_equal(spec_count(spec, SPEC_ROLE_SERVER), 3);
	assert_int_equal(spec_count(spec, SPEC_ROLE_WORKER), 2);
	(void)spec_free(spec);
	spec_problems_done(&p);
}

static void missing_file(void **state)
{
	struct spec_problems p = SPEC_PROBLEMS_INIT;
	struct spec *spec = NULL;
	struct fault f = FAULT_INIT;

	(void)state;
	assert_int_equal(spec_load("tests/unit/data/none", 0, &p, &spec, &f),
			 -ENOENT);
	assert_string_equal(f.object, "tests/unit/data/none");
	assert_int_equal(p.n, 0);
	assert_null(spec);
}

static char *report(const char *text, unsigned int flags)
{
	struct spec_problems p = SPEC_PROBLEMS_INIT;
	struct spec *spec = NULL;
	char *out = NULL;

	(void)spec_load_text("f.yaml", text, strlen(text), flags, &p, &spec,
			     NULL);
	(void)spec_free(spec);
	assert_int_equal(spec_print_problems("f.yaml", &p, &out), 0);
	spec_problems_done(&p);
	return out;
}

/* Syntax, types and meaning together, in the order of the file. */
static void all_errors_in_one_run(void **state)
{
	_cleanup_free_ char *out = report(
		"apiVersion: garboard/v1\n"
		"baseline:\n"
		"  timezone: \"\"\n"
		"  timezne: Etc/UTC\n"
		"  sysctl: {net.ipv4.ip_forward: [1]}\n"
		"  modules: [a, a b]\n"
		"  storage: none\n"
		"  storage: none\n"
		"egress:\n"
		"  tunnels:\n"
		"    wg0: {kind: wireguard, endpoints: [\"192.0.2.1:1\"], "
		"table: 255, rulePriority: 5}\n",
		SPEC_ONE_BOX);

	(void)state;
	assert_string_equal(out,
		"f.yaml:3:13: error: timezone \"\" is undecided; empty does "
		"not mean \"leave it alone\": "
		"Etc/UTC is almost certainly wanted (timedatectl "
		"list-timezones) [placeholder]\n"
		"f.yaml:4:3: error: \"timezne\" is not a key of baseline; did "
		"you mean \"timezone\"? [unknown-key]\n"
		"f.yaml:5:33: error: net.ipv4.ip_forward must be a single "
		"value, not a list [wrong-type]\n"
		"f.yaml:6:16: error: modules \"a b\" is not the name of a "
		"kernel module [bad-module]\n"
		"f.yaml:8:3: error: \"storage\" is here twice; the first is in "
		"line 7 [duplicate-key]\n"
		"f.yaml:11:5: error: no class uses the tunnel wg0 "
		"[tunnel-unused]\n"
		"f.yaml:11:63: error: table 255 is the kernel's local table; "
		"51820 is a good choice [tunnel-table]\n"
		"f.yaml:11:82: error: rulePriority 5 is in the range that "
		"Cilium uses (below 200); "
		"18200 is a good choice [tunnel-priority]\n");
}

static void sy05_one_unknown_key(void **state)
{
	_cleanup_free_ char *out = report("apiVersion: garboard/v1\n"
					  "baseline: {sysctls: {a.b: 1}}\n",
					  SPEC_ONE_BOX);

	(void)state;
	assert_string_equal(out,
			    "f.yaml:2:12: error: \"sysctls\" is not a key of "
			    "baseline; did you mean \"sysctl\"? "
			    "[unknown-key]\n");
}

static void one_box_and_cluster(void **state)
{
	static const char box[] = "apiVersion: garboard/v1\nbaseline: {}\n";
	static const char more[] = "apiVersion: garboard/v1\nk3s: {}\n";
	static const char full[] = "apiVersion: garboard/v1\ncluster: x\n";
	_cleanup_free_ char *ok = report(box, SPEC_ONE_BOX);
	_cleanup_free_ char *short_of = report(box, 0);
	_cleanup_free_ char *too_much = report(more, SPEC_ONE_BOX);
	_cleanup_free_ char *cluster = report(full, SPEC_ONE_BOX);

	(void)state;
	assert_string_equal(ok, "");
	assert_non_null(strstr(short_of, "needs \"nodes\" [missing-key]"));
	assert_non_null(strstr(too_much, ":2:1: error: \"k3s\" is not a "
					 "key of a one-box spec"));
	assert_non_null(strstr(cluster, "needs \"nodes\" [missing-key]"));
}

/* B28 to B30: one predicate, both directions. */
static void placeholders(void **state)
{
	static const char *const yes[] = {
		"", " ", "TBD", "tbd-host", "https://TBD-R2-bucket", "x.tbd",
		"TODO", "todo: ask", "FixMe", "placeholder", "REPLACE-ME",
		"replaceme", "replace_me", "http://change-me:9000", "ChangeMe",
		"FILL-ME", "fillme", "SET-ME", "BLOCKED", "blocked", "xxxx",
		"52:54:XX:XXXX", "NOT-A-DEVICE", "/dev/not-a-device",
		"<node ip>", "a<b>c", "<...>", "myTODO", "TBD1",
	};
	static const char *const no[] = {
		"https://mastodon.example.net", "http://198.51.100.9:9000",
		"exchange-metrics", "exchangeme", "unblocked", "offset-memory",
		"asset-menu", "Etc/UTC", ">= 6.1", "<= 6", "a < b", "xxx",
		"methodology", "0", "false", "v1.36.4+k3s1", "fe80::1",
	};
	size_t i;

	(void)state;
	for (i = 0; i < N(yes); i++)
		if (!spec_is_placeholder(yes[i]))
			fail_msg("\"%s\" is a placeholder", yes[i]);
	for (i = 0; i < N(no); i++)
		if (spec_is_placeholder(no[i]))
			fail_msg("\"%s\" is a real value", no[i]);
	assert_true(spec_is_template("a${B}"));
	assert_true(spec_is_template("{{ x }}"));
	assert_false(spec_is_template("$HOME"));
}

static void rt05_reserved_numbers(void **state)
{
	static const uint64_t taken[] = { 0, 11, 200, 201, 202, 253, 254, 255,
					  266, 2004, 2005, UINT32_MAX };
	static const uint64_t free_ones[] = { 1, 267, 1000, 2003, 2006, 51820 };
	size_t i;

	(void)state;
	for (i = 0; i < N(taken); i++)
		assert_non_null(reserved_table(taken[i]));
	for (i = 0; i < N(free_ones); i++)
		assert_null(reserved_table(free_ones[i]));
	for (i = 0; i < 200; i++)
		assert_non_null(reserved_priority(i));
	assert_null(reserved_priority(200));
	assert_null(reserved_priority(18200));
	assert_non_null(reserved_priority(32700));
	assert_true(reserved_mark_free(0x2000, 0x3f00));
	assert_true(reserved_mark_free(0x1000, 0x1f00));
	assert_false(reserved_mark_free(0x200, 0x3f00));
	assert_false(reserved_mark_free(0x2000, 0x2000));
	assert_false(reserved_mark_free(0x2080, 0x3f80));
	assert_false(reserved_mark_free(0x10000, 0x10f00));
}

/* What the spec lets through, the node takes; what it owns, we own. */
static void k3s_keys_agree_with_orders(void **state)
{
	const struct k3s_key *keys;
	size_t n, i;

	(void)state;
	keys = k3s_config_keys(&n);
	for (i = 0; i < n; i++) {
		enum config_key_rule rule = order_config_key(keys[i].name);

		if (keys[i].kind == K3S_OWNED)
			continue;
		if (rule != CONFIG_KEY_ALLOWED)
			fail_msg("%s is refused by the node", keys[i].name);
	}
}

/* ---- the document ---- */

static void yaml_types(void **state)
{
	static const struct {
		const char *text;
		enum yaml_type type;
	} t[] = {
		{ "", YAML_NULL }, { "~", YAML_NULL }, { "null", YAML_NULL },
		{ "true", YAML_BOOL }, { "FALSE", YAML_BOOL },
		{ "yes", YAML_TEXT }, { "0", YAML_INT }, { "-12", YAML_INT },
		{ "0x2000", YAML_INT }, { "0xg", YAML_TEXT },
		{ "0o17", YAML_INT }, { "1.5", YAML_FLOAT },
		{ "1e3", YAML_FLOAT }, { ".inf", YAML_FLOAT },
		{ "1.20.1", YAML_TEXT }, { "52:54:00", YAML_TEXT },
		{ "-", YAML_TEXT }, { ".", YAML_TEXT }, { "e", YAML_TEXT },
	};
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		struct yaml_node n = { .kind = YAML_SCALAR, .plain = true,
				       .text = t[i].text };

		assert_int_equal(yaml_scalar_type(&n), t[i].type);
		n.plain = false;
		assert_int_equal(yaml_scalar_type(&n), YAML_TEXT);
	}
}

static void yaml_written_again(void **state)
{
	static const char in[] =
		"a: {b: [1, \"1\", true, {c: null}], \"x: y\": "
		"\"q\\\"\\n\\u0001\"}\n"
		"d: []\ne: {}\nf: 0x1f\n\"1\": [[x]]\n";
	struct spec_arena *arena = spec_arena_new();
	struct spec_problems p = SPEC_PROBLEMS_INIT;
	struct yaml_node *root = NULL, *again = NULL;
	char *yaml = NULL, *json = NULL, *json2 = NULL;

	(void)state;
	assert_int_equal(yaml_read(arena, in, strlen(in), &p, &root), 0);
	assert_int_equal(yaml_write(root, 2, &yaml), 0);
	assert_int_equal(yaml_write_json(root, &json), 0);
	assert_string_equal(json,
			    "{\"a\":{\"b\":[1,\"1\",true,{\"c\":null}],"
			    "\"x: y\":\"q\\\"\\n\\u0001\"},\"d\":[],\"e\":{},"
			    "\"f\":\"0x1f\",\"1\":[[\"x\"]]}");
	assert_int_equal(yaml_read(arena, yaml, strlen(yaml), &p, &again), 0);
	assert_int_equal(yaml_write_json(again, &json2), 0);
	assert_string_equal(json2, json);
	assert_int_equal(p.n, 0);
	free(yaml);
	free(json);
	free(json2);
	(void)spec_arena_free(arena);
}

/* Garbage of all kinds: an error with a position, and no spec. */
static void garbage(void **state)
{
	static const struct {
		const char *text;
		size_t size;
		const char *code;
		unsigned int line, column;
	} t[] = {
		{ "", 0, "yaml-syntax", 1, 1 },
		{ "# nothing\n", 10, "yaml-syntax", 1, 1 },
		{ "a: b\0c\n", 7, "yaml-syntax", 1, 5 },
		{ "a: \"\\0\"\n", 8, "yaml-syntax", 1, 4 },
		{ "a:\n\t- b\n", 8, "yaml-syntax", 2, 1 },
		{ "a: \xff\xfe\n", 6, "yaml-syntax", 1, 4 },
		{ "{{x: 1}: 2}\n", 12, "yaml-syntax", 1, 2 },
		{ "a: *b\n", 6, "yaml-syntax", 1, 4 },
		{ "a: [\n", 5, "yaml-syntax", 2, 1 },
		{ "a: !x b\n", 8, "yaml-syntax", 1, 4 },
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < N(t); i++) {
		struct spec_problems p = SPEC_PROBLEMS_INIT;
		struct spec *spec = NULL;

		assert_int_equal(spec_load_text("x", t[i].text, t[i].size, 0,
						&p, &spec, NULL), -EINVAL);
		assert_null(spec);
		for (k = 0; k < p.n; k++)
			if (p.v[k].pos.line == t[i].line &&
			    p.v[k].pos.column == t[i].column &&
			    strcmp(p.v[k].code, t[i].code) == 0)
				break;
		if (k == p.n)
			fail_msg("%zu: no %s at %u:%u but %s", i, t[i].code,
				 t[i].line, t[i].column,
				 p.n ? p.v[0].text : "nothing");
		spec_problems_done(&p);
	}
}

static void too_large(void **state)
{
	size_t size = YAML_SIZE_MAX + 1;
	_cleanup_free_ char *text = malloc(size);
	struct spec_problems p = SPEC_PROBLEMS_INIT;
	struct spec *spec = NULL;

	(void)state;
	assert_non_null(text);
	memset(text, '#', size);
	assert_int_equal(spec_load_text("x", text, size, 0, &p, &spec, NULL),
			 -EINVAL);
	assert_string_equal(p.v[0].code, "yaml-limit");
	spec_problems_done(&p);
	/* Many values in little text, at the size limit. */
	memset(text, ',', size);
	memcpy(text, "a: [x", 5);
	assert_int_equal(spec_load_text("x", text, size - 1, 0, &p, &spec,
					NULL), -EINVAL);
	spec_problems_done(&p);
}

/* The list is bounded; what is left out is counted. */
static void problems_are_bounded(void **state)
{
	struct spec_problems p = SPEC_PROBLEMS_INIT;
	char *text = NULL, *out_text = NULL;
	size_t size = 0, i;
	FILE *out = open_memstream(&text, &size);
	struct spec *spec = NULL;

	(void)state;
	assert_non_null(out);
	fprintf(out, "apiVersion: garboard/v1\n");
	for (i = 0; i < 1000; i++)
		fprintf(out, "key%zu: 1\n", i);
	fclose(out);
	assert_int_equal(spec_load_text("x", text, size, SPEC_ONE_BOX, &p,
					&spec, NULL), -EINVAL);
	assert_int_equal(p.n, SPEC_PROBLEMS_MAX);
	assert_int_equal(p.errors, 1000);
	assert_int_equal(spec_print_problems("x", &p, &out_text), 0);
	assert_non_null(strstr(out_text, "x: and 744 more\n"));
	free(text);
	free(out_text);
	spec_problems_done(&p);
}

/* How many rules `path` does not list, by what starts a code's entry. */
static size_t undocumented(const char *path, const char *before,
			   const char *after, bool with_text)
{
	_cleanup_free_ char *manual = NULL;
	const struct spec_rule *rules;
	struct fault f = FAULT_INIT;
	size_t n, i, size = 0, bad = 0;

	assert_int_equal(file_read(path, 1024 * 1024, &manual, &size, &f), 0);
	rules = spec_rules(&n);
	for (i = 0; i < n; i++) {
		char row[128];

		(void)snprintf(row, sizeof(row), "\n%s%s%s", before,
			       rules[i].code, after);
		if (strstr(manual, row) &&
		    (!with_text || strstr(manual, rules[i].text)))
			continue;
		print_message("# %s lacks %s: %s\n", path, rules[i].code,
			      rules[i].text);
		bad++;
	}
	return bad;
}

/* Every code stands in the manual, with an example (DESIGN 6). */
static void manual_lists_every_code(void **state)
{
	(void)state;
	assert_int_equal(undocumented("docs/spec.md", "| `", "` |", true), 0);
	assert_int_equal(undocumented("man/garboard-cluster.yaml.5", ".It Cm ",
				      " Pq ", false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(example_has_only_what_comes_later),
		cmocka_unit_test(missing_file),
		cmocka_unit_test(all_errors_in_one_run),
		cmocka_unit_test(sy05_one_unknown_key),
		cmocka_unit_test(one_box_and_cluster),
		cmocka_unit_test(placeholders),
		cmocka_unit_test(rt05_reserved_numbers),
		cmocka_unit_test(k3s_keys_agree_with_orders),
		cmocka_unit_test(yaml_types),
		cmocka_unit_test(yaml_written_again),
		cmocka_unit_test(garbage),
		cmocka_unit_test(too_large),
		cmocka_unit_test(problems_are_bounded),
		cmocka_unit_test(manual_lists_every_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
