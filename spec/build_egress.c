/* Egress: classes, tunnels, and what is never tunnelled. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/build.h"
#include "spec/defaults.h"

bool build_is_gateway(const struct build *b, const struct spec_class *c)
{
	size_t i;

	if (!b->node)
		return true;	/* one box holds its own tunnels */
	for (i = 0; i < c->gateways.n; i++)
		if (b->node->name.v &&
		    strcmp(c->gateways.v[i].v, b->node->name.v) == 0)
			return true;
	return false;
}

/* ---- never tunnelled: disjoint, so that it can be one interval set ---- */

static const struct ip_prefix *covering(const struct prefix_list *list,
					const struct ip_prefix *p)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (ip_prefix_covers(&list->v[i], p))
			return &list->v[i];
	return NULL;
}

static void drop_covered(struct prefix_list *list, const struct ip_prefix *by)
{
	size_t i, n = 0;

	for (i = 0; i < list->n; i++)
		if (!ip_prefix_covers(by, &list->v[i]))
			list->v[n++] = list->v[i];
	list->n = n;
}

static void add_local(struct build *b, const struct ip_prefix *p,
		      const char *from)
{
	struct prefix_list *local = &b->d->egress.local;
	char text[IP_TEXT_MAX], by[IP_TEXT_MAX];
	const struct ip_prefix *c;
	int r;

	if (!p->addr.family || b->err)
		return;
	(void)ip_prefix_format(p, text);
	c = covering(local, p);
	if (c) {
		build_say_derived(b, "local", text, "never tunnelled",
				  "%s, within %s", from,
				  ip_prefix_format(c, by));
		return;
	}
	drop_covered(local, p);
	r = prefix_list_add(local, p);
	if (r < 0)
		build_failed(b, r);
	else
		build_say_derived(b, "local", text, "never tunnelled", "%s",
				  from);
}

static void add_local_addr(struct build *b, const struct ip_addr *a,
			   const char *from)
{
	struct ip_prefix p = { .addr = *a,
			       .len = (uint8_t)ip_addr_bits(a) };

	if (a->family)
		add_local(b, &p, from);
}

/* The last address of the prefix of `len` bits at `a`. */
static struct ip_addr last_of(struct ip_addr a, unsigned int len)
{
	unsigned int i;

	for (i = len; i < ip_addr_bits(&a); i++)
		a.bytes[i / 8] |= (uint8_t)(0x80u >> (i % 8));
	return a;
}

static bool aligned(const struct ip_addr *a, unsigned int len)
{
	struct ip_prefix p = { .addr = *a, .len = (uint8_t)len };
	char text[IP_TEXT_MAX];

	return ip_prefix_parse(ip_prefix_format(&p, text), &p) == 0;
}

/* The next address; false after the last one of the family. */
static bool next_addr(struct ip_addr *a)
{
	unsigned int i = ip_addr_bits(a) / 8;

	while (i-- > 0)
		if (++a->bytes[i])
			return true;
	return false;
}

/* A range as the fewest prefixes: at most two per bit of the address. */
static void add_local_range(struct build *b, struct ip_addr from,
			    const struct ip_addr *to, const char *why)
{
	do {
		unsigned int len = ip_addr_bits(&from);
		struct ip_prefix p;
		struct ip_addr last;

		while (len > 0 && aligned(&from, len - 1)) {
			last = last_of(from, len - 1);
			if (ip_addr_cmp(&last, to) > 0)
				break;
			len--;
		}
		p.addr = from;
		p.len = (uint8_t)len;
		add_local(b, &p, why);
		from = last_of(from, len);
	} while (!b->err && next_addr(&from) && ip_addr_cmp(&from, to) <= 0);
}

static void build_local(struct build *b)
{
	const struct spec_network *n = &b->spec->network;
	const struct spec_egress *e = &b->spec->egress;
	bool cluster = !b->spec->one_box;
	struct ip_prefix p;
	size_t i;

	for (i = 0; defaults_never_tunnelled[i]; i++)
		if (ip_prefix_parse(defaults_never_tunnelled[i], &p) == 0)
			add_local(b, &p, "the never tunnelled ranges");
	for (i = 0; i < n->node_cidrs.n; i++)
		add_local(b, &n->node_cidrs.v[i].v, "network.nodeCidrs");
	if (cluster || spec_given(n->pod_cidr.pos))
		add_local(b, &n->pod_cidr.v, "network.podCidr");
	if (cluster || spec_given(n->service_cidr.pos))
		add_local(b, &n->service_cidr.v, "network.serviceCidr");
	for (i = 0; i < e->n_classes; i++)
		add_local(b, &e->classes[i].pool_cidr.v, "the class's pool");
	if (n->pool_start.v.family && n->pool_stop.v.family)
		add_local_range(b, n->pool_start.v, &n->pool_stop.v,
				"network.loadBalancerPool");
	add_local_addr(b, &n->gateway_vip.v, "network.gatewayVip");
	add_local_addr(b, &b->spec->control_plane.endpoint.v,
		       "controlPlane.endpoint");
}

/* ---- tunnels and classes ---- */

