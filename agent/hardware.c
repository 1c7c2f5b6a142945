#include "agent/hardware.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "agent/rootpath.h"
#include "agent/smbios.h"
#include "common/cleanup.h"
#include "common/file.h"

#define DMI_MAX (1024 * 1024)
#define MEMINFO_MAX 65536

static uint64_t read_installed(const char *root)
{
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX];
	size_t size;

	if (rootpath(root, path, "/sys/firmware/dmi/tables/DMI") < 0 ||
	    file_read(path, DMI_MAX, &data, &size, NULL) < 0)
		return 0;
	return smbios_memory((const uint8_t *)data, size);
}

static uint64_t read_total(const char *root)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX], *at;
	uint64_t kib = 0;
	size_t size;

	if (rootpath(root, path, "/proc/meminfo") < 0 ||
	    file_read(path, MEMINFO_MAX, &text, &size, NULL) < 0)
		return 0;
	at = strstr(text, "MemTotal:");
	if (!at || sscanf(at, "MemTotal: %" SCNu64, &kib) != 1)
		return 0;
	return kib << 10;
}

/* "a b c" out of files below /sys/class/dmi/id; absent ones are skipped. */
static void join(const char *root, const char *const *names, char *buf,
		 size_t size)
{
	char path[PATH_MAX], text[64];
	size_t used = 0;

	buf[0] = '\0';
	for (; *names; names++) {
		if (rootpath(root, path, "/sys/class/dmi/id/%s", *names) < 0 ||
		    file_line(path, text, sizeof(text), NULL) < 0 || !*text)
			continue;
		used += (size_t)snprintf(buf + used, size - used, "%s%s",
					 used ? " " : "", text);
		if (used >= size)
			break;
	}
	fault_sanitize(buf);
}

void hardware_read(const char *root, struct hardware *ret_hardware)
{
	static const char *const firmware[] = {
		"bios_vendor", "bios_version", "bios_date", NULL,
	};
	static const char *const product[] = {
		"sys_vendor", "product_name", NULL,
	};
	struct hardware hw = { 0 };
	char path[PATH_MAX];
	struct statvfs fs;

	hw.memory_total = read_total(root);
	hw.memory_installed = read_installed(root);
	if (rootpath(root, path, "/var/lib") == 0 && statvfs(path, &fs) == 0) {
		hw.disk_size = (uint64_t)fs.f_blocks * fs.f_frsize;
		hw.disk_free = (uint64_t)fs.f_bavail * fs.f_frsize;
	}
	join(root, firmware, hw.firmware, sizeof(hw.firmware));
	join(root, product, hw.product, sizeof(hw.product));
	*ret_hardware = hw;
}
