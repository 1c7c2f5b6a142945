/* Stamps of files: what was noted, and whether it still is so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/confdirs.h"
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_fresh_before_the_end),
		cmocka_unit_test(what_was_absent_and_came_is_seen),
		cmocka_unit_test(what_is_young_is_never_fresh),
		cmocka_unit_test(a_drop_in_that_comes_is_seen),
	};
	char cmd[256];
	int r;

	if (!mkdtemp(dir))
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	(void)snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd) == 0 ? r : 1;
}
