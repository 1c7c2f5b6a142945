/* The cluster and its nodes: counts, names, identities. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "spec/checks.h"

/* More of them are refused by another rule, or are no mistake of a person. */
#define ENDPOINTS_COMPARED 256

static bool is_single(const struct spec *s)
{
	return s->control_plane.mode.v == SPEC_CP_SINGLE;
}

CHECK(missing)
{
	bool ha = !is_single(spec);

	if (spec->one_box)
		return;
	if (ha && !spec_given(spec->control_plane.pos))
		spec_report(r, spec->cluster.pos,
			    "the spec needs \"controlPlane\" with the endpoint "
			    "of the API");
	else if (ha && !spec_given(spec->control_plane.endpoint.pos))
		spec_report(r, spec->control_plane.pos,
			    "controlPlane needs \"endpoint\", the address that "
			    "all servers share (without one: mode: single)");
	if (!spec->k3s.manage.v || !spec_given(spec->k3s.pos))
		return;
	if (!spec_given(spec->k3s.version.pos))
		spec_report(r, spec->k3s.pos, "k3s needs \"version\"");
	if (!spec_given(spec->k3s.sha256.pos))
		spec_report(r, spec->k3s.pos,
			    "k3s needs \"sha256\" of the binary, per "
			    "architecture");
	if (ha && !spec_given(spec->kube_vip.pos))
		spec_report(r, spec->k3s.pos, "the spec needs \"kubeVip\"");
	if (!spec_given(spec->cilium.pos))
		spec_report(r, spec->k3s.pos, "the spec needs \"cilium\"");
}

/* A35: with the arithmetic, because "odd" alone is not believed. */
CHECK(servers_count)
{
	size_t n = spec_count(spec, SPEC_ROLE_SERVER);

	if (spec->one_box || is_single(spec) || n == 0)
		return;
	if (n >= 3 && n % 2 == 1)
		return;
	spec_report(r, spec->nodes_pos,
		    "%zu server%s: a quorum is %zu/2+1 = %zu, so %zu may be "
		    "lost%s; use an odd number of at least 3 (one server "
		    "alone: controlPlane.mode: single)",
		    n, n == 1 ? "" : "s", n, n / 2 + 1, spec_tolerance(n),
		    n >= 4 ? ", as many as with one server less" : "");
}

CHECK(founder)
{
	size_t founder = 0;

	if (spec->one_box || !spec_given(spec->nodes_pos) ||
	    spec_founder(spec, &founder) == 0)
		return;
	spec_report(r, spec->nodes_pos,
		    "no node is a server, so there is no founder; a node "
		    "without \"role\" is one");
}

CHECK(single_mode)
{
	size_t n = spec_count(spec, SPEC_ROLE_SERVER);

	if (!is_single(spec))
		return;
	if (n > 1)
		spec_report(r, spec->control_plane.mode.pos,
			    "mode: single is for exactly one server, and there "
			    "are %zu",
			    n);
	if (spec_given(spec->control_plane.endpoint.pos))
		spec_report(r, spec->control_plane.endpoint.pos,
			    "mode: single has no shared address; the server's "
			    "own is the endpoint");
	if (spec_given(spec->kube_vip.pos))
		spec_report(r, spec->kube_vip.pos,
			    "mode: single has no kube-vip");
}

CHECK(node_name)
{
	size_t i, k;

	for (i = 0; i < spec->n_nodes; i++) {
		const struct spec_str *a = &spec->nodes[i].name;

		for (k = 0; a->v && k < i; k++) {
			const struct spec_str *b = &spec->nodes[k].name;

			if (!b->v || strcmp(a->v, b->v) != 0)
				continue;
			spec_report(r, a->pos,
				    "the name %s is taken by the node in line "
				    "%u",
				    a->v, b->pos.line);
			break;
		}
	}
}

CHECK(node_address)
{
	size_t i, k;

	for (i = 0; i < spec->n_nodes; i++) {
		const struct spec_addr *a = &spec->nodes[i].address;
		char buf[IP_TEXT_MAX];

		for (k = 0; a->v.family && k < i; k++) {
			const struct spec_addr *b = &spec->nodes[k].address;

			if (ip_addr_cmp(&a->v, &b->v) != 0)
				continue;
			spec_report(r, a->pos,
				    "the address %s is that of the node in "
				    "line %u",
				    ip_addr_format(&a->v, buf), b->pos.line);
			break;
		}
	}
}

static const struct spec_str *identity(const struct spec_node *node,
				       unsigned int which)
{
	const struct spec_str *const ids[] = { &node->mac, &node->serial,
					       &node->machine_id,
					       &node->product_uuid };

	return ids[which];
}

CHECK(node_match)
{
	unsigned int which;
	size_t i, k;

	for (which = 0; which < 4; which++) {
		for (i = 0; i < spec->n_nodes; i++) {
			const struct spec_str *a =
				identity(&spec->nodes[i], which);

			for (k = 0; a->v && k < i; k++) {
				const struct spec_str *b =
					identity(&spec->nodes[k], which);

				if (!b->v || strcasecmp(a->v, b->v) != 0)
					continue;
				spec_report(r, a->pos,
					    "%s also matches the node in line "
					    "%u",
					    a->v, b->pos.line);
				break;
			}
		}
	}
}

