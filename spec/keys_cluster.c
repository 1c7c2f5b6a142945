/* The sections that say what the cluster is. */
#include "spec/field.h"

#include <string.h>

#include "spec/k3s_config.h"

#define AT(member) offsetof(struct TABLE_STRUCT, member)

static const struct field_range port_range = { 1, 65535 };
static const struct field_range parallel_range = { 1, SPEC_NODES_MAX };
static const struct field_range canary_range = { 0, SPEC_NODES_MAX };
static const char *const cp_modes[] = { "ha", "single", NULL };
static const char *const sources[] = { "image", "push", NULL };
static const char *const owners[] = { "garboard", "external", NULL };
static const char *const arches[] = { "amd64", "arm64", "arm", NULL };

#define TABLE_STRUCT spec_coordinator
static const struct field coordinator[] = {
	{ ""
	  "addresses", field_endpoints, AT(addresses), NULL, 0, FIELD_REQUIRED },
	{ 0 },
};
const struct field_section keys_coordinator = { "coordinator", coordinator };

#undef TABLE_STRUCT
#define TABLE_STRUCT spec_control_plane
static const struct field control_plane[] = {
	{ "mode", field_enum, AT(mode), cp_modes, 0, 0 },
	{ "endpoint", field_addr, AT(endpoint), NULL, 0, 0 },
	{ "port", field_num, AT(port), &port_range, 0, 0 },
	{ "extraSans", field_strs, AT(extra_sans), NULL, FIELD_HOST, 0 },
	{ 0 },
};
const struct field_section keys_control_plane = { "controlPlane",
						  control_plane };

static const char beside[] =
	"k3s would be installed without it; remove it, and see the manual";

#undef TABLE_STRUCT
#define TABLE_STRUCT spec_k3s
static const struct field k3s[] = {
	{ "manage", field_flag, AT(manage), NULL, 0, 0 },
	{ "version", field_str, AT(version), NULL, FIELD_ANY, 0 },
	{ "sha256", field_pairs, AT(sha256), arches, FIELD_SHA256, 0 },
	{ "source", field_enum, AT(source), sources, 0, 0 },
	{ "config", keys_k3s_config, 0, NULL, 0, 0 },
	{ "registries", field_later, 0, beside, 0, 0 },
	{ "proxy", field_later, 0, beside, 0, 0 },
	{ "images", field_later, 0, beside, 0, 0 },
	{ 0 },
};
const struct field_section keys_k3s = { "k3s", k3s };

#undef TABLE_STRUCT
#define TABLE_STRUCT spec_kube_vip
static const struct field kube_vip[] = {
	{ "version", field_str, AT(version), NULL, FIELD_ANY, FIELD_REQUIRED },
	{ "interface", field_str, AT(interface), NULL, FIELD_INTERFACE, 0 },
	{ 0 },
};
const struct field_section keys_kube_vip = { "kubeVip", kube_vip };

/* The values stay a tree; their only rule is not to clash with ours. */
static void cilium_values(struct loader *l, const struct field *field,
			  const struct yaml_pair *pair, void *dest)
{
	if (field_is(l, pair->value, YAML_MAP, field->key))
		*(const struct yaml_node **)dest = pair->value;
}

#undef TABLE_STRUCT
#define TABLE_STRUCT spec_cilium
static const struct field cilium[] = {
	{ "version", field_str, AT(version), NULL, FIELD_ANY, FIELD_REQUIRED },
	{ "owner", field_enum, AT(owner), owners, 0, 0 },
	{ "chart", field_str, AT(chart), NULL, FIELD_CHART, 0 },
	{ "values", cilium_values, AT(values), NULL, 0, 0 },
	{ 0 },
};
const struct field_section keys_cilium = { "cilium", cilium };

static void pool(struct loader *l, const struct field *field,
		 const struct yaml_pair *pair, void *dest)
{
	static const struct field fields[] = {
		{ ""
		  "start", field_addr, offsetof(struct spec_network, pool_start),
		  NULL, 0, FIELD_REQUIRED },
		{ "stop", field_addr, offsetof(struct spec_network, pool_stop),
		  NULL, 0, FIELD_REQUIRED },
		{ 0 },
	};
	static const struct field_section section = { "loadBalancerPool",
						      fields };
	struct spec_network *net = dest;

	(void)field;
	net->pool_pos = pair->pos;
	field_map(l, pair->value, &section, net);
}

