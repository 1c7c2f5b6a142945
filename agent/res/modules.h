/*
 * modules.h - the modules resource: loaded now, and listed in our file of
 * modules-load.d(5) for the next boot (A07, MO-02).
 *
 * Loading goes through systemd's modprobe@.service, one job per module with
 * a deadline of its own; success is judged by looking, since a job's "done"
 * proves nothing (FACTS S5). Never unloads. Needs in units/:
 * ReadWritePaths=/etc/modules-load.d, AF_UNIX (D-Bus), AF_NETLINK (uevents);
 * no CAP_SYS_MODULE. ProtectKernelModules=no: it hides /lib/modules, and with
 * it the difference between "no such module" and "needs a reboot".
 */
#pragma once

#include "agent/res/resource.h"
#include "common/clock.h"

#define MODULES_LOAD_USEC (30 * USEC_PER_SEC)

extern const struct resource resource_modules;
