/* Egress classes and tunnels (A15 to A31, RT-05). */
#include <string.h>
#include <sys/socket.h>

#include "spec/checks.h"
#include "spec/reserved.h"

#define EACH_CLASS(c)                                                         \
	for (const struct spec_class *c = spec->egress.classes;               \
	     c && c < spec->egress.classes + spec->egress.n_classes; c++)

#define EACH_TUNNEL(t)                                                        \
	for (const struct spec_tunnel *t = spec->egress.tunnels;              \
	     t && t < spec->egress.tunnels + spec->egress.n_tunnels; t++)

static bool is_vpn(const struct spec_class *c)
{
	return strcmp(c->name.v, SPEC_CLASS_VPN) == 0;
}

static const struct spec_tunnel *find_tunnel(const struct spec *spec,
					     const char *name)
{
	EACH_TUNNEL(t)
		if (strcmp(t->name.v, name) == 0)
			return t;
	return NULL;
}

/* A15, A26: internet is the absence of a rule; a third has no path. */
CHECK(class_name)
{
	EACH_CLASS(c) {
		if (is_vpn(c))
			continue;
		if (strcmp(c->name.v, SPEC_CLASS_INTERNET) == 0)
			spec_report(r, c->name.pos,
				    "internet is the default route of every "
				    "node and is not declared");
		else
			spec_report(r, c->name.pos,
				    "\"%.80s\" is none of the two classes, "
				    "internet and vpn",
				    c->name.v);
	}
}

CHECK(class_empty)
{
	EACH_CLASS(c)
		if (is_vpn(c) && !spec_given(c->pods_pos) &&
		    c->sources.n == 0 && !spec_given(c->mark_pos))
			spec_report(r, c->name.pos,
				    "class %s names nobody: give it pods, "
				    "sources or a mark",
				    c->name.v);
}

/* B83: one selector with one equality, so that policies cannot overlap. */
CHECK(class_label)
{
	EACH_CLASS(c) {
		const struct spec_pair *p = c->label.v;

		if (!spec_given(c->label.pos))
			continue;
		if (c->label.n != 1 || strcmp(p->key.v, "egress-class") != 0 ||
		    strcmp(p->value.v, c->name.v) != 0)
			spec_report(r, c->label.pos,
				    "pods.label must be {egress-class: %s}: "
				    "one policy, one equality",
				    c->name.v);
	}
}

CHECK(class_tunnel)
{
	EACH_CLASS(c)
		if (c->tunnel.v && !find_tunnel(spec, c->tunnel.v))
			spec_report(r, c->tunnel.pos,
				    "there is no tunnel \"%s\" in "
				    "egress.tunnels",
				    c->tunnel.v);
}

CHECK(class_gateway)
{
	size_t i, node;

	EACH_CLASS(c) {
		for (i = 0; i < c->gateways.n; i++)
			if (!spec->one_box &&
			    spec_find_node(spec, c->gateways.v[i].v, &node) < 0)
				spec_report(r, c->gateways.v[i].pos,
					    "the gateway \"%s\" is no node of "
					    "the spec",
					    c->gateways.v[i].v);
		if (spec->one_box && spec_given(c->gateways.pos))
			spec_report(r, c->gateways.pos,
				    "on one box there are no gateways to "
				    "choose; remove the key");
		if (!spec->one_box && is_vpn(c) && c->gateways.n == 0 &&
		    !spec_given(c->gateways.pos))
			spec_report(r, c->name.pos,
				    "class %s needs \"gateways\", the nodes "
				    "that hold its tunnel",
				    c->name.v);
	}
}

/* A27: the first by name carries all of it, and Cilium has no fail-over. */
CHECK(gateway_single)
{
	EACH_CLASS(c)
		if (!spec->one_box && c->gateways.n == 1)
			spec_report(r, c->gateways.v[0].pos,
				    "class %s has one gateway: when %s is "
				    "down the class is closed; name a second "
				    "one",
				    c->name.v, c->gateways.v[0].v);
}

CHECK(class_mark)
{
	EACH_CLASS(c) {
		uint64_t value = c->mark.v, mask = c->mask.v;

		if (!spec_given(c->mark.pos) || !spec_given(c->mask.pos) ||
		    reserved_mark_free(value, mask))
			continue;
		spec_report(r, c->mark_pos,
			    "mark 0x%llx/0x%llx: the mask must hold 0x0f00 and "
			    "the value must not (Cilium's magic), and only "
			    "0x1000 and 0x2000 are free beside it, as in "
			    "0x2000/0x3f00",
			    (unsigned long long)value,
			    (unsigned long long)mask);
	}
}

/* ---- whom the class's ranges may not hold ---- */

