/*
 * mounts.h - the mounts resource: data disks by stable names (B02, B03).
 *
 * Looking into a device and making a filesystem is garboard-disk's, started
 * through systemd (agent/disk/note.h); it makes one only where the spec says
 * "if-blank" and the device is proven blank. The mount is a unit of ours
 * below /etc/systemd/system, wanted by local-fs.target with nofail: a disk
 * that is gone stops no boot. A mount of somebody else, a unit file of
 * somebody else, and a directory with something in it are left alone and
 * named. Units are recorded (ours.h) before they are written; when the spec
 * no longer names a mount its unit goes, and what is mounted stays mounted
 * until a reboot or a umount by hand: nothing is pulled from under a pod.
 *
 * Needs in units/: AF_UNIX (D-Bus); ReadWritePaths=/etc; no capability.
 */
#pragma once

#include "agent/res/resource.h"
#include "common/clock.h"

#define MOUNTS_LOOK_USEC (60 * USEC_PER_SEC)
#define MOUNTS_MAKE_USEC (900 * USEC_PER_SEC)	/* of a large disk */
#define MOUNTS_MOUNT_USEC (120 * USEC_PER_SEC)

extern const struct resource resource_mounts;
