/* The texts below STATE/ours: each broken file, and what counts then. */
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

#include "agent/armed.h"
#include "agent/ours.h"
#include "agent/record.h"
#include "agent/res/routing_record.h"
#include "common/cleanup.h"
#include "common/file.h"

#define LIMIT 4096

static char dir[64];

static int set_up(void **state)
{
	char ours[80];

	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/garboard-record-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(ours, sizeof(ours), "%s/ours", dir);
	return mkdir(ours, 0700);
}

static const char *path_of(const char *name)
{
	static char path[2][128];
	static int i;

	i = !i;
	(void)snprintf(path[i], sizeof(path[i]), "%s/ours/%s", dir, name);
	return path[i];
}

static int tear_down(void **state)
{
	static const char *const names[] = {
		"a", "a.old", "sysctl", "sysctl.old", "killswitch",
		"killswitch.old", "routing", "routing.old", "",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]) - 1; i++)
		(void)unlink(path_of(names[i]));
	(void)rmdir(path_of(""));
	return rmdir(dir);
}

/* A reader that asks for an end, as ours do. */
static int take(const char *text, void *userdata, struct fault *f)
{
	size_t n = strlen(text);

	if (n < 4 || strcmp(text + n - 4, "end\n") != 0)
		return fault_set(f, -EBADMSG, "text", "damaged: no end");
	(void)snprintf(userdata, LIMIT, "%s", text);
	return 0;
}

static int look(char *text, struct fault *f)
{
	text[0] = '\0';
	fault_clear(f);
	return record_read(NULL, path_of("a"), LIMIT, take, text, f);
}

static void put(const char *name, const char *data, size_t size)
{
	assert_int_equal(file_write(path_of(name), 0600, data, size, NULL), 0);
}

static void write_text(const char *text)
{
	struct fault f = FAULT_INIT;

	assert_int_equal(record_write(path_of("a"), text, strlen(text), &f), 0);
}

/* Cut or flipped at every byte, the previous copy counts. */
static void broken_at_any_byte(void **state)
{
	_cleanup_free_ char *whole = NULL;
	char text[LIMIT];
	struct fault f = FAULT_INIT;
	size_t size, i;

	(void)state;
	assert_int_equal(look(text, &f), -ENOENT);
	assert_int_equal(f.err, 0);
	write_text("previous\nend\n");
	write_text("current\nend\n");
	assert_int_equal(look(text, &f), 0);
	assert_string_equal(text, "current\nend\n");
	assert_int_equal(file_read(path_of("a"), LIMIT, &whole, &size, &f), 0);
	for (i = 0; i < size; i++) {
		whole[i] ^= 0x20;
		put("a", whole, size);
		whole[i] ^= 0x20;
		assert_int_equal(look(text, &f), 1);
		assert_string_equal(text, "previous\nend\n");
		put("a", whole, i);
		/* Without any of its sum it is as the first version wrote it. */
		if (i == strlen("current\nend\n"))
			continue;
		assert_int_equal(look(text, &f), 1);
		assert_string_equal(text, "previous\nend\n");
	}
}

static void a_broken_copy_pushes_nothing_out(void **state)
{
	char text[LIMIT];
	struct fault f = FAULT_INIT;

	(void)state;
	write_text("one\nend\n");
	write_text("two\nend\n");
	put("a", "tw", 2);
	write_text("three\nend\n");
	assert_int_equal(look(text, &f), 0);
	assert_string_equal(text, "three\nend\n");
	put("a", "th", 2);
	assert_int_equal(look(text, &f), 1);
	assert_string_equal(text, "one\nend\n");
	put("a.old", "on", 2);
	assert_int_equal(look(text, &f), -EBADMSG);
	assert_int_equal(f.err, -EBADMSG);
	assert_int_equal(unlink(path_of("a.old")), 0);
	assert_int_equal(look(text, &f), -EBADMSG);
}

