/* armed: the record's text, what a merge keeps, and disarming. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/armed.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const char record[] =
	"garboard-armed-1\n"
	"local 10.0.0.0/8\n"
	"local fd00::/8\n"
	"uplink eth0\n"
	"disarmed old\n"
	"class vpn\n"
	"tunnel wg0 0 51820 18200\n"
	"gateway\n"
	"mark 0x2000 0x3f00\n"
	"pods 10.44.0.0/20\n"
	"source 192.0.2.7/32\n"
	"dns 10.64.0.1\n"
	"class other\n"
	"pods 10.45.0.0/20\n"
	"end\n";

static void text_round_trip(void **state)
{
	struct armed a = ARMED_INIT;
	char *text = NULL;

	(void)state;
	assert_int_equal(armed_parse(record, &a, NULL), 0);
	assert_true(a.found);
	assert_int_equal(armed_format(&a, &text), 0);
	assert_string_equal(text, record);
	free(text);
	armed_done(&a);
}

static void damaged_is_never_empty(void **state)
{
	static const char *const bad[] = {
		"", "rubbish\n", "garboard-armed-1\n",
		"garboard-armed-2\nend\n",
		"garboard-armed-1\nclass vpn\n",
		"garboard-armed-1\nend\nclass vpn\n",
		"garboard-armed-1\npods 10.0.0.0/8\nend\n",
		"garboard-armed-1\nclass vpn extra\nend\n",
		"garboard-armed-1\nclass -\nend\n",
		"garboard-armed-1\nclass a\nclass a\nend\n",
		"garboard-armed-1\nclass a\npods 10.0.0.1/8\nend\n",
		"garboard-armed-1\nclass a\nmark 1\nend\n",
		"garboard-armed-1\nclass a\ntunnel wg0 9 1 1\nend\n",
		"garboard-armed-1\nsurprise\nend\n",
		"garboard-armed-1\na b c d e f g h\nend\n",
	};
	struct armed a = ARMED_INIT;
	size_t i, n;

	(void)state;
	for (i = 0; i < N(bad); i++)
		assert_int_equal(armed_parse(bad[i], &a, NULL), -EBADMSG);
	/* Cut anywhere before its last newline. */
	for (n = 0; n + 2 < sizeof(record); n++) {
		char cut[sizeof(record)];

		(void)memcpy(cut, record, n);
		cut[n] = '\0';
		assert_int_equal(armed_parse(cut, &a, NULL), -EBADMSG);
	}
}

static void missing_section_keeps_all(void **state)
{
	struct desired_egress none = { 0 };
	struct armed a = ARMED_INIT, next = ARMED_INIT;
	char *text = NULL;

	(void)state;
	assert_int_equal(armed_parse(record, &a, NULL), 0);
	assert_int_equal(armed_merge(&none, &a, &next), 0);
	assert_int_equal(armed_format(&next, &text), 0);
	assert_string_equal(text, record);
	free(text);
	armed_done(&a);
	armed_done(&next);
}

static void desired_wins_and_lost_is_kept(void **state)
{
	static const char want[] =
		"garboard-armed-1\nlocal 10.0.0.0/8\nclass vpn\n"
		"tunnel wg1 0 51821 18300\nmark 0x1 0x1\nclass old\n"
		"mark 0x2 0x2\nend\n";
	static const char expected[] =
		"garboard-armed-1\nlocal 10.0.0.0/8\ndisarmed old\n"
		"class vpn\ntunnel wg1 0 51821 18300\nmark 0x1 0x1\n"
		"class other\npods 10.45.0.0/20\nend\n";
	struct armed a = ARMED_INIT, w = ARMED_INIT, next = ARMED_INIT;
	char *text = NULL;

	(void)state;
	assert_int_equal(armed_parse(record, &a, NULL), 0);
	assert_int_equal(armed_parse(want, &w, NULL), 0);
	assert_int_equal(armed_merge(&w.d->egress, &a, &next), 0);
	assert_int_equal(armed_format(&next, &text), 0);
	assert_string_equal(text, expected);
	free(text);
	armed_done(&a);
	armed_done(&w);
	armed_done(&next);
}

static void disarm_and_arm(void **state)
{
	char dir[] = "/tmp/garboard-armed-XXXXXX", path[64];
	struct armed a = ARMED_INIT;
	struct fault f = FAULT_INIT;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(armed_load(dir, &a, &f), 0);
	assert_false(a.found);
	armed_done(&a);
	assert_int_equal(armed_disarm(dir, "vpn", &f), -ENOENT);
	fault_clear(&f);

	assert_int_equal(armed_parse(record, &a, &f), 0);
	assert_int_equal(armed_save(dir, &a, &f), 0);
	armed_done(&a);
	assert_int_equal(armed_disarm(dir, "vpn", &f), 0);
	assert_int_equal(armed_disarm(dir, "vpn", &f), 0);
	assert_int_equal(armed_load(dir, &a, &f), 0);
	assert_true(a.found);
	assert_null(armed_class(&a.d->egress, "vpn"));
	assert_non_null(armed_class(&a.d->egress, "other"));
	assert_true(strlist_has(&a.disarmed, "vpn"));
	armed_done(&a);
	assert_int_equal(armed_arm(dir, "vpn", &f), 0);
	assert_int_equal(armed_load(dir, &a, &f), 0);
	assert_false(strlist_has(&a.disarmed, "vpn"));
	armed_done(&a);

	(void)snprintf(path, sizeof(path), "%s/ours/killswitch", dir);
	assert_int_equal(unlink(path), 0);
	(void)snprintf(path, sizeof(path), "%s/ours/killswitch.old", dir);
	assert_int_equal(unlink(path), 0);
	(void)snprintf(path, sizeof(path), "%s/ours", dir);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_round_trip),
		cmocka_unit_test(damaged_is_never_empty),
		cmocka_unit_test(missing_section_keeps_all),
		cmocka_unit_test(desired_wins_and_lost_is_kept),
		cmocka_unit_test(disarm_and_arm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
