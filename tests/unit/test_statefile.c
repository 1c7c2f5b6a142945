/* State files under torn writes, and the bundle. */
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

#include "proto/bundle.h"
#include "agent/statefile.h"
#include "common/cleanup.h"
#include "common/file.h"

static char dir[] = "/tmp/garboard-store-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "a", "b", "bundle" };
	struct fault f = FAULT_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		(void)statefile_remove(dir, names[i], &f);
	return rmdir(dir);
}

static const char *path_of(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void reads_back_what_was_written(void **state)
{
	_cleanup_free_ char *data = NULL;
	struct fault f = FAULT_INIT;
	size_t size = 0;
	struct stat st;

	(void)state;
	assert_int_equal(statefile_read(dir, "a", 1, 100, &data, &size, &f),
			 -ENOENT);
	assert_int_equal(f.err, 0);
	assert_int_equal(statefile_write(dir, "a", 1, "one", 3, &f), 0);
	assert_int_equal(stat(path_of("a"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(statefile_read(dir, "a", 1, 100, &data, &size, &f), 0);
	assert_int_equal(size, 3);
	assert_string_equal(data, "one");
}

/* Cut or flip the current copy at every byte: the previous one is used. */
static void torn_at_any_byte(void **state)
{
	_cleanup_free_ char *whole = NULL;
	struct fault f = FAULT_INIT;
	size_t size, i;

	(void)state;
	assert_int_equal(statefile_write(dir, "a", 1, "previous", 8, &f), 0);
	assert_int_equal(statefile_write(dir, "a", 1, "current", 7, &f), 0);
	assert_int_equal(file_read(path_of("a"), 200, &whole, &size, &f), 0);
	for (i = 0; i < 2 * size; i++) {
		_cleanup_free_ char *data = NULL;
		size_t n = i < size ? i : size, got = 0;

		if (i >= size)
			whole[i - size] ^= 0x40;
		assert_int_equal(file_write(path_of("a"), 0600, whole, n, &f),
				 0);
		if (i >= size)
			whole[i - size] ^= 0x40;
		fault_clear(&f);
		if (i >= size + 4 && i < size + 8) {
			/* The format is outside the checksum, on purpose. */
			assert_int_equal(statefile_read(dir, "a", 1, 100, &data,
						    &got, &f), -EPROTO);
			continue;
		}
		assert_int_equal(statefile_read(dir, "a", 1, 100, &data, &got, &f),
				 1);
		assert_string_equal(data, "previous");
		assert_int_equal(f.err, -EBADMSG);
	}
}

static void both_broken_is_said(void **state)
{
	char old[128];
	char *data = NULL;
	struct fault f = FAULT_INIT;
	size_t size;

	(void)state;
	(void)snprintf(old, sizeof(old), "%s/a.old", dir);
	assert_int_equal(file_write(path_of("a"), 0600, "x", 1, &f), 0);
	assert_int_equal(file_write(old, 0600, "y", 1, &f), 0);
	assert_int_equal(statefile_read(dir, "a", 1, 100, &data, &size, &f),
			 -EBADMSG);
	assert_null(data);
	/* And writing heals it. */
	fault_clear(&f);
	assert_int_equal(statefile_write(dir, "a", 1, "new", 3, &f), 0);
	assert_int_equal(statefile_read(dir, "a", 1, 100, &data, &size, &f), 0);
	free(data);
}

/* A crash between the two renames leaves only the previous copy. */
static void crash_before_the_second_rename(void **state)
{
	char old[128];
	_cleanup_free_ char *data = NULL;
	struct fault f = FAULT_INIT;
	size_t size;

	(void)state;
	(void)snprintf(old, sizeof(old), "%s/b.old", dir);
	assert_int_equal(statefile_write(dir, "b", 1, "kept", 4, &f), 0);
	assert_int_equal(rename(path_of("b"), old), 0);
	assert_int_equal(statefile_read(dir, "b", 1, 100, &data, &size, &f), 1);
	assert_string_equal(data, "kept");
}

static void later_format_is_refused(void **state)
{
	char *data = NULL;
	struct fault f = FAULT_INIT;
	size_t size;

	(void)state;
	assert_int_equal(statefile_write(dir, "b", 2, "later", 5, &f), 0);
	assert_int_equal(statefile_read(dir, "b", 1, 100, &data, &size, &f),
			 -EPROTO);
}

#define ID "00112233445566778899aabbccddeeff"
#define ROOT ID ID
#define GOOD                                                             \
	"format garboard-bundle-1\n# made for the lab\n\ncluster-id " ID \
	"\ncluster lab\ntrust-root " ROOT                                \
	"\ncoordinator 192.0.2.1:7643\ncoordinator [2001:db8::1]:7643\n"

static void bundles(void **state)
{
	static const struct {
		const char *text;
		const char *says;	/* NULL: accepted */
	} t[] = {
		{ GOOD, NULL },
		{ GOOD "token abc.DEF-1\n", NULL },
		{ GOOD "token a b\n", "bundle line 9: invalid value of \"token\"" },
		{ GOOD "tokn abc\n", "bundle line 9: unknown key \"tokn\"" },
		{ GOOD "cluster lab\n", "bundle line 9: \"cluster\" is repeated" },
		{ GOOD "coordinator host:1\n",
		  "bundle line 9: invalid value of \"coordinator\"" },
		{ GOOD "oops\n", "bundle line 9: expected \"key value\"" },
		{ "format garboard-bundle-2\n",
		  "bundle line 1: invalid value of \"format\"" },
		{ "format garboard-bundle-1\n",
		  "bundle: \"cluster-id\" is missing" },
		{ "", "bundle: \"format\" is missing" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct fault f = FAULT_INIT;
		struct bundle b;
		char buf[256];
		int r = bundle_parse(t[i].text, &b, &f);

		if (t[i].says) {
			assert_true(r < 0);
			assert_string_equal(fault_str(&f, buf, sizeof(buf)),
					    t[i].says);
			continue;
		}
		assert_int_equal(r, 0);
		assert_int_equal(b.coordinators.n, 2);
		assert_string_equal(b.cluster, "lab");
		assert_int_equal(b.trust_root[31], 0xff);
		bundle_done(&b);
	}
}

static void writable_bundle_is_refused(void **state)
{
	struct fault f = FAULT_INIT;
	struct bundle b;

	(void)state;
	assert_int_equal(file_write(path_of("bundle"), 0666, GOOD,
				    strlen(GOOD), &f), 0);
	assert_int_equal(bundle_read(path_of("bundle"), &b, &f), -EPERM);
	assert_int_equal(chmod(path_of("bundle"), 0600), 0);
	fault_clear(&f);
	assert_int_equal(bundle_read(path_of("bundle"), &b, &f), 0);
	bundle_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_back_what_was_written),
		cmocka_unit_test(torn_at_any_byte),
		cmocka_unit_test(both_broken_is_said),
		cmocka_unit_test(crash_before_the_second_rename),
		cmocka_unit_test(later_format_is_refused),
		cmocka_unit_test(bundles),
		cmocka_unit_test(writable_bundle_is_refused),
	};

	return cmocka_run_group_tests_name("statefile", tests, set_up, tear_down);
}
