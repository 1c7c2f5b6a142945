#include "agent/explain/fib.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static bool covers(const struct ip_prefix *p, const struct ip_addr *a)
{
	if (p->len == 0)
		return true;
	return a->family == p->addr.family && ip_prefix_contains(p, a);
}

bool fib_rule_matches(const struct rtnl_rule *rule, const struct packet *p)
{
	const char *in = p->in[0] ? p->in : "lo";	/* as the kernel does */

	return rule->family == p->dst.family && covers(&rule->src, &p->src) &&
	       covers(&rule->dst, &p->dst) &&
	       ((p->mark ^ rule->mark) & rule->mask) == 0 &&
	       (!rule->iif[0] || strcmp(rule->iif, in) == 0);
}

/* The longest prefix, then the lowest metric. */
static const struct rtnl_route *
best_route(const struct rtnl_routes *routes, uint32_t table,
	   const struct ip_addr *dst)
{
	const struct rtnl_route *best = NULL;
	size_t i;

	for (i = 0; i < routes->n; i++) {
		const struct rtnl_route *r = &routes->v[i];

		if (r->table != table || (r->flags & RTNH_F_DEAD) ||
		    r->dst.addr.family != dst->family ||
		    !covers(&r->dst, dst))
			continue;
		if (!best || r->dst.len > best->dst.len ||
		    (r->dst.len == best->dst.len && r->metric < best->metric))
			best = r;
	}
	return best;
}

static bool refuses(const struct rtnl_route *r)
{
	return r->type == RTN_UNREACHABLE || r->type == RTN_PROHIBIT ||
	       r->type == RTN_BLACKHOLE;
}

void fib_run(const struct rtnl_rules *rules, const struct rtnl_routes *routes,
	     const struct packet *p, struct fib_result *ret)
{
	struct fib_result x = { .end = FIB_NOTHING };
	size_t i;

	for (i = 0; i < rules->n; i++) {
		const struct rtnl_rule *rule = &rules->v[i];
		const struct rtnl_route *route;

		/* What is not modelled may as well be a "not". */
		if (rule->extra ? rule->family != p->dst.family :
				  !fib_rule_matches(rule, p))
			continue;
		x.rule = rule;
		if (rule->action == FR_ACT_NOP && !rule->extra)
			continue;
		if (rule->extra || rule->action != FR_ACT_TO_TBL) {
			x.end = FIB_UNSURE;
			break;
		}
		route = best_route(routes, rule->table, &p->dst);
		if (!route || route->type == RTN_THROW)
			continue;
		x.route = route;
		x.end = refuses(route) ? FIB_REFUSED : FIB_ROUTE;
		break;
	}
	if (x.end == FIB_NOTHING)
		x.rule = NULL;
	*ret = x;
}

/* ---- as wanted ---- */

static int by_priority(const void *a, const void *b)
{
	const struct rtnl_rule *const *x = a, *const *y = b;

	if ((*x)->priority != (*y)->priority)
		return (*x)->priority < (*y)->priority ? -1 : 1;
	return *x < *y ? -1 : *x > *y;	/* both of one list: stable */
}

/* Stable, which the order of rules of one priority depends on. */
static int sort_rules(struct rtnl_rules *rules)
{
	const struct rtnl_rule **order;
	struct rtnl_rule *sorted;
	size_t i;

	order = calloc(rules->n + 1, sizeof(*order));
	sorted = calloc(rules->n + 1, sizeof(*sorted));
	if (!order || !sorted) {
		free(order);
		free(sorted);
		return -ENOMEM;
	}
	for (i = 0; i < rules->n; i++)
		order[i] = &rules->v[i];
	qsort(order, rules->n, sizeof(*order), by_priority);
	for (i = 0; i < rules->n; i++)
		sorted[i] = *order[i];
	free(order);
	free(rules->v);
	rules->v = sorted;
	return 0;
}

int fib_as_wanted(const struct rtnl_rules *rules,
		  const struct rtnl_routes *routes,
		  const struct rtnl_rules *want_rules,
		  const struct rtnl_routes *want_routes,
		  struct rtnl_rules *ret_rules, struct rtnl_routes *ret_routes)
{
	struct rtnl_rules u = { 0 };
	struct rtnl_routes o = { 0 };
	size_t i;

	u.v = calloc(rules->n + want_rules->n + 1, sizeof(*u.v));
	o.v = calloc(routes->n + want_routes->n + 1, sizeof(*o.v));
	if (!u.v || !o.v)
		goto failed;
	for (i = 0; i < rules->n; i++)
		if (rules->v[i].protocol != RTNL_PROTO_GARBOARD)
			u.v[u.n++] = rules->v[i];
	for (i = 0; i < want_rules->n; i++)
		u.v[u.n++] = want_rules->v[i];
	for (i = 0; i < routes->n; i++)
		if (routes->v[i].protocol != RTNL_PROTO_GARBOARD)
			o.v[o.n++] = routes->v[i];
	for (i = 0; i < want_routes->n; i++)
		o.v[o.n++] = want_routes->v[i];
	if (sort_rules(&u) < 0)
		goto failed;
	*ret_rules = u;
	*ret_routes = o;
	return 0;
failed:
	free(u.v);
	free(o.v);
	return -ENOMEM;
}
