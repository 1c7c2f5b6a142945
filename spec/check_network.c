/* Addresses and ranges that must not meet (B76, A39). */
#include <string.h>

#include "spec/checks.h"

static bool in_pool(const struct spec_network *n, const struct ip_addr *a)
{
	return a->family && a->family == n->pool_start.v.family &&
	       a->family == n->pool_stop.v.family &&
	       ip_addr_cmp(&n->pool_start.v, a) <= 0 &&
	       ip_addr_cmp(a, &n->pool_stop.v) <= 0;
}

CHECK(endpoint_node)
{
	const struct spec_addr *vip = &spec->control_plane.endpoint;
	char buf[IP_TEXT_MAX];
	size_t i;

	for (i = 0; vip->v.family && i < spec->n_nodes; i++)
		if (ip_addr_cmp(&vip->v, &spec->nodes[i].address.v) == 0)
			spec_report(r, vip->pos,
				    "the endpoint %s is the address of node "
				    "%s; it must be an address of its own that "
				    "can move",
				    ip_addr_format(&vip->v, buf),
				    spec->nodes[i].name.v ?
					    spec->nodes[i].name.v : "?");
}

CHECK(endpoint_pool)
{
	const struct spec_addr *vip = &spec->control_plane.endpoint;
	char buf[IP_TEXT_MAX];

	if (in_pool(&spec->network, &vip->v))
		spec_report(r, vip->pos,
			    "the endpoint %s lies in network.loadBalancerPool: "
			    "two would answer for it",
			    ip_addr_format(&vip->v, buf));
}

CHECK(endpoint_gateway)
{
	const struct spec_addr *vip = &spec->control_plane.endpoint;
	const struct spec_addr *gw = &spec->network.gateway_vip;
	char buf[IP_TEXT_MAX];
	size_t i;

	if (!gw->v.family)
		return;
	if (ip_addr_cmp(&vip->v, &gw->v) == 0)
		spec_report(r, gw->pos,
			    "gatewayVip %s is the endpoint of the control "
			    "plane",
			    ip_addr_format(&gw->v, buf));
	for (i = 0; i < spec->n_nodes; i++)
		if (ip_addr_cmp(&gw->v, &spec->nodes[i].address.v) == 0)
			spec_report(r, gw->pos,
				    "gatewayVip %s is the address of a node",
				    ip_addr_format(&gw->v, buf));
}

/* ARP reaches no further than the subnet of the nodes. */
CHECK(endpoint_subnet)
{
	const struct spec_addr *vip = &spec->control_plane.endpoint;
	const struct spec_prefixes *p = &spec->network.node_cidrs;
	char buf[IP_TEXT_MAX];
	size_t i;

	if (!vip->v.family || p->n == 0)
		return;
	for (i = 0; i < p->n; i++)
		if (ip_prefix_contains(&p->v[i].v, &vip->v))
			return;
	spec_report(r, vip->pos,
		    "the endpoint %s is in none of network.nodeCidrs; it is "
		    "announced by ARP and must lie in the subnet of the "
		    "servers",
		    ip_addr_format(&vip->v, buf));
}

CHECK(pool_inverted)
{
	const struct spec_network *n = &spec->network;

	if (!n->pool_start.v.family || !n->pool_stop.v.family)
		return;
	if (n->pool_start.v.family != n->pool_stop.v.family)
		spec_report(r, n->pool_stop.pos,
			    "loadBalancerPool starts in one family and stops "
			    "in the other");
	else if (ip_addr_cmp(&n->pool_start.v, &n->pool_stop.v) > 0)
		spec_report(r, n->pool_stop.pos,
			    "loadBalancerPool stops before it starts");
}

CHECK(pool_node)
{
	char buf[IP_TEXT_MAX];
	size_t i;

	for (i = 0; i < spec->n_nodes; i++)
		if (in_pool(&spec->network, &spec->nodes[i].address.v))
			spec_report(r, spec->nodes[i].address.pos,
				    "%s lies in network.loadBalancerPool: two "
				    "would answer for it",
				    ip_addr_format(&spec->nodes[i].address.v,
						   buf));
}

struct range {
	const char *name;
	const struct spec_prefix *p;
};

#define RANGES_MAX (2 + DESIRED_CLASSES_MAX)

static void compare(const struct range *a, const struct range *b,
		    struct spec_report *r)
{
	struct spec_pos pos = spec_given(a->p->pos) ? a->p->pos : b->p->pos;
	char one[IP_TEXT_MAX], two[IP_TEXT_MAX];

	if (!a->p->v.addr.family || !b->p->v.addr.family ||
	    !ip_prefix_overlaps(&a->p->v, &b->p->v))
		return;
	spec_report(r, pos, "%s %s overlaps %s %s", a->name,
		    ip_prefix_format(&a->p->v, one), b->name,
		    ip_prefix_format(&b->p->v, two));
}

/* The load balancer's range against those of pods and services. */
CHECK(pool_overlap)
{
	const struct spec_network *net = &spec->network;
	const struct ip_addr *from = &net->pool_start.v, *to = &net->pool_stop.v;
	struct range v[RANGES_MAX];
	char buf[IP_TEXT_MAX];
	size_t n = 0, i;

	if (!from->family || to->family != from->family)
		return;
	v[n++] = (struct range){ "podCidr", &net->pod_cidr };
	v[n++] = (struct range){ "serviceCidr", &net->service_cidr };
	for (i = 0; i < spec->egress.n_classes; i++)
		v[n++] = (struct range){ "the class's pool",
					 &spec->egress.classes[i].pool_cidr };
	for (i = 0; i < n; i++) {
		const struct ip_prefix *p = &v[i].p->v;

		if (p->addr.family == from->family &&
		    (ip_prefix_contains(p, from) || ip_prefix_contains(p, to) ||
		     (ip_addr_cmp(from, &p->addr) <= 0 &&
		      ip_addr_cmp(&p->addr, to) <= 0)))
			spec_report(r, net->pool_start.pos,
				    "loadBalancerPool overlaps %s %s",
				    v[i].name, ip_prefix_format(p, buf));
	}
}

CHECK(network_overlap)
{
	const struct spec_network *net = &spec->network;
	struct range v[RANGES_MAX];
	size_t n = 0, i, k;

	if (!spec->one_box || spec_given(net->pod_cidr.pos))
		v[n++] = (struct range){ "podCidr", &net->pod_cidr };
	if (!spec->one_box || spec_given(net->service_cidr.pos))
		v[n++] = (struct range){ "serviceCidr", &net->service_cidr };
	for (i = 0; i < spec->egress.n_classes; i++)
		v[n++] = (struct range){ "the class's pool",
					 &spec->egress.classes[i].pool_cidr };
	for (i = 0; i < n; i++) {
		for (k = 0; k < i; k++)
			compare(&v[i], &v[k], r);
		for (k = 0; k < net->node_cidrs.n; k++)
			compare(&v[i], &(struct range){ "nodeCidrs",
				&net->node_cidrs.v[k] }, r);
	}
}
