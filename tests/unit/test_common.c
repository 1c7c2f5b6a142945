/* common/: parsing, addresses, lists, back-off, faults, files. */
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

#include "common/backoff.h"
#include "common/change.h"
#include "common/cleanup.h"
#include "common/fault.h"
#include "common/file.h"
#include "common/ip.h"
#include "common/parse.h"
#include "common/put.h"
#include "common/trim.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static void numbers(void **state)
{
	static const struct {
		const char *text;
		uint64_t max;
		int r;
		uint64_t value;
	} t[] = {
		{ "0", 10, 0, 0 },
		{ "0x2000", UINT32_MAX, 0, 0x2000 },
		{ "18446744073709551615", UINT64_MAX, 0, UINT64_MAX },
		{ "18446744073709551616", UINT64_MAX, -ERANGE, 0 },
		{ "11", 10, -ERANGE, 0 },
		{ "", 10, -EINVAL, 0 },
		{ "0x", 10, -EINVAL, 0 },
		{ "-1", 10, -EINVAL, 0 },
		{ " 1", 10, -EINVAL, 0 },
		{ "1 ", 10, -EINVAL, 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		uint64_t v = 77;

		assert_int_equal(parse_u64(t[i].text, t[i].max, &v), t[i].r);
		assert_int_equal(v, t[i].r ? 77 : t[i].value);
	}
}

static void prefixes(void **state)
{
	static const struct {
		const char *text;
		const char *back;	/* NULL: refused */
	} t[] = {
		{ "10.0.0.0/8", "10.0.0.0/8" },
		{ "192.0.2.1", "192.0.2.1/32" },
		{ "fc00::/7", "fc00::/7" },
		{ "0.0.0.0/0", "0.0.0.0/0" },
		{ "10.0.0.1/8", NULL },
		{ "10.0.0.0/33", NULL },
		{ "10.0.0/8", NULL },
		{ "fe80::1%eth0", NULL },
		{ "", NULL },
	};
	char buf[IP_TEXT_MAX];
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		struct ip_prefix p;
		int r = ip_prefix_parse(t[i].text, &p);

		assert_int_equal(r, t[i].back ? 0 : -EINVAL);
		if (t[i].back)
			assert_string_equal(ip_prefix_format(&p, buf),
					    t[i].back);
	}
}

static void containment(void **state)
{
	struct ip_prefix ten, sub, other;

	(void)state;
	assert_int_equal(ip_prefix_parse("10.0.0.0/8", &ten), 0);
	assert_int_equal(ip_prefix_parse("10.44.0.0/20", &sub), 0);
	assert_int_equal(ip_prefix_parse("11.0.0.0/8", &other), 0);
	assert_true(ip_prefix_covers(&ten, &sub));
	assert_false(ip_prefix_covers(&sub, &ten));
	assert_true(ip_prefix_overlaps(&sub, &ten));
	assert_false(ip_prefix_overlaps(&ten, &other));
}

static void endpoints(void **state)
{
	static const struct {
		const char *text, *back;
	} t[] = {
		{ "192.0.2.5:7643", "192.0.2.5:7643" },
		{ "198.51.100.7:51820/udp", "198.51.100.7:51820/udp" },
		{ "[2001:db8::1]:443/tcp", "[2001:db8::1]:443/tcp" },
		{ "2001:db8::1:443", NULL },
		{ "192.0.2.5:0", NULL },
		{ "192.0.2.5", NULL },
		{ "192.0.2.5:1/sctp", NULL },
		{ "[]:1", NULL },
		{ "vpn.example.net:51820", NULL },
	};
	char buf[IP_TEXT_MAX];
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		struct ip_endpoint e;
		int r = ip_endpoint_parse(t[i].text, &e);

		assert_int_equal(r < 0, !t[i].back);
		if (t[i].back)
			assert_string_equal(ip_endpoint_format(&e, buf),
					    t[i].back);
	}
}

static void labels(void **state)
{
	(void)state;
	assert_true(parse_is_label("server-1"));
	assert_false(parse_is_label(""));
	assert_false(parse_is_label("-a"));
	assert_false(parse_is_label("a-"));
	assert_false(parse_is_label("Server"));
	assert_false(parse_is_label("a.b"));
}

static void jitter(void **state)
{
	struct backoff b = { .base = 100, .cap = 1000 };
	static const usec windows[] = { 100, 200, 400, 800, 1000, 1000 };
	size_t i;

	(void)state;
	for (i = 0; i < N(windows); i++) {
		struct backoff c = b;

		/* Both ends of the window are reached, nothing beyond. */
		assert_int_equal(backoff_next(&c, windows[i]), windows[i]);
		assert_int_equal(backoff_next(&b, windows[i] + 1), 0);
	}
	backoff_reset(&b);
	assert_int_equal(backoff_next(&b, 100), 100);
}

static void faults(void **state)
{
	struct fault f = FAULT_INIT;
	char buf[256];
	char text[] = "a\x1b[31mb\xc2\x9b\xff\xc3\xa9";

	(void)state;
	assert_int_equal(fault_set(&f, -EINVAL, "x", "first"), -EINVAL);
	assert_int_equal(fault_set(&f, -EIO, "y", "second"), -EIO);
	assert_string_equal(fault_str(&f, buf, sizeof(buf)), "x: first");
	fault_sanitize(text);
	assert_string_equal(text, "a?[31mb???\xc3\xa9");
}

