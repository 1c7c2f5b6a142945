/*
 * forwarding.h - does a desired state change what the kernel forwards or
 * takes in? Pure; by the keys alone, not by what the node has now.
 *
 * Those are the sysctls that can cut a node off as a firewall can: with
 * IPv6 forwarding router advertisements are ignored, strict reverse path
 * filtering drops what comes back on another link (KS-05, A09).
 */
#pragma once

#include <stdbool.h>

#include "proto/desired.h"

/* `now` NULL: nothing is desired. */
bool forwarding_changes(const struct desired *now, const struct desired *next);