#undef TABLE_STRUCT
#define TABLE_STRUCT spec_network
static const struct field network[] = {
	{ "podCidr", field_prefix, AT(pod_cidr), NULL, 0, 0 },
	{ "serviceCidr", field_prefix, AT(service_cidr), NULL, 0, 0 },
	{ ""
	  "nodeCidrs", field_prefixes, AT(node_cidrs), NULL, 0, FIELD_REQUIRED },
	{ "loadBalancerPool", pool, 0, NULL, 0, 0 },
	{ "gatewayVip", field_addr, AT(gateway_vip), NULL, 0, 0 },
	{ 0 },
};
const struct field_section keys_network = { "network", network };

#undef TABLE_STRUCT
#define TABLE_STRUCT spec_monitoring
static const struct field monitoring[] = {
	{ "listen", field_str, AT(listen), NULL, FIELD_LISTEN, 0 },
	{ "textfile", field_str, AT(textfile), NULL, FIELD_PATH, 0 },
	{ 0 },
};
const struct field_section keys_monitoring = { "monitoring", monitoring };

static void rollout_baseline(struct loader *l, const struct field *field,
			     const struct yaml_pair *pair, void *dest)
{
	static const struct field fields[] = {
		{ "canary", field_num, offsetof(struct spec_rollout, canary),
		  &canary_range, 0, 0 },
		{ ""
		  "parallel", field_num, offsetof(struct spec_rollout, parallel),
		  &parallel_range, 0, 0 },
		{ 0 },
	};
	static const struct field_section section = { "rollout.baseline",
						      fields };

	(void)field;
	field_map(l, pair->value, &section, dest);
}

static void rollout_workers(struct loader *l, const struct field *field,
			    const struct yaml_pair *pair, void *dest)
{
	static const struct field fields[] = {
		{ "parallel", field_num,
		  offsetof(struct spec_rollout, workers_parallel),
		  &parallel_range, 0, 0 },
		{ "drain", field_flag, offsetof(struct spec_rollout, drain),
		  NULL, 0, 0 },
		{ "drainTimeout", field_str,
		  offsetof(struct spec_rollout, drain_timeout), NULL,
		  FIELD_DURATION, 0 },
		{ 0 },
	};
	static const struct field_section section = { "rollout.workers",
						      fields };

	(void)field;
	field_map(l, pair->value, &section, dest);
}

static const struct field rollout[] = {
	{ "baseline", rollout_baseline, 0, NULL, 0, 0 },
	{ "workers", rollout_workers, 0, NULL, 0, 0 },
	{ 0 },
};
const struct field_section keys_rollout = { "rollout", rollout };

/* ---- k3s.config: an allow-list; what Garboard owns is named by a rule ---- */

static void option_values(struct loader *l, const struct yaml_pair *pair,
			  struct spec_k3s_option *o)
{
	const struct yaml_node *n = pair->value;
	struct yaml_node *const one[] = { pair->value };
	struct yaml_node *const *items = n->kind == YAML_LIST ? n->items : one;
	size_t count = n->kind == YAML_LIST ? n->n : 1, i;

	o->list = n->kind == YAML_LIST;
	o->values.pos = n->pos;
	o->values.v = loader_alloc(l, count, sizeof(*o->values.v));
	for (i = 0; o->values.v && i < count; i++) {
		struct yaml_node text = *items[i];

		/* true is --key=true to k3s, so the text is what counts. */
		text.plain = text.plain &&
			     yaml_scalar_type(items[i]) == YAML_NULL;
		if (field_scalar(l, &text, pair->key, FIELD_K3S_VALUE,
				 &o->values.v[o->values.n]))
			o->values.n++;
	}
}

void keys_k3s_config(struct loader *l, const struct field *field,
		     const struct yaml_pair *pair, void *dest)
{
	const struct yaml_node *n = pair->value;
	struct spec_k3s *out = dest;
	size_t i;

	out->config_pos = pair->pos;
	if (!field_is(l, n, YAML_MAP, field->key))
		return;
	out->config = loader_alloc(l, n->n, sizeof(*out->config));
	for (i = 0; out->config && i < n->n; i++) {
		const struct k3s_key *key = k3s_config_find(n->pairs[i].key);
		struct spec_k3s_option *o = &out->config[out->n_config++];

		o->key.v = n->pairs[i].key;
		o->key.pos = n->pairs[i].pos;
		o->worker = key && key->worker;
		if (n->pairs[i].value->kind == YAML_MAP)
			loader_error(l, n->pairs[i].value->pos, "wrong-type",
				     "%s: k3s takes a value or a list, not a "
				     "map",
				     o->key.v);
		else
			option_values(l, &n->pairs[i], o);
	}
}
