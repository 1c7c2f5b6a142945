/* The steps of routing_plan.h: what there is against what is wanted. */
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/nl/rtnl_index.h"
#include "agent/res/routing_plan.h"
#include "common/put.h"

#define STEPS_ROOM 32	/* how many more there is room for at once */

struct list {
	const struct routing_seen *seen;
	struct routing_steps *steps;
	struct rtnl_index ours, wanted;		/* routes */
	int err;
};

static const char *family_name(uint8_t family)
{
	return family == AF_INET6 ? "ipv6" : "ipv4";
}

bool routing_key_steers(const char *key)
{
	return strncmp(key, "ipv4 ", 5) == 0 || strncmp(key, "ipv6 ", 5) == 0;
}

static const char *device_name(const struct routing_seen *seen, int index)
{
	size_t i;

	for (i = 0; i < seen->n_tunnels; i++)
		if (index && seen->tunnels[i].link.index == index)
			return seen->tunnels[i].name;
	return NULL;
}

static struct routing_step *add_step(struct list *l)
{
	struct routing_step *v, *grown;

	if (l->err < 0)
		return NULL;
	if (l->steps->n >= ITEM_LIST_MAX) {
		l->err = -E2BIG;
		return NULL;
	}
	if (l->steps->n % STEPS_ROOM == 0) {
		grown = reallocarray(l->steps->v, l->steps->n + STEPS_ROOM,
				     sizeof(*grown));
		if (!grown) {
			l->err = -ENOMEM;
			return NULL;
		}
		l->steps->v = grown;
	}
	v = &l->steps->v[l->steps->n++];
	(void)memset(v, 0, sizeof(*v));
	return v;
}

static void route_step(struct list *l, enum change_op op, bool in_sync,
		       const struct rtnl_route *route)
{
	struct routing_step *s = add_step(l);
	char text[RTNL_TEXT_MAX], *at;
	const char *end;

	if (!s)
		return;
	s->kind = ROUTING_ROUTE;
	s->op = op;
	s->in_sync = in_sync;
	s->route = *route;
	end = s->key + sizeof(s->key);
	at = put_text(s->key, end, family_name(route->dst.addr.family));
	at = put_text(at, end, " route table ");
	at = put_u32(at, end, route->table);
	at = put_text(at, end, ": ");
	(void)put_text(at, end,
		       rtnl_route_format(route, device_name(l->seen,
							    route->oif),
					 text));
}

static void rule_step(struct list *l, enum change_op op, bool in_sync,
		      const struct rtnl_rule *rule)
{
	struct routing_step *s = add_step(l);
	char text[RTNL_TEXT_MAX], *at;
	const char *end;

	if (!s)
		return;
	s->kind = ROUTING_RULE;
	s->op = op;
	s->in_sync = in_sync;
	s->rule = *rule;
	end = s->key + sizeof(s->key);
	at = put_text(s->key, end, family_name(rule->family));
	at = put_text(at, end, " rule ");
	(void)put_text(at, end, rtnl_rule_format(rule, text));
}

static const struct rtnl_rule *find_rule(const struct rtnl_rules *list,
					 const struct rtnl_rule *rule)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (rtnl_rule_equal(&list->v[i], rule))
			return &list->v[i];
	return NULL;
}

static void wanted_routes(struct list *l, const struct routing_want *want)
{
	size_t i;

	for (i = 0; i < want->routes.n; i++) {
		const struct rtnl_route *w = &want->routes.v[i], *old;

		if (rtnl_index_find(&l->ours, w)) {
			route_step(l, CHANGE_SET, true, w);
			continue;
		}
		old = rtnl_index_place(&l->ours, w);
		route_step(l, old ? CHANGE_SET : CHANGE_ADD, false, w);
		if (old && l->err == 0) {
			l->steps->v[l->steps->n - 1].replaces = true;
			l->steps->v[l->steps->n - 1].old = *old;
		}
	}
}

static void wanted_rules(struct list *l, const struct routing_want *want)
{
	size_t i;

	for (i = 0; i < want->rules.n; i++)
		rule_step(l, CHANGE_ADD,
			  find_rule(&l->seen->rules, &want->rules.v[i]),
			  &want->rules.v[i]);
}

static void unwanted_rules(struct list *l, const struct routing_want *want)
{
	size_t i;

	for (i = 0; i < l->seen->rules.n; i++) {
		const struct rtnl_rule *r = &l->seen->rules.v[i];

		if (r->protocol == RTNL_PROTO_GARBOARD &&
		    !find_rule(&want->rules, r))
			rule_step(l, CHANGE_REMOVE, false, r);
	}
}

static void unwanted_routes(struct list *l)
{
	size_t i;

	for (i = 0; i < l->seen->ours.n; i++) {
		const struct rtnl_route *r = &l->seen->ours.v[i];

		/* One in the place of a wanted one goes with its step. */
		if (!rtnl_index_place(&l->wanted, r))
			route_step(l, CHANGE_REMOVE, false, r);
	}
}

