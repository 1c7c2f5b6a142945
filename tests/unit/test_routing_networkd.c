/* res/routing: whether systemd-networkd leaves our rules alone (RT-01). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/res/routing_plan.h"
#include "scratch.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define OWN ROUTING_NETWORKD_FILE
#define D "/etc/systemd/networkd.conf.d/"
#define RULES "ManageForeignRoutingPolicyRules"
#define ROUTES "ManageForeignRoutes"

static void installed(void)
{
	put("/usr/lib/systemd/systemd-networkd", "");
}

static void see(struct routing_networkd *n)
{
	routing_networkd_see(scratch, n);
}

/* ---- its files ---- */

static const struct settings {
	const char *name;
	struct { const char *path, *text; } files[3];
	bool off[NETWORKD_KEY_MAX];
	const char *where[NETWORKD_KEY_MAX];
} settings[] = {
	{ "nothing said", { { NULL, NULL } }, { false, false }, { "", "" } },
	{ "in the main file",
	  { { "/etc/systemd/networkd.conf",
	      "[Network]\n" RULES "=no\n " ROUTES " = off \n" } },
	  { true, true },
	  { "/etc/systemd/networkd.conf:2", "/etc/systemd/networkd.conf:3" } },
	{ "a drop-in wins over the main file",
	  { { "/etc/systemd/networkd.conf", "[Network]\n" RULES "=no\n" },
	    { "/usr/lib/systemd/networkd.conf.d/10-x.conf",
	      "[Network]\n" RULES "=yes\n" } },
	  { false, false },
	  { "/usr/lib/systemd/networkd.conf.d/10-x.conf:2", "" } },
	{ "a later drop-in wins, in whichever directory",
	  { { D "20-a.conf", "[Network]\n" RULES "=yes\n" ROUTES "=no\n" },
	    { "/run/systemd/networkd.conf.d/30-b.conf",
	      "[Network]\n" RULES "=0\n" } },
	  { true, true },
	  { "/run/systemd/networkd.conf.d/30-b.conf:2", D "20-a.conf:3" } },
	{ "/etc hides the same name in /usr/lib",
	  { { D "20-a.conf", "[Network]\n" ROUTES "=no\n" },
	    { "/usr/lib/systemd/networkd.conf.d/20-a.conf",
	      "[Network]\n" RULES "=no\n" } },
	  { false, true }, { "", D "20-a.conf:2" } },
	{ "other sections, comments and nonsense",
	  { { D "20-a.conf",
	      RULES "=no\n[DHCPv4]\n" RULES "=no\n[Network]\n#" RULES "=no\n"
	      RULES "=perhaps\n;" ROUTES "=no\n" ROUTES "\n" } },
	  { false, false }, { "", "" } },
	{ "a section ends with its file",
	  { { D "20-a.conf", "[Network]\n" ROUTES "=no\n" },
	    { D "30-b.conf", ROUTES "=yes\n" } },
	  { false, true }, { "", D "20-a.conf:2" } },
};

static void rt01_the_last_word_counts(void **state)
{
	size_t i, k;

	(void)state;
	for (i = 0; i < N(settings); i++) {
		const struct settings *s = &settings[i];
		struct routing_networkd n;

		(void)scratch_make(NULL);
		installed();
		for (k = 0; k < N(s->files) && s->files[k].path; k++)
			put(s->files[k].path, s->files[k].text);
		see(&n);
		assert_false(n.unreadable);
		for (k = 0; k < NETWORKD_KEY_MAX; k++) {
			if (n.keys[k].off != s->off[k])
				fail_msg("%s: key %zu", s->name, k);
			assert_string_equal(n.keys[k].where, s->where[k]);
		}
		assert_false(n.written);
		assert_int_equal(scratch_drop(NULL), 0);
	}
}

static void what_is_written_is_read(void **state)
{
	struct routing_networkd n;

	(void)state;
	see(&n);
	assert_false(n.installed);
	installed();
	see(&n);
	assert_true(n.installed);
	assert_false(routing_networkd_opted_out(&n));
	assert_int_equal(routing_networkd_write(scratch, NULL), 0);
	see(&n);
	assert_true(n.written);
	assert_true(routing_networkd_opted_out(&n));
	assert_string_equal(n.keys[NETWORKD_RULES].where, OWN ":5");
	put(OWN, "[Network]\n" RULES "=no\n" ROUTES "=no\n");
	see(&n);
	assert_false(n.written);
	assert_true(routing_networkd_opted_out(&n));
}

/* ---- the process ---- */

static void run_since(uint64_t ticks)
{
	char text[256];

	/* Its name is the program's to choose. */
	(void)snprintf(text, sizeof(text), "77 (a) b (c) S 1 1 1 0 -1 4194560 "
		       "1 0 0 0 1 1 0 0 20 0 1 0 %llu 1 1\n",
		       (unsigned long long)ticks);
	put("/proc/77/stat", text);
	put("/sys/fs/cgroup/system.slice/systemd-networkd.service/"
	    "cgroup.procs", "77\n78\n");
}

static uint64_t ticks_now(void)
{
	return clock_boottime() * (uint64_t)sysconf(_SC_CLK_TCK) /
	       USEC_PER_SEC;
}

