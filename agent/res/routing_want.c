#include "agent/res/routing_want.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/nl/rtnl_index.h"

/* The last but one metric: the last resort, behind every other route. */
#define METRIC_LAST_RESORT (UINT32_MAX - 1)
#define ROOM_MIN 16
#define METRIC 1024	/* what IPv6 itself takes when none is given */

/* Priorities from the tunnel's on: its address, sources, marks. */
#define PRIORITY_ADDRESS 0
#define PRIORITY_SOURCE 1
#define PRIORITY_MARK 2

struct build {
	const struct desired_egress *egress;
	const struct routing_seen *seen;
	const struct routing_record *addresses;
	const struct desired_tunnel *tunnel;
	size_t index;			/* of the tunnel */
	struct routing_want *want;
	int err;
};

const struct routing_tunnel *routing_seen_tunnel(const struct routing_seen *s,
						 const char *name)
{
	size_t i;

	for (i = 0; i < s->n_tunnels; i++)
		if (strcmp(s->tunnels[i].name, name) == 0)
			return &s->tunnels[i];
	return NULL;
}

bool routing_uses(const struct desired_egress *egress, size_t tunnel)
{
	size_t i;

	for (i = 0; i < egress->n_classes; i++)
		if (egress->classes[i].gateway &&
		    egress->classes[i].tunnel == tunnel)
			return true;
	return false;
}

/* ---- addresses ---- */

/* Link-local ones are no source that anything is sent out with. */
static bool steerable(const struct rtnl_addr *a)
{
	return a->scope == RT_SCOPE_UNIVERSE;
}

static int remember_tunnel(const struct routing_seen *seen, const char *name,
			   struct routing_record *next)
{
	const struct routing_tunnel *t = routing_seen_tunnel(seen, name);
	size_t before = next->n, i;
	int r = 0;

	for (i = 0; t && t->link.index && i < t->addrs.n && r == 0; i++)
		if (steerable(&t->addrs.v[i]))
			r = routing_record_add(next, name,
					       &t->addrs.v[i].prefix.addr);
	if (r < 0 || next->n > before)
		return r;
	for (i = 0; i < seen->record.n && r == 0; i++)
		if (strcmp(seen->record.v[i].tunnel, name) == 0)
			r = routing_record_add(next, name,
					       &seen->record.v[i].addr);
	return r;
}

int routing_next_record(const struct routing_seen *seen,
			const struct desired_egress *egress,
			struct routing_record *ret)
{
	struct routing_record next = { .n = 0 };
	size_t i;
	int r = 0;

	for (i = 0; i < egress->n_tunnels && r == 0; i++)
		if (routing_uses(egress, i))
			r = remember_tunnel(seen, egress->tunnels[i].name,
					    &next);
	if (r == 0)
		*ret = next;
	return r;
}

/* ---- routes ---- */

/* Room for 16, 32, 64, ... */
static void *list_room(struct build *b, void *v, size_t n, size_t size)
{
	if (n >= RTNL_LIST_MAX)
		b->err = -E2BIG;
	if (b->err < 0)
		return NULL;
	if (n != 0 && (n < ROOM_MIN || (n & (n - 1)) != 0))
		return v;
	v = reallocarray(v, n ? 2 * n : ROOM_MIN, size);
	if (!v)
		b->err = -ENOMEM;
	return v;
}

static void add_route(struct build *b, const struct rtnl_route *route)
{
	struct rtnl_routes *l = &b->want->routes;
	struct rtnl_route *v = list_room(b, l->v, l->n, sizeof(*v));

	if (!v)
		return;
	l->v = v;
	v[l->n++] = *route;
}

