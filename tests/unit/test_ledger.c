/* The kill-switch log: records, the file, the watcher, the report. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/ledger/ledger.h"
#include "agent/ledger/report.h"
#include "agent/ledger/watch.h"
#include "common/file.h"

#define S USEC_PER_SEC
#define DAY ((usec)24 * 3600 * S)
#define WALL ((usec)1796000000 * S)	/* at boottime 0 */
#define BOOT_A "aaaaaaaa-0000-4000-8000-000000000001"
#define BOOT_B "bbbbbbbb-0000-4000-8000-000000000002"

/* ---- records ---- */

static struct ledger_record record(const char *boot, uint64_t seq,
				   enum ledger_event event, usec at,
				   enum ledger_state inet)
{
	struct ledger_record r = { .seq = seq, .event = event, .at = at,
				   .known = at, .wall = WALL + at };

	(void)strcpy(r.boot, boot);
	assert_int_equal(ledger_add_class(&r, "vpn"), 0);
	assert_int_equal(ledger_add_layer(&r, "inet", inet), 0);
	assert_int_equal(ledger_add_layer(&r, "netdev:up0", LEDGER_STANDS),
			 0);
	return r;
}

static void a_record_survives_its_line(void **state)
{
	struct ledger_record r = record(BOOT_A, 7, LEDGER_LOOK, 5 * S,
					LEDGER_MISSING), back;
	char line[LEDGER_LINE_MAX];
	int n;

	(void)state;
	r.known = 4 * S;
	r.count = 3;
	ledger_set_cause(&r, "nft x=y[12]\n");
	n = ledger_encode(&r, line);
	assert_true(n > 0);
	assert_int_equal(line[n - 1], '\n');
	assert_int_equal(ledger_decode(line, (size_t)n - 1, &back), 0);
	assert_true(ledger_same(&r, &back));
	assert_int_equal(back.seq, 7);
	assert_int_equal(back.known, 4 * S);
	assert_int_equal(back.count, 3);
	assert_string_equal(back.boot, BOOT_A);
	assert_string_equal(back.cause, "nft_x_y[12]_");
}

/* Every byte and every length. */
static void any_damage_shows(void **state)
{
	struct ledger_record r = record(BOOT_A, 7, LEDGER_LOOK, 5 * S,
					LEDGER_MISSING), back;
	char line[LEDGER_LINE_MAX];
	size_t n = (size_t)ledger_encode(&r, line) - 1, i;
	int bit;

	(void)state;
	for (i = 0; i < n; i++) {
		assert_true(ledger_decode(line, i, &back) < 0);
		for (bit = 0; bit < 8; bit++) {
			line[i] = (char)(line[i] ^ (1 << bit));
			assert_true(ledger_decode(line, n, &back) < 0);
			line[i] = (char)(line[i] ^ (1 << bit));
		}
	}
	assert_int_equal(ledger_decode(line, n, &back), 0);
}

/* ---- texts to feed ---- */

struct text {
	char *v;
	size_t n;
};

static void put(struct text *t, const struct ledger_record *r)
{
	char line[LEDGER_LINE_MAX];
	int n = ledger_encode(r, line);

	assert_true(n > 0);
	t->v = realloc(t->v, t->n + (size_t)n + 1);
	assert_non_null(t->v);
	(void)memcpy(t->v + t->n, line, (size_t)n + 1);
	t->n += (size_t)n;
}

static void put_simple(struct text *t, const char *boot, uint64_t seq,
		       enum ledger_event event, usec at,
		       enum ledger_state inet)
{
	struct ledger_record r = record(boot, seq, event, at, inet);

	put(t, &r);
}

static struct ledger_report *report(const struct text *t, usec since)
{
	struct ledger_report *r = calloc(1, sizeof(*r));
	const char *line, *end;

	assert_non_null(r);
	r->since = since;
	for (line = t->v; line < t->v + t->n; line = end + 1) {
		end = memchr(line, '\n', (size_t)(t->v + t->n - line));
		if (!end)
			end = t->v + t->n;
		assert_int_equal(ledger_report_feed(r, line,
						    (size_t)(end - line),
						    end == t->v + t->n), 0);
	}
	return r;
}

static void drop(struct ledger_report *r, struct text *t)
{
	ledger_report_done(r);
	free(r);
	free(t->v);
	*t = (struct text){ NULL, 0 };
}

