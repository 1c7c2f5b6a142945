/*
 * The sysctl resource on the kernel's own /proc/sys/net: links that come and
 * go, what the kernel refuses, what inotify hears and what it does not.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/res/sysctl.h"
#include "common/file.h"
#include "world.h"

#define GLOB "net.ipv4.conf.*.arp_notify"
#define IP4 "/proc/sys/net/ipv4/"

struct fixture {
	struct run run;
	struct desired *want;
};

/* Files of the node are below a directory of the test, but for /proc. */
static int setup(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));
	char link[128];

	assert_int_equal(unshare(CLONE_NEWNET), 0);
	run_open(&x->run, &resource_sysctl, true);
	(void)snprintf(link, sizeof(link), "%s/proc", x->run.dir);
	assert_int_equal(symlink("/proc", link), 0);
	x->want = desired_new();
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *x = *state;

	run_close(&x->run);
	x->want = desired_free(x->want);
	free(x);
	return 0;
}

static void wanted(struct fixture *x, const char *key, const char *value)
{
	assert_int_equal(desired_add_sysctl(x->want, key, value, false), 0);
}

static const char *value(const char *key)
{
	static char line[64];
	char path[256];

	(void)snprintf(path, sizeof(path), IP4 "%s", key);
	if (file_line(path, line, sizeof(line), NULL) < 0)
		return NULL;
	return line;
}

/* Takes in all that was said so far. */
static void settle(struct fixture *x)
{
	int r;

	do
		r = sd_event_run(x->run.event, 0);
	while (r > 0);
	assert_int_equal(r, 0);
}

static void sy03_a_new_link_is_set(void **state)
{
	struct fixture *x = *state;

	wanted(x, GLOB, "1");
	wanted(x, "net.ipv4.conf.all.arp_notify", "");
	x->want->sysctls[1].exclude = true;
	run_watch(&x->run, x->want);
	run_converge(&x->run, x->want);
	assert_string_equal(value("conf/lo/arp_notify"), "1");
	assert_string_equal(value("conf/all/arp_notify"), "0");
	settle(x);
	/* Not from "default": that is 1 by now, and undone on purpose. */
	sh("echo 0 >" IP4 "conf/default/arp_notify");
	sh("ip link add v1 type veth peer name v2");
	assert_string_equal(value("conf/v1/arp_notify"), "0");
	assert_true(run_wait(&x->run));
	run_converge(&x->run, x->want);
	assert_string_equal(value("conf/v1/arp_notify"), "1");
	assert_string_equal(value("conf/v2/arp_notify"), "1");
	settle(x);
	sh("ip link del v1");
	assert_true(run_wait(&x->run));
	assert_int_equal(run_plan(&x->run, x->want, NULL, NULL), 0);
	assert_int_equal(run_item(&x->run, x->want, GLOB), ITEM_IN_SYNC);
}

static void sy03_a_key_waits_for_its_link(void **state)
{
	static const char key[] = "net.ipv4.conf.v0/100.arp_notify";
	struct fixture *x = *state;
	unsigned int i;

	wanted(x, key, "1");
	run_watch(&x->run, x->want);
	run_converge(&x->run, x->want);
	assert_int_equal(run_item(&x->run, x->want, key), ITEM_PENDING);
	/* The second time there is a descriptor of the first link's key. */
	for (i = 0; i < 2; i++) {
		settle(x);
		sh("ip link add v0.100 type veth peer name v9");
		assert_true(run_wait(&x->run));
		assert_int_equal(run_item(&x->run, x->want, key),
				 ITEM_DRIFTED);
		run_converge(&x->run, x->want);
		assert_string_equal(value("conf/v0.100/arp_notify"), "1");
		settle(x);
		sh("ip link del v0.100");
		assert_true(run_wait(&x->run));
		assert_int_equal(run_item(&x->run, x->want, key),
				 ITEM_PENDING);
	}
}

/* Ten keys: the third unknown, the sixth read-only, the eighth refused. */
static void sy05_one_unknown_key(void **state)
{
	static const struct {
		const char *key, *value, *reason;
	} t[] = {
		{ "net.ipv4.ip_default_ttl", "70", NULL },
		{ "net.ipv4.conf.lo.accept_local", "1", NULL },
		{ "net.ipv4.no_such_key", "1", "ENOENT" },
		{ "net.ipv4.conf.lo.log_martians", "1", NULL },
		{ "net.ipv4.conf.lo.send_redirects", "0", NULL },
		{ "net.ipv4.tcp_available_congestion_control", "none",
		  "read-only" },
		{ "net.ipv4.conf.lo.arp_ignore", "1", NULL },
		{ "net.ipv4.tcp_retries1", "999", "Invalid argument" },
		{ "net.ipv4.conf.lo.arp_announce", "2", NULL },
		{ "net.ipv4.conf.lo.forwarding", "1", NULL },
	};
	struct fixture *x = *state;
	struct item_list items;
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		wanted(x, t[i].key, t[i].value);
	assert_true(run_apply(&x->run, x->want) < 0);
	/* The refused one leaves our file again, or it would fail a boot. */
	assert_int_equal(run_apply(&x->run, x->want), 0);
	assert_int_equal(run_plan(&x->run, x->want, &items, NULL), 0);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct item *it = item_list_find(&items, t[i].key);

		assert_non_null(it);
		assert_int_equal(it->state, t[i].reason ? ITEM_BLOCKED :
							  ITEM_IN_SYNC);
		if (t[i].reason)
			assert_non_null(strstr(it->reason, t[i].reason));
	}
	item_list_done(&items);
}

/* The fast path hears a write; the read sees what nothing was heard of. */
static void sy01_heard_or_seen(void **state)
{
	struct fixture *x = *state;

	wanted(x, "net.ipv4.ip_forward", "1");
	run_watch(&x->run, x->want);
	run_converge(&x->run, x->want);
	settle(x);
	sh("echo 0 >" IP4 "ip_forward");
	assert_true(run_wait(&x->run));
	run_converge(&x->run, x->want);
	settle(x);
	sh("echo 0 >" IP4 "conf/all/forwarding");
	assert_int_equal(run_plan(&x->run, x->want, NULL, NULL), 1);
	run_converge(&x->run, x->want);
	assert_string_equal(value("ip_forward"), "1");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(sy03_a_new_link_is_set),
		T(sy03_a_key_waits_for_its_link),
		T(sy05_one_unknown_key),
		T(sy01_heard_or_seen),
	};

	world_require();
	return cmocka_run_group_tests_name("sysctl", tests, NULL, NULL);
}