/* A lookup of the whole table for everybody, wherever it was moved to. */
static bool has_lookup(const struct rtnl_rules *rules, uint8_t family,
		       uint32_t table)
{
	size_t i;

	for (i = 0; i < rules->n; i++) {
		const struct rtnl_rule *r = &rules->v[i];

		if (r->family == family && r->table == table && !r->extra &&
		    r->action == FR_ACT_TO_TBL && !r->src.len &&
		    !r->dst.len && !r->mask && !r->mark && !r->iif[0])
			return true;
	}
	return false;
}

/* The kernel's own rules, which others have been seen to remove (RT-01). */
static void kernel_rules(struct list *l)
{
	static const struct {
		uint8_t family;
		uint32_t priority, table;
	} v[] = {
		{ AF_INET, 0, RT_TABLE_LOCAL },
		{ AF_INET, 32766, RT_TABLE_MAIN },
		{ AF_INET, 32767, RT_TABLE_DEFAULT },
		{ AF_INET6, 0, RT_TABLE_LOCAL },
		{ AF_INET6, 32766, RT_TABLE_MAIN },
	};
	size_t i;

	for (i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		struct rtnl_rule rule = {
			.family = v[i].family,
			.priority = v[i].priority,
			.table = v[i].table,
			.action = FR_ACT_TO_TBL,
			.protocol = RTPROT_KERNEL,
		};

		if (rule.family == AF_INET6 && !l->seen->ipv6)
			continue;
		rule_step(l, CHANGE_ADD,
			  has_lookup(&l->seen->rules, rule.family, rule.table),
			  &rule);
	}
}

static void record_step(struct list *l)
{
	struct routing_step *s;

	if (l->seen->record_fault.err || l->seen->armed_fault.err ||
	    (l->steps->record.n == 0 && l->seen->record.n == 0))
		return;
	s = add_step(l);
	if (!s)
		return;
	s->kind = ROUTING_RECORD;
	s->op = l->seen->record.n ? CHANGE_SET : CHANGE_ADD;
	s->in_sync = !l->seen->record.previous &&
		     routing_record_equal(&l->steps->record,
					  &l->seen->record);
	(void)snprintf(s->key, sizeof(s->key), ROUTING_KEY_RECORD);
}

/* Nothing is steered: nothing that networkd could take away (RT-01). */
static bool steers(const struct desired_egress *egress)
{
	size_t i;

	for (i = 0; i < egress->n_tunnels; i++)
		if (routing_uses(egress, i))
			return true;
	return false;
}

/* Written once: a later file that wins is somebody's word, and is reported. */
static void networkd_step(struct list *l)
{
	const struct routing_networkd *n = &l->seen->networkd;
	struct routing_step *s;

	if (!n->installed || !steers(&l->steps->next.d->egress))
		return;
	s = add_step(l);
	if (!s)
		return;
	s->kind = ROUTING_NETWORKD;
	s->op = CHANGE_SET;
	s->in_sync = n->unreadable || n->written ||
		     routing_networkd_opted_out(n);
	(void)snprintf(s->key, sizeof(s->key), ROUTING_KEY_NETWORKD_FILE);
}

void routing_steps_done(struct routing_steps *s)
{
	free(s->v);
	s->v = NULL;
	s->n = 0;
	armed_done(&s->next);
}

static void all_steps(struct list *l, const struct routing_want *want)
{
	kernel_rules(l);
	record_step(l);
	networkd_step(l);
	wanted_routes(l, want);
	wanted_rules(l, want);
	/* What cannot be known to be superfluous is not removed. */
	if (!l->seen->armed_fault.err && !l->seen->record_fault.err) {
		unwanted_rules(l, want);
		unwanted_routes(l);
	}
}

static int make_steps(const struct routing_seen *seen,
		      struct routing_steps *steps)
{
	struct list l = { .seen = seen, .steps = steps };
	struct routing_want want = { 0 };
	int r;

	r = routing_next_record(seen, &steps->next.d->egress,
				&steps->record);
	if (r == 0)
		r = routing_want(&steps->next.d->egress, seen,
				 &steps->record, &want);
	if (r == 0)
		r = rtnl_index_make(&seen->ours, &l.ours);
	if (r == 0)
		r = rtnl_index_make(&want.routes, &l.wanted);
	if (r == 0)
		all_steps(&l, &want);
	rtnl_index_done(&l.ours);
	rtnl_index_done(&l.wanted);
	routing_want_done(&want);
	return r < 0 ? r : l.err;
}

int routing_steps(const struct desired *want, const struct routing_seen *seen,
		  struct routing_steps *ret_steps)
{
	struct armed none = ARMED_INIT;
	int r;

	*ret_steps = (struct routing_steps){ 0 };
	none.d = desired_new();
	if (!none.d)
		return -ENOMEM;
	r = armed_merge(&want->egress,
			seen->armed.d ? &seen->armed : &none,
			&ret_steps->next);
	armed_done(&none);
	if (r == 0)
		r = make_steps(seen, ret_steps);
	if (r < 0)
		routing_steps_done(ret_steps);
	return r;
}