static void expect(const struct ledger_report *r, size_t boot, size_t i,
		   enum ledger_kind kind, usec from, usec to,
		   const char *cause)
{
	const struct ledger_segment *s;

	assert_true(boot < r->n_boots);
	assert_true(i < r->boots[boot].n);
	s = &r->boots[boot].v[i];
	if (s->kind != kind || s->from != from || s->to != to ||
	    strcmp(s->cause, cause) != 0)
		fail_msg("interval %zu: %s from %llu to %llu, \"%s\"", i,
			 ledger_kind_name(s->kind),
			 (unsigned long long)s->from,
			 (unsigned long long)s->to, s->cause);
}

/* ---- the report ---- */

static void a_gap_has_bounds_and_a_name(void **state)
{
	struct ledger_record gap = record(BOOT_A, 3, LEDGER_LOOK, 60 * S,
					  LEDGER_MISSING);
	struct ledger_report *r;
	struct text t = { NULL, 0 };

	(void)state;
	ledger_set_cause(&gap, "nft[12]");
	put_simple(&t, BOOT_A, 1, LEDGER_LOCKDOWN, 4 * S, LEDGER_STANDS);
	put_simple(&t, BOOT_A, 2, LEDGER_START, 10 * S, LEDGER_STANDS);
	put(&t, &gap);
	put_simple(&t, BOOT_A, 4, LEDGER_LOOK, 60 * S + 700, LEDGER_STANDS);
	put_simple(&t, BOOT_A, 5, LEDGER_STOP, 100 * S, LEDGER_STANDS);
	r = report(&t, 0);
	assert_int_equal(r->n_boots, 1);
	assert_int_equal(r->boots[0].n, 5);
	expect(r, 0, 0, LEDGER_NONE, 0, 4 * S,
	       "boot, before garboard-lockdown");
	expect(r, 0, 1, LEDGER_NOBODY, 4 * S, 10 * S,
	       "before the agent looked");
	expect(r, 0, 2, LEDGER_ALL, 10 * S, 60 * S, "");
	expect(r, 0, 3, LEDGER_SOME, 60 * S, 60 * S + 700, "nft[12]");
	assert_string_equal(r->boots[0].v[3].missing, "inet");
	assert_string_equal(r->boots[0].v[3].stands, "netdev:up0");
	expect(r, 0, 4, LEDGER_ALL, 60 * S + 700, 100 * S, "");
	assert_int_equal(r->gaps, 2);
	assert_int_equal(r->kinds[LEDGER_SOME], 700);
	assert_int_equal(r->kinds[LEDGER_NONE], 4 * S);
	/* A day later, in the same boot, nobody has looked since. */
	assert_int_equal(ledger_report_end(r, BOOT_A, 100 * S + DAY), 0);
	expect(r, 0, 5, LEDGER_NOBODY, 100 * S, 100 * S + DAY,
	       "the agent was stopped");
	drop(r, &t);
}

static void what_nobody_saw_is_unknown(void **state)
{
	struct ledger_record late = record(BOOT_B, 7, LEDGER_LOOK, 90 * S,
					   LEDGER_MISSING);
	struct ledger_report *r;
	struct text t = { NULL, 0 };

	(void)state;
	put_simple(&t, BOOT_A, 1, LEDGER_START, 5 * S, LEDGER_STANDS);
	put_simple(&t, BOOT_A, 2, LEDGER_BEAT, 50 * S, LEDGER_STANDS);
	/* killed, and started again */
	put_simple(&t, BOOT_A, 3, LEDGER_START, 80 * S, LEDGER_STANDS);
	/* a power cut: nothing but another boot */
	put_simple(&t, BOOT_B, 4, LEDGER_START, 6 * S, LEDGER_STANDS);
	put_simple(&t, BOOT_B, 6, LEDGER_BEAT, 30 * S, LEDGER_STANDS);
	late.known = 40 * S;	/* found by a look, not by an event */
	put(&t, &late);
	r = report(&t, 0);
	assert_int_equal(r->n_boots, 2);
	assert_int_equal(r->boots[0].n, 3);
	expect(r, 0, 0, LEDGER_NOBODY, 0, 5 * S,
	       "nobody looked since the boot");
	expect(r, 0, 1, LEDGER_ALL, 5 * S, 50 * S, "");
	expect(r, 0, 2, LEDGER_NOBODY, 50 * S, 80 * S,
	       "the agent ended without a word");
	assert_int_equal(r->boots[1].n, 4);
	expect(r, 1, 1, LEDGER_NOBODY, 6 * S, 30 * S, "records are missing");
	expect(r, 1, 2, LEDGER_ALL, 30 * S, 40 * S, "");
	expect(r, 1, 3, LEDGER_NOBODY, 40 * S, 90 * S,
	       "until a look found it, without an event");
	drop(r, &t);
}

