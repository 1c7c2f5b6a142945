/*
 * ask.h - orders whose answer must be "done", to one node or to several.
 *
 * A node that is away, that refuses or that fails becomes a fault which
 * names the node and carries its own words (bounded and cleaned by up.h).
 */
#pragma once

#include <stddef.h>

#include "common/clock.h"
#include "common/fault.h"

struct control;
struct order;
struct up;

/*
 * One order, borrowed. *ret_result (may be NULL) is released by up_free().
 * Errors of control_order(); -EREMOTEIO: the node tried and failed;
 * -EPERM: it refused and did nothing.
 */
int ask(struct control *c, const char *node, const struct order *order,
	usec timeout, struct up **ret_result, struct fault *f);

struct ask {
	const char *node;	/* borrowed */
	struct order *order;	/* owned by the list */
	struct up *result;	/* NULL unless err is 0 */
	int err;
	struct fault fault;
};

/*
 * Sends all at once and waits for all; each entry gets its own outcome,
 * and the first failure is kept in `f` and returned.
 */
int ask_all(struct control *c, struct ask *v, size_t n, usec timeout,
	    struct fault *f);
/* Releases orders and results; the array itself is the caller's. */
void ask_done(struct ask *v, size_t n);
