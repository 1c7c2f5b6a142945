/* The iscsid resource: names, files, plan, and a fresh name. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scratch.h"

#include "resource_run.h"

#include "agent/res/iscsid.h"
#include "agent/res/iscsid_plan.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static void names(void **state)
{
	static const struct {
		const char *text;
		enum iscsid_name want;
		const char *name;
	} t[] = {
		{ "InitiatorName=iqn.1993-08.org.debian:01:9f3a2b\n",
		  ISCSID_NAME_VALID, "iqn.1993-08.org.debian:01:9f3a2b" },
		{ "## note\n\n  InitiatorName=iqn.2024-05.org.example \n",
		  ISCSID_NAME_VALID, "iqn.2024-05.org.example" },
		{ "InitiatorName=eui.02004567A425678D\n", ISCSID_NAME_VALID,
		  "eui.02004567A425678D" },
		{ "InitiatorName=naa.52004567BA64678D\n", ISCSID_NAME_VALID,
		  "naa.52004567BA64678D" },
		{ "GenerateName=yes\n", ISCSID_NAME_PLACEHOLDER, "" },
		{ "", ISCSID_NAME_PLACEHOLDER, "" },
		{ "# InitiatorName=iqn.2024-05.org.example\n",
		  ISCSID_NAME_PLACEHOLDER, "" },
		{ "InitiatorName=\n", ISCSID_NAME_PLACEHOLDER, "" },
		{ "InitiatorName=REPLACE-ME\n", ISCSID_NAME_PLACEHOLDER,
		  "REPLACE-ME" },
		{ "InitiatorName=foo bar\n", ISCSID_NAME_INVALID, "foo bar" },
		{ "InitiatorName=iqn.24-05.org\n", ISCSID_NAME_INVALID,
		  "iqn.24-05.org" },
		{ "InitiatorName=eui.0200\n", ISCSID_NAME_INVALID,
		  "eui.0200" },
		{ "InitiatorName=iqn.2024-05.org.example\xc3\xa9\n",
		  ISCSID_NAME_INVALID, "iqn.2024-05.org.example\xc3\xa9" },
	};
	char text[256], name[ISCSID_NAME_MAX], longest[300];
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		(void)snprintf(text, sizeof(text), "%s", t[i].text);
		assert_int_equal(iscsid_name_parse(text, name), t[i].want);
		assert_string_equal(name, t[i].name);
	}
	memset(longest, 'a', sizeof(longest));
	memcpy(longest, "iqn.2024-05.", 12);
	longest[223] = '\0';
	assert_true(iscsid_name_is_valid(longest));
	longest[223] = 'a';
	longest[224] = '\0';
	assert_false(iscsid_name_is_valid(longest));
}

static void want_iscsid(struct run *run)
{
	run_open(run, &resource_iscsid);
	run->want->iscsid = true;
	assert_int_equal(strlist_add(&run->want->modules, "iscsi_tcp"), 0);
}

static void not_wanted_is_nothing(void **state)
{
	struct run run;

	(void)state;
	run_open(&run, &resource_iscsid);
	look(&run);
	assert_int_equal(run.items.n, 0);
	assert_int_equal(run.changes.n, 0);
	run_close(&run);
}

static void package_missing(void **state)
{
	struct run run;

	(void)state;
	want_iscsid(&run);
	look(&run);
	assert_int_equal(state_of(&run, "package"), ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, "package"),
			       "apt-get install open-iscsi"));
	assert_int_equal(run.changes.n, 0);
	assert_null(get(ISCSID_NAME_FILE));
	run_close(&run);
}

static void is01_fresh_name(void **state)
{
	char first[256];
	struct stat st;
	struct run run;

	(void)state;
	put("/usr/sbin/iscsid", "");
	put("/sys/module/iscsi_tcp/initstate", "live\n");
	want_iscsid(&run);
	look(&run);
	assert_int_equal(state_of(&run, "initiatorname"), ITEM_ABSENT);
	assert_int_equal(state_of(&run, "iscsid"), ITEM_PENDING);
	assert_int_equal(run.changes.n, 1);
	assert_int_equal(apply(&run), 0);
	assert_int_equal(stat(scratch_path(ISCSID_NAME_FILE), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	(void)snprintf(first, sizeof(first), "%s", get(ISCSID_NAME_FILE));
	look(&run);
	assert_int_equal(run.changes.n, 0);
	assert_int_equal(state_of(&run, "initiatorname"), ITEM_IN_SYNC);
	assert_non_null(strstr(reason_of(&run, "iscsid"), "D-Bus"));

	put(ISCSID_NAME_FILE, "GenerateName=yes\n");
	look(&run);
	assert_int_equal(state_of(&run, "initiatorname"), ITEM_DRIFTED);
	assert_int_equal(apply(&run), 0);
	assert_string_not_equal(first, get(ISCSID_NAME_FILE));
	run_close(&run);
}

static void is01_never_renamed(void **state)
{
	struct run run;

	(void)state;
	put("/usr/sbin/iscsid", "");
	put("/sys/class/iscsi_session/session1/state", "LOGGED_IN\n");
	want_iscsid(&run);
	look(&run);
	assert_int_equal(run.changes.n, 0);
	assert_int_equal(state_of(&run, "initiatorname"), ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, "initiatorname"),
			       "sessions are live"));
	put(ISCSID_NAME_FILE, "InitiatorName=foo bar\n");
	look(&run);
	assert_int_equal(run.changes.n, 0);
	assert_int_equal(state_of(&run, "initiatorname"), ITEM_BLOCKED);
	run_close(&run);
}

static void is03_module_is_the_cause(void **state)
{
	static const char index[] = "/lib/modules/6.1.0-t/modules.dep";
	static const char builtin[] = "/lib/modules/6.1.0-t/modules.builtin";
	struct run run;

	(void)state;
	put("/usr/sbin/iscsid", "");
	put("/proc/modules", "");
	put("/proc/sys/kernel/osrelease", "6.1.0-t\n");
	put(index, "kernel/drivers/scsi/iscsi_tcp.ko:\n");
	put(ISCSID_NAME_FILE, "InitiatorName=iqn.2024-05.org.example\n");
	want_iscsid(&run);
	look(&run);
	assert_int_equal(state_of(&run, "iscsi_tcp"), ITEM_PENDING);
	assert_non_null(strstr(reason_of(&run, "iscsid"), "iscsi_tcp"));

	put("/etc/modprobe.d/no.conf", "install iscsi_tcp /bin/false\n");
	look(&run);
	assert_int_equal(state_of(&run, "iscsi_tcp"), ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, "iscsi_tcp"), "no.conf:1"));
	assert_int_equal(unlink(scratch_path("/etc/modprobe.d/no.conf")), 0);
	put(index, "kernel/drivers/scsi/sg.ko:\n");
	look(&run);
	assert_int_equal(state_of(&run, "iscsi_tcp"), ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, "iscsi_tcp"),
			       "6.1.0-t has no such module"));
	put(builtin, "kernel/drivers/scsi/iscsi_tcp.ko\n");
	look(&run);
	assert_int_equal(state_of(&run, "iscsi_tcp"), ITEM_IN_SYNC);

	put(builtin, "");
	put(index, "kernel/drivers/scsi/iscsi_tcp.ko:\n");
	strlist_done(&run.want->modules);
	look(&run);
	assert_int_equal(state_of(&run, "iscsi_tcp"), ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, "iscsi_tcp"),
			       "baseline.modules"));
	run_close(&run);
}

/* What systemd says, and what follows from it. */
static void units(void **state)
{
	static const struct {
		const char *service, *socket, *socket_load, *socket_file;
		const char *service_file;
		enum item_state daemon, enabled;
		size_t changes;
	} t[] = {
		{ "inactive", "active", "loaded", "enabled", "disabled",
		  ITEM_IN_SYNC, ITEM_IN_SYNC, 0 },
		{ "active", "inactive", "loaded", "disabled", "enabled",
		  ITEM_IN_SYNC, ITEM_IN_SYNC, 0 },
		{ "inactive", "inactive", "loaded", "enabled", "disabled",
		  ITEM_DRIFTED, ITEM_IN_SYNC, 1 },
		{ "failed", "failed", "loaded", "disabled", "disabled",
		  ITEM_DRIFTED, ITEM_DRIFTED, 2 },
		{ "inactive", "inactive", "masked", "masked", "disabled",
		  ITEM_BLOCKED, ITEM_BLOCKED, 0 },
		{ "inactive", "inactive", "not-found", "", "disabled",
		  ITEM_BLOCKED, ITEM_BLOCKED, 0 },
	};
	struct desired *d = desired_new();
	size_t i;

	(void)state;
	d->iscsid = true;
	for (i = 0; i < N(t); i++) {
		struct iscsid_seen s = {
			.installed = true, .has_tcp = true,
			.name_state = ISCSID_NAME_VALID,
			.unit_known = { true, true, true, true },
		};
		struct item_list items = ITEM_LIST_INIT;
		struct change_list changes = CHANGE_LIST_INIT;

		(void)strcpy(s.unit[0].active_state, t[i].service);
		(void)strcpy(s.unit[0].unit_file_state, t[i].service_file);
		(void)strcpy(s.unit[1].active_state, t[i].socket);
		(void)strcpy(s.unit[1].load_state, t[i].socket_load);
		(void)strcpy(s.unit[1].unit_file_state, t[i].socket_file);
		assert_int_equal(iscsid_plan(d, &s, &items, &changes, NULL),
				 0);
		assert_int_equal(item_list_find(&items, "iscsid")->state,
				 t[i].daemon);
		assert_int_equal(
			item_list_find(&items, "iscsid (enabled)")->state,
			t[i].enabled);
		assert_int_equal(changes.n, t[i].changes);
		item_list_done(&items);
		change_list_done(&changes);
	}
	d = desired_free(d);
}

