/* The sysctl resource: names, files, plan and apply below a scratch root. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mount.h>

#include <cmocka.h>

#include "scratch.h"

#include "resource_run.h"

#include "agent/ours.h"
#include "agent/res/sysctl.h"
#include "agent/res/sysctl_plan.h"
#include "agent/res/sysctl_unit.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static void key_spellings(void **state)
{
	static const struct {
		const char *key, *path;	/* NULL: refused */
	} t[] = {
		{ "net.ipv4.ip_forward", "net/ipv4/ip_forward" },
		{ "net/ipv4/ip_forward", "net/ipv4/ip_forward" },
		{ "/net/ipv4/ip_forward", "net/ipv4/ip_forward" },
		{ "net/ipv4/conf/eth0.5/rp_filter",
		  "net/ipv4/conf/eth0.5/rp_filter" },
		{ "net.ipv4.conf.eth0/5.rp_filter",
		  "net/ipv4/conf/eth0.5/rp_filter" },
		{ "net.ipv4.conf.*.rp_filter", "net/ipv4/conf/*/rp_filter" },
		{ "../../etc/passwd", NULL },
		{ "net/../../../etc/passwd", NULL },
		{ "net..ipv4", NULL },
		{ "net.ipv4.", NULL },
		{ "", NULL },
		{ "/", NULL },
		{ "single", NULL },
		{ "net.ipv4 ip", NULL },
		{ "net.ipv4=1", NULL },
		{ "net.ipv4\n.x", NULL },
	};
	char buf[SYSCTL_KEY_MAX];
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		int r = sysctl_key_path(t[i].key, buf, sizeof(buf));

		if (!t[i].path) {
			assert_int_equal(r, -EINVAL);
			continue;
		}
		assert_int_equal(r, 0);
		assert_string_equal(buf, t[i].path);
	}
}

static void values(void **state)
{
	static const struct {
		const char *a, *b;
		bool equal;
	} t[] = {
		{ "1", "1", true },
		{ "16", "0x10", true },
		{ "-1", "-1", true },
		{ "1", "-1", false },
		{ "8", "010", true },
		{ "4096 87380 6291456", "4096 87380 6291456", true },
		{ "4096 87380", "4096 87380 1", false },
		{ "1", "", false },
		{ "", "", true },
		{ "bbr", "cubic", false },
		{ "1", "1x", false },
	};
	char text[] = "\t4096\t 87380   6291456\n";
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++)
		assert_int_equal(sysctl_value_equal(t[i].a, t[i].b),
				 t[i].equal);
	sysctl_fold(text);
	assert_string_equal(text, "4096 87380 6291456");
}

/* Which line wins at boot, over the directories and their order. */
static void files_in_order(void **state)
{
	struct sysctl_lines lines = SYSCTL_LINES_INIT;
	const struct sysctl_line *l;

	(void)state;
	put("/usr/lib/sysctl.d/99-a.conf", "net.ipv4.ip_forward = 0\n");
	put("/etc/sysctl.d/99-a.conf", "# hides the vendor's file\n");
	put("/etc/sysctl.d/10-early.conf", "vm.swappiness=1\n");
	put("/run/sysctl.d/95-x.conf",
	    "; comment\nnot an assignment\n-kernel.panic = 5\n"
	    "net.ipv4.conf.*.rp_filter=2\n-net.ipv4.conf.lo.rp_filter\n");
	put("/etc/sysctl.d/99-zz.conf",
	    "\nnet/ipv4/conf/all/forwarding\t=\t0\n");
	put(SYSCTL_OWN_FILE, "net/ipv4/ip_forward = 1\nkernel/panic = 10\n");
	assert_int_equal(sysctl_lines_read(scratch, &lines, NULL), 0);

	l = sysctl_lines_override(&lines, "net/ipv4/ip_forward", "1");
	assert_non_null(l);
	assert_string_equal(l->file, "/etc/sysctl.d/99-zz.conf");
	assert_int_equal(l->line, 2);
	l = sysctl_lines_override(&lines, "kernel/panic", "10");
	assert_non_null(l);
	assert_string_equal(l->file, "/run/sysctl.d/95-x.conf");
	assert_int_equal(l->line, 3);
	assert_null(sysctl_lines_override(&lines, "kernel/panic", "5"));
	assert_null(sysctl_lines_override(&lines, "vm/swappiness", "60"));
	assert_null(sysctl_lines_override(&lines, "net/ipv4/conf/all/rp_filter",
					  "0"));
	l = sysctl_lines_own(&lines, "kernel/panic");
	assert_non_null(l);
	assert_string_equal(l->value, "10");
	sysctl_lines_done(&lines);
}