static void a_broken_record_is_told_and_unknown(void **state)
{
	struct ledger_report *r;
	struct text t = { NULL, 0 };
	size_t middle;

	(void)state;
	put_simple(&t, BOOT_A, 1, LEDGER_START, 5 * S, LEDGER_STANDS);
	middle = t.n + 30;
	put_simple(&t, BOOT_A, 2, LEDGER_LOOK, 50 * S, LEDGER_MISSING);
	put_simple(&t, BOOT_A, 3, LEDGER_LOOK, 60 * S, LEDGER_STANDS);
	t.v[middle] ^= 4;
	r = report(&t, 0);
	assert_int_equal(r->n_broken, 1);
	assert_int_equal(r->broken[0].line, 2);
	assert_false(r->broken[0].torn);
	expect(r, 0, 1, LEDGER_NOBODY, 5 * S, 60 * S, "broken record");
	drop(r, &t);
}

static void a_torn_end_is_tolerated(void **state)
{
	struct ledger_report *r;
	struct text t = { NULL, 0 };
	size_t whole;

	(void)state;
	put_simple(&t, BOOT_A, 1, LEDGER_START, 5 * S, LEDGER_STANDS);
	put_simple(&t, BOOT_A, 2, LEDGER_BEAT, 50 * S, LEDGER_STANDS);
	whole = t.n;
	put_simple(&t, BOOT_A, 3, LEDGER_LOOK, 60 * S, LEDGER_MISSING);
	t.n = whole + 40;
	r = report(&t, 0);
	assert_int_equal(r->n_broken, 1);
	assert_true(r->broken[0].torn);
	assert_int_equal(r->boots[0].n, 2);
	expect(r, 0, 1, LEDGER_ALL, 5 * S, 50 * S, "");
	drop(r, &t);
}

/* The wall clock jumps by a year: lengths stay, and it is told. */
static void a_clock_step_moves_no_interval(void **state)
{
	struct ledger_record r1 = record(BOOT_A, 1, LEDGER_START, 5 * S,
					 LEDGER_STANDS);
	struct ledger_report *r;
	struct text t = { NULL, 0 };

	(void)state;
	r1.wall -= 365 * DAY;
	put(&t, &r1);
	put_simple(&t, BOOT_A, 2, LEDGER_BEAT, 65 * S, LEDGER_STANDS);
	r = report(&t, 0);
	expect(r, 0, 1, LEDGER_ALL, 5 * S, 65 * S, "");
	assert_int_equal(r->boots[0].n_steps, 1);
	assert_int_equal(r->boots[0].steps[0].by, (int64_t)(365 * DAY));
	assert_int_equal(ledger_wall(&r->boots[0], 5 * S), WALL + 5 * S);
	drop(r, &t);
}

static void since_clips(void **state)
{
	struct ledger_report *r;
	struct text t = { NULL, 0 };

	(void)state;
	put_simple(&t, BOOT_A, 1, LEDGER_START, 5 * S, LEDGER_STANDS);
	put_simple(&t, BOOT_A, 2, LEDGER_BEAT, 65 * S, LEDGER_STANDS);
	r = report(&t, WALL + 20 * S);
	assert_int_equal(r->boots[0].n, 1);
	expect(r, 0, 0, LEDGER_ALL, 20 * S, 65 * S, "");
	drop(r, &t);
}

/* ---- pruning ---- */

