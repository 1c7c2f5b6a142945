/* The timezone resource: names, reading, plan and apply by ourselves. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scratch.h"

#include "resource_run.h"

#include "agent/res/timezone.h"
#include "agent/res/timezone_plan.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define ZONES "/usr/share/zoneinfo"

static int fresh(void **state)
{
	(void)scratch_make(state);
	put(ZONES "/Etc/UTC", "TZif2 utc");
	put_link(ZONES "/UTC", "Etc/UTC");
	put(ZONES "/America/Los_Angeles", "TZif2 pacific");
	put(ZONES "/Asia/Tokyo", "TZif2 tokyo");
	put(ZONES "/zone.tab", "# no zone\n");
	put(ZONES "/tzdata.zi", "# version 2026a\nR d 1916 o - Jun 14 23s 1 S\n"
	    "L America/Los_Angeles US/Pacific\nL Asia/Tokyo Japan\n"
	    "L America/Los_Angeles PST8PDT\nL Europe/Kyiv Europe/Kiev\n"
	    "L Etc/UTC Etc/UCT\n");
	return 0;
}

static void want_zone(struct run *run, const char *zone)
{
	free(run->want->timezone);
	run->want->timezone = strdup(zone);
	assert_non_null(run->want->timezone);
}

static void names(void **state)
{
	static const struct {
		const char *name;
		bool valid;
	} t[] = {
		{ "Etc/UTC", true }, { "UTC", true },
		{ "America/Argentina/Buenos_Aires", true },
		{ "Etc/GMT+5", true }, { "PST8PDT", true },
		{ "posix/UTC", true }, { "right/UTC", false },
		{ "", false }, { "../../etc/passwd", false },
		{ "a/../../etc/passwd", false }, { "a/./b", false },
		{ "Etc//UTC", false }, { "Etc/UTC/", false },
		{ "/Etc/UTC", false }, { "BLOCKED", false },
		{ "Etc/BLOCKED", false }, { "5Zone", false },
		{ "Etc/UTC\n", false }, { "Etc UTC", false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++)
		assert_int_equal(timezone_name_is_valid(t[i].name),
				 t[i].valid);
}

static void reading(void **state)
{
	static const struct {
		const char *link, *copy;	/* one of them */
		const char *want;
		enum timezone_kind kind;
		const char *zone;
		bool same, dangling;
	} t[] = {
		{ "../usr/share/zoneinfo/Etc/UTC", NULL, "Etc/UTC",
		  TIMEZONE_LINK, "Etc/UTC", true, false },
		{ "/usr/share/zoneinfo/Etc/UTC", NULL, "Etc/UTC",
		  TIMEZONE_LINK, "Etc/UTC", true, false },
		{ "/usr/share/zoneinfo/UTC", NULL, "Etc/UTC", TIMEZONE_LINK,
		  "UTC", true, false },
		{ "/usr/share/zoneinfo/Asia/Tokyo", NULL, "Etc/UTC",
		  TIMEZONE_LINK, "Asia/Tokyo", false, false },
		{ "/usr/share/zoneinfo/US/Pacific", NULL,
		  "America/Los_Angeles", TIMEZONE_LINK, "US/Pacific", false,
		  true },
		{ "/usr/share/zoneinfo/zone.tab", NULL, "Etc/UTC",
		  TIMEZONE_LINK, "zone.tab", false, true },
		{ NULL, "TZif2 utc", "Etc/UTC", TIMEZONE_COPY, "", true,
		  false },
		{ NULL, "TZif2 tokyo", "Etc/UTC", TIMEZONE_COPY, "", false,
		  false },
		{ NULL, NULL, "Etc/UTC", TIMEZONE_ABSENT, "", false, false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		struct timezone_seen s;

		(void)unlink(scratch_path("/etc/localtime"));
		if (t[i].link)
			put_link("/etc/localtime", t[i].link);
		else if (t[i].copy)
			put("/etc/localtime", t[i].copy);
		timezone_see(scratch, t[i].want, &s);
		assert_int_equal(s.kind, t[i].kind);
		assert_string_equal(s.zone, t[i].zone);
		assert_int_equal(s.same, t[i].same);
		assert_int_equal(s.dangling, t[i].dangling);
		assert_false(s.has_file);
	}
}

static void a03_changed_only_when_it_was_not_so(void **state)
{
	char target[256];
	struct run run;
	ssize_t n;

	(void)state;
	put_link("/etc/localtime", "/usr/share/zoneinfo/Asia/Tokyo");
	put("/etc/timezone", "Asia/Tokyo\n");
	run_open(&run, &resource_timezone);
	look(&run);
	assert_int_equal(state_of(&run, "/etc/localtime"), ITEM_DRIFTED);
	assert_int_equal(run.changes.n, 2);
	assert_string_equal(run.changes.v[0].have, "Asia/Tokyo");
	assert_int_equal(apply(&run), 0);
	n = readlink(scratch_path("/etc/localtime"), target, sizeof(target));
	assert_true(n > 0);
	target[n] = '\0';
	assert_string_equal(target, "../usr/share/zoneinfo/Etc/UTC");
	assert_string_equal(get("/etc/timezone"), "Etc/UTC\n");
	look(&run);
	assert_int_equal(run.changes.n, 0);
	assert_int_equal(item_list_worst(&run.items), ITEM_IN_SYNC);
	run_close(&run);
}

static void tz01_alias_is_in_sync(void **state)
{
	struct run run;

	(void)state;
	put_link("/etc/localtime", "/usr/share/zoneinfo/UTC");
	put("/etc/timezone", "UTC\n");
	run_open(&run, &resource_timezone);
	look(&run);
	assert_int_equal(run.changes.n, 0);
	assert_int_equal(item_list_worst(&run.items), ITEM_IN_SYNC);
	run_close(&run);
}