static void wanted(struct run *run, const char *key, const char *value,
		   bool optional)
{
	assert_int_equal(desired_add_sysctl(run->want, key, value, optional),
			 0);
}

static void sy01_live_and_persisted_are_judged_apart(void **state)
{
	struct run run;

	(void)state;
	put("/proc/sys/kernel/watchdog", "1\n");
	run_open(&run, &resource_sysctl);
	wanted(&run, "kernel.watchdog", "0", false);
	look(&run);
	assert_int_equal(state_of(&run, "kernel.watchdog"), ITEM_DRIFTED);
	assert_int_equal(state_of(&run, "kernel.watchdog (persisted)"),
			 ITEM_ABSENT);
	assert_int_equal(run.changes.n, 2);
	assert_int_equal(apply(&run), 0);
	assert_string_equal(get("/proc/sys/kernel/watchdog"), "0\n");
	look(&run);
	assert_int_equal(run.changes.n, 0);
	assert_int_equal(item_list_worst(&run.items), ITEM_IN_SYNC);

	put("/proc/sys/kernel/watchdog", "1\n");
	look(&run);
	assert_int_equal(run.changes.n, 1);
	assert_string_equal(run.changes.v[0].key, "kernel.watchdog");
	assert_int_equal(apply(&run), 0);

	put(SYSCTL_OWN_FILE, "");
	look(&run);
	assert_int_equal(run.changes.n, 1);
	assert_string_equal(run.changes.v[0].key,
			    "kernel.watchdog (persisted)");
	run_close(&run);
}

static void sy03_overriding_file_is_named(void **state)
{
	struct run run;

	(void)state;
	put("/proc/sys/net/ipv4/conf/all/rp_filter", "0\n");
	put("/etc/sysctl.d/99-zz.conf",
	    "# theirs\nnet.ipv4.conf.all.rp_filter = 1\n");
	run_open(&run, &resource_sysctl);
	wanted(&run, "net.ipv4.conf.all.rp_filter", "0", false);
	look(&run);
	assert_int_equal(apply(&run), 0);
	look(&run);
	assert_int_equal(run.changes.n, 0);
	assert_int_equal(state_of(&run,
				  "net.ipv4.conf.all.rp_filter (persisted)"),
			 ITEM_BLOCKED);
	assert_non_null(strstr(
		reason_of(&run, "net.ipv4.conf.all.rp_filter (persisted)"),
		"/etc/sysctl.d/99-zz.conf:2"));
	run_close(&run);
}

/*
 * A regular file takes any value; a directory in the place of a key stands
 * for one that cannot be read, and a mode without write bits for read-only.
 */
static void sy05_one_unknown_key(void **state)
{
	char key[64], path[128];
	struct run run;
	int i;

	(void)state;
	run_open(&run, &resource_sysctl);
	for (i = 1; i <= 10; i++) {
		(void)snprintf(key, sizeof(key), "kernel.k%d", i);
		(void)snprintf(path, sizeof(path), "/proc/sys/kernel/k%d", i);
		wanted(&run, key, "7", false);
		if (i != 3)
			put(path, "1\n");
	}
	(void)snprintf(path, sizeof(path), "%s/proc/sys/kernel/k6", scratch);
	assert_int_equal(chmod(path, 0444), 0);
	look(&run);
	assert_int_equal(state_of(&run, "kernel.k3"), ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, "kernel.k3"), "ENOENT"));
	assert_int_equal(state_of(&run, "kernel.k6"), ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, "kernel.k6"), "read-only"));
	assert_int_equal(apply(&run), 0);
	for (i = 1; i <= 10; i++) {
		(void)snprintf(path, sizeof(path), "/proc/sys/kernel/k%d", i);
		if (i != 3)
			assert_string_equal(get(path),
					    i == 6 ? "1\n" : "7\n");
	}
	look(&run);
	assert_int_equal(run.changes.n, 0);
	run_close(&run);
}