static void thirteen_months_and_no_more(void **state)
{
	struct text t = { NULL, 0 }, left = { NULL, 0 };
	struct ledger_report *r;
	size_t broken;
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		broken = t.n + 30;
		put_simple(&t, BOOT_A, i + 1, i ? LEDGER_BEAT : LEDGER_START,
			   i * 200 * DAY + S, LEDGER_STANDS);
		if (i == 0)
			t.v[broken] ^= 1;
	}
	/* Nothing is old while no clock is given. */
	assert_int_equal(ledger_prune(t.v, t.n, 0, LEDGER_SIZE_MAX, &left.v,
				      &left.n), 0);
	assert_int_equal(ledger_prune(t.v, t.n, WALL + S + 396 * DAY,
				      LEDGER_SIZE_MAX, &left.v, &left.n), 0);
	assert_int_equal(ledger_prune(t.v, t.n, WALL + S + 596 * DAY,
				      LEDGER_SIZE_MAX, &left.v, &left.n), 1);
	r = report(&left, 0);
	assert_int_equal(r->cut, 1);
	assert_int_equal(r->cut_broken, 1);	/* never silently */
	assert_int_equal(r->n_broken, 0);
	expect(r, 0, 0, LEDGER_NOBODY, 0, 400 * DAY + S,
	       "older records were removed");
	expect(r, 0, 1, LEDGER_ALL, 400 * DAY + S, 600 * DAY + S, "");
	drop(r, &t);
	/* What was removed before counts on. */
	assert_int_equal(ledger_prune(left.v, left.n, WALL + 800 * DAY,
				      LEDGER_SIZE_MAX, &t.v, &t.n), 1);
	r = report(&t, 0);
	assert_int_equal(r->cut, 2);
	assert_int_equal(r->cut_broken, 1);
	drop(r, &t);
	free(left.v);
}

static void size_is_bounded(void **state)
{
	struct text t = { NULL, 0 }, left = { NULL, 0 };
	struct ledger_report *r;
	unsigned int i;

	(void)state;
	for (i = 0; i < 100; i++)
		put_simple(&t, BOOT_A, i + 1, i ? LEDGER_BEAT : LEDGER_START,
			   (i + 1) * S, LEDGER_STANDS);
	assert_int_equal(ledger_prune(t.v, t.n, 0, t.n, &left.v, &left.n), 0);
	assert_int_equal(ledger_prune(t.v, t.n, 0, t.n / 2, &left.v, &left.n),
			 1);
	assert_true(left.n <= t.n / 2);
	assert_true(left.n > t.n / 4);
	r = report(&left, 0);
	assert_int_equal(r->cut + r->boots[0].records, 100);
	drop(r, &t);
	free(left.v);
}

/* ---- the file ---- */

static int make_dir(void **state)
{
	char dir[] = "/tmp/garboard-ledger-XXXXXX";

	*state = mkdtemp(dir) ? strdup(dir) : NULL;
	return *state ? 0 : -1;
}

static int remove_dir(void **state)
{
	char path[LEDGER_PATH_MAX];

	(void)unlink(ledger_path(*state, path));
	(void)rmdir(*state);
	free(*state);
	return 0;
}

static struct ledger_report *report_file(const char *dir)
{
	char path[LEDGER_PATH_MAX];
	struct text t = { NULL, 0 };
	struct ledger_report *r;

	assert_int_equal(file_read(ledger_path(dir, path), LEDGER_SIZE_MAX,
				   &t.v, &t.n, NULL), 0);
	r = report(&t, 0);
	free(t.v);
	return r;
}

static void drop_report(struct ledger_report *r)
{
	ledger_report_done(r);
	free(r);
}

static void appends_behind_a_torn_end(void **state)
{
	struct ledger_record last;
	struct ledger_report *r;
	struct text t = { NULL, 0 };
	char path[LEDGER_PATH_MAX];

	put_simple(&t, BOOT_A, 1, LEDGER_START, 5 * S, LEDGER_STANDS);
	assert_int_equal(ledger_append(*state, t.v, t.n, NULL), 0);
	assert_int_equal(ledger_append(*state, t.v, 40, NULL), 0);
	assert_int_equal(ledger_last(*state, &last), 0);
	assert_int_equal(last.seq, 1);
	free(t.v);
	t = (struct text){ NULL, 0 };
	put_simple(&t, BOOT_B, 2, LEDGER_START, 6 * S, LEDGER_STANDS);
	assert_int_equal(ledger_append(*state, t.v, t.n, NULL), 0);
	assert_int_equal(ledger_last(*state, &last), 0);
	assert_int_equal(last.seq, 2);
	r = report_file(*state);
	assert_int_equal(r->n_boots, 2);
	assert_int_equal(r->n_broken, 1);
	assert_int_equal(r->broken[0].line, 2);
	drop_report(r);
	free(t.v);
	(void)path;
}

/* ---- the watcher ---- */

struct scene {
	struct item_list items, routes;
	struct change_list plan;
	struct engine_look tables, routing;
};

