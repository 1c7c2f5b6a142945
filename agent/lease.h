/*
 * lease.h - who may run a bring-up, decided without a cluster (DESIGN 9).
 *
 * Each server keeps one lease; a coordinator acts while it holds those of a
 * majority. The term only ever rises, so a holder that lost it cannot renew
 * (fencing). Pure: `now` is CLOCK_BOOTTIME, the caller stores the outcome.
 */
#pragma once

#include "agent/state.h"
#include "common/clock.h"
#include "common/fault.h"
#include "proto/order.h"

/* 0: *ret_next is to be stored. -EBUSY, -ESTALE: refused, `f` names why. */
int lease_decide(const struct state_lease *have, const struct order_lease *ask,
		 usec now, struct state_lease *ret_next, struct fault *f);
