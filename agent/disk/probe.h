/*
 * probe.h - what is on a device, by libblkid and by its own first and last
 * bytes. Only reads. A device counts as blank when no signature of any kind
 * is known on it, no partition table, and its first and last MiB are zero;
 * whatever else is there is somebody's.
 */
#pragma once

#include <stdint.h>

#include "agent/disk/note.h"

/* Smaller than this is no data disk. */
#define DISK_SIZE_MIN (UINT64_C(64) << 20)

/* Fills state, fs, uuid and text; the device may be a plain file. */
void disk_probe(int fd, uint64_t size, struct disk_seen *seen);
