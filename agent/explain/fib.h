/*
 * fib.h - runs an imagined packet through rules and routes, as the kernel
 * would: a second opinion beside the kernel's own answer (nl/rtnl_lookup.h),
 * and the only one about rules that do not stand. Pure.
 *
 * A rule that may match but has a property that is not modelled ends in
 * "unsure", and so does one whose action is not to look a table up.
 */
#pragma once

#include "agent/explain/packet.h"
#include "agent/nl/rtnl.h"

enum fib_end {
	FIB_ROUTE,		/* a device, or this node itself */
	FIB_REFUSED,		/* unreachable, prohibit, blackhole */
	FIB_NOTHING,		/* no rule led to a route */
	FIB_UNSURE,
};

struct fib_result {
	enum fib_end end;
	const struct rtnl_rule *rule;	/* borrowed; NULL with FIB_NOTHING */
	const struct rtnl_route *route;	/* NULL but with the first two */
};

/* `rules` by rising priority, as dumped. */
void fib_run(const struct rtnl_rules *rules, const struct rtnl_routes *routes,
	     const struct packet *p, struct fib_result *ret);

/* Whether the rule is for the packet, as far as it is modelled. */
bool fib_rule_matches(const struct rtnl_rule *rule, const struct packet *p);

/*
 * As dumped, but with what is ours replaced by what is wanted: -ENOMEM.
 * The lists are the caller's to free.
 */
int fib_as_wanted(const struct rtnl_rules *rules,
		  const struct rtnl_routes *routes,
		  const struct rtnl_rules *want_rules,
		  const struct rtnl_routes *want_routes,
		  struct rtnl_rules *ret_rules, struct rtnl_routes *ret_routes);