static void sy06_removed_from_the_spec(void **state)
{
	struct run run;

	(void)state;
	put("/proc/sys/kernel/a", "1\n");
	put("/proc/sys/kernel/b", "2\n");
	put("/proc/sys/kernel/c", "3\n");
	run_open(&run, &resource_sysctl);
	wanted(&run, "kernel.a", "10", false);
	wanted(&run, "kernel.b", "20", false);
	wanted(&run, "kernel.c", "3", false);
	look(&run);
	assert_int_equal(apply(&run), 0);
	run_close(&run);

	/* A new life of the agent, a spec with only c, and b changed since. */
	put("/proc/sys/kernel/b", "99\n");
	run_open(&run, &resource_sysctl);
	wanted(&run, "kernel.c", "3", false);
	look(&run);
	assert_non_null(change_list_find(&run.changes, "kernel/a"));
	assert_string_equal(change_list_find(&run.changes, "kernel/a")->want,
			    "1");
	assert_int_equal(change_list_find(&run.changes, "kernel/b")->op,
			 CHANGE_REMOVE);
	assert_int_equal(apply(&run), 0);
	assert_string_equal(get("/proc/sys/kernel/a"), "1\n");
	assert_string_equal(get("/proc/sys/kernel/b"), "99\n");
	assert_null(strstr(get(SYSCTL_OWN_FILE), "kernel/a"));
	assert_non_null(strstr(get(SYSCTL_OWN_FILE), "kernel/c = 3"));
	look(&run);
	assert_int_equal(run.changes.n, 0);
	assert_int_equal(run.items.n, 2);
	run_close(&run);
}

static void modules_and_optional_keys(void **state)
{
	struct run run;

	(void)state;
	run_open(&run, &resource_sysctl);
	wanted(&run, "net.bridge.bridge-nf-call-iptables", "1", false);
	wanted(&run, "net.netfilter.nf_conntrack_max", "1048576", true);
	wanted(&run, "net.bridge.bridge-nf-call-ip6tables", "1", true);
	look(&run);
	assert_int_equal(state_of(&run, "net.bridge.bridge-nf-call-iptables"),
			 ITEM_BLOCKED);
	assert_int_equal(state_of(&run, "net.netfilter.nf_conntrack_max"),
			 ITEM_IN_SYNC);
	assert_int_equal(strlist_add(&run.want->modules, "br-netfilter"), 0);
	look(&run);
	assert_int_equal(state_of(&run, "net.bridge.bridge-nf-call-iptables"),
			 ITEM_PENDING);
	assert_int_equal(state_of(&run, "net.bridge.bridge-nf-call-ip6tables"),
			 ITEM_PENDING);
	assert_int_equal(apply(&run), 0);
	assert_non_null(strstr(get(SYSCTL_OWN_FILE),
			       "-net/netfilter/nf_conntrack_max = 1048576\n"));
	run_close(&run);
}

/* A link may come later; a dot in its name is written as a slash. */
static void sy03_keys_of_links(void **state)
{
	static const char dots[] = "net.ipv4.conf.eth0.100.rp_filter";
	static const char vlan[] = "net.ipv4.conf.eth0/100.rp_filter";
	struct run run;

	(void)state;
	put("/proc/sys/net/ipv4/conf/lo/rp_filter", "0\n");
	run_open(&run, &resource_sysctl);
	wanted(&run, vlan, "2", false);
	wanted(&run, "net/ipv4/conf/eth0.200/rp_filter", "2", true);
	wanted(&run, dots, "2", false);
	wanted(&run, "net.ipv4.conf.lo.no_such", "2", false);
	look(&run);
	assert_int_equal(state_of(&run, vlan), ITEM_PENDING);
	assert_non_null(strstr(reason_of(&run, vlan), "when the link comes"));
	assert_int_equal(state_of(&run, "net/ipv4/conf/eth0.200/rp_filter"),
			 ITEM_IN_SYNC);
	assert_int_equal(state_of(&run, dots), ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, dots), "eth0/100"));
	assert_int_equal(state_of(&run, "net.ipv4.conf.lo.no_such"),
			 ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, "net.ipv4.conf.lo.no_such"),
			       "ENOENT"));
	assert_int_equal(apply(&run), 0);
	assert_non_null(strstr(get(SYSCTL_OWN_FILE),
			       "\nnet/ipv4/conf/eth0.100/rp_filter = 2\n"));
	put("/proc/sys/net/ipv4/conf/eth0.100/rp_filter", "0\n");
	look(&run);
	assert_int_equal(run.changes.n, 1);
	assert_int_equal(apply(&run), 0);
	assert_string_equal(get("/proc/sys/net/ipv4/conf/eth0.100/rp_filter"),
			    "2\n");
	run_close(&run);
}

