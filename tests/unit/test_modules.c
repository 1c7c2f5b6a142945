/* The modules resource: files, plan and apply below a scratch root. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scratch.h"

#include "resource_run.h"

#include "agent/res/modules.h"
#include "agent/res/modules_plan.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define LIB "/lib/modules/6.1.0-test"

static int fresh(void **state)
{
	(void)scratch_make(state);
	put("/proc/sys/kernel/osrelease", "6.1.0-test\n");
	put("/proc/cmdline", "root=/dev/vda ro quiet\n");
	put("/proc/modules", "overlay 1 0 - Live 0x0\n");
	put("/sys/module/overlay/initstate", "live\n");
	put("/sys/module/printk/parameters/time", "Y\n");
	put(LIB "/modules.builtin", "kernel/net/unix.ko\n");
	put(LIB "/modules.dep",
	    "kernel/net/bridge/br_netfilter.ko: kernel/net/bridge/bridge.ko\n"
	    "kernel/drivers/md/dm-crypt.ko.xz:\n"
	    "kernel/drivers/scsi/iscsi_tcp.ko: kernel/x/libiscsi.ko\n"
	    "kernel/net/netfilter/nf_conntrack.ko:\n");
	put(LIB "/modules.alias",
	    "# Aliases\nalias nf_conntrack_ipv4 nf_conntrack\n"
	    "alias pci:v00008086d* e1000\n");
	return 0;
}

static void want_module(struct run *run, const char *name)
{
	assert_int_equal(strlist_add(&run->want->modules, name), 0);
}

static void names(void **state)
{
	static const struct {
		const char *name;
		bool valid;
	} t[] = {
		{ "br_netfilter", true }, { "dm-crypt", true },
		{ "nft-expr-counter", true }, { "", false },
		{ "../x", false }, { "a b", false }, { "-a", false },
		{ "a\n", false }, { "x.ko", false }, { "a@b", false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++)
		assert_int_equal(kmod_name_is_valid(t[i].name), t[i].valid);
	assert_true(kmod_name_equal("dm-crypt", "dm_crypt"));
	assert_false(kmod_name_equal("dm-crypt", "dm_crypt2"));
	assert_false(kmod_name_equal("dm-crypt2", "dm_crypt"));
}

static void where_modules_are(void **state)
{
	static const struct {
		const char *name;
		enum kmod_index where;
		const char *real;
	} t[] = {
		{ "br-netfilter", KMOD_INDEX_FILE, "" },
		{ "dm_crypt", KMOD_INDEX_FILE, "" },
		{ "unix", KMOD_INDEX_BUILT_IN, "" },
		{ "nf_conntrack_ipv4", KMOD_INDEX_FILE, "nf_conntrack" },
		{ "bridge", KMOD_INDEX_ABSENT, "" },
		{ "libiscsi", KMOD_INDEX_ABSENT, "" },
		{ "pci:v00008086d*", KMOD_INDEX_FILE, "e1000" },
	};
	char real[KMOD_NAME_MAX];
	enum kmod_index where;
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		assert_int_equal(kmod_index_find(scratch, "6.1.0-test",
						   t[i].name, &where, real,
						   NULL), 0);
		assert_int_equal(where, t[i].where);
		assert_string_equal(real, t[i].real);
	}
	assert_int_equal(kmod_index_find(scratch, "none", "overlay", &where,
					   real, NULL), 0);
	assert_int_equal(where, KMOD_INDEX_UNKNOWN);
}

/* A hidden index is not a missing one: the load is tried. */
static void a_hidden_index(void **state)
{
	struct run run;

	(void)state;
	(void)unlink(scratch_path(LIB "/modules.dep"));
	put_link(LIB "/modules.dep", "modules.dep");	/* ELOOP, as root */
	run_open(&run, &resource_modules);
	want_module(&run, "br_netfilter");
	look(&run);
	assert_int_equal(state_of(&run, "br_netfilter"), ITEM_ABSENT);
	assert_non_null(change_list_find(&run.changes, "br_netfilter"));
	run_close(&run);
}

static enum kmod_live live(const char *name)
{
	return kmod_live(scratch, kmod_sysfs_is_there(scratch), name);
}

static void live_states(void **state)
{
	(void)state;
	put("/sys/module/slow/initstate", "coming\n");
	assert_int_equal(live("overlay"), KMOD_LOADED);
	assert_int_equal(live("printk"), KMOD_BUILT_IN);
	assert_int_equal(live("slow"), KMOD_COMING);
	assert_int_equal(live("nfs"), KMOD_NOT_LOADED);
	assert_int_equal(rename(scratch_path("/sys"),
				"/tmp/garboard-test-sys"), 0);
	put("/proc/modules", "dm_crypt 61440 0 - Live 0x0\n"
	    "dm_mod 1 0 - Loading 0x0\n");
	assert_int_equal(live("dm-crypt"), KMOD_LOADED);
	assert_int_equal(live("dm_mod"), KMOD_COMING);
	assert_int_equal(live("dm"), KMOD_NOT_LOADED);
	assert_int_equal(rename("/tmp/garboard-test-sys",
				scratch_path("/sys")), 0);
}

