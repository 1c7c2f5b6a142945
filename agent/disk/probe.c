#include "agent/disk/probe.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"

#define EDGE (1024 * 1024)

static void say(struct disk_seen *seen, enum disk_state state,
		const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void say(struct disk_seen *seen, enum disk_state state,
		const char *fmt, ...)
{
	va_list ap;

	seen->state = state;
	va_start(ap, fmt);
	(void)vsnprintf(seen->text, sizeof(seen->text), fmt, ap);
	va_end(ap);
	fault_sanitize(seen->text);
}

/* -EIO, or the offset of the first byte that is not zero, or -1: none. */
static int64_t first_byte(int fd, uint64_t from, size_t length)
{
	_cleanup_free_ uint8_t *data = malloc(length);
	size_t have = 0, i;
	ssize_t n;

	if (!data)
		return -ENOMEM;
	while (have < length) {
		n = pread(fd, data + have, length - have,
			  (off_t)(from + have));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EIO;
		have += (size_t)n;
	}
	for (i = 0; i < length; i++)
		if (data[i])
			return (int64_t)(from + i);
	return -1;
}

static void judge_edges(int fd, uint64_t size, struct disk_seen *seen)
{
	int64_t at = first_byte(fd, 0, EDGE);

	if (at == -1)
		at = first_byte(fd, size - EDGE, EDGE);
	if (at == -1)
		say(seen, DISK_BLANK, "blank");
	else if (at < 0)
		say(seen, DISK_ERROR, "cannot be read at its edges");
	else
		say(seen, DISK_OTHER, "holds data of no known kind (at byte "
		    "%" PRId64 ")", at);
}

static const char *value(blkid_probe p, const char *name)
{
	const char *text = NULL;

	return blkid_probe_lookup_value(p, name, &text, NULL) == 0 && text ?
	       text : "";
}

static void judge_signature(blkid_probe p, struct disk_seen *seen)
{
	const char *type = value(p, "TYPE"), *table = value(p, "PTTYPE");
	const char *usage = value(p, "USAGE"), *label = value(p, "LABEL");

	if (*table) {
		say(seen, DISK_OTHER, "holds a partition table (%s)", table);
		return;
	}
	if (strcmp(usage, "filesystem") != 0) {
		say(seen, DISK_OTHER, "holds %s (%s)", *type ? type :
		    "something", *usage ? usage : "unknown");
		return;
	}
	(void)snprintf(seen->fs, sizeof(seen->fs), "%s", type);
	(void)snprintf(seen->uuid, sizeof(seen->uuid), "%s",
		       value(p, "UUID"));
	fault_sanitize(seen->fs);
	fault_sanitize(seen->uuid);
	say(seen, DISK_FILESYSTEM, "holds %s %s%s%.100s", type, seen->uuid,
	    *label ? ", label " : "", label);
}

static void judge(blkid_probe p, int fd, uint64_t size, struct disk_seen *seen)
{
	int r = blkid_do_safeprobe(p);

	if (r == 0)
		judge_signature(p, seen);
	else if (r == 1)
		judge_edges(fd, size, seen);
	else if (r == -2)
		say(seen, DISK_OTHER, "holds signatures of more than one kind");
	else
		say(seen, DISK_ERROR, "cannot be probed");
}

void disk_probe(int fd, uint64_t size, struct disk_seen *seen)
{
	blkid_probe p = NULL;

	seen->fs[0] = seen->uuid[0] = '\0';
	if (size < DISK_SIZE_MIN) {
		say(seen, DISK_OTHER, "is smaller than %" PRIu64 " MiB",
		    DISK_SIZE_MIN >> 20);
		return;
	}
	p = blkid_new_probe();
	if (!p || blkid_probe_set_device(p, fd, 0, 0) != 0 ||
	    blkid_probe_enable_superblocks(p, 1) != 0 ||
	    blkid_probe_set_superblocks_flags(
		    p, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_UUID |
			       BLKID_SUBLKS_LABEL | BLKID_SUBLKS_USAGE |
			       BLKID_SUBLKS_BADCSUM) != 0 ||
	    blkid_probe_enable_partitions(p, 1) != 0)
		say(seen, DISK_ERROR, "cannot be probed");
	else
		judge(p, fd, size, seen);
	blkid_free_probe(p);
}