/* Which line decides about a key at boot, wildcards included. */
static void sy03_wildcards_of_files(void **state)
{
	static const struct {
		const char *path, *file, *value;	/* NULL: none */
	} t[] = {
		{ "net/ipv4/conf/eth0/rp_filter", "/etc/sysctl.d/60-e.conf",
		  "1" },
		{ "net/ipv4/conf/lo/rp_filter", "/etc/sysctl.d/50-d.conf",
		  "2" },
		{ "net/ipv4/conf/hub0/rp_filter", "/etc/sysctl.d/10-a.conf",
		  "0" },
		{ "net/ipv4/conf/all/rp_filter", "/etc/sysctl.d/70-x.conf",
		  NULL },
		{ "net/ipv4/conf/lo/arp_ignore", NULL, NULL },
		{ "net/ipv4/neigh/lo/gc_stale_time", "/etc/sysctl.d/70-x.conf",
		  "6" },
	};
	struct sysctl_lines lines = SYSCTL_LINES_INIT;
	size_t i;

	(void)state;
	put("/etc/sysctl.d/10-a.conf", "net.ipv4.conf.hub0.rp_filter = 0\n"
	    "net.ipv4.neigh.*.gc_stale_time = 5\n");
	put("/etc/sysctl.d/50-d.conf", "net.ipv4.conf.*.rp_filter = 2\n"
	    "net.ipv4.neigh.l*.gc_stale_time = 7\n");
	put("/etc/sysctl.d/60-e.conf", "net.ipv4.conf.e*.rp_filter = 1\n");
	/* The same again keeps the place of the first; another value moves. */
	put("/etc/sysctl.d/70-x.conf", "net/ipv4/conf/*/rp_filter = 2\n"
	    "-net.ipv4.conf.all.rp_filter\n"
	    "net.ipv4.neigh.*.gc_stale_time = 6\n");
	assert_int_equal(sysctl_lines_read(scratch, &lines, NULL), 0);
	for (i = 0; i < N(t); i++) {
		const struct sysctl_line *l =
			sysctl_lines_boot(&lines, t[i].path);

		assert_int_equal(l != NULL, t[i].file != NULL);
		if (!l)
			continue;
		assert_string_equal(l->file, t[i].file);
		assert_int_equal(l->value != NULL, t[i].value != NULL);
		if (l->value)
			assert_string_equal(l->value, t[i].value);
	}
	sysctl_lines_done(&lines);
}

#define RP(link) "/proc/sys/net/ipv4/conf/" link "/rp_filter"
#define RP_KEY(link) "net/ipv4/conf/" link "/rp_filter"

static void sy03_wildcard_and_new_link(void **state)
{
	static const char glob[] = "net.ipv4.conf.*.rp_filter";
	static const char kept[] = "net.ipv4.conf.*.rp_filter (persisted)";
	struct run run;

	(void)state;
	put(RP("all"), "0\n");
	put(RP("lo"), "0\n");
	put(RP("hub0"), "0\n");
	put(RP("eth0"), "2\n");
	run_open(&run, &resource_sysctl);
	wanted(&run, glob, "2", false);
	wanted(&run, "net.ipv4.conf.hub0.rp_filter", "1", false);
	wanted(&run, "net.ipv4.conf.all.rp_filter", "", false);
	run.want->sysctls[2].exclude = true;
	look(&run);
	assert_int_equal(state_of(&run, glob), ITEM_DRIFTED);
	assert_string_equal(item_list_find(&run.items, glob)->have,
			    "1 of 2 keys");
	assert_int_equal(state_of(&run, RP_KEY("lo")), ITEM_DRIFTED);
	assert_null(item_list_find(&run.items, RP_KEY("eth0")));
	assert_int_equal(apply(&run), 0);
	assert_string_equal(get(RP("lo")), "2\n");
	assert_string_equal(get(RP("hub0")), "1\n");
	assert_string_equal(get(RP("all")), "0\n");
	assert_non_null(strstr(get(SYSCTL_OWN_FILE),
			       "\nnet/ipv4/conf/*/rp_filter = 2\n"
			       "net/ipv4/conf/hub0/rp_filter = 1\n"
			       "-net/ipv4/conf/all/rp_filter\n"));
	look(&run);
	assert_int_equal(run.changes.n, 0);
	assert_int_equal(item_list_worst(&run.items), ITEM_IN_SYNC);

	put(RP("veth1"), "0\n");
	look(&run);
	assert_int_equal(run.changes.n, 1);
	assert_int_equal(apply(&run), 0);
	assert_string_equal(get(RP("veth1")), "2\n");
	look(&run);
	assert_int_equal(run.changes.n, 0);
	/* It goes, and its record with it; what was before us on lo stays. */
	assert_int_equal(unlink(scratch_path(RP("veth1"))), 0);
	look(&run);
	assert_int_equal(run.changes.n, 0);
	assert_int_equal(item_list_worst(&run.items), ITEM_IN_SYNC);

	put("/etc/sysctl.d/99-zz.conf", "\nnet.ipv4.conf.l*.rp_filter = 1\n");
	look(&run);
	assert_int_equal(state_of(&run, kept), ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, kept), "99-zz.conf:2 sets "
			       RP_KEY("lo") " to 1"));
	put("/etc/sysctl.d/99-zz.conf", "-net.ipv4.conf.eth0.rp_filter\n");
	look(&run);
	assert_non_null(strstr(reason_of(&run, kept), "99-zz.conf:1 takes "
			       RP_KEY("eth0") " out of all"));
	assert_int_equal(unlink(scratch_path("/etc/sysctl.d/99-zz.conf")), 0);

	/* SY-06 for a wildcard. */
	run.want->sysctls[0].exclude = true;
	look(&run);
	assert_string_equal(change_list_find(&run.changes,
					     RP_KEY("lo"))->want, "0");
	assert_null(change_list_find(&run.changes, RP_KEY("eth0")));
	run_close(&run);
}

