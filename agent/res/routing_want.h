/*
 * routing_want.h - what the routing saw, and the objects that follow. Pure.
 */
#pragma once

#include "agent/armed.h"
#include "agent/nl/rtnl.h"
#include "agent/res/routing_networkd.h"
#include "agent/res/routing_record.h"
#include "common/change.h"

struct routing_tunnel {
	char name[IF_NAMESIZE];
	struct rtnl_link link;		/* index 0: not there */
	bool impostor;			/* what has its name is no tunnel */
	struct rtnl_addrs addrs;
};

struct routing_seen {
	unsigned int refs;
	struct armed armed;		/* of the kill-switch; read only */
	struct fault armed_fault;
	struct routing_record record;
	struct fault record_fault;
	struct fault net_fault;		/* err 0: all below was read */
	bool ipv6;			/* the kernel has the family */
	struct routing_tunnel tunnels[DESIRED_TUNNELS_MAX * 2];
	size_t n_tunnels;
	struct rtnl_routes ours;	/* by protocol, in any table */
	struct rtnl_routes tables;	/* all of the tunnels' tables */
	struct rtnl_routes main;	/* of main, through a tunnel */
	struct rtnl_rules rules;	/* all */
	struct routing_networkd networkd;
};

const struct routing_tunnel *routing_seen_tunnel(const struct routing_seen *s,
						 const char *name);

/* True when a class of which this node is a gateway uses the tunnel. */
bool routing_uses(const struct desired_egress *egress, size_t tunnel);

/*
 * The addresses to remember: those a tunnel has now; where it has none, or
 * is away, those of the record.
 */
int routing_next_record(const struct routing_seen *seen,
			const struct desired_egress *egress,
			struct routing_record *ret);

struct routing_want {
	struct rtnl_routes routes;
	struct rtnl_rules rules;
};

void routing_want_done(struct routing_want *w);

/* -ENOMEM, -E2BIG. A tunnel without any known address adds nothing. */
int routing_want(const struct desired_egress *egress,
		 const struct routing_seen *seen,
		 const struct routing_record *addresses,
		 struct routing_want *ret_want);
