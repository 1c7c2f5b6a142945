/* The mounts resource: what is on a disk, the plan, units and their record. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scratch.h"

#include "resource_run.h"

#include "agent/disk/probe.h"
#include "agent/res/mounts.h"
#include "agent/res/mounts_plan.h"
#include "proto/order.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define PATH "/var/lib/longhorn"
#define DEVICE "/dev/disk/by-id/virtio-data"
#define UNIT "var-lib-longhorn.mount"
#define FILE_ "/etc/systemd/system/" UNIT
#define LINK "/etc/systemd/system/local-fs.target.wants/" UNIT
#define KEPT PATH MOUNTS_PERSISTED
#define BOOT "11111111-2222-3333-4444-555555555555"
#define MOUNTED(dev, fs) "36 25 " dev " / " PATH " rw shared:9 - " fs " /dev/vdc rw\n"

static const char root_line[] = "25 1 254:0 / / rw shared:1 - ext4 /dev/vda rw\n";

static int fresh(void **state)
{
	(void)scratch_make(state);
	put("/proc/1/mountinfo", root_line);
	put("/proc/sys/kernel/random/boot_id", BOOT "\n");
	put("/run/udev/data/b254:32", "N:vdc\nS:disk/by-id/virtio-data\n");
	put("/run/udev/data/b254:0", "N:vda\nS:disk/by-id/virtio-data2\n");
	scratch_dir(PATH);
	return 0;
}

static void open_with(struct run *run, bool format)
{
	run_open(run, &resource_mounts);
	assert_int_equal(desired_add_mount(run->want, DEVICE, PATH, "ext4",
					   format), 0);
}

static void answer(enum disk_state state, const char *fs, const char *text)
{
	struct disk_seen s = { .boot = BOOT, .device = DEVICE, .major = 254,
			       .minor = 32, .state = state };

	(void)snprintf(s.fs, sizeof(s.fs), "%s", fs);
	(void)snprintf(s.text, sizeof(s.text), "%s", text);
	assert_int_equal(disk_seen_write(scratch_state, "var-lib-longhorn", &s,
					 NULL), 0);
}

/* ---- on the disk ---- */

#define IMAGE_SIZE (64L << 20)

static int image(const char *at, const void *data, size_t size, long offset)
{
	int fd = open(scratch_path(at), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, IMAGE_SIZE), 0);
	assert_int_equal(pwrite(fd, data, size, offset), size);
	return fd;
}

static void b02_only_blank_is_blank(void **state)
{
	static const uint8_t table[66] = { [2] = 0x83, [8] = 0x08, [9] = 0x08,
					   [13] = 1, [64] = 0x55, [65] = 0xaa };
	static const struct {
		const void *data;
		size_t size;
		long offset;
		enum disk_state state;
		const char *text;
	} t[] = {
		{ "", 1, 0, DISK_BLANK, "blank" },
		{ "x", 1, 0, DISK_OTHER, "(at byte 0)" },
		{ "x", 1, (1 << 20) - 1, DISK_OTHER, "(at byte 1048575)" },
		{ "x", 1, IMAGE_SIZE - 1, DISK_OTHER, "(at byte 67108863)" },
		{ "x", 1, IMAGE_SIZE - (1 << 20), DISK_OTHER, "of no known" },
		{ table, sizeof(table), 446, DISK_OTHER, "partition table" },
		{ "LVM2 001", 8, 536, DISK_OTHER, "holds" },
		{ "XFSB", 4, 0, DISK_OTHER, "holds" },
		{ "\xfc\x4e\x2b\xa9", 4, 4096, DISK_OTHER, "holds" },
	};
	struct disk_seen seen;
	size_t i;
	int fd;

	(void)state;
	for (i = 0; i < N(t); i++) {
		(void)unlink(scratch_path("/disk"));
		fd = image("/disk", t[i].data, t[i].size, t[i].offset);
		memset(&seen, 0, sizeof(seen));
		disk_probe(fd, IMAGE_SIZE, &seen);
		(void)close(fd);
		assert_int_equal(seen.state, t[i].state);
		assert_non_null(strstr(seen.text, t[i].text));
	}
	fd = image("/disk", "", 1, 0);
	disk_probe(fd, DISK_SIZE_MIN - 1, &seen);
	(void)close(fd);
	assert_int_equal(seen.state, DISK_OTHER);
}

