/*
 * rtnl_msg.h - links, addresses, routes and rules as values, and their
 * rtnetlink form. Pure: no socket, no clock.
 *
 * Decoding is bounds-checked and tells the truth about its limits: a
 * property this module does not model (multipath, encapsulation, a port
 * selector, ...) sets `extra`, and a value with `extra` equals nothing we
 * would make. All errors: -EBADMSG (not such a message), -EMSGSIZE (does
 * not fit the buffer).
 */
#pragma once

#include <linux/netlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ip.h"

/*
 * The protocol number of every route and rule we make (H32); also in
 * units/rt_protos.d/garboard.conf. 0x67 is 'g'.
 */
#define RTNL_PROTO_GARBOARD 0x67

#define RTNL_KIND_MAX 16

struct rtnl_link {
	int index;
	char name[IF_NAMESIZE];
	char kind[RTNL_KIND_MAX];	/* "vlan", "bond", ...; "" for none */
	uint32_t flags;			/* IFF_* */
	int master;			/* 0: none */
	int lower;			/* IFLA_LINK in the same netns; 0 */
	bool hardware;			/* a device of a bus is behind it */
	bool bare;			/* ARPHRD_NONE: as tunnels are */
	bool xdp;			/* a program is attached */
};

struct rtnl_addr {
	int index;
	struct ip_prefix prefix;	/* address with its host bits */
	uint32_t flags;			/* IFA_F_* */
	uint8_t scope;			/* RT_SCOPE_* */
};

struct rtnl_route {
	struct ip_prefix dst;		/* family always set; len 0: default */
	uint32_t table;
	uint8_t protocol;		/* RTPROT_* or ours */
	uint8_t type;			/* RTN_* */
	uint8_t scope;			/* IPv4 only */
	uint32_t metric;
	int oif;			/* 0: none */
	struct ip_addr gateway;		/* family 0: none */
	struct ip_addr prefsrc;		/* family 0: none */
	uint32_t flags;			/* RTNH_F_* as shown, not compared */
	bool extra;
};

struct rtnl_rule {
	uint8_t family;
	struct ip_prefix src, dst;	/* family 0: any */
	uint32_t mark, mask;		/* mask 0: no mark */
	char iif[IF_NAMESIZE];		/* "": any */
	uint32_t priority;
	uint32_t table;
	uint8_t action;			/* FR_ACT_* */
	uint8_t protocol;
	bool extra;
};

/* Each needs a message of its type; see nlmsg_type before. */
int rtnl_link_decode(const struct nlmsghdr *nlh, struct rtnl_link *ret_link);
int rtnl_addr_decode(const struct nlmsghdr *nlh, struct rtnl_addr *ret_addr);
int rtnl_route_decode(const struct nlmsghdr *nlh,
		      struct rtnl_route *ret_route);
int rtnl_rule_decode(const struct nlmsghdr *nlh, struct rtnl_rule *ret_rule);

/*
 * Write a whole message of `type` (RTM_NEWROUTE, RTM_DELRULE, ...) with
 * `flags` into `buf`, which must be aligned for a nlmsghdr.
 */
int rtnl_route_encode(const struct rtnl_route *route, uint16_t type,
		      uint16_t flags, void *buf, size_t size);
int rtnl_rule_encode(const struct rtnl_rule *rule, uint16_t type,
		     uint16_t flags, void *buf, size_t size);

/* Same object, property by property; `extra` never equals. */
bool rtnl_route_equal(const struct rtnl_route *a, const struct rtnl_route *b);
bool rtnl_rule_equal(const struct rtnl_rule *a, const struct rtnl_rule *b);

#define RTNL_TEXT_MAX 256

/*
 * As ip(8) would show it, without protocol; returns `buf` of RTNL_TEXT_MAX.
 * `dev` names route->oif, NULL where unknown.
 */
const char *rtnl_route_format(const struct rtnl_route *route, const char *dev,
			      char *buf);
const char *rtnl_rule_format(const struct rtnl_rule *rule, char *buf);