/* Debian 12 has the old file by a link, and that sorts last. */
static void sy03_sysctl_conf_by_its_link(void **state)
{
	static const char key[] = "kernel.panic (persisted)";
	struct run run;

	(void)state;
	put("/proc/sys/kernel/panic", "10\n");
	put("/etc/sysctl.conf", "# old\n\nkernel.panic = 0\n");
	run_open(&run, &resource_sysctl);
	wanted(&run, "kernel.panic", "10", false);
	look(&run);
	assert_int_equal(apply(&run), 0);
	look(&run);
	assert_int_equal(state_of(&run, key), ITEM_IN_SYNC);
	put_link("/etc/sysctl.d/99-sysctl.conf", "../sysctl.conf");
	look(&run);
	assert_int_equal(state_of(&run, key), ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, key),
			       "/etc/sysctl.d/99-sysctl.conf:3"));
	run_close(&run);
}

static void bad_keys_block_only_themselves(void **state)
{
	struct run run;

	(void)state;
	put("/proc/sys/kernel/a", "1\n");
	run_open(&run, &resource_sysctl);
	wanted(&run, "../../etc/passwd", "1", false);
	wanted(&run, "net.ipv4.conf.*.no_such", "1", false);
	wanted(&run, "kernel.a", "2", false);
	wanted(&run, "kernel/a", "3", false);
	wanted(&run, "kernel.lines", "1\nkernel.b = 2", false);
	look(&run);
	assert_int_equal(state_of(&run, "../../etc/passwd"), ITEM_BLOCKED);
	assert_int_equal(state_of(&run, "net.ipv4.conf.*.no_such"),
			 ITEM_BLOCKED);
	assert_int_equal(state_of(&run, "kernel/a"), ITEM_BLOCKED);
	assert_int_equal(state_of(&run, "kernel.lines"), ITEM_BLOCKED);
	assert_int_equal(run.changes.n, 3);
	assert_int_equal(apply(&run), 0);
	assert_string_equal(get("/proc/sys/kernel/a"), "2\n");
	assert_null(strstr(get(SYSCTL_OWN_FILE), "kernel.b"));
	run_close(&run);
}