static void b02_a_filesystem_is_named(void **state)
{
	char cmd[256];
	struct disk_seen seen = { 0 };
	int fd;

	(void)state;
	fd = image("/disk", "", 1, 0);
	(void)snprintf(cmd, sizeof(cmd), "PATH=$PATH:/usr/sbin mkfs.ext4 -q -L "
		       "mine %s", scratch_path("/disk"));
	assert_int_equal(system(cmd), 0);
	disk_probe(fd, IMAGE_SIZE, &seen);
	(void)close(fd);
	assert_int_equal(seen.state, DISK_FILESYSTEM);
	assert_string_equal(seen.fs, "ext4");
	assert_int_equal(strlen(seen.uuid), 36);
	assert_non_null(strstr(seen.text, "label mine"));
}

/* ---- the plan ---- */

static void b02_step_by_step(void **state)
{
	static const struct {
		enum disk_state state;
		const char *fs, *text;
		bool format;
		enum mount_step step;
		enum item_state item;
		const char *reason;
	} t[] = {
		{ DISK_STATE_MAX, "", "", true, MOUNT_LOOK, ITEM_ABSENT,
		  "looked at first" },
		{ DISK_BLANK, "", "blank", true, MOUNT_MAKE, ITEM_ABSENT,
		  "is made" },
		{ DISK_BLANK, "", "blank", false, MOUNT_NOTHING, ITEM_BLOCKED,
		  "if-blank" },
		{ DISK_FILESYSTEM, "ext4", "holds ext4", true, MOUNT_MOUNT,
		  ITEM_ABSENT, "" },
		{ DISK_FILESYSTEM, "ext4", "holds ext4", false, MOUNT_MOUNT,
		  ITEM_ABSENT, "" },
		{ DISK_FILESYSTEM, "xfs", "holds xfs ab", true, MOUNT_NOTHING,
		  ITEM_BLOCKED, "holds xfs ab, and is not touched" },
		{ DISK_OTHER, "", "holds a partition table (gpt)", true,
		  MOUNT_NOTHING, ITEM_BLOCKED, "(gpt), and is not touched" },
		{ DISK_BUSY, "", "is in use", true, MOUNT_LOOK, ITEM_BLOCKED,
		  "is in use" },
	};
	struct mounts_seen *seen;
	struct run run;
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		disk_forget(scratch_state, "var-lib-longhorn");
		if (t[i].state != DISK_STATE_MAX)
			answer(t[i].state, t[i].fs, t[i].text);
		open_with(&run, t[i].format);
		look(&run);
		seen = run.seen;
		assert_int_equal(mount_step(&run.want->mounts[0], &seen->v[0]),
				 t[i].step);
		assert_int_equal(state_of(&run, PATH), t[i].item);
		assert_non_null(strstr(reason_of(&run, PATH), t[i].reason));
		assert_int_equal(change_list_find(&run.changes, PATH) != NULL,
				 t[i].item == ITEM_ABSENT);
		/* Without systemd nothing is done to it. */
		assert_int_equal(apply(&run), 0);
		assert_null(get("/state/disk/var-lib-longhorn.want"));
		run_close(&run);
		(void)unlink(scratch_path(FILE_));
		(void)unlink(scratch_path(LINK));
	}
}