/* Two classes of one tunnel want the same ones. */
static int drop_doubles(struct rtnl_routes *l)
{
	struct rtnl_index x;
	size_t i, n = 0;
	bool *once;
	int r = rtnl_index_make(l, &x);

	if (r < 0)
		return r;
	once = calloc(l->n + 1, sizeof(*once));
	for (i = 0; once && i < l->n; i++)
		once[i] = rtnl_index_find(&x, &l->v[i]) == &l->v[i];
	rtnl_index_done(&x);
	if (!once)
		return -ENOMEM;
	for (i = 0; i < l->n; i++)
		if (once[i])
			l->v[n++] = l->v[i];
	l->n = n;
	free(once);
	return 0;
}

static struct rtnl_route route_to(const struct build *b,
				  const struct ip_prefix *dst, uint8_t type)
{
	return (struct rtnl_route){
		.dst = *dst,
		.table = b->tunnel->table,
		.protocol = RTNL_PROTO_GARBOARD,
		.type = type,
		.metric = type == RTN_UNREACHABLE ? METRIC_LAST_RESORT :
						    METRIC,
	};
}

static bool has_address(const struct routing_tunnel *t, uint8_t family)
{
	size_t i;

	for (i = 0; i < t->addrs.n; i++)
		if (t->addrs.v[i].prefix.addr.family == family &&
		    steerable(&t->addrs.v[i]))
			return true;
	return false;
}

/* Through the tunnel while it can carry the family; never open behind it. */
static void add_tunnelled(struct build *b, const struct ip_prefix *dst)
{
	const struct routing_tunnel *t =
		routing_seen_tunnel(b->seen, b->tunnel->name);
	struct rtnl_route route = route_to(b, dst, RTN_UNREACHABLE);

	add_route(b, &route);
	if (!t || !t->link.index || !(t->link.flags & IFF_UP) ||
	    !has_address(t, dst->addr.family))
		return;
	route = route_to(b, dst, RTN_UNICAST);
	route.oif = t->link.index;
	if (dst->addr.family == AF_INET)
		route.scope = RT_SCOPE_LINK;
	add_route(b, &route);
}

static void add_throws(struct build *b, uint8_t family)
{
	const struct prefix_list *local = &b->egress->local;
	size_t i;

	for (i = 0; i < local->n; i++) {
		struct rtnl_route route =
			route_to(b, &local->v[i], RTN_THROW);

		if (local->v[i].addr.family == family)
			add_route(b, &route);
	}
}

/*
 * The tunnel's own packets never go into the tunnel, even where their source
 * is one of the class's. The kill-switch says who may send there (KS-10).
 */
static void add_endpoints(struct build *b, uint8_t family)
{
	size_t i;

	for (i = 0; i < b->egress->n_classes; i++)
		if (b->egress->classes[i].gateway &&
		    b->egress->classes[i].tunnel == b->index &&
		    b->egress->classes[i].sources.n)
			break;
	if (i == b->egress->n_classes)
		return;
	for (i = 0; i < b->tunnel->n_endpoints; i++) {
		const struct ip_addr *a = &b->tunnel->endpoints[i].addr;
		struct ip_prefix dst = { .addr = *a,
					 .len = (uint8_t)ip_addr_bits(a) };
		struct rtnl_route route = route_to(b, &dst, RTN_THROW);

		if (a->family == family)
			add_route(b, &route);
	}
}

static void add_routes(struct build *b, uint8_t family)
{
	struct ip_prefix any = { .addr.family = family };
	size_t i, j;

	add_tunnelled(b, &any);
	add_throws(b, family);
	add_endpoints(b, family);
	/* Resolvers go through the tunnel even where they look local. */
	for (i = 0; i < b->egress->n_classes; i++) {
		const struct desired_class *c = &b->egress->classes[i];

		if (!c->gateway || c->tunnel != b->index)
			continue;
		for (j = 0; j < c->n_dns; j++) {
			struct ip_prefix dst = {
				.addr = c->dns[j],
				.len = (uint8_t)ip_addr_bits(&c->dns[j]),
			};

			if (dst.addr.family == family)
				add_tunnelled(b, &dst);
		}
	}
}

/* ---- rules ---- */