static void denials(void **state)
{
	struct kmod_denials d = { 0 };

	(void)state;
	put("/proc/cmdline", "quiet module_blacklist=nfs,vxlan "
	    "modprobe.blacklist=tun\n");
	put("/etc/modprobe.d/x.conf",
	    "# blacklist commented\nblacklist dm-crypt\n"
	    "install sctp /bin/false\ninstall rds /bin/true\n"
	    "install ok /sbin/modprobe -i ok\noptions loop max_loop=8\n");
	put("/usr/lib/modprobe.d/masked.conf", "blacklist masked\n");
	put_link("/etc/modprobe.d/masked.conf", "/dev/null");
	assert_int_equal(kmod_denials_read(scratch, &d, NULL), 0);
	assert_non_null(strstr(kmod_denials_find(&d, "vxlan"),
			       "command line (module_blacklist)"));
	assert_non_null(kmod_denials_find(&d, "tun"));
	assert_string_equal(kmod_denials_find(&d, "dm_crypt"),
			    "/etc/modprobe.d/x.conf:2 (blacklist)");
	assert_string_equal(kmod_denials_find(&d, "sctp"),
			    "/etc/modprobe.d/x.conf:3 (install)");
	assert_non_null(kmod_denials_find(&d, "rds"));
	assert_null(kmod_denials_find(&d, "ok"));
	assert_null(kmod_denials_find(&d, "loop"));
	assert_null(kmod_denials_find(&d, "masked"));
	assert_null(kmod_denials_find(&d, "commented"));
	kmod_denials_done(&d);
}

static void a07_loaded_and_persisted(void **state)
{
	struct run run;

	(void)state;
	run_open(&run, &resource_modules);
	want_module(&run, "overlay");
	want_module(&run, "br_netfilter");
	want_module(&run, "unix");
	look(&run);
	assert_int_equal(state_of(&run, "overlay"), ITEM_IN_SYNC);
	assert_int_equal(state_of(&run, "overlay (persisted)"), ITEM_ABSENT);
	assert_int_equal(state_of(&run, "unix"), ITEM_IN_SYNC);
	assert_int_equal(state_of(&run, "br_netfilter"), ITEM_ABSENT);
	assert_non_null(change_list_find(&run.changes, "br_netfilter"));
	assert_int_equal(run.changes.n, 4);
	/* mo02: the directory is made; without D-Bus a load is pending. */
	assert_int_equal(apply(&run), 0);
	assert_int_equal(state_of(&run, "br_netfilter"), ITEM_PENDING);
	assert_non_null(strstr(reason_of(&run, "br_netfilter"), "D-Bus"));
	assert_non_null(strstr(get(MODULES_OWN_FILE),
			       "\noverlay\nbr_netfilter\nunix\n"));
	put("/sys/module/br_netfilter/initstate", "live\n");
	look(&run);
	assert_int_equal(run.changes.n, 0);
	assert_int_equal(item_list_worst(&run.items), ITEM_IN_SYNC);

	put(MODULES_OWN_FILE, "overlay\nbr-netfilter\nunix\nextra\n");
	look(&run);
	assert_int_equal(run.changes.n, 1);
	assert_string_equal(run.changes.v[0].key, "extra (persisted)");
	assert_int_equal(apply(&run), 0);
	assert_null(strstr(get(MODULES_OWN_FILE), "extra"));
	run_close(&run);
}

static void mo03_kernel_upgraded_on_disk(void **state)
{
	struct run run;

	(void)state;
	put("/proc/sys/kernel/osrelease", "6.1.0-gone\n");
	run_open(&run, &resource_modules);
	want_module(&run, "overlay");
	want_module(&run, "nfs");
	look(&run);
	assert_int_equal(state_of(&run, "overlay"), ITEM_IN_SYNC);
	assert_int_equal(state_of(&run, "nfs"), ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, "nfs"), "needs a reboot"));
	assert_int_equal(apply(&run), 0);
	assert_non_null(strstr(get(MODULES_OWN_FILE), "\nnfs\n"));
	look(&run);
	assert_int_equal(run.changes.n, 0);
	run_close(&run);
}

