/* The kill-switch log as a report (ledger/report.h). */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/cmd.h"
#include "agent/json.h"
#include "agent/ledger/ledger.h"
#include "agent/ledger/report.h"
#include "common/cleanup.h"
#include "common/file.h"

#define WALL_TEXT 40

struct options {
	bool json;
	const char *state_dir;
	usec since;
};

/* A day, or a second, of UTC. */
static int parse_since(const char *text, usec *ret_since)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%Y-%m-%d", &tm);
	time_t t;

	if (end && *end == 'T')
		end = strptime(end, "T%H:%M:%SZ", &tm);
	if (!end || *end)
		return -EINVAL;
	t = timegm(&tm);
	if (t < 0)
		return -EINVAL;
	*ret_since = (usec)t * USEC_PER_SEC;
	return 0;
}

static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "since", required_argument, NULL, 's' },
		{ "state-dir", required_argument, NULL, 'S' },
		{ "json", no_argument, NULL, 'j' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "o:", longs, NULL)) != -1) {
		if (c == 's' && parse_since(optarg, &o->since) == 0)
			continue;
		if (c == 'S')
			o->state_dir = optarg;
		else if (c == 'j' || (c == 'o' && strcmp(optarg, "json") == 0))
			o->json = true;
		else if (c != 'o' || strcmp(optarg, "text") != 0)
			return -EINVAL;
	}
	return optind == argc ? 0 : -EINVAL;
}

static int read_log(const struct options *o, struct ledger_report *r,
		    struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	char path[LEDGER_PATH_MAX], boot[LEDGER_BOOT_MAX] = "";
	const char *line, *end;
	size_t size = 0;
	int err = file_read(ledger_path(o->state_dir, path),
			    2 * LEDGER_SIZE_MAX, &text, &size, f);

	if (err < 0)
		return err;
	for (line = text; line < text + size && err == 0; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + size - line));
		if (!end)
			end = text + size;
		err = ledger_report_feed(r, line, (size_t)(end - line),
					 end == text + size);
	}
	(void)file_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot),
			NULL);
	if (err == 0)
		err = ledger_report_end(r, boot, clock_boottime());
	return err < 0 ? fault_errno(f, err, path, "cannot be told") : 0;
}

/* ---- text ---- */

static const char *wall_text(usec wall, char buf[WALL_TEXT])
{
	time_t t = (time_t)(wall / USEC_PER_SEC);
	char day[24] = "?";
	struct tm tm;

	if (gmtime_r(&t, &tm))
		(void)strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(buf, WALL_TEXT, "%s.%06uZ", day,
		       (unsigned int)(wall % USEC_PER_SEC));
	return buf;
}

static double seconds(usec t)
{
	return (double)t / (double)USEC_PER_SEC;
}

static void print_layers(const char *what, const char *names)
{
	if (*names)
		(void)printf("; %s: %s", what, names);
}

static void print_segment(const struct ledger_boot *b,
			  const struct ledger_segment *s)
{
	char from[WALL_TEXT];

	(void)printf("  %s %16.6f s  %-8s %s", wall_text(ledger_wall(b, s->from),
							 from),
		     seconds(s->to - s->from), ledger_kind_name(s->kind),
		     *s->classes ? s->classes : "no class");
	if (s->kind == LEDGER_SOME || s->kind == LEDGER_NONE)
		print_layers("missing", s->missing);
	if (s->kind != LEDGER_NOBODY) {
		print_layers("stood", s->stands);
		print_layers("unknown", s->unknown);
	}
	if (s->gaps > 1)
		(void)printf("; %" PRIu64 " gaps in one", s->gaps);
	if (s->kind == LEDGER_SOME || s->kind == LEDGER_NONE)
		(void)printf("; by %s", s->cause[0] ? s->cause : "unknown");
	else if (s->kind == LEDGER_NOBODY && s->cause[0])
		(void)printf("; %s", s->cause);
	(void)printf("\n");
}

