/* The swap resource: what there is, the plan, masks and their record. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scratch.h"

#include "resource_run.h"

#include "agent/ours.h"
#include "agent/res/swap.h"
#include "agent/res/swap_plan.h"
#include "agent/unitname.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define HEAD "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
#define UNITS "/etc/systemd/system"
#define TARGET "swap.target" SWAP_PERSISTED

static int fresh(void **state)
{
	(void)scratch_make(state);
	put("/proc/swaps", HEAD);
	put("/proc/meminfo", "MemTotal:  4000 kB\nMemAvailable:    1000 kB\n");
	put("/etc/fstab", "# swap swap swap\n/dev/vda / ext4 defaults 0 1\n");
	return 0;
}

static void names_of_units(void **state)
{
	static const struct {
		const char *path, *name;
	} t[] = {
		{ "/dev/vda2", "dev-vda2.swap" },
		{ "/dev/disk/by-id/a", "dev-disk-by\\x2did-a.swap" },
		{ "//swap//file/", "swap-file.swap" },
		{ "/.hid/x", "\\x2ehid-x.swap" },
		{ "/a b/c", "a\\x20b-c.swap" },
		{ "/a.b_c:d", "a.b_c:d.swap" },
		{ "/", "-.swap" },
	};
	char name[UNITNAME_MAX], longer[400];
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		assert_int_equal(unitname_from_path(t[i].path, ".swap", name),
				 0);
		assert_string_equal(name, t[i].name);
	}
	assert_int_equal(unitname_from_path("a", ".swap", name), -EINVAL);
	assert_int_equal(unitname_from_path("/a/../b", ".swap", name),
			 -EINVAL);
	memset(longer, 'a', sizeof(longer));
	longer[0] = '/';
	longer[240] = '\0';
	assert_int_equal(unitname_from_path(longer, ".swap", name), 0);
	longer[240] = 'a';
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(unitname_from_path(longer, ".swap", name),
			 -ENAMETOOLONG);
}

static void nothing_is_asked_for(void **state)
{
	struct run run;

	(void)state;
	put("/proc/swaps", HEAD "/dev/vda2 partition 1000 10 -2\n");
	run_open(&run, &resource_swap);
	look(&run);
	assert_int_equal(run.items.n, 0);
	assert_int_equal(run.changes.n, 0);
	run_close(&run);
}

static void b01_active_swap(void **state)
{
	static const struct {
		const char *line, *key;
		enum item_state state;
		const char *reason;
	} t[] = {
		{ "/dev/vda2 partition 1000 10 -2\n", "/dev/vda2",
		  ITEM_DRIFTED, "" },
		{ "/swap\\040file file 1000 0 -2\n", "/swap file",
		  ITEM_DRIFTED, "" },
		{ "/dev/vda2 partition 9000 1001 -2\n", "/dev/vda2",
		  ITEM_BLOCKED, "1001 kB are swapped out and only 1000 kB" },
		{ "none partition 9000 1 -2\n", "none", ITEM_BLOCKED,
		  "by hand" },
	};
	char text[256];
	struct run run;
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		(void)snprintf(text, sizeof(text), HEAD "%s", t[i].line);
		put("/proc/swaps", text);
		run_open(&run, &resource_swap);
		run.want->swap_off = true;
		look(&run);
		assert_int_equal(state_of(&run, t[i].key), t[i].state);
		assert_non_null(strstr(reason_of(&run, t[i].key),
				       t[i].reason));
		assert_int_equal(change_list_find(&run.changes, t[i].key) !=
				 NULL, t[i].state == ITEM_DRIFTED);
		/* No systemd to ask: told, and not done by force. */
		(void)apply(&run);
		if (t[i].state == ITEM_DRIFTED)
			assert_int_equal(state_of(&run, t[i].key),
					 ITEM_PENDING);
		run_close(&run);
		(void)unlink(scratch_path(UNITS "/swap.target"));
	}
}

static void b01_masked_and_taken_back(void **state)
{
	char target[64] = "";
	struct run run;

	(void)state;
	put("/etc/fstab", "# a comment\nUUID=12 none swap sw 0 0\n");
	run_open(&run, &resource_swap);
	run.want->swap_off = true;
	look(&run);
	assert_int_equal(state_of(&run, SWAP_NOW), ITEM_IN_SYNC);
	assert_int_equal(state_of(&run, TARGET), ITEM_ABSENT);
	assert_non_null(strstr(reason_of(&run, TARGET),
			       "/etc/fstab:2 (UUID=12)"));
	assert_int_equal(apply(&run), 0);
	look(&run);
	assert_int_equal(state_of(&run, TARGET), ITEM_IN_SYNC);
	assert_int_equal(run.changes.n, 0);
	assert_int_equal(readlink(scratch_path(UNITS "/swap.target"), target,
				  sizeof(target) - 1), 9);
	assert_string_equal(target, "/dev/null");
	assert_string_equal(get("/etc/fstab"),
			    "# a comment\nUUID=12 none swap sw 0 0\n");
	run_close(&run);

	/* Another life of the agent: the record is on disk. */
	run_open(&run, &resource_swap);
	look(&run);
	assert_int_equal(state_of(&run, TARGET), ITEM_DRIFTED);
	assert_int_equal(run.changes.v[0].op, CHANGE_REMOVE);
	assert_int_equal(apply(&run), 0);
	assert_int_equal(readlink(scratch_path(UNITS "/swap.target"), target,
				  sizeof(target)), -1);
	look(&run);
	assert_int_equal(run.items.n + run.changes.n, 0);
	run_close(&run);
}

