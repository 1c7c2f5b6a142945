/*
 * swap.h - the swap resource: no swap now, and none after a boot (B01).
 *
 * Now: each swap of /proc/swaps is turned off by systemd, which has a unit
 * for every one of them; never when what is swapped out would not fit into
 * memory. After a boot: swap.target is masked, through which fstab, GPT
 * partitions, swap units and zram-generator all start, and so are the
 * services that make swap by themselves. A mask is one link of ours to
 * /dev/null below /etc/systemd/system; /etc/fstab and other people's unit
 * files are read, never written. The masks we made are recorded (ours.h)
 * before they are made, and taken back when the spec no longer names swap;
 * somebody else's mask stays. What was turned off is not turned on again.
 *
 * Needs in units/: AF_UNIX (D-Bus); ReadWritePaths=/etc; no capability.
 */
#pragma once

#include "agent/res/resource.h"
#include "common/clock.h"

/* Beyond systemd's own time-out of a swap unit. */
#define SWAP_OFF_USEC (120 * USEC_PER_SEC)
#define SWAP_RELOAD_USEC (60 * USEC_PER_SEC)

extern const struct resource resource_swap;
