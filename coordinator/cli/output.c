#include "coordinator/cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/parse.h"
#include "coordinator/control_client.h"

#define COLUMNS_MAX 12
#define CELL_MAX 512
#define ASK_TIME (60 * USEC_PER_SEC)

int cli_control(const struct cli *cli, struct control **ret_control,
		struct fault *f)
{
	struct control_options o = { .state = cli->state_dir };

	return control_open(&o, ret_control, f);
}

int cli_ask(struct control *c, json_t *takes, json_t **ret_reply,
	    struct fault *f)
{
	int r;

	if (!takes)
		return fault_set(f, -EINVAL, "request",
				 "is not valid UTF-8 text");
	r = control_call(c, takes, clock_boottime() + ASK_TIME, ret_reply, f);
	json_decref(takes);
	return r;
}

int cli_print_json(json_t *value)
{
	_cleanup_free_ char *text = NULL;

	text = json_dumps(value, JSON_INDENT(2) | JSON_SORT_KEYS);
	if (!text)
		return -ENOMEM;
	(void)puts(text);
	return 0;
}

static void cell(const json_t *row, const char *key, char *buf)
{
	const json_t *v = json_object_get(row, key);

	buf[0] = '\0';
	if (json_is_string(v))
		(void)snprintf(buf, CELL_MAX, "%s", json_string_value(v));
	else if (json_is_integer(v))
		(void)snprintf(buf, CELL_MAX, "%lld",
			       (long long)json_integer_value(v));
	else if (json_is_boolean(v))
		(void)snprintf(buf, CELL_MAX, "%s",
			       json_is_true(v) ? "yes" : "no");
	fault_sanitize(buf);
	if (!buf[0])
		(void)snprintf(buf, CELL_MAX, "-");
}

static void print_row(const json_t *row, const struct cli_column *columns,
		      const size_t *width)
{
	char buf[CELL_MAX];

	for (size_t i = 0; i < COLUMNS_MAX && columns[i].title; i++) {
		bool last = !columns[i + 1].title;

		if (row)
			cell(row, columns[i].key, buf);
		else
			(void)snprintf(buf, sizeof(buf), "%s",
				       columns[i].title);
		(void)printf("%-*s%s", last ? 0 : (int)width[i], buf,
			     last ? "\n" : "  ");
	}
}

int cli_print_list(const struct cli *cli, json_t *list,
		   const struct cli_column *columns)
{
	size_t width[COLUMNS_MAX] = { 0 }, index;
	char buf[CELL_MAX];
	json_t *row;

	if (cli->output != CLI_TABLE)
		return cli_print_json(list);
	for (size_t i = 0; i < COLUMNS_MAX && columns[i].title; i++) {
		width[i] = strlen(columns[i].title);
		json_array_foreach(list, index, row) {
			cell(row, columns[i].key, buf);
			if (strlen(buf) > width[i])
				width[i] = strlen(buf);
		}
	}
	print_row(NULL, columns, width);
	json_array_foreach(list, index, row)
		print_row(row, columns, width);
	return 0;
}

const char *cli_ago(usec ago, char *buf, size_t size)
{
	uint64_t s = ago / USEC_PER_SEC;

	if (ago == CONTROL_NEVER)
		(void)snprintf(buf, size, "never");
	else if (s < 120)
		(void)snprintf(buf, size, "%llu s", (unsigned long long)s);
	else if (s < 7200)
		(void)snprintf(buf, size, "%llu min",
			       (unsigned long long)(s / 60));
	else if (s < 172800)
		(void)snprintf(buf, size, "%llu h",
			       (unsigned long long)(s / 3600));
	else
		(void)snprintf(buf, size, "%llu d",
			       (unsigned long long)(s / 86400));
	return buf;
}

int cli_duration(const char *text, usec *ret_duration)
{
	static const struct {
		char unit;
		uint64_t seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	size_t n = strlen(text);
	char number[16];
	uint64_t value;

	if (n < 2 || n > sizeof(number))
		return -EINVAL;
	memcpy(number, text, n - 1);
	number[n - 1] = '\0';
	if (parse_u64(number, 1000000, &value) < 0)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (units[i].unit != text[n - 1])
			continue;
		*ret_duration = value * units[i].seconds * USEC_PER_SEC;
		return 0;
	}
	return -EINVAL;
}