static void add_rule(struct build *b, const struct rtnl_rule *rule)
{
	struct rtnl_rules *l = &b->want->rules;
	struct rtnl_rule *v;
	size_t i;

	for (i = 0; i < l->n; i++)
		if (rtnl_rule_equal(&l->v[i], rule))
			return;
	v = list_room(b, l->v, l->n, sizeof(*v));
	if (!v)
		return;
	l->v = v;
	v[l->n++] = *rule;
}

static struct rtnl_rule rule_to(const struct build *b, uint8_t family,
				uint32_t offset)
{
	return (struct rtnl_rule){
		.family = family,
		.priority = b->tunnel->priority + offset,
		.table = b->tunnel->table,
		.action = FR_ACT_TO_TBL,
		.protocol = RTNL_PROTO_GARBOARD,
	};
}

static void add_source(struct build *b, uint8_t family, uint32_t offset,
		       const struct ip_prefix *src)
{
	struct rtnl_rule rule = rule_to(b, family, offset);

	/* A rule of length 0 would be everybody's (A19). */
	if (src->addr.family != family || src->len == 0)
		return;
	rule.src = *src;
	add_rule(b, &rule);
}

static void add_class_rules(struct build *b, uint8_t family,
			    const struct desired_class *c)
{
	struct rtnl_rule rule = rule_to(b, family, PRIORITY_MARK);
	size_t i;

	for (i = 0; i < c->sources.n; i++)
		add_source(b, family, PRIORITY_SOURCE, &c->sources.v[i]);
	/* So that their way stays closed when somebody takes the tables. */
	for (i = 0; i < c->pods.n; i++)
		add_source(b, family, PRIORITY_SOURCE, &c->pods.v[i]);
	if (c->mask == 0)
		return;
	rule.mark = c->mark;
	rule.mask = c->mask;
	add_rule(b, &rule);
}

static void add_rules(struct build *b, uint8_t family)
{
	size_t i;

	for (i = 0; i < b->addresses->n; i++) {
		const struct routing_address *a = &b->addresses->v[i];
		struct ip_prefix src = {
			.addr = a->addr,
			.len = (uint8_t)ip_addr_bits(&a->addr),
		};

		if (strcmp(a->tunnel, b->tunnel->name) == 0)
			add_source(b, family, PRIORITY_ADDRESS, &src);
	}
	for (i = 0; i < b->egress->n_classes; i++)
		if (b->egress->classes[i].gateway &&
		    b->egress->classes[i].tunnel == b->index)
			add_class_rules(b, family, &b->egress->classes[i]);
}

static bool address_known(const struct build *b)
{
	size_t i;

	for (i = 0; i < b->addresses->n; i++)
		if (strcmp(b->addresses->v[i].tunnel, b->tunnel->name) == 0)
			return true;
	return false;
}

void routing_want_done(struct routing_want *w)
{
	free(w->routes.v);
	free(w->rules.v);
	*w = (struct routing_want){ 0 };
}

int routing_want(const struct desired_egress *egress,
		 const struct routing_seen *seen,
		 const struct routing_record *addresses,
		 struct routing_want *ret_want)
{
	struct routing_want want = { 0 };
	struct build b = { egress, seen, addresses, NULL, 0, &want, 0 };

	for (b.index = 0; b.index < egress->n_tunnels; b.index++) {
		b.tunnel = &egress->tunnels[b.index];
		/* Nothing rather than a part of it (A20). */
		if (!routing_uses(egress, b.index) || !address_known(&b))
			continue;
		add_routes(&b, AF_INET);
		add_rules(&b, AF_INET);
		if (!seen->ipv6)
			continue;
		add_routes(&b, AF_INET6);
		add_rules(&b, AF_INET6);
	}
	if (b.err == 0)
		b.err = drop_doubles(&want.routes);
	if (b.err < 0) {
		routing_want_done(&want);
		return b.err;
	}
	*ret_want = want;
	return 0;
}