/* A45, B86: else traffic between nodes could count as "to the internet". */
CHECK(node_range)
{
	const struct spec_prefixes *p = &spec->network.node_cidrs;
	size_t i, k;

	if (spec->one_box || p->n == 0)
		return;
	for (i = 0; i < spec->n_nodes; i++) {
		const struct spec_addr *a = &spec->nodes[i].address;
		char buf[IP_TEXT_MAX];

		if (!a->v.family)
			continue;
		for (k = 0; k < p->n; k++)
			if (ip_prefix_contains(&p->v[k].v, &a->v))
				break;
		if (k == p->n)
			spec_report(r, a->pos,
				    "%s is in none of network.nodeCidrs, which "
				    "must hold every node",
				    ip_addr_format(&a->v, buf));
	}
}

static bool ends_with(const char *text, size_t len, const char *tail)
{
	size_t n = strlen(tail);

	if (len < n || strncmp(text + len - n, tail, n) != 0)
		return false;
	return len == n || text[len - n - 1] == '.';
}

/* The kubelet refuses to start with labels that it may not set on itself. */
static bool kubelet_refuses(const char *key)
{
	static const char *const allowed[] = {
		"kubernetes.io/hostname", "kubernetes.io/arch",
		"kubernetes.io/os", "topology.kubernetes.io/zone",
		"topology.kubernetes.io/region", NULL };
	const char *slash = strchr(key, '/');
	size_t len = slash ? (size_t)(slash - key) : 0, i;

	if (!slash || ends_with(key, len, "node.kubernetes.io") ||
	    ends_with(key, len, "kubelet.kubernetes.io"))
		return false;
	for (i = 0; allowed[i]; i++)
		if (strcmp(key, allowed[i]) == 0)
			return false;
	return ends_with(key, len, "kubernetes.io") ||
	       ends_with(key, len, "k8s.io");
}

CHECK(label_reserved)
{
	size_t i, k;

	for (i = 0; i < spec->n_nodes; i++) {
		const struct spec_pairs *l = &spec->nodes[i].labels;

		for (k = 0; k < l->n; k++) {
			const char *key = l->v[k].key.v;

			if (strncmp(key, SPEC_LABEL_PREFIX,
				    strlen(SPEC_LABEL_PREFIX)) == 0)
				spec_report(r, l->v[k].key.pos,
					    "%s: labels "
					    "under " SPEC_LABEL_PREFIX
					    " derive from the spec", key);
			else if (kubelet_refuses(key))
				spec_report(r, l->v[k].key.pos,
					    "%s: the kubelet may not set this "
					    "label on itself and would not "
					    "start",
					    key);
		}
	}
}

static void twice(const struct spec_strs *list, struct spec_report *r)
{
	size_t i, k;

	for (i = 0; i < list->n; i++)
		for (k = 0; k < i; k++)
			if (strcmp(list->v[i].v, list->v[k].v) == 0) {
				spec_report(r, list->v[i].pos,
					    "%s is in this list twice",
					    list->v[i].v);
				break;
			}
}

static void endpoint_twice(const struct spec_endpoints *list,
			   struct spec_report *r)
{
	char a[IP_TEXT_MAX], b[IP_TEXT_MAX];
	size_t i, k;

	for (i = 0; i < list->n; i++)
		for (k = 0; k < i; k++)
			if (strcmp(ip_endpoint_format(&list->v[i].v, a),
				   ip_endpoint_format(&list->v[k].v, b)) == 0) {
				spec_report(r, list->v[i].pos,
					    "%s is in this list twice", a);
				break;
			}
}

CHECK(duplicate_item)
{
	const struct spec_egress *e = &spec->egress;
	size_t i;

	twice(&spec->control_plane.extra_sans, r);
	twice(&e->uplinks, r);
	for (i = 0; i < e->n_classes; i++)
		twice(&e->classes[i].gateways, r);
	for (i = 0; i <= spec->n_nodes; i++) {
		const struct spec_baseline *b =
			i ? &spec->nodes[i - 1].baseline : &spec->baseline;

		twice(&b->modules, r);
		twice(&b->waivers, r);
		if (i)
			twice(&spec->nodes[i - 1].taints, r);
	}
	if (spec->coordinator.addresses.n <= ENDPOINTS_COMPARED)
		endpoint_twice(&spec->coordinator.addresses, r);
	for (i = 0; i < e->n_tunnels; i++)
		if (e->tunnels[i].endpoints.n <= ENDPOINTS_COMPARED)
			endpoint_twice(&e->tunnels[i].endpoints, r);
}

CHECK(san)
{
	const struct spec_strs *sans = &spec->control_plane.extra_sans;
	struct ip_addr a;
	size_t i;

	for (i = 0; i < sans->n; i++)
		if (strchr(sans->v[i].v, ':') &&
		    ip_addr_parse(sans->v[i].v, &a) < 0)
			spec_report(r, sans->v[i].pos,
				    "extraSans: \"%s\" is no address",
				    sans->v[i].v);
}

/* A39, B36, B38: a fact that derives is not written a second time. */
CHECK(restated)
{
	const struct spec_strs *sans = &spec->control_plane.extra_sans;
	size_t i, k;

	for (i = 0; i < sans->n; i++) {
		const struct spec_str *san = &sans->v[i];
		struct ip_addr a;

		if (ip_addr_parse(san->v, &a) < 0)
			continue;
		if (ip_addr_cmp(&a, &spec->control_plane.endpoint.v) == 0)
			spec_report(r, san->pos,
				    "%s is the endpoint, which is in the "
				    "certificate already",
				    san->v);
		for (k = 0; k < spec->n_nodes; k++)
			if (spec->nodes[k].role.v == SPEC_ROLE_SERVER &&
			    ip_addr_cmp(&a, &spec->nodes[k].address.v) == 0)
				spec_report(r, san->pos,
					    "%s is the address of a server, "
					    "which is in the certificate "
					    "already",
					    san->v);
	}
}
