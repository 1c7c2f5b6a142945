/*
 * facts.h - what is read of a node and never set: who it is, its
 * addresses, its clock, and what an earlier life left behind.
 *
 * Everything is bounded; what cannot be read is "" or empty, never an
 * error: the coordinator judges completeness (A69). `root` is "" in
 * production.
 */
#pragma once

#include <stdbool.h>

#include "common/ip.h"
#include "common/strlist.h"
#include "proto/desired.h"
#include "proto/up.h"

/* -ENOMEM only. */
int facts_identity(const char *root, struct identity *ret_identity);

/* The address is on one of our interfaces (KV-01: two carriers). */
bool facts_carries(const struct ip_addr *address);

/* Names of interfaces one of whose subnets holds the address (A52). */
int facts_interfaces_for(const struct ip_addr *address,
			 struct strlist *ret_names);

/*
 * "TUNNEL ADDRESS" for each address on the device of a tunnel that a class
 * of this gateway uses, sorted; link-local ones are left out. -ENOMEM only.
 */
int facts_tunnels(const struct desired_egress *egress,
		  struct strlist *ret_texts);

/* The kernel's own word (STA_UNSYNC), whoever disciplines the clock. */
bool facts_clock_synchronised(void);

/* Paths an earlier life of k3s left on this node (K3-01), sorted. */
int facts_leftovers(const char *root, struct strlist *ret_paths);
