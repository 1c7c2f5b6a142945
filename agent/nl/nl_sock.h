/*
 * nl_sock.h - the only place that sends and receives netlink requests.
 *
 * A request socket has strict checking, the kernel's error texts, capped
 * echoes, forced buffer sizes and a receive timeout. Every answer is read
 * to its end. Subscriptions never happen here: nl_notify.h does (H28).
 *
 * Errors beyond the kernel's own: -EAGAIN: a dump kept changing ("unstable",
 * nothing may be concluded from what was seen); -ENOBUFS, -ETIMEDOUT: the
 * outcome of the request is unknown, look before doing anything (H30).
 *
 * One owner, no threads. A netfilter socket that owns tables must live as
 * long as they are to be owned (FACTS S1), and closing one after a commit
 * is slow: keep it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/nl/nl_reply.h"

struct nl_sock;

/* `bus` is NETLINK_ROUTE or NETLINK_NETFILTER. */
int nl_sock_open(int bus, struct nl_sock **ret_sock, struct fault *f);
struct nl_sock *nl_sock_free(struct nl_sock *s);	/* returns NULL */

uint32_t nl_sock_portid(const struct nl_sock *s);

/* Reserves `n` sequence numbers for a batch; returns the first. */
uint32_t nl_sock_sequence(struct nl_sock *s, uint32_t n);

/*
 * Sends one request and reads its answer up to the acknowledgement. Sets
 * sequence number, NLM_F_REQUEST and NLM_F_ACK in `req`.
 */
int nl_sock_request(struct nl_sock *s, struct nlmsghdr *req,
		    nl_handler handler, void *userdata, struct fault *f);

/*
 * Sends a dump request. An interrupted dump is started again a few times;
 * `restart` (may be NULL) is called before each repetition, so that the
 * collector can forget what it has.
 */
int nl_sock_dump(struct nl_sock *s, struct nlmsghdr *req, nl_handler handler,
		 void (*restart)(void *userdata), void *userdata,
		 struct fault *f);

/*
 * Sends a netfilter batch whose first message has sequence `first` and
 * whose last object message, `last`, asks for an acknowledgement. Netfilter
 * answers before the send returns, so nothing is waited for.
 */
int nl_sock_batch(struct nl_sock *s, const void *data, size_t size,
		  uint32_t first, uint32_t last, struct fault *f);