static void first_version_migrates(void **state)
{
	_cleanup_free_ char *file = NULL;
	struct ours ours = OURS_INIT;
	struct fault f = FAULT_INIT;
	char text[LIMIT];
	size_t size;

	(void)state;
	put("a", "old\nend\n", 8);
	assert_int_equal(look(text, &f), 0);
	assert_string_equal(text, "old\nend\n");
	/* Neither head, end nor sum. */
	put("sysctl", "kernel/panic\t0\t20\n", 18);
	assert_int_equal(ours_read(dir, "sysctl", &ours, &f), 0);
	assert_string_equal(ours_find(&ours, "kernel/panic")->before, "0");
	assert_int_equal(ours_write(dir, "sysctl", &ours, &f), 0);
	assert_int_equal(file_read(path_of("sysctl"), LIMIT, &file, &size, &f),
			 0);
	assert_memory_equal(file, "garboard-ours-1\n", 16);
	assert_memory_equal(file + record_body(file, size) - 4, "end\n", 4);
	assert_int_equal(size - record_body(file, size), 21);
	ours_done(&ours);
}

static void ours_from_the_previous_copy(void **state)
{
	struct ours ours = OURS_INIT;
	struct fault f = FAULT_INIT;

	(void)state;
	assert_int_equal(ours_put(&ours, "kernel/panic", "0", "20"), 0);
	assert_int_equal(ours_write(dir, "sysctl", &ours, &f), 0);
	assert_int_equal(ours_put(&ours, "kernel/panic", "0", "30"), 0);
	assert_int_equal(ours_write(dir, "sysctl", &ours, &f), 0);
	ours_done(&ours);
	put("sysctl", "garboard-ours-1\nkernel/panic\t0\t30\n", 35);
	assert_int_equal(ours_read(dir, "sysctl", &ours, &f), 1);
	assert_non_null(strstr(f.text, "damaged"));
	assert_string_equal(ours_find(&ours, "kernel/panic")->set, "20");
	ours_done(&ours);
}

static void tunnel_addresses_from_the_previous_copy(void **state)
{
	struct routing_record a = { .n = 0 }, b = { .n = 0 };
	struct fault f = FAULT_INIT;
	struct ip_addr addr;

	(void)state;
	assert_int_equal(ip_addr_parse("10.64.0.2", &addr), 0);
	assert_int_equal(routing_record_add(&a, "wg0", &addr), 0);
	assert_int_equal(routing_record_save(dir, &a, &f), 0);
	assert_int_equal(routing_record_load(dir, &b, &f), 0);
	assert_false(b.previous);
	assert_int_equal(routing_record_save(dir, &a, &f), 0);
	put("routing", "garboard-routing-1\naddress wg", 29);
	assert_int_equal(routing_record_load(dir, &b, &f), 0);
	assert_true(b.previous);
	assert_true(routing_record_equal(&a, &b));
}

static void armed_from_the_previous_copy(void **state)
{
	struct armed a = ARMED_INIT, b = ARMED_INIT;
	struct fault f = FAULT_INIT;

	(void)state;
	assert_int_equal(armed_parse("garboard-armed-1\nlocal 192.0.2.0/24\n"
				     "end\n", &a, &f), 0);
	assert_int_equal(armed_save(dir, &a, &f), 0);
	assert_int_equal(armed_save(dir, &a, &f), 0);
	put("killswitch", "garboard-armed-1\nlocal 192.0", 28);
	assert_int_equal(armed_load(dir, &b, &f), 0);
	assert_true(b.found && b.previous);
	assert_int_equal(b.d->egress.local.n, 1);
	armed_done(&b);
	assert_int_equal(unlink(path_of("killswitch.old")), 0);
	assert_int_equal(armed_load(dir, &b, &f), -EBADMSG);
	armed_done(&a);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		T(broken_at_any_byte),
		T(a_broken_copy_pushes_nothing_out),
		T(first_version_migrates),
		T(ours_from_the_previous_copy),
		T(tunnel_addresses_from_the_previous_copy),
		T(armed_from_the_previous_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
