/* Stamps of files: what was noted, and whether it still is so. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/confdirs.h"
#include "agent/kept.h"
#include "agent/stamps.h"

static char dir[] = "/tmp/test_stamps.XXXXXX";

static void fill(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fputs(text, f);
	(void)fclose(f);
}

static void nothing_is_fresh_before_the_end(void **state)
{
	struct stamps s = STAMPS_INIT;

	(void)state;
	assert_false(stamps_fresh(&s));
	assert_int_equal(stamps_note(&s, "/dev/null"), 0);
	assert_false(stamps_fresh(&s));
	stamps_end(&s);
	assert_true(stamps_fresh(&s));
	stamps_done(&s);
	assert_false(stamps_fresh(&s));
}

static void what_was_absent_and_came_is_seen(void **state)
{
	struct stamps s = STAMPS_INIT;
	char path[256];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/late", dir);
	assert_int_equal(stamps_note(&s, path), 0);
	stamps_end(&s);
	assert_true(stamps_fresh(&s));
	fill("late", "x");
	assert_false(stamps_fresh(&s));
	(void)unlink(path);
	stamps_done(&s);
}

static void what_is_young_is_never_fresh(void **state)
{
	struct stamps s = STAMPS_INIT;
	char path[256];

	(void)state;
	fill("young", "x");
	(void)snprintf(path, sizeof(path), "%s/young", dir);
	assert_int_equal(stamps_note(&s, path), 0);
	stamps_end(&s);
	assert_false(stamps_fresh(&s));
	(void)unlink(path);
	stamps_done(&s);
}

static void a_drop_in_that_comes_is_seen(void **state)
{
	struct stamps s = STAMPS_INIT;
	char cmd[256];

	(void)state;
	assert_int_equal(confdirs_note(dir, "sysctl.d", &s, NULL), 0);
	stamps_end(&s);
	assert_true(stamps_fresh(&s));
	(void)snprintf(cmd, sizeof(cmd), "mkdir -p %s/run/sysctl.d", dir);
	assert_int_equal(system(cmd), 0);
	fill("run/sysctl.d/50-x.conf", "a.b = 1\n");
	assert_false(stamps_fresh(&s));
	stamps_done(&s);
}

static const char *kept_path(void)
{
	static char path[256];

	(void)snprintf(path, sizeof(path), "%s/kept", dir);
	return path;
}

static void kept_is(struct kept *k, int r, const char *text)
{
	struct fault f = FAULT_INIT;
	const char *got = "";
	size_t size = 0;

	assert_int_equal(kept_read(k, kept_path(), 100, &got, &size, &f), r);
	assert_int_equal(f.err, 0);
	assert_string_equal(got, text);
	assert_int_equal(size, strlen(text));
}

/* Reads until what is there is old enough to be trusted. */
static void let_it_age(struct kept *k, int r, const char *text)
{
	time_t end = time(NULL) + 10;

	do
		kept_is(k, r, text);
	while (!stamps_fresh(&k->stamps) && time(NULL) < end);
	assert_true(stamps_fresh(&k->stamps));
}

static void a_kept_text_follows_its_file(void **state)
{
	struct kept k = KEPT_INIT;
	const char *before, *after;
	char other[256];
	size_t size;

	(void)state;
	kept_is(&k, -ENOENT, "");
	kept_is(&k, -ENOENT, "");
	fill("kept", "one");
	let_it_age(&k, 0, "one");
	/* The same copy as long as nothing happens. */
	assert_int_equal(kept_read(&k, kept_path(), 100, &before, &size,
				   NULL), 0);
	assert_int_equal(kept_read(&k, kept_path(), 100, &after, &size,
				   NULL), 0);
	assert_ptr_equal(before, after);
	fill("kept", "two");		/* in place, of the same size */
	let_it_age(&k, 0, "two");
	fill("new", "six");		/* replaced, as file_write() does */
	(void)snprintf(other, sizeof(other), "%s/new", dir);
	assert_int_equal(rename(other, kept_path()), 0);
	let_it_age(&k, 0, "six");
	assert_int_equal(unlink(kept_path()), 0);
	kept_is(&k, -ENOENT, "");
	fill("kept", "ten");
	kept_is(&k, 0, "ten");
	fill("kept", "11");		/* twice in one tick of the clock */
	kept_is(&k, 0, "11");
	(void)unlink(kept_path());
	kept_done(&k);
}

static void what_cannot_be_read_is_not_kept(void **state)
{
	struct kept k = KEPT_INIT;
	struct fault f = FAULT_INIT;
	const char *text;
	size_t size;

	(void)state;
	assert_int_equal(kept_read(&k, dir, 100, &text, &size, &f), -EISDIR);
	assert_int_equal(f.err, -EISDIR);
	assert_false(stamps_fresh(&k.stamps));
	kept_done(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_fresh_before_the_end),
		cmocka_unit_test(what_was_absent_and_came_is_seen),
		cmocka_unit_test(what_is_young_is_never_fresh),
		cmocka_unit_test(a_drop_in_that_comes_is_seen),
		cmocka_unit_test(a_kept_text_follows_its_file),
		cmocka_unit_test(what_cannot_be_read_is_not_kept),
	};
	char cmd[256];
	int r;

	if (!mkdtemp(dir))
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	(void)snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd) == 0 ? r : 1;
}