static void refused_by_the_kernel(void **state)
{
	static char path[] = "kernel/panic", value[] = "1", bad[] = "x",
		    note[] = "the kernel refuses";
	struct sysctl_seen_key k = {
		.path = path, .value = value, .refused = -EINVAL,
		.refused_value = bad, .refused_note = note,
	};
	struct sysctl_seen seen = { .v = &k, .n = 1 };
	struct item_list items = ITEM_LIST_INIT;
	struct change_list changes = CHANGE_LIST_INIT;
	struct desired *d = desired_new();

	(void)state;
	assert_int_equal(desired_add_sysctl(d, "kernel.panic", "x", false), 0);
	assert_int_equal(sysctl_plan(d, &seen, &items, &changes, NULL), 0);
	assert_int_equal(changes.n, 0);
	assert_int_equal(items.v[0].state, ITEM_BLOCKED);
	assert_string_equal(items.v[0].reason, note);
	assert_int_equal(items.v[1].state, ITEM_BLOCKED);
	item_list_done(&items);

	/* Beyond our rights: what the next boot sets is still written. */
	k.refused = -EPERM;
	assert_int_equal(sysctl_plan(d, &seen, &items, &changes, NULL), 0);
	assert_int_equal(changes.n, 1);
	assert_string_equal(changes.v[0].key, "kernel.panic (persisted)");
	item_list_done(&items);
	change_list_done(&changes);
	d = desired_free(d);
}

static void unit_names(void **state)
{
	static const struct {
		const char *path, *unit;
	} t[] = {
		{ "kernel/kptr_restrict",
		  "garboard-sysctl@kernel-kptr_restrict.service" },
		{ "net/ipv4/conf/eth0.100/rp_filter",
		  "garboard-sysctl@net-ipv4-conf-eth0.100-rp_filter.service" },
		{ "net/bridge/bridge-nf-call-iptables",
		  "garboard-sysctl@net-bridge-"
		  "bridge\\x2dnf\\x2dcall\\x2diptables.service" },
	};
	char unit[SYSTEMD1_UNIT_NAME_MAX];
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		assert_int_equal(sysctl_unit_name(t[i].path, unit,
						  sizeof(unit)), 0);
		assert_string_equal(unit, t[i].unit);
		assert_true(systemd1_unit_name_is_valid(unit));
	}
	assert_int_equal(sysctl_unit_name(t[0].path, unit, 44), -ENAMETOOLONG);
}

/* A key that only others may set: asked of systemd, and never given up. */
static void sy05_beyond_our_capability(void **state)
{
	static const char key[] = "kernel.panic";
	struct run run;
	char *file;

	(void)state;
	put("/proc/sys/kernel/panic", "0\n");
	file = scratch_path("/proc/sys/kernel/panic");
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(file, file, NULL, MS_BIND, NULL) < 0)
		skip();
	assert_int_equal(mount(NULL, file, NULL,
			       MS_BIND | MS_REMOUNT | MS_RDONLY, NULL), 0);
	run_open(&run, &resource_sysctl);
	wanted(&run, key, "10", false);
	look(&run);
	assert_int_equal(apply(&run), 0);
	assert_int_equal(state_of(&run, key), ITEM_PENDING);
	assert_non_null(strstr(reason_of(&run, key),
			       "garboard-sysctl@kernel-panic.service"));
	assert_non_null(strstr(reason_of(&run, key), "D-Bus"));
	assert_non_null(strstr(get(SYSCTL_OWN_FILE), "\nkernel/panic = 10\n"));
	look(&run);
	assert_int_equal(run.changes.n, 1);
	assert_string_equal(run.changes.v[0].key, key);
	run_close(&run);
	assert_int_equal(umount(scratch_path("/proc/sys/kernel/panic")), 0);
}

static void damaged_record(void **state)
{
	struct ours ours = OURS_INIT;
	struct fault f = FAULT_INIT;

	(void)state;
	put("/state/ours/sysctl", "kernel/a\t1\n");
	assert_int_equal(ours_read(scratch_state, "sysctl", &ours, &f), -EBADMSG);
	assert_non_null(strstr(f.text, "damaged"));
	assert_int_equal(ours_put(&ours, "a\tb", "1", "2"), -EINVAL);
	ours_done(&ours);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, scratch_make, scratch_drop)
	const struct CMUnitTest tests[] = {
		T(key_spellings),
		T(values),
		T(files_in_order),
		T(sy01_live_and_persisted_are_judged_apart),
		T(sy03_overriding_file_is_named),
		T(sy05_one_unknown_key),
		T(sy06_removed_from_the_spec),
		T(modules_and_optional_keys),
		T(sy03_keys_of_links),
		T(sy03_wildcards_of_files),
		T(sy03_wildcard_and_new_link),
		T(sy03_sysctl_conf_by_its_link),
		T(bad_keys_block_only_themselves),
		T(refused_by_the_kernel),
		T(unit_names),
		T(sy05_beyond_our_capability),
		T(damaged_record),
	};

	return cmocka_run_group_tests_name("sysctl", tests, NULL, NULL);
}
