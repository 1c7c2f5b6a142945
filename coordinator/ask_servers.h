/*
 * ask_servers.h - one order of a kind to every server the spec names.
 *
 * All go out at once (ask_all); each server has its own outcome and the
 * first failure is returned. Workers are never asked.
 */
#pragma once

#include <stddef.h>

#include "common/fault.h"
#include "coordinator/ask.h"
#include "coordinator/steps/step.h"
#include "proto/order.h"

/* Completes one order of the kind asked for; 0 or a negative errno. */
typedef int (*ask_fill_fn)(struct order *order, const void *what);

/*
 * `fill` may be NULL: the order has no more to say. The answers, in the
 * spec's order, belong to the caller: ask_done(), then free(). Written only
 * on success; -ENOMEM or the errors of ask_all(), within env->times->order.
 */
int ask_servers(const struct step_env *env, enum order_kind kind,
		ask_fill_fn fill, const void *what, struct ask **ret_list,
		size_t *ret_n, struct fault *f);

/* The same where "done" is all there is to hear. */
int tell_servers(const struct step_env *env, enum order_kind kind,
		 ask_fill_fn fill, const void *what, struct fault *f);