static void print_boot(const struct ledger_boot *b)
{
	char from[WALL_TEXT], to[WALL_TEXT];
	size_t i;

	(void)printf("boot %s from %s, last record %s\n", b->id,
		     wall_text(ledger_wall(b, 0), from),
		     wall_text(b->last_wall, to));
	for (i = 0; i < b->n_steps && i < LEDGER_STEPS_MAX; i++)
		(void)printf("  the clock was set by %+.6f s before %s\n",
			     (double)b->steps[i].by / (double)USEC_PER_SEC,
			     wall_text(ledger_wall(b, b->steps[i].at), from));
	for (i = 0; i < b->n; i++)
		print_segment(b, &b->v[i]);
}

static void print_sum(const struct ledger_sum *s)
{
	if (s->layer[0])
		(void)printf("  %-24s stood %.6f s, missing %.6f s, "
			     "unknown %.6f s\n", s->layer,
			     seconds(s->kinds[LEDGER_ALL]),
			     seconds(s->kinds[LEDGER_NONE]),
			     seconds(s->kinds[LEDGER_NOBODY]));
	else
		(void)printf("class %s: all layers %.6f s, some missing "
			     "%.6f s, none %.6f s, unknown %.6f s\n",
			     s->class_name, seconds(s->kinds[LEDGER_ALL]),
			     seconds(s->kinds[LEDGER_SOME]),
			     seconds(s->kinds[LEDGER_NONE]),
			     seconds(s->kinds[LEDGER_NOBODY]));
}

static void print_text(const struct ledger_report *r)
{
	char when[WALL_TEXT];
	size_t i, k;

	if (r->cut)
		(void)printf("%" PRIu64 " older records (%" PRIu64 " broken) "
			     "were removed, up to %s\n", r->cut + r->cut_broken,
			     r->cut_broken, wall_text(r->cut_wall, when));
	for (i = 0; i < r->n_boots; i++)
		if (r->boots[i].n)
			print_boot(&r->boots[i]);
	for (i = 0; i < r->n_broken && i < LEDGER_BROKEN_MAX; i++)
		(void)printf("BROKEN record in line %zu%s\n",
			     r->broken[i].line,
			     r->broken[i].torn ? ": it is cut off" : "");
	for (i = 0; i < r->n_sums; i++) {
		if (r->sums[i].layer[0])
			continue;
		print_sum(&r->sums[i]);
		for (k = 0; k < r->n_sums; k++)
			if (r->sums[k].layer[0] &&
			    strcmp(r->sums[k].class_name,
				   r->sums[i].class_name) == 0)
				print_sum(&r->sums[k]);
	}
	(void)printf("summary: %zu boots, all layers %.6f s, unprotected "
		     "%.6f s, weakened %.6f s, %" PRIu64 " gaps, unknown "
		     "%.6f s, %zu broken records\n", r->n_boots,
		     seconds(r->kinds[LEDGER_ALL]),
		     seconds(r->kinds[LEDGER_NONE]),
		     seconds(r->kinds[LEDGER_SOME]), r->gaps,
		     seconds(r->kinds[LEDGER_NOBODY]), r->n_broken);
}

/* ---- JSON ---- */

static void json_wall(struct json *j, const char *key, usec wall)
{
	char text[WALL_TEXT];

	json_text(j, key, wall_text(wall, text));
}

static void json_segment(struct json *j, const struct ledger_boot *b,
			 const struct ledger_segment *s)
{
	json_open(j, NULL, '{');
	json_wall(j, "from", ledger_wall(b, s->from));
	json_number(j, "from_boottime_usec", s->from);
	json_number(j, "usec", s->to - s->from);
	json_text(j, "state", ledger_kind_name(s->kind));
	json_text(j, "classes", s->classes);
	json_text(j, "stood", s->stands);
	json_text(j, "missing", s->missing);
	json_text(j, "unknown", s->unknown);
	json_number(j, "gaps", s->gaps);
	json_text(j, "cause", s->cause);
	json_close(j, '}');
}

