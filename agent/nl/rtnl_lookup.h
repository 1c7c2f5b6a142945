/*
 * rtnl_lookup.h - asks the kernel which way it would send a packet.
 *
 * RTM_GETROUTE takes source, mark, device and ports and runs the rules as
 * for a packet. Two questions are put: what the packet would get (the
 * source address that is chosen, the answer's error), and, with
 * RTM_F_FIB_MATCH, which entry of which table that came from. Encoding and
 * decoding are pure.
 */
#pragma once

#include "agent/nl/nl_sock.h"
#include "agent/nl/rtnl_msg.h"

struct rtnl_question {
	struct ip_addr dst;
	struct ip_addr src;	/* family 0: the kernel chooses */
	uint32_t mark;
	int iif;		/* 0: sent by this node itself */
	uint32_t uid;		/* of the sender; with iif 0 only */
	uint8_t proto;		/* 0: none; IPPROTO_TCP and UDP, ICMP */
	uint16_t sport, dport;	/* 0: any; host order */
};

struct rtnl_answer {
	int refused;		/* 0, or what a packet's sender would get:
				   -EHOSTUNREACH, -ENETUNREACH, -EACCES,
				   -EINVAL, -EXDEV (reverse path) */
	struct rtnl_route route;	/* the entry; table 0: none is told */
	struct ip_addr src;	/* chosen; family 0: not told */
};

/* -EMSGSIZE. `match`: the entry is asked for. */
int rtnl_question_encode(const struct rtnl_question *q, bool match, void *buf,
			 size_t size);

/* A refused packet is an answer, not an error. */
int rtnl_lookup(struct nl_sock *s, const struct rtnl_question *q,
		struct rtnl_answer *ret_answer, struct fault *f);
