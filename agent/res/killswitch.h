/*
 * killswitch.h - the resource that keeps egress classes closed.
 *
 * Owns the tables inet garboard and netdev garboard_egress_*, and the armed
 * record. Tables outlive the process; where the kernel knows owner|persist
 * (FACTS S1), a resident agent owns them on a socket it keeps for life.
 * Nothing opens them but armed_disarm().
 */
#pragma once

#include "agent/res/resource.h"

extern const struct resource resource_killswitch;
