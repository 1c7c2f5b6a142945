/*
 * killswitch_tables.h - from egress classes to nftables tables. Pure.
 *
 * Table inet garboard: base chains output, forward, postrouting, policy
 * accept; what comes from a class (its addresses, or its mark) is sent to
 * the chain of the class, which lets through what the class may do and
 * drops the rest. One table netdev garboard_egress_<device> per uplink: the
 * same at the device itself, where raw and bridged frames pass too.
 *
 * A class with host sources may hold the uplink's own address: the tunnel's
 * outer packets pass by endpoint, protocol, port and root (KS-10).
 *
 * A class may: use its tunnel (on gateways); reach local prefixes, link-
 * local destinations, neighbours and DHCP (KS-07). DNS and DNS over TLS go
 * to its own resolvers through its tunnel and nowhere else (KS-08). Nothing
 * without a class is ever dropped (A23, A24), in either family (A31).
 */
#pragma once

#include "agent/nl/nft_model.h"
#include "agent/nl/rtnl.h"
#include "common/strlist.h"
#include "proto/desired.h"

#define KILLSWITCH_TABLE "garboard"
#define KILLSWITCH_EGRESS_PREFIX "garboard_egress_"

/* Is this table one of ours, by family and name? */
bool killswitch_is_ours(const struct nft_table *head);

/*
 * The devices to guard: those the spec names, else hardware devices and the
 * bonds, bridges and VLANs on top of them, never a tunnel or lo. Sorted.
 */
int killswitch_uplinks(const struct desired_egress *egress,
		       const struct rtnl_links *links,
		       struct strlist *ret_names);

/*
 * Fills an empty table. -ENOMEM, -E2BIG. `flags` are left to the caller.
 * `device` NULL makes table inet garboard.
 */
int killswitch_table(const struct desired_egress *egress, const char *device,
		     struct nft_table *ret_table);

/* True when nothing could ever match the class (A25). */
bool killswitch_class_empty(const struct desired_class *c);