/* What the cluster itself has in the prefix, or NULL. */
static const char *cluster_range(const struct spec *spec,
				 const struct ip_prefix *p)
{
	const struct spec_network *n = &spec->network;

	if ((!spec->one_box || spec_given(n->pod_cidr.pos)) &&
	    ip_prefix_overlaps(&n->pod_cidr.v, p))
		return "network.podCidr";
	if ((!spec->one_box || spec_given(n->service_cidr.pos)) &&
	    ip_prefix_overlaps(&n->service_cidr.v, p))
		return "network.serviceCidr";
	EACH_CLASS(c)
		if (c->pool_cidr.v.addr.family &&
		    ip_prefix_overlaps(&c->pool_cidr.v, p))
			return "the class's pool";
	return NULL;
}

static const char *own_address(const struct spec *spec,
			       const struct ip_prefix *p)
{
	const struct ip_addr *vip = &spec->control_plane.endpoint.v;
	const struct ip_addr *gateway = &spec->network.gateway_vip.v;

	if (vip->family && ip_prefix_contains(p, vip))
		return "controlPlane.endpoint";
	if (gateway->family && ip_prefix_contains(p, gateway))
		return "network.gatewayVip";
	return NULL;
}

static struct ip_prefix whole(const struct ip_addr *a)
{
	return (struct ip_prefix){ .addr = *a,
				   .len = (uint8_t)ip_addr_bits(a) };
}

/* Pods are chosen by label and pool, and services answer from the uplink. */
CHECK(class_source_range)
{
	char buf[IP_TEXT_MAX];
	size_t i;

	EACH_CLASS(c)
		for (i = 0; i < c->sources.n; i++) {
			const struct ip_prefix *p = &c->sources.v[i].v;
			const char *what = cluster_range(spec, p);

			if (!what)
				what = own_address(spec, p);
			if (p->len > 0 && what)
				spec_report(r, c->sources.v[i].pos,
					    "the source %s reaches into %s, "
					    "which is no host sender",
					    ip_prefix_format(p, buf), what);
		}
}

/* KS-08: it is asked through the tunnel, so it must be behind it. */
CHECK(class_dns)
{
	const struct spec_prefixes *nodes = &spec->network.node_cidrs;
	char buf[IP_TEXT_MAX];
	size_t i, k;

	EACH_CLASS(c)
		for (i = 0; i < c->dns.n; i++) {
			struct ip_prefix p = whole(&c->dns.v[i].v);
			const char *what = p.addr.family ?
						   cluster_range(spec, &p) :
						   NULL;

			for (k = 0; p.addr.family && !what && k < nodes->n; k++)
				if (ip_prefix_contains(&nodes->v[k].v, &p.addr))
					what = "network.nodeCidrs";
			if (what)
				spec_report(r, c->dns.v[i].pos,
					    "the resolver %s is in %s, not "
					    "behind the tunnel",
					    ip_addr_format(&p.addr, buf), what);
		}
}

/* A22: the node's own traffic stays on the uplink. */
CHECK(class_source)
{
	char buf[IP_TEXT_MAX];
	size_t i, k;

	EACH_CLASS(c)
		for (i = 0; i < c->sources.n; i++) {
			const struct spec_prefix *s = &c->sources.v[i];

			for (k = 0; k < spec->n_nodes; k++)
				if (ip_prefix_contains(
					    &s->v, &spec->nodes[k].address.v))
					break;
			if (k < spec->n_nodes)
				spec_report(r, s->pos,
					    "the source %s holds the address "
					    "of node %s, whose own traffic "
					    "stays on the uplink",
					    ip_prefix_format(&s->v, buf),
					    spec->nodes[k].name.v ?
						    spec->nodes[k].name.v : ""
						    	"?");
			else if (s->v.len == 0)
				spec_report(r, s->pos,
					    "the source %s is everybody",
					    ip_prefix_format(&s->v, buf));
		}
}

CHECK(class_pool_range)
{
	EACH_CLASS(c) {
		const struct ip_prefix *p = &c->pool_cidr.v;

		if (c->pool_name.v && strcmp(c->pool_name.v, "default") == 0)
			spec_report(r, c->pool_name.pos,
				    "\"default\" is the pool of all other "
				    "pods");
		/* Nodes take a /26 each from it (K3S-CONTRACT 7.6). */
		if (p->addr.family == AF_INET6 ||
		    (p->addr.family == AF_INET && p->len > 26))
			spec_report(r, c->pool_cidr.pos,
				    "a pool is an IPv4 prefix of at least a "
				    "/26; every node with such pods takes one "
				    "/26 of it");
	}
}

CHECK(class_pool)
{
	EACH_CLASS(c)
		if (spec_given(c->pods_pos) && !c->pool_cidr.v.addr.family &&
		    !spec_given(c->pool_name.pos))
			spec_report(r, c->pods_pos,
				    "without a pool of its own, a new pod of "
				    "class %s leaves by the uplink until "
				    "Cilium has programmed it; give it "
				    "pods.pool",
				    c->name.v);
}