static void mo04_one_bad_module(void **state)
{
	struct run run;

	(void)state;
	put("/proc/cmdline", "module_blacklist=iscsi_tcp\n");
	put("/etc/modprobe.d/no.conf", "blacklist dm_crypt\n");
	put(MODULES_OWN_FILE, "nonsense\n");
	run_open(&run, &resource_modules);
	want_module(&run, "nonsense");
	want_module(&run, "iscsi_tcp");
	want_module(&run, "dm_crypt");
	want_module(&run, "../evil");
	want_module(&run, "br_netfilter");
	look(&run);
	assert_non_null(strstr(reason_of(&run, "nonsense"),
			       "has no such module"));
	assert_int_equal(state_of(&run, "nonsense (persisted)"), ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, "iscsi_tcp"), "command line"));
	assert_non_null(strstr(reason_of(&run, "dm_crypt"),
			       "/etc/modprobe.d/no.conf:1"));
	assert_int_equal(state_of(&run, "../evil"), ITEM_BLOCKED);
	assert_int_equal(state_of(&run, "br_netfilter"), ITEM_ABSENT);
	assert_int_equal(apply(&run), 0);
	assert_null(strstr(get(MODULES_OWN_FILE), "nonsense"));
	assert_null(strstr(get(MODULES_OWN_FILE), "evil"));

	put("/proc/sys/kernel/modules_disabled", "1\n");
	look(&run);
	assert_int_equal(run.changes.n, 0);
	assert_non_null(strstr(reason_of(&run, "br_netfilter"),
			       "modules_disabled"));
	run_close(&run);
}

/* Loaded before somebody denied it: it is here now, and gone after a boot. */
static void mo02_loaded_and_denied(void **state)
{
	struct run run;

	(void)state;
	put("/etc/modprobe.d/no.conf", "\nalias overlay off\n");
	put(MODULES_OWN_FILE, "overlay\nunix\n");
	run_open(&run, &resource_modules);
	want_module(&run, "overlay");
	want_module(&run, "unix");
	look(&run);
	assert_int_equal(state_of(&run, "overlay"), ITEM_IN_SYNC);
	assert_int_equal(state_of(&run, "overlay (persisted)"), ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, "overlay (persisted)"),
			       "/etc/modprobe.d/no.conf:2"));
	assert_int_equal(run.changes.n, 0);
	assert_int_equal(unlink(scratch_path("/etc/modprobe.d/no.conf")), 0);
	look(&run);
	assert_int_equal(item_list_worst(&run.items), ITEM_IN_SYNC);
	run_close(&run);
}

static void a_kernel_without_modules(void **state)
{
	struct run run;

	(void)state;
	(void)unlink(scratch_path("/proc/modules"));
	run_open(&run, &resource_modules);
	want_module(&run, "unix");
	want_module(&run, "br_netfilter");
	look(&run);
	assert_int_equal(state_of(&run, "unix"), ITEM_IN_SYNC);
	assert_int_equal(state_of(&run, "br_netfilter"), ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, "br_netfilter"),
			       "cannot load modules"));
	run_close(&run);
}

/* A parameter is read at the load: a file that is newer waits for a boot. */
static void mo02_options_of_a_running_module(void **state)
{
	struct run run;

	(void)state;
	put("/sys/module/overlay/parameters/metacopy", "N\n");
	put("/sys/module/overlay/parameters/limit", "16\n");
	put(MODULES_OWN_FILE, "overlay\n");
	put("/etc/modprobe.d/o.conf", "options overlay metacopy=1 limit=0x10\n"
	    "options overlay metacopy=0 unknown=7\n");
	run_open(&run, &resource_modules);
	want_module(&run, "overlay");
	look(&run);
	assert_int_equal(state_of(&run, "overlay"), ITEM_IN_SYNC);
	assert_string_equal(reason_of(&run, "overlay"), "");
	put("/etc/modprobe.d/o.conf", "\noptions overlay metacopy=on limit=16\n"
	    "options overlay metacopy\n");
	look(&run);
	assert_int_equal(state_of(&run, "overlay"), ITEM_IN_SYNC);
	assert_non_null(strstr(reason_of(&run, "overlay"),
			       "o.conf:3 asks for metacopy=Y, the running "
			       "module has N"));
	assert_int_equal(run.changes.n, 0);
	run_close(&run);
}

static void an_alias_counts(void **state)
{
	struct run run;

	(void)state;
	put("/sys/module/nf_conntrack/initstate", "live\n");
	run_open(&run, &resource_modules);
	want_module(&run, "nf_conntrack_ipv4");
	look(&run);
	assert_int_equal(state_of(&run, "nf_conntrack_ipv4"), ITEM_IN_SYNC);
	want_module(&run, "flows-of-ours");
	look(&run);
	assert_int_equal(state_of(&run, "flows-of-ours"), ITEM_BLOCKED);
	put("/etc/modprobe.d/a.conf", "alias flows_of_ours nf-conntrack\n");
	look(&run);
	assert_int_equal(state_of(&run, "flows-of-ours"), ITEM_IN_SYNC);
	run_close(&run);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, fresh, scratch_drop)
	const struct CMUnitTest tests[] = {
		T(names),
		T(where_modules_are),
		T(a_hidden_index),
		T(live_states),
		T(denials),
		T(a07_loaded_and_persisted),
		T(mo03_kernel_upgraded_on_disk),
		T(mo04_one_bad_module),
		T(mo02_loaded_and_denied),
		T(a_kernel_without_modules),
		T(mo02_options_of_a_running_module),
		T(an_alias_counts),
	};

	return cmocka_run_group_tests_name("modules", tests, NULL, NULL);
}
