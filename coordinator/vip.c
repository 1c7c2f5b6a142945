#include "coordinator/vip.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/ask_servers.h"
#include "coordinator/cluster.h"
#include "coordinator/control_client.h"
#include "coordinator/manifests.h"
#include "proto/order.h"
#include "proto/up.h"
#include "spec/spec.h"

#define VIP_GROUPS_MAX 16

struct groups {
	struct vip_group v[VIP_GROUPS_MAX];
	size_t n;
};

static int add_to_group(struct groups *g, const char *interface,
			const char *node, struct fault *f)
{
	size_t i, at;

	for (at = 0; at < g->n; at++) {
		int c = strcmp(g->v[at].interface, interface);

		if (c == 0)
			return strlist_add(&g->v[at].nodes, node);
		if (c > 0)
			break;
	}
	if (g->n == VIP_GROUPS_MAX)
		return fault_set(f, -E2BIG, node, "more than %d interface "
				 "names for the endpoint", VIP_GROUPS_MAX);
	for (i = g->n++; i > at; i--)
		g->v[i] = g->v[i - 1];
	g->v[at] = (struct vip_group){ 0 };
	(void)snprintf(g->v[at].interface, sizeof(g->v[at].interface), "%s",
		       interface);
	return strlist_add(&g->v[at].nodes, node);
}

/* A tunnel never carries the endpoint, whatever its subnet says. */
static bool is_tunnel(const struct spec *spec, const char *interface)
{
	size_t i;

	for (i = 0; i < spec->egress.n_tunnels; i++)
		if (strcmp(spec->egress.tunnels[i].name.v, interface) == 0)
			return true;
	return false;
}

static int group_node(const struct step_env *env, const char *node,
		      const struct up_facts *facts, struct groups *g,
		      struct fault *f)
{
	size_t i;

	for (i = 0; i < facts->vip_interfaces.n; i++)
		if (!is_tunnel(env->spec, facts->vip_interfaces.v[i]))
			return add_to_group(g, facts->vip_interfaces.v[i],
					    node, f);
	return fault_set(f, -ENODEV, node,
			 "has no interface whose subnet holds the endpoint; "
			 "name one in kubeVip.interface");
}

static int group_servers(const struct step_env *env, struct groups *g,
			 struct fault *f)
{
	const char *fixed = env->spec->kube_vip.interface.v;
	struct ask *list = NULL;
	size_t i, n = 0;
	int r = 0;

	for (i = 0; fixed && r == 0 && i < env->spec->n_nodes; i++)
		if (env->spec->nodes[i].role.v == SPEC_ROLE_SERVER)
			r = add_to_group(g, fixed,
					 env->spec->nodes[i].name.v, f);
	if (fixed)
		return r;
	r = ask_servers(env, ORDER_READ_FACTS, NULL, NULL, &list, &n, f);
	if (r < 0)
		return r;
	for (i = 0; r == 0 && i < n; i++) {
		const struct up_facts *facts = list[i].result->result.facts;

		r = facts ? group_node(env, list[i].node, facts, g, f) :
			    fault_set(f, -EPROTO, list[i].node,
				      "answered without facts");
	}
	ask_done(list, n);
	free(list);
	return r;
}

int vip_manifest(const struct step_env *env, char **ret_text, struct fault *f)
{
	const struct spec *spec = env->spec;
	struct groups g = { 0 };
	size_t i;
	int r = group_servers(env, &g, f);

	if (r == 0)
		r = manifest_kube_vip(
			&(struct kube_vip_params){
				.cluster = spec->cluster.v,
				.version = spec->kube_vip.version.v,
				.endpoint = spec->control_plane.endpoint.v,
				.port = (uint16_t)spec->control_plane.port.v,
				.groups = g.v,
				.n_groups = g.n },
			ret_text, f);
	for (i = 0; i < g.n; i++)
		strlist_done(&g.v[i].nodes);
	return r;
}

int vip_carriers(const struct step_env *env, size_t *ret_n, char *names,
		 size_t size, struct fault *f)
{
	struct control_nodes nodes = { 0 };
	size_t i, at = 0;
	int r = control_nodes(env->control, &nodes, f);

	if (r < 0)
		return r;
	*ret_n = 0;
	names[0] = '\0';
	for (i = 0; i < nodes.n; i++) {
		const struct control_node *n = &nodes.v[i];

		if (!n->connected || !n->report ||
		    !n->report->report.carries_endpoint)
			continue;
		if (at < size)
			at += (size_t)snprintf(names + at, size - at, "%s%s",
					       *ret_n ? ", " : "", n->name);
		++*ret_n;
	}
	control_nodes_done(&nodes);
	return 0;
}

int vip_answers(const struct step_env *env, char *why, size_t size,
		struct fault *f)
{
	const struct spec *spec = env->spec;
	size_t i;

	for (i = 0; i < spec->n_nodes; i++) {
		const char *name = spec->nodes[i].name.v;
		struct fault scratch = FAULT_INIT;
		struct kube *k = NULL;
		int r;

		if (spec->nodes[i].role.v != SPEC_ROLE_SERVER)
			continue;
		r = cluster_kube(env->cluster, name, STREAM_API_ENDPOINT,
				 &spec->control_plane.endpoint.v, &k,
				 &scratch);
		if (r == 0)
			r = cluster_ready(k, &scratch);
		if (r == 0)
			continue;
		if (r == -EINTR || r == -ENOMEM || r == -ENOKEY)
			return fault_set(f, r, name, "%s", scratch.text);
		(void)snprintf(why, size, "through %s: %.250s", name,
			       scratch.text);
		return 0;
	}
	return 1;
}

int vip_check_free(const struct step_env *env, const char *node,
		   struct fault *f)
{
	struct fault scratch = FAULT_INIT;
	char names[200];
	struct up *u = NULL;
	struct order *o;
	size_t carriers = 0;
	int r = vip_carriers(env, &carriers, names, sizeof(names), f);

	if (r < 0 || carriers > 0)
		return r;
	o = order_new(ORDER_PROBE);
	if (!o)
		return -ENOMEM;
	o->probe = PROBE_ADDRESS_FREE;
	r = ask(env->control, node, o, env->times->order, &u, &scratch);
	(void)order_free(o);
	if (r < 0)
		return fault_set(f, r, node, "cannot tell whether the endpoint "
				 "is free: %s", scratch.text);
	if (u->result.probe && !u->result.probe->ok)
		r = fault_set(f, -EADDRINUSE, "endpoint",
			      "%s sees another machine on the address: %s; "
			      "nothing was announced. Free it, or choose "
			      "another endpoint", node, u->result.probe->text);
	(void)up_free(u);
	return r;
}
