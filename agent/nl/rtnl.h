/*
 * rtnl.h - one function per operation on links, addresses, routes, rules.
 *
 * Dumps hand decoded values to a visitor; what cannot be decoded fails the
 * dump with -EBADMSG. A family the kernel does not have is an empty dump.
 * Deletion removes exactly the object given, with its protocol number, so
 * that it never hits a foreign one.
 */
#pragma once

#include "agent/nl/nl_sock.h"
#include "agent/nl/rtnl_msg.h"

/* Lists that the dumps fill; bounded by RTNL_LIST_MAX. */
#define RTNL_LIST_MAX 65536

struct rtnl_links {
	struct rtnl_link *v;
	size_t n;
};

struct rtnl_addrs {
	struct rtnl_addr *v;
	size_t n;
};

struct rtnl_routes {
	struct rtnl_route *v;
	size_t n;
};

struct rtnl_rules {
	struct rtnl_rule *v;
	size_t n;
};

/*
 * All links. The lists keep their memory between calls: start with a
 * zeroed one, release `v` with free().
 */
int rtnl_link_dump(struct nl_sock *s, struct rtnl_links *links,
		   struct fault *f);
/* -ENODEV, without a fault, when there is none of that name. */
int rtnl_link_get(struct nl_sock *s, const char *name,
		  struct rtnl_link *ret_link, struct fault *f);

/* Addresses of one link, both families. */
int rtnl_addr_dump(struct nl_sock *s, int index, struct rtnl_addrs *addrs,
		   struct fault *f);

struct rtnl_route_filter {
	uint32_t table;		/* 0: any */
	uint8_t protocol;	/* 0: any */
	int oif;		/* 0: any */
};

/* Appends; both families. */
int rtnl_route_dump(struct nl_sock *s, const struct rtnl_route_filter *filter,
		    struct rtnl_routes *routes, struct fault *f);
int rtnl_route_add(struct nl_sock *s, const struct rtnl_route *route,
		   struct fault *f);
int rtnl_route_delete(struct nl_sock *s, const struct rtnl_route *route,
		      struct fault *f);

/* Both families. */
int rtnl_rule_dump(struct nl_sock *s, struct rtnl_rules *rules,
		   struct fault *f);
int rtnl_rule_add(struct nl_sock *s, const struct rtnl_rule *rule,
		  struct fault *f);
int rtnl_rule_delete(struct nl_sock *s, const struct rtnl_rule *rule,
		     struct fault *f);