static void json_boot(struct json *j, const struct ledger_boot *b)
{
	size_t i;

	json_open(j, NULL, '{');
	json_text(j, "boot", b->id);
	json_wall(j, "from", ledger_wall(b, 0));
	json_wall(j, "last_record", b->last_wall);
	json_number(j, "records", b->records);
	json_number(j, "clock_steps", b->n_steps);
	json_open(j, "intervals", '[');
	for (i = 0; i < b->n; i++)
		json_segment(j, b, &b->v[i]);
	json_close(j, ']');
	json_close(j, '}');
}

static void json_kinds(struct json *j, const usec kinds[LEDGER_KIND_MAX])
{
	json_number(j, "stood_usec", kinds[LEDGER_ALL]);
	json_number(j, "weakened_usec", kinds[LEDGER_SOME]);
	json_number(j, "unprotected_usec", kinds[LEDGER_NONE]);
	json_number(j, "unknown_usec", kinds[LEDGER_NOBODY]);
}

static void json_sums(struct json *j, const struct ledger_report *r)
{
	size_t i;

	json_open(j, "sums", '[');
	for (i = 0; i < r->n_sums; i++) {
		json_open(j, NULL, '{');
		json_text(j, "class", r->sums[i].class_name);
		json_text(j, "layer", r->sums[i].layer);
		json_kinds(j, r->sums[i].kinds);
		json_number(j, "gaps", r->sums[i].gaps);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static int print_json(const struct ledger_report *r)
{
	_cleanup_free_ char *text = NULL;
	struct json j;
	size_t i, size;
	int err;

	json_init(&j);
	json_open(&j, NULL, '{');
	json_open(&j, "summary", '{');
	json_number(&j, "boots", r->n_boots);
	json_kinds(&j, r->kinds);
	json_number(&j, "gaps", r->gaps);
	json_number(&j, "broken", r->n_broken);
	json_number(&j, "removed", r->cut);
	json_number(&j, "removed_broken", r->cut_broken);
	json_close(&j, '}');
	json_open(&j, "boots", '[');
	for (i = 0; i < r->n_boots; i++)
		if (r->boots[i].n)
			json_boot(&j, &r->boots[i]);
	json_close(&j, ']');
	json_open(&j, "broken_lines", '[');
	for (i = 0; i < r->n_broken && i < LEDGER_BROKEN_MAX; i++)
		json_number(&j, NULL, r->broken[i].line);
	json_close(&j, ']');
	json_sums(&j, r);
	json_close(&j, '}');
	err = json_done(&j, &text, &size);
	if (err == 0)
		(void)printf("%s\n", text);
	return err;
}

int cmd_killswitch_log(int argc, char **argv)
{
	struct options o = { .state_dir = CMD_STATE_DIR };
	struct ledger_report *r;
	struct fault f = FAULT_INIT;
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];
	int err;

	if (parse_options(argc, argv, &o) < 0)
		return cmd_usage("killswitch-log");
	r = calloc(1, sizeof(*r));
	if (!r)
		return CMD_FAILED;
	r->since = o.since;
	err = read_log(&o, r, &f);
	if (err == -ENOENT)
		(void)fprintf(stderr, "garboard-agent: there is no log: no "
				      "class was ever armed here\n");
	else if (err < 0)
		(void)fprintf(stderr, "garboard-agent: %s\n",
			      fault_str(&f, text, sizeof(text)));
	else if (o.json)
		err = print_json(r);
	else
		print_text(r);
	if (err < 0)
		err = CMD_FAILED;
	else
		err = r->n_broken ? CMD_INCOMPLETE : CMD_OK;
	ledger_report_done(r);
	free(r);
	return err;
}