static void make_scene(struct scene *s)
{
	(void)memset(s, 0, sizeof(*s));
	(void)item_list_add(&s->items, "class vpn", ITEM_IN_SYNC, "armed",
			    "armed", "");
	(void)item_list_add(&s->items, "table inet garboard", ITEM_IN_SYNC,
			    "closed", "closed", "");
	(void)item_list_add(&s->items, "table netdev garboard_egress_up0",
			    ITEM_IN_SYNC, "closed", "closed", "");
	(void)item_list_add(&s->items, "table netdev garboard_egress_usb0",
			    ITEM_PENDING, "", "hooked", "no such device");
	(void)item_list_add(&s->routes, "ipv4 route table 9: unreachable",
			    ITEM_IN_SYNC, "", "", "");
	(void)item_list_add(&s->routes, "tunnel wg0", ITEM_PENDING, "", "",
			    "");
	s->tables = (struct engine_look){ .id = RESOURCE_KILLSWITCH,
					  .items = &s->items,
					  .plan = &s->plan,
					  .writer = "nft[12]" };
	s->routing = (struct engine_look){ .id = RESOURCE_ROUTING,
					   .items = &s->routes,
					   .plan = &s->plan,
					   .writer = "" };
}

static void scene_done(struct scene *s)
{
	item_list_done(&s->items);
	item_list_done(&s->routes);
}

static void see(struct ledger *l, struct scene *s, enum item_state inet,
		usec began, usec now, bool prompted)
{
	s->items.v[1].state = inet;
	s->tables.began = began;
	s->tables.prompted = prompted;
	ledger_see(l, &s->tables, now, WALL + now);
}

static struct ledger *begin(const char *dir, struct scene *s,
			    const struct ledger_params *p)
{
	struct ledger *l = NULL;

	make_scene(s);
	assert_int_equal(ledger_new(NULL, dir, BOOT_A, "/nowhere", p, &l), 0);
	see(l, s, ITEM_IN_SYNC, 10 * S, 10 * S, false);
	ledger_see(l, &s->routing, 10 * S, WALL + 10 * S);
	return l;
}

static void writes_what_changes(void **state)
{
	struct ledger_params p = ledger_params_default();
	struct ledger_report *r;
	struct scene s;
	struct ledger *l = begin(*state, &s, &p);
	char path[LEDGER_PATH_MAX];
	usec due;

	/* Gathered: no file yet, and the one time it is due. */
	due = ledger_tick(l, 10 * S, WALL + 10 * S);
	assert_int_equal(due, 11 * S);
	assert_int_equal(access(ledger_path(*state, path), F_OK), -1);
	/* From the pass that found it to the look that saw it stand. */
	see(l, &s, ITEM_ABSENT, 60 * S, 60 * S + 300, true);
	see(l, &s, ITEM_IN_SYNC, 60 * S, 60 * S + 900, true);
	/* Not told by an event: unknown since the last look. */
	see(l, &s, ITEM_DRIFTED, 90 * S, 90 * S + 300, false);
	see(l, &s, ITEM_IN_SYNC, 90 * S, 90 * S + 900, false);
	/* The same again is nothing new; a heartbeat is. */
	see(l, &s, ITEM_IN_SYNC, 95 * S, 95 * S, true);
	due = ledger_tick(l, 4000 * S, WALL + 4000 * S);
	assert_int_equal(due, 4000 * S + p.beat);
	r = report_file(*state);
	assert_int_equal(r->boots[0].records, 6);
	assert_int_equal(r->boots[0].n, 6);
	expect(r, 0, 1, LEDGER_ALL, 10 * S, 60 * S, "");
	assert_string_equal(r->boots[0].v[1].stands,
			    "inet netdev:up0 routing");
	expect(r, 0, 2, LEDGER_SOME, 60 * S, 60 * S + 900, "nft[12]");
	expect(r, 0, 3, LEDGER_NOBODY, 60 * S + 900, 90 * S,
	       "until a look found it, without an event");
	expect(r, 0, 4, LEDGER_SOME, 90 * S, 90 * S + 900, "");
	expect(r, 0, 5, LEDGER_ALL, 90 * S + 900, 4000 * S, "");
	drop_report(r);
	(void)ledger_free(l);
	scene_done(&s);
}

