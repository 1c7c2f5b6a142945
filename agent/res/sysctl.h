/*
 * sysctl.h - the sysctl resource: live values and our file of sysctl.d(5),
 * judged apart (SY-01), and values put back when a key leaves (SY-06).
 *
 * Does not run systemd-sysctl: keys beyond the agent's capabilities are
 * reported with the remedy. Needs in units/: ReadWritePaths=/etc/sysctl.d
 * and the state directory; ProtectKernelTunables=no, for /proc/sys must be
 * writable; CAP_NET_ADMIN for net.*; AF_NETLINK for link events. kernel.*,
 * vm.* and fs.* need uid 0 alone, but for the list in FACTS S5.
 */
#pragma once

#include "agent/res/resource.h"

extern const struct resource resource_sysctl;
