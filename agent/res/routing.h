/*
 * routing.h - the resource that steers egress classes into their tunnels.
 *
 * On a gateway of a class it owns, by protocol number RTNL_PROTO_GARBOARD:
 * rules that send the tunnel's own address, the class's pods, sources and
 * mark to the tunnel's table, and in that table the default through the
 * tunnel, an unreachable default behind it that is always there (RT-03),
 * and "throw" for every local prefix, which leaves those to the main table
 * (IS-05). Both families. It remembers the tunnel's last address, so that
 * rules outlive the tunnel (A20). It deletes nothing without its number.
 *
 * It also puts back the kernel's own lookups of local, main and default
 * where somebody removed them (RT-01), and reports a tunnel that became the
 * node's default route (A21).
 */
#pragma once

#include "agent/res/resource.h"

extern const struct resource resource_routing;