/* What JSON refuses as a text would take a whole listing with it. */
static void only_real_characters(void **state)
{
	static const struct {
		const char *text, *clean;
	} t[] = {
		{ "\xe0\xa0\x80", "\xe0\xa0\x80" },		/* U+0800 */
		{ "\xed\x9f\xbf", "\xed\x9f\xbf" },		/* U+D7FF */
		{ "\xf0\x90\x80\x80", "\xf0\x90\x80\x80" },	/* U+10000 */
		{ "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf" },	/* the last */
		{ "\xe0\x80\xaf", "???" },			/* overlong */
		{ "\xf0\x80\x80\xaf", "????" },
		{ "\xed\xa0\x80", "???" },			/* a surrogate */
		{ "\xf4\x90\x80\x80", "????" },		/* beyond it */
		{ "a\xe2\x82", "a??" },				/* cut */
	};
	char text[16];
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		(void)snprintf(text, sizeof(text), "%s", t[i].text);
		fault_sanitize(text);
		assert_string_equal(text, t[i].clean);
	}
}

static void changes(void **state)
{
	struct change_list l = CHANGE_LIST_INIT;
	char big[CHANGE_TEXT_MAX + 10];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(change_list_add(&l, CHANGE_SET, "k", big, NULL), 0);
	assert_int_equal(strlen(l.v[0].have), CHANGE_TEXT_MAX);
	assert_string_equal(l.v[0].have + CHANGE_TEXT_MAX - 3, "...");
	assert_string_equal(l.v[0].want, "");
	assert_ptr_equal(change_list_find(&l, "k"), &l.v[0]);
	assert_null(change_list_find(&l, "other"));
	change_list_done(&l);
}

static void pieces_are_cut_and_ended(void **state)
{
	char buf[12], *at, *end = buf + sizeof(buf);

	(void)state;
	at = put_text(buf, end, "table ");
	at = put_u32(at, end, 0);
	assert_string_equal(buf, "table 0");
	at = put_u32(at, end, UINT32_MAX);
	assert_string_equal(buf, "table 04294");
	at = put_text(at, end, "more");
	assert_string_equal(buf, "table 04294");
	assert_ptr_equal(at, end - 1);
	(void)put_u32(buf, end, UINT32_MAX);
	assert_string_equal(buf, "4294967295");
}

static void lists_grow(void **state)
{
	struct change_list list = CHANGE_LIST_INIT;
	char key[16];
	int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		assert_int_equal(change_list_add(&list, CHANGE_ADD, key, "",
						 "w"), 0);
	}
	assert_int_equal(list.n, 100);
	for (i = 0; i < 100; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		assert_string_equal(list.v[i].key, key);
	}
	change_list_done(&list);
}

static void line_is(const char *path, const char *content, int r,
		    const char *line)
{
	struct fault f = FAULT_INIT;
	char buf[32] = "untouched";

	assert_int_equal(file_write(path, 0600, content, strlen(content), &f),
			 0);
	assert_int_equal(file_line(path, buf, sizeof(buf), &f), r);
	assert_string_equal(buf, line);
}

static void first_lines(void **state)
{
	char dir[] = "/tmp/garboard-line.XXXXXX", path[64], big[5000];
	char buf[8];

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/line", dir);
	line_is(path, "live\n", 0, "live");
	line_is(path, "live", 0, "live");
	line_is(path, "", 0, "");
	line_is(path, "a\nb\n", 0, "a\nb");
	(void)memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	line_is(path, big, -E2BIG, "untouched");
	big[100] = '\0';
	line_is(path, big, -E2BIG, "untouched");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(file_line(path, buf, sizeof(buf), NULL), -ENOENT);
	assert_int_equal(rmdir(dir), 0);
}

static void files(void **state)
{
	char dir[] = "/tmp/garboard-test-XXXXXX", path[64], sub[64];
	struct fault f = FAULT_INIT;
	char *data = NULL;
	size_t size = 0;
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(sub, sizeof(sub), "%s/a/b", dir);
	(void)snprintf(path, sizeof(path), "%s/a/b/f", dir);
	assert_int_equal(file_read(path, 10, &data, &size, &f), -ENOENT);
	assert_int_equal(f.err, 0);
	assert_int_equal(file_mkdirs(sub, 0755, &f), 0);
	assert_int_equal(file_write(path, 0640, "hello", 5, &f), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(file_read(path, 4, &data, &size, &f), -E2BIG);
	fault_clear(&f);
	assert_int_equal(file_read(path, 5, &data, &size, &f), 0);
	assert_int_equal(size, 5);
	assert_string_equal(data, "hello");
	free(data);
	(void)unlink(path);
	(void)rmdir(sub);
	(void)snprintf(sub, sizeof(sub), "%s/a", dir);
	(void)rmdir(sub);
	(void)rmdir(dir);
}

/* What was written or relocated must survive; only clean pages go. */
static void trim_loses_nothing(void **state)
{
	static int written = 1;
	static const char *const relocated[] = { "a", "b" };
	char *heap = strdup("kept");
	uint64_t v = 0;

	(void)state;
	written = 42;
	trim_memory();
	assert_int_equal(written, 42);
	assert_string_equal(relocated[1], "b");
	assert_string_equal(heap, "kept");
	assert_int_equal(parse_u64("7", 10, &v), 0);
	free(heap);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),   cmocka_unit_test(prefixes),
		cmocka_unit_test(containment), cmocka_unit_test(endpoints),
		cmocka_unit_test(labels),    cmocka_unit_test(jitter),
		cmocka_unit_test(faults),    cmocka_unit_test(changes),
		cmocka_unit_test(only_real_characters),
		cmocka_unit_test(pieces_are_cut_and_ended),
		cmocka_unit_test(lists_grow),
		cmocka_unit_test(first_lines),
		cmocka_unit_test(files),
		cmocka_unit_test(trim_loses_nothing),
	};

	return cmocka_run_group_tests_name("common", tests, NULL, NULL);
}