static void rt01_it_reads_them_when_it_starts(void **state)
{
	struct routing_networkd n;

	(void)state;
	installed();
	run_since(ticks_now());
	see(&n);
	assert_int_equal(n.pid, 77);
	assert_false(routing_networkd_is_late(&n));	/* of nothing */
	assert_true(n.started > clock_realtime() - USEC_PER_SEC &&
		    n.started <= clock_realtime());
	run_since(ticks_now() - 100);
	assert_int_equal(routing_networkd_write(scratch, NULL), 0);
	see(&n);
	assert_true(routing_networkd_is_late(&n));
	run_since(ticks_now() + 100);
	see(&n);
	assert_false(routing_networkd_is_late(&n));
	/* A file that had the last word and is gone leaves its directory. */
	assert_int_equal(unlink(scratch_path(OWN)), 0);
	run_since(ticks_now() - 100);
	see(&n);
	assert_true(routing_networkd_is_late(&n));
	put("/proc/77/stat", "77 (short) S 1\n");
	see(&n);
	assert_int_equal(n.pid, 0);
}

/* ---- the plan ---- */

#define YES { .off = false }
#define LAST { .off = false, .where = D "99-x.conf:2" }
#define NO { .off = true, .where = OWN ":5" }

static const char gateway[] =
	"garboard-armed-1\nclass vpn\ntunnel wg0 0 51820 18200\ngateway\n"
	"source 10.44.0.5/32\nend\n";
static const char elsewhere[] =
	"garboard-armed-1\nclass vpn\ntunnel wg0 0 51820 18200\n"
	"source 10.44.0.5/32\nend\n";

static const struct scene {
	const char *name, *armed;
	struct routing_networkd n;
	bool writes;
	enum item_state file, process;	/* ITEM_STATE_MAX: no item */
	const char *says;
} scenes[] = {
	{ "no networkd", gateway, { .installed = false }, false,
	  ITEM_STATE_MAX, ITEM_STATE_MAX, NULL },
	{ "nothing is steered here", elsewhere, { .installed = true }, false,
	  ITEM_STATE_MAX, ITEM_STATE_MAX, NULL },
	{ "not set, not running", gateway,
	  { .installed = true, .keys = { YES, YES } }, true,
	  ITEM_DRIFTED, ITEM_IN_SYNC, NULL },
	{ "not set, running", gateway,
	  { .installed = true, .pid = 7, .keys = { NO, YES }, .started = 1 },
	  true, ITEM_DRIFTED, ITEM_PENDING, "systemctl restart" },
	{ "set before it started", gateway,
	  { .installed = true, .written = true, .pid = 7, .started = 9,
	    .changed = 8, .keys = { NO, NO } }, false,
	  ITEM_IN_SYNC, ITEM_IN_SYNC, NULL },
	{ "set by somebody else", gateway,
	  { .installed = true, .pid = 7, .started = 9, .changed = 8,
	    .keys = { NO, NO } }, false, ITEM_IN_SYNC, ITEM_IN_SYNC, NULL },
	{ "set after it started", gateway,
	  { .installed = true, .written = true, .pid = 7, .started = 8,
	    .changed = 8, .keys = { NO, NO } }, false,
	  ITEM_IN_SYNC, ITEM_PENDING, "systemctl restart" },
	{ "a later file has the last word", gateway,
	  { .installed = true, .written = true, .pid = 7, .started = 9,
	    .changed = 8, .keys = { NO, LAST } }, false,
	  ITEM_BLOCKED, ITEM_PENDING, "99-x.conf:2" },
	{ "the same, and a file cannot be read", elsewhere,
	  { .installed = true, .unreadable = true }, false,
	  ITEM_STATE_MAX, ITEM_STATE_MAX, NULL },
	{ "a file cannot be read", gateway,
	  { .installed = true, .unreadable = true,
	    .fault = { .err = -EIO, .text = "bad disk" } }, false,
	  ITEM_UNOBSERVABLE, ITEM_STATE_MAX, "bad disk" },
};

static enum item_state state_of(struct item_list *items, const char *key)
{
	const struct item *it = item_list_find(items, key);

	return it ? it->state : ITEM_STATE_MAX;
}

static void rt01_plans(void **state)
{
	struct desired *want = desired_new();
	size_t i, k;

	(void)state;
	for (i = 0; i < N(scenes); i++) {
		const struct scene *sc = &scenes[i];
		struct item_list items = ITEM_LIST_INIT;
		struct change_list changes = CHANGE_LIST_INIT;
		struct routing_seen s = { .networkd = sc->n };
		bool said = !sc->says;

		assert_int_equal(armed_parse(sc->armed, &s.armed, NULL), 0);
		assert_int_equal(routing_plan(want, &s, &items, &changes,
					      NULL), 0);
		if (!!change_list_find(&changes, ROUTING_KEY_NETWORKD_FILE) !=
		    sc->writes)
			fail_msg("%s: change", sc->name);
		if (state_of(&items, ROUTING_KEY_NETWORKD_FILE) != sc->file)
			fail_msg("%s: file", sc->name);
		if (state_of(&items, ROUTING_KEY_NETWORKD) != sc->process)
			fail_msg("%s: process", sc->name);
		for (k = 0; k < items.n && !said; k++)
			said = strstr(items.v[k].reason, sc->says);
		if (!said)
			fail_msg("%s: says nothing", sc->name);
		item_list_done(&items);
		change_list_done(&changes);
		armed_done(&s.armed);
	}
	(void)desired_free(want);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(rt01_the_last_word_counts),
		cmocka_unit_test_setup_teardown(what_is_written_is_read,
						scratch_make, scratch_drop),
		cmocka_unit_test_setup_teardown(
			rt01_it_reads_them_when_it_starts, scratch_make,
			scratch_drop),
		cmocka_unit_test(rt01_plans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