static void build_tunnel(struct build *b, const struct spec_tunnel *t)
{
	struct desired_tunnel *out = &b->d->egress.tunnels[b->d->egress.n_tunnels++];
	char text[64];
	size_t i;

	out->name = strdup(t->name.v);
	out->kind = (enum tunnel_kind)t->kind.v;
	out->table = (uint32_t)t->table.v;
	out->priority = (uint32_t)t->priority.v;
	if (t->endpoints.n > DESIRED_ENDPOINTS_MAX) {
		build_failed(b, -E2BIG);
		return;
	}
	out->endpoints = calloc(t->endpoints.n + 1, sizeof(*out->endpoints));
	if (!out->name || !out->endpoints) {
		build_failed(b, -ENOMEM);
		return;
	}
	for (i = 0; i < t->endpoints.n; i++) {
		char buf[IP_TEXT_MAX];

		out->endpoints[i] = t->endpoints.v[i].v;
		if (!out->endpoints[i].proto)
			out->endpoints[i].proto = IP_PROTO_UDP;
		build_say(b, "tunnel", t->name.v,
			  ip_endpoint_format(&out->endpoints[i], buf),
			  t->endpoints.v[i].pos);
		out->n_endpoints++;
	}
	(void)snprintf(text, sizeof(text), "table %u, priority %u", out->table,
		       out->priority);
	build_say(b, "tunnel", t->name.v, text, t->table.pos);
}

static void copy_prefixes(struct build *b, const struct spec_class *c,
			  struct desired_class *out)
{
	char buf[IP_TEXT_MAX];
	size_t i;
	int r = 0;

	out->loose_pods = spec_given(c->pods_pos) &&
			  !c->pool_cidr.v.addr.family;
	if (c->pool_cidr.v.addr.family) {
		r = prefix_list_add(&out->pods, &c->pool_cidr.v);
		build_say(b, "class", c->name.v,
			  ip_prefix_format(&c->pool_cidr.v, buf),
			  c->pool_cidr.pos);
	}
	/* Disjoint, as the local ranges: they become one interval set. */
	for (i = 0; r == 0 && i < c->sources.n; i++) {
		const struct ip_prefix *p = &c->sources.v[i].v;

		if (!covering(&out->sources, p)) {
			drop_covered(&out->sources, p);
			r = prefix_list_add(&out->sources, p);
		}
		build_say(b, "class", c->name.v,
			  ip_prefix_format(p, buf),
			  c->sources.v[i].pos);
	}
	if (r < 0)
		build_failed(b, r);
}

static void build_class(struct build *b, const struct spec_class *c)
{
	struct desired_class *out = &b->d->egress.classes[b->d->egress.n_classes++];
	const struct spec_egress *e = &b->spec->egress;
	char text[64];
	size_t i;

	out->name = strdup(c->name.v);
	out->dns = calloc(c->dns.n + 1, sizeof(*out->dns));
	if (!out->name || !out->dns) {
		build_failed(b, -ENOMEM);
		return;
	}
	for (i = 0; i < e->n_tunnels; i++)
		if (c->tunnel.v && strcmp(e->tunnels[i].name.v, c->tunnel.v) == 0)
			out->tunnel = i;
	copy_prefixes(b, c, out);
	out->mark = (uint32_t)c->mark.v;
	out->mask = (uint32_t)c->mask.v;
	if (out->mask) {
		(void)snprintf(text, sizeof(text), "mark 0x%x/0x%x", out->mark,
			       out->mask);
		build_say(b, "class", c->name.v, text, c->mark_pos);
	}
	for (i = 0; i < c->dns.n; i++) {
		char buf[IP_TEXT_MAX];

		out->dns[out->n_dns++] = c->dns.v[i].v;
		(void)snprintf(text, sizeof(text), "dns %s",
			       ip_addr_format(&c->dns.v[i].v, buf));
		build_say(b, "class", c->name.v, text, c->dns.v[i].pos);
	}
	out->gateway = build_is_gateway(b, c);
	build_say_derived(b, "class", c->name.v,
			  out->gateway ? "gateway" : "no gateway",
			  "egress.classes.%s.gateways", c->name.v);
}

static void build_uplinks(struct build *b)
{
	const struct spec_strs *u = &b->spec->egress.uplinks;
	size_t i;

	if (u->n > DESIRED_UPLINKS_MAX)
		build_failed(b, -E2BIG);
	for (i = 0; i < u->n && !b->err; i++) {
		int r = strlist_add(&b->d->egress.uplinks, u->v[i].v);

		if (r < 0)
			build_failed(b, r);
		build_say(b, "egress", "uplink", u->v[i].v, u->v[i].pos);
	}
	if (u->n == 0)
		build_say(b, "egress", "uplink", "auto", u->pos);
}

void build_egress(struct build *b)
{
	const struct spec_egress *e = &b->spec->egress;
	struct desired_egress *out = &b->d->egress;
	size_t i;

	out->tunnels = calloc(e->n_tunnels + 1, sizeof(*out->tunnels));
	out->classes = calloc(e->n_classes + 1, sizeof(*out->classes));
	if (!out->tunnels || !out->classes) {
		build_failed(b, -ENOMEM);
		return;
	}
	for (i = 0; i < e->n_tunnels && !b->err; i++)
		build_tunnel(b, &e->tunnels[i]);
	for (i = 0; i < e->n_classes && !b->err; i++)
		build_class(b, &e->classes[i]);
	build_uplinks(b);
	build_local(b);
}