/* What was masked before us is in sync, and is not ours to take back. */
static void others_masks_stay(void **state)
{
	char target[64] = "";
	struct run run;

	(void)state;
	put_link(UNITS "/swap.target", "/dev/null");
	run_open(&run, &resource_swap);
	run.want->swap_off = true;
	look(&run);
	assert_int_equal(state_of(&run, TARGET), ITEM_IN_SYNC);
	assert_int_equal(run.changes.n, 0);
	run.want->swap_off = false;
	look(&run);
	assert_int_equal(run.items.n + run.changes.n, 0);
	assert_int_equal(readlink(scratch_path(UNITS "/swap.target"), target,
				  sizeof(target) - 1), 9);
	run_close(&run);
}

static void others_files_are_not_replaced(void **state)
{
	struct run run;

	(void)state;
	put(UNITS "/swap.target", "[Unit]\nDescription=mine\n");
	run_open(&run, &resource_swap);
	run.want->swap_off = true;
	look(&run);
	assert_int_equal(state_of(&run, TARGET), ITEM_BLOCKED);
	assert_int_equal(run.changes.n, 0);
	assert_string_equal(get(UNITS "/swap.target"),
			    "[Unit]\nDescription=mine\n");
	run_close(&run);
}

/* The power was cut between the record and the link, or after the unlink. */
static void a_cut_leaves_nothing_of_ours_behind(void **state)
{
	struct ours ours = OURS_INIT;
	struct run run;

	(void)state;
	assert_int_equal(ours_put(&ours, "swap.target", "not masked",
				  "masked"), 0);
	assert_int_equal(ours_write(scratch_state, "swap", &ours, NULL), 0);
	ours_done(&ours);
	run_open(&run, &resource_swap);
	run.want->swap_off = true;
	look(&run);
	assert_int_equal(state_of(&run, TARGET), ITEM_ABSENT);
	run.want->swap_off = false;
	look(&run);
	assert_int_equal(state_of(&run, TARGET), ITEM_DRIFTED);
	assert_int_equal(apply(&run), 0);
	look(&run);
	assert_int_equal(run.items.n + run.changes.n, 0);
	run_close(&run);
	assert_int_equal(ours_read(scratch_state, "swap", &ours, NULL), 0);
	assert_int_equal(ours.n, 0);
}

/* zram-tools, and a swap unit that is enabled beside swap.target. */
static void what_swap_target_does_not_hold(void **state)
{
	struct run run;

	(void)state;
	put("/usr/lib/systemd/system/zramswap.service", "[Unit]\n");
	put("/run/systemd/generator/dev-vda2.swap", "[Swap]\n");
	put_link("/run/systemd/generator/swap.target.requires/dev-vda2.swap",
		 "../dev-vda2.swap");
	put_link(UNITS "/multi-user.target.wants/my.swap", "../my.swap");
	put_link(UNITS "/multi-user.target.wants/my.service", "../my.service");
	put("/proc/swaps", HEAD "/my file 1000 0 -2\n");
	run_open(&run, &resource_swap);
	run.want->swap_off = true;
	look(&run);
	assert_int_equal(state_of(&run, "zramswap.service" SWAP_PERSISTED),
			 ITEM_ABSENT);
	assert_int_equal(state_of(&run, "my.swap" SWAP_PERSISTED),
			 ITEM_PENDING);
	assert_null(item_list_find(&run.items,
				   "dev-vda2.swap" SWAP_PERSISTED));
	put("/proc/swaps", HEAD);
	look(&run);
	assert_int_equal(state_of(&run, "my.swap" SWAP_PERSISTED),
			 ITEM_ABSENT);
	assert_non_null(strstr(reason_of(&run, "my.swap" SWAP_PERSISTED),
			       "multi-user.target"));
	assert_int_equal(run.items.n, 4);
	assert_int_equal(apply(&run), 0);
	look(&run);
	assert_int_equal(item_list_worst(&run.items), ITEM_IN_SYNC);
	assert_int_equal(run.changes.n, 0);
	/* A service that is gone keeps no mask of ours. */
	(void)unlink(scratch_path("/usr/lib/systemd/system/zramswap.service"));
	look(&run);
	assert_int_equal(run.changes.n, 1);
	assert_int_equal(run.changes.v[0].op, CHANGE_REMOVE);
	run_close(&run);
}

/* A damaged record is told, and no mask is then taken for ours. */
static void a_damaged_record_is_no_licence(void **state)
{
	struct fault f = FAULT_INIT;
	struct run run;

	(void)state;
	put("/state/ours/swap", "swap.target");
	put_link(UNITS "/swap.target", "/dev/null");
	run_open(&run, &resource_swap);
	assert_int_equal(run.res->observe(run.st, run.want, &run.seen, &f), 0);
	assert_int_equal(f.err, -EBADMSG);
	look(&run);
	assert_int_equal(run.changes.n, 0);
	run_close(&run);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_units),
		cmocka_unit_test_setup_teardown(nothing_is_asked_for, fresh,
						scratch_drop),
		cmocka_unit_test_setup_teardown(b01_active_swap, fresh,
						scratch_drop),
		cmocka_unit_test_setup_teardown(b01_masked_and_taken_back,
						fresh, scratch_drop),
		cmocka_unit_test_setup_teardown(others_masks_stay, fresh,
						scratch_drop),
		cmocka_unit_test_setup_teardown(others_files_are_not_replaced,
						fresh, scratch_drop),
		cmocka_unit_test_setup_teardown(
			a_cut_leaves_nothing_of_ours_behind, fresh,
			scratch_drop),
		cmocka_unit_test_setup_teardown(what_swap_target_does_not_hold,
						fresh, scratch_drop),
		cmocka_unit_test_setup_teardown(a_damaged_record_is_no_licence,
						fresh, scratch_drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