/*
 * The values of the case on a node as Debian 13 installs it, and again with
 * the old names there (tzdata-legacy, or Debian 12).
 */
static void tz01_names_of_today_and_before(void **state)
{
	static const struct {
		const char *zone, *text;	/* NULL: it is taken */
	} t[] = {
		{ "US/Pacific", "its name is America/Los_Angeles today" },
		{ "Japan", "its name is Asia/Tokyo today" },
		{ "PST8PDT", "its name is America/Los_Angeles today" },
		{ "Europe/Kiev", "its name is Europe/Kyiv today" },
		{ "../../etc/passwd", "is no name of a time zone" },
		{ "posix/UTC", "is not in /usr/share/zoneinfo" },
		{ "", "empty does not mean" },
		{ "Europe/Kyiv", NULL },
		{ "UTC", NULL },
	};
	struct run run;
	size_t i;

	(void)state;
	put(ZONES "/Europe/Kyiv", "TZif2 kyiv");
	put_link("/etc/localtime", "../usr/share/zoneinfo/Asia/Tokyo");
	run_open(&run, &resource_timezone);
	for (i = 0; i < N(t); i++) {
		want_zone(&run, t[i].zone);
		look(&run);
		assert_int_equal(run.changes.n, t[i].text == NULL);
		if (t[i].text)
			assert_non_null(strstr(
				reason_of(&run, "/etc/localtime"), t[i].text));
		assert_int_equal(apply(&run), 0);
	}
	put(ZONES "/posix/UTC", "TZif2 utc");
	put_link(ZONES "/Japan", "Asia/Tokyo");
	put_link("/etc/localtime", "../usr/share/zoneinfo/Asia/Tokyo");
	want_zone(&run, "Japan");
	look(&run);
	assert_int_equal(run.changes.n, 0);
	want_zone(&run, "posix/UTC");
	look(&run);
	assert_int_equal(run.changes.n, 1);
	run_close(&run);
}

static void tz01_dangling_link_is_drift(void **state)
{
	struct run run;

	(void)state;
	put_link("/etc/localtime", "/usr/share/zoneinfo/US/Pacific");
	run_open(&run, &resource_timezone);
	want_zone(&run, "America/Los_Angeles");
	look(&run);
	assert_int_equal(state_of(&run, "/etc/localtime"), ITEM_DRIFTED);
	assert_int_equal(run.changes.n, 1);
	assert_int_equal(apply(&run), 0);
	look(&run);
	assert_int_equal(run.changes.n, 0);
	run_close(&run);
}

/* What is under way is in the plan, or the engine would call it settled. */
static void under_way(void **state)
{
	static const struct {
		bool same, setting, cron;
		size_t changes;
		const char *key;
	} t[] = {
		{ false, true, false, 1, "/etc/localtime" },
		{ true, true, false, 1, "cron" },
		{ true, false, true, 1, "cron" },
		{ true, false, false, 0, NULL },
	};
	struct desired *d = desired_new();
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		struct timezone_seen s = {
			.kind = TIMEZONE_LINK, .zoneinfo = true,
			.exists = true, .same = t[i].same,
			.setting = t[i].setting, .cron = t[i].cron,
		};
		struct item_list items = ITEM_LIST_INIT;
		struct change_list changes = CHANGE_LIST_INIT;

		assert_int_equal(timezone_plan(d, &s, &items, &changes, NULL),
				 0);
		assert_int_equal(changes.n, t[i].changes);
		if (t[i].key) {
			assert_string_equal(changes.v[0].key, t[i].key);
			assert_int_equal(item_list_find(&items, t[i].key)
						 ->state, ITEM_PENDING);
		}
		item_list_done(&items);
		change_list_done(&changes);
	}
	d = desired_free(d);
}

static void a02_refused_values(void **state)
{
	static const struct {
		const char *zone, *text;
	} t[] = {
		{ "", "empty does not mean \"leave it alone\"" },
		{ "../../etc/passwd", "\"../../etc/passwd\"" },
		{ "BLOCKED", "timedatectl list-timezones" },
		{ "US/Pacific", "America/Los_Angeles" },
		{ "US/Pacific", "tzdata-legacy" },
		{ "Mars/Olympus", "\"Mars/Olympus\" is not in" },
		{ "Mars/Olympus", "Etc/UTC is almost certainly" },
		{ "zone.tab", "\"zone.tab\"" },
	};
	struct run run;
	size_t i;

	(void)state;
	put_link("/etc/localtime", "/usr/share/zoneinfo/Asia/Tokyo");
	run_open(&run, &resource_timezone);
	for (i = 0; i < N(t); i++) {
		want_zone(&run, t[i].zone);
		look(&run);
		assert_int_equal(run.changes.n, 0);
		assert_int_equal(state_of(&run, "/etc/localtime"),
				 ITEM_BLOCKED);
		assert_non_null(strstr(reason_of(&run, "/etc/localtime"),
				       t[i].text));
	}
	run_close(&run);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, fresh, scratch_drop)
	const struct CMUnitTest tests[] = {
		T(names),
		T(reading),
		T(a03_changed_only_when_it_was_not_so),
		T(tz01_alias_is_in_sync),
		T(tz01_names_of_today_and_before),
		T(tz01_dangling_link_is_drift),
		T(under_way),
		T(a02_refused_values),
	};

	return cmocka_run_group_tests_name("timezone", tests, NULL, NULL);
}