/* Off is not "stands": nobody looks. */
static void off_is_unknown(void **state)
{
	struct ledger_params p = ledger_params_default();
	struct ledger_report *r;
	struct scene s;
	struct ledger *l = begin(*state, &s, &p);

	s.tables.items = NULL;
	s.tables.began = 20 * S;
	ledger_see(l, &s.tables, 20 * S, WALL + 20 * S);
	(void)ledger_tick(l, 3700 * S, WALL + 3700 * S);
	r = report_file(*state);
	assert_int_equal(r->kinds[LEDGER_ALL], 10 * S);
	assert_int_equal(r->boots[0].v[r->boots[0].n - 1].kind,
			 LEDGER_NOBODY);
	drop_report(r);
	(void)ledger_free(l);
	scene_done(&s);
}

static void a_storm_is_bounded_and_never_hidden(void **state)
{
	struct ledger_params p = ledger_params_default();
	struct ledger_report *r;
	struct scene s;
	struct ledger *l;
	usec t = 20 * S;
	unsigned int i;

	p.hourly = 10;
	l = begin(*state, &s, &p);
	for (i = 0; i < 1000; i++, t += S / 10) {
		see(l, &s, ITEM_ABSENT, t, t + 200, true);
		see(l, &s, ITEM_IN_SYNC, t, t + 900, true);
	}
	(void)ledger_tick(l, t, WALL + t);
	(void)ledger_tick(l, t + 61 * S, WALL + t + 61 * S);
	(void)ledger_tick(l, t + 70 * S, WALL + t + 70 * S);
	r = report_file(*state);
	assert_in_range(r->boots[0].records, 10, 14);
	assert_int_equal(r->gaps, 1000);
	/* Missing all along, until it had stood for a minute. */
	assert_true(r->kinds[LEDGER_SOME] > 98 * S);
	drop_report(r);
	(void)ledger_free(l);
	scene_done(&s);
}

static void a_node_that_was_never_armed_has_no_log(void **state)
{
	struct ledger_params p = ledger_params_default();
	struct item_list none = ITEM_LIST_INIT;
	char path[LEDGER_PATH_MAX];
	struct ledger *l = NULL;
	struct scene s;

	make_scene(&s);
	assert_int_equal(ledger_new(NULL, *state, BOOT_A, "/nowhere", &p, &l),
			 0);
	s.tables.items = s.routing.items = &none;
	ledger_see(l, &s.tables, S, WALL);
	ledger_see(l, &s.routing, S, WALL);
	assert_true(ledger_tick(l, 9000 * S, WALL) == ENGINE_NEVER);
	(void)ledger_free(l);
	assert_int_equal(access(ledger_path(*state, path), F_OK), -1);
	scene_done(&s);
}

static void what_lockdown_left_is_read(void **state)
{
	char line[128], small[8];
	usec at, wall;
	bool all;

	(void)state;
	assert_int_equal(ledger_stood_format(5, 6, true, line, sizeof(line)),
			 0);
	assert_int_equal(ledger_stood_parse(line, &at, &wall, &all), 0);
	assert_true(at == 5 && wall == 6 && all);
	assert_int_equal(ledger_stood_parse("5 6 some\n", &at, &wall, &all),
			 -EBADMSG);
	assert_int_equal(ledger_stood_parse("5 6\n", &at, &wall, &all),
			 -EBADMSG);
	assert_int_equal(ledger_stood_parse("5 6 all more\n", &at, &wall,
					    &all), -EBADMSG);
	assert_int_equal(ledger_stood_format(5, 6, true, small, sizeof(small)),
			 -E2BIG);
}

int main(void)
{
#define D(fn) cmocka_unit_test_setup_teardown(fn, make_dir, remove_dir)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_survives_its_line),
		cmocka_unit_test(any_damage_shows),
		cmocka_unit_test(a_gap_has_bounds_and_a_name),
		cmocka_unit_test(what_nobody_saw_is_unknown),
		cmocka_unit_test(a_broken_record_is_told_and_unknown),
		cmocka_unit_test(a_torn_end_is_tolerated),
		cmocka_unit_test(a_clock_step_moves_no_interval),
		cmocka_unit_test(since_clips),
		cmocka_unit_test(thirteen_months_and_no_more),
		cmocka_unit_test(size_is_bounded),
		D(appends_behind_a_torn_end),
		D(writes_what_changes),
		D(off_is_unknown),
		D(a_storm_is_bounded_and_never_hidden),
		D(a_node_that_was_never_armed_has_no_log),
		cmocka_unit_test(what_lockdown_left_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