/* What was said in another boot, or of another disk, counts for nothing. */
static void old_answers_do_not_count(void **state)
{
	static const struct {
		const char *boot, *device;
		unsigned int minor;
	} t[] = {
		{ "another", DEVICE, 32 },
		{ BOOT, "/dev/disk/by-id/other", 32 },
		{ BOOT, DEVICE, 48 },
	};
	struct disk_seen s = { .major = 254, .state = DISK_BLANK };
	struct run run;
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		(void)snprintf(s.boot, sizeof(s.boot), "%s", t[i].boot);
		(void)snprintf(s.device, sizeof(s.device), "%s", t[i].device);
		s.minor = t[i].minor;
		assert_int_equal(disk_seen_write(scratch_state,
						 "var-lib-longhorn", &s, NULL),
				 0);
		open_with(&run, true);
		look(&run);
		assert_non_null(strstr(reason_of(&run, PATH), "looked at"));
		run_close(&run);
	}
	put("/state/disk/var-lib-longhorn.seen", "state blank\nnonsense\n");
	open_with(&run, true);
	look(&run);
	assert_non_null(strstr(reason_of(&run, PATH), "looked at"));
	run_close(&run);
}

static void obstacles_are_named_and_left_alone(void **state)
{
	struct run run;

	(void)state;
	answer(DISK_BLANK, "", "blank");
	open_with(&run, true);

	put(PATH "/data", "x");
	look(&run);
	assert_int_equal(state_of(&run, PATH), ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, PATH), "not empty"));
	(void)unlink(scratch_path(PATH "/data"));

	put("/etc/fstab", "# x\n/dev/sdb1 " PATH " ext4 defaults 0 2\n");
	look(&run);
	assert_non_null(strstr(reason_of(&run, PATH), "/etc/fstab:2"));
	put("/etc/fstab", "");

	put(FILE_, "[Mount]\nWhat=/dev/sdz\n");
	look(&run);
	assert_non_null(strstr(reason_of(&run, PATH), "somebody's own unit"));
	assert_int_equal(run.changes.n, 0);
	(void)apply(&run);
	assert_string_equal(get(FILE_), "[Mount]\nWhat=/dev/sdz\n");
	(void)unlink(scratch_path(FILE_));

	put("/proc/1/mountinfo", MOUNTED("254:48", "ext4"));
	look(&run);
	assert_int_equal(state_of(&run, PATH), ITEM_BLOCKED);
	assert_non_null(strstr(reason_of(&run, PATH), "something else"));
	put("/proc/1/mountinfo", root_line);

	(void)unlink(scratch_path("/run/udev/data/b254:32"));
	look(&run);
	assert_int_equal(state_of(&run, PATH), ITEM_PENDING);
	assert_non_null(strstr(reason_of(&run, PATH), "no such device"));
	assert_int_equal(run.changes.n, 0);
	run_close(&run);
}

static void b02_mounted_kept_and_taken_back(void **state)
{
	char key[] = UNIT MOUNTS_PERSISTED;
	struct run run;

	(void)state;
	put("/proc/1/mountinfo", MOUNTED("254:32", "ext4"));
	open_with(&run, true);
	look(&run);
	assert_int_equal(state_of(&run, PATH), ITEM_IN_SYNC);
	assert_int_equal(state_of(&run, KEPT), ITEM_ABSENT);
	assert_int_equal(apply(&run), 0);
	look(&run);
	assert_int_equal(state_of(&run, KEPT), ITEM_IN_SYNC);
	assert_int_equal(run.changes.n, 0);
	assert_non_null(strstr(get(FILE_), "What=" DEVICE "\n"));
	assert_non_null(strstr(get(FILE_), "Options=nofail\n"));
	assert_non_null(get(LINK));
	/* The link alone is gone: it would not be mounted at boot. */
	(void)unlink(scratch_path(LINK));
	look(&run);
	assert_int_equal(state_of(&run, KEPT), ITEM_DRIFTED);
	assert_int_equal(apply(&run), 0);
	assert_non_null(get(LINK));
	run_close(&run);

	run_open(&run, &resource_mounts);
	look(&run);
	assert_int_equal(state_of(&run, key), ITEM_DRIFTED);
	assert_non_null(strstr(reason_of(&run, key), "stays until"));
	assert_int_equal(apply(&run), 0);
	assert_null(get(FILE_));
	assert_null(get(LINK));
	look(&run);
	assert_int_equal(run.items.n + run.changes.n, 0);
	run_close(&run);
}