static void is04_multipathd(void **state)
{
	struct iscsid_seen s = { .unit_known = { true, true, true, true } };
	struct item_list items = ITEM_LIST_INIT;
	struct change_list changes = CHANGE_LIST_INIT;
	struct desired *d = desired_new();

	(void)state;
	d->iscsid = true;
	(void)strcpy(s.unit[MULTIPATHD_SOCKET].active_state, "active");
	assert_int_equal(iscsid_plan(d, &s, &items, &changes, NULL), 0);
	assert_int_equal(item_list_find(&items, "multipathd")->state,
			 ITEM_BLOCKED);
	item_list_done(&items);

	put("/etc/multipath.conf", "defaults {\n}\n");
	assert_false(iscsid_multipath_is_tamed(scratch));
	put("/etc/multipath.conf", "blacklist_exceptions {\n"
	    "\tdevnode \"^sda\"\n}\n# blacklist { devnode \"^sd\" }\n");
	assert_false(iscsid_multipath_is_tamed(scratch));
	put("/etc/multipath/conf.d/longhorn.conf",
	    "blacklist {\n\tdevnode \"^sd[a-z0-9]+\"\n}\n");
	assert_true(iscsid_multipath_is_tamed(scratch));
	d = desired_free(d);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, scratch_make, scratch_drop)
	const struct CMUnitTest tests[] = {
		T(names),
		T(not_wanted_is_nothing),
		T(package_missing),
		T(is01_fresh_name),
		T(is01_never_renamed),
		T(is03_module_is_the_cause),
		T(units),
		T(is04_multipathd),
	};

	return cmocka_run_group_tests_name("iscsid", tests, NULL, NULL);
}
