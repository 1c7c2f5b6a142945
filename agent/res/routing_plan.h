/*
 * routing_plan.h - the pure plan, as a list of steps that both plan() and
 * apply() derive from the same inputs.
 */
#pragma once

#include "agent/res/resource.h"
#include "agent/res/routing_want.h"

#define ROUTING_KEY_MAX (RTNL_TEXT_MAX + 48)
#define ROUTING_KEY_RECORD "tunnel addresses"
#define ROUTING_KEY_NETWORKD_FILE "networkd settings"
#define ROUTING_KEY_NETWORKD "networkd"

enum routing_kind {
	ROUTING_ROUTE,
	ROUTING_RULE,
	ROUTING_RECORD,
	ROUTING_NETWORKD,		/* its settings, persisted */
};

struct routing_step {
	enum routing_kind kind;
	enum change_op op;
	bool in_sync;			/* there already: no change */
	bool replaces;			/* `old` is ours, in its place */
	struct rtnl_route route, old;
	struct rtnl_rule rule;
	char key[ROUTING_KEY_MAX];
};

struct routing_steps {
	struct routing_step *v;
	size_t n;
	struct routing_record record;	/* the next one */
	struct armed next;		/* what is enforced */
};

void routing_steps_done(struct routing_steps *s);

/* In the order in which they keep traffic steered. -ENOMEM, -E2BIG. */
int routing_steps(const struct desired *want, const struct routing_seen *seen,
		  struct routing_steps *ret_steps);

int routing_plan(const struct desired *want, const void *seen,
		 struct item_list *items, struct change_list *changes,
		 struct fault *f);

/* Whether an item is one of the rules and routes that steer. */
bool routing_key_steers(const char *key);