/* Ours by the record, and somebody else's by what it is now. */
static void a_unit_that_others_replaced_stays(void **state)
{
	struct run run;

	(void)state;
	put("/proc/1/mountinfo", MOUNTED("254:32", "ext4"));
	open_with(&run, true);
	look(&run);
	assert_int_equal(apply(&run), 0);
	put(FILE_, "[Mount]\nWhat=/dev/sdz\n");
	run_close(&run);
	run_open(&run, &resource_mounts);
	look(&run);
	assert_int_equal(apply(&run), 0);
	assert_string_equal(get(FILE_), "[Mount]\nWhat=/dev/sdz\n");
	look(&run);
	assert_int_equal(run.items.n, 0);
	run_close(&run);
}

static void what_is_mounted_wrongly(void **state)
{
	static const struct {
		const char *line, *reason;
	} t[] = {
		{ MOUNTED("254:32", "xfs"), "it is xfs, not ext4" },
		{ "36 25 254:32 / " PATH " rw - ext4 /dev/vdc rw\n",
		  "--make-rshared" },
		{ MOUNTED("254:32", "ext4") MOUNTED("0:50", "tmpfs"),
		  "something else" },
	};
	struct run run;
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		put("/proc/1/mountinfo", t[i].line);
		open_with(&run, true);
		look(&run);
		assert_int_equal(state_of(&run, PATH), ITEM_BLOCKED);
		assert_non_null(strstr(reason_of(&run, PATH), t[i].reason));
		assert_null(change_list_find(&run.changes, PATH));
		run_close(&run);
	}
}

static void b03_names_that_an_order_may_carry(void **state)
{
	static const struct {
		const char *text;
		bool device, point;
	} t[] = {
		{ "/dev/disk/by-id/nvme-X_1", true, false },
		{ "/dev/disk/by-partuuid/0-1", true, false },
		{ "/dev/sdb", false, false },
		{ "/dev/disk/by-diskseq/1", false, false },
		{ "/dev/disk/by-id/../sda", false, false },
		{ "/dev/disk/by-id/a b", false, false },
		{ "/dev/disk/by-id/", false, false },
		{ "/dev/disk/by-id/a\nWhat=/dev/sda", false, false },
		{ "/var/lib/longhorn", false, true },
		{ "/srv", false, true },
		{ "/", false, false }, { "/etc/x", false, false },
		{ "/usr", false, false }, { "/usrx", false, true },
		{ "/var", false, false }, { "/var/lib", false, false },
		{ "/var/lib/garboard", false, false },
		{ "/a/../etc", false, false }, { "/a//b", false, false },
		{ "/a/", false, false }, { "a", false, false },
		{ "/a%b", false, false }, { "/.a", false, false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		assert_int_equal(order_is_device(t[i].text), t[i].device);
		assert_int_equal(order_is_mount_point(t[i].text), t[i].point);
	}
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fresh, scratch_drop)
	static const struct CMUnitTest tests[] = {
		TEST(b02_only_blank_is_blank),
		TEST(b02_a_filesystem_is_named),
		TEST(b02_step_by_step),
		TEST(old_answers_do_not_count),
		TEST(obstacles_are_named_and_left_alone),
		TEST(b02_mounted_kept_and_taken_back),
		TEST(a_unit_that_others_replaced_stays),
		TEST(what_is_mounted_wrongly),
		cmocka_unit_test(b03_names_that_an_order_may_carry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