/* TL-07: time needs DNS, DNS needs the tunnel, the tunnel needs time. */
CHECK(class_time)
{
	EACH_CLASS(c)
		if (c->sources.n && c->dns.n)
			spec_report(r, c->sources.pos,
				    "a time service among these senders that "
				    "knows its servers by name waits for the "
				    "tunnel, and the tunnel may wait for the "
				    "time; give it addresses");
}

/* ---- tunnels ---- */

CHECK(tunnel_endpoint)
{
	char buf[IP_TEXT_MAX];
	size_t i;

	EACH_TUNNEL(t) {
		if (spec_given(t->endpoints.pos) && t->endpoints.n == 0)
			spec_report(r, t->endpoints.pos,
				    "tunnel %s has no endpoint, so it could "
				    "reach none",
				    t->name.v);
		for (i = 0; i < t->endpoints.n; i++) {
			const struct spec_endpoint *e = &t->endpoints.v[i];

			if (t->kind.v == TUNNEL_WIREGUARD &&
			    e->v.proto == IP_PROTO_TCP)
				spec_report(r, e->pos,
					    "%s: WireGuard speaks UDP only",
					    ip_endpoint_format(&e->v, buf));
			else if (t->kind.v == TUNNEL_OPENVPN && !e->v.proto)
				spec_report(r, e->pos,
					    "%s: say /udp or /tcp for OpenVPN",
					    ip_endpoint_format(&e->v, buf));
		}
	}
}

/* What the tunnel is reached by cannot be what it is there to reach. */
CHECK(tunnel_endpoint_range)
{
	char buf[IP_TEXT_MAX];
	size_t i;

	EACH_TUNNEL(t)
		for (i = 0; i < t->endpoints.n; i++) {
			const struct spec_endpoint *e = &t->endpoints.v[i];
			struct ip_prefix p = whole(&e->v.addr);
			const char *what = p.addr.family ?
						   cluster_range(spec, &p) :
						   NULL;

			if (what)
				spec_report(r, e->pos,
					    "%s is in %s, where no relay can "
					    "be",
					    ip_endpoint_format(&e->v, buf),
					    what);
		}
}

CHECK(tunnel_table)
{
	EACH_TUNNEL(t) {
		const char *who = reserved_table(t->table.v);

		if (spec_given(t->table.pos) && who)
			spec_report(r, t->table.pos,
				    "table %llu is %s; 51820 is a good choice",
				    (unsigned long long)t->table.v, who);
	}
}

CHECK(tunnel_priority)
{
	EACH_TUNNEL(t) {
		const char *who = reserved_priority(t->priority.v);

		if (spec_given(t->priority.pos) && who)
			spec_report(r, t->priority.pos,
				    "rulePriority %llu is %s; 18200 is a good "
				    "choice",
				    (unsigned long long)t->priority.v, who);
	}
}

CHECK(tunnel_shared)
{
	EACH_TUNNEL(a)
		EACH_TUNNEL(b) {
			uint64_t x = a->priority.v, y = b->priority.v;
			uint64_t gap = x > y ? x - y : y - x;

			if (b >= a)
				break;
			if (a->table.v && a->table.v == b->table.v)
				spec_report(r, a->table.pos,
					    "tunnels %s and %s share a table",
					    b->name.v, a->name.v);
			if (x && y && gap < RESERVED_PRIORITY_SPAN)
				spec_report(r, a->priority.pos,
					    "tunnels %s and %s are less than "
					    "%u priorities apart, which one "
					    "tunnel's rules may take",
					    b->name.v, a->name.v,
					    RESERVED_PRIORITY_SPAN);
		}
}

CHECK(tunnel_unused)
{
	EACH_TUNNEL(t) {
		bool used = false;

		EACH_CLASS(c)
			used = used || (c->tunnel.v &&
					strcmp(c->tunnel.v, t->name.v) == 0);
		if (!used)
			spec_report(r, t->name.pos,
				    "no class uses the tunnel %s", t->name.v);
	}
}

/* Cilium's devices and lo lead to pods and to this node, not out. */
CHECK(uplink_device)
{
	static const char *const prefixes[] = { "cilium_", "lxc", "veth" };
	const struct spec_strs *u = &spec->egress.uplinks;
	size_t i, k;

	for (i = 0; i < u->n; i++) {
		bool bad = strcmp(u->v[i].v, "lo") == 0;

		for (k = 0; k < sizeof(prefixes) / sizeof(prefixes[0]); k++)
			bad = bad || strncmp(u->v[i].v, prefixes[k],
					     strlen(prefixes[k])) == 0;
		if (bad)
			spec_report(r, u->v[i].pos,
				    "%s does not lead out of the node",
				    u->v[i].v);
	}
}

CHECK(uplink_tunnel)
{
	const struct spec_strs *u = &spec->egress.uplinks;
	size_t i;

	for (i = 0; i < u->n; i++)
		if (find_tunnel(spec, u->v[i].v))
			spec_report(r, u->v[i].pos,
				    "%s is a tunnel, not an uplink: its "
				    "traffic would be dropped",
				    u->v[i].v);
}
