/*
 * iscsid.h - the iscsid resource: an initiator name, and iscsid usable by
 * service or by socket, once iscsi_tcp is there (A10, IS-01..IS-04).
 *
 * Never renames a node that has a name, never touches multipathd, never
 * installs the package. Uniqueness in the cluster is the coordinator's to
 * see. Needs in units/: ReadWritePaths=-/etc/iscsi, AF_UNIX (D-Bus), AF_NETLINK
 * (uevents), reading /sys; no capability.
 */
#pragma once

#include "agent/res/resource.h"
#include "common/clock.h"

#define ISCSID_START_USEC (60 * USEC_PER_SEC)

extern const struct resource resource_iscsid;
