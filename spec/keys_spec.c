/* The top of the file, and its nodes. */
#include "spec/field.h"

#include <string.h>

#define AT(member) offsetof(struct spec, member)

static const char *const roles[] = { "server", "worker", NULL };

static void match(struct loader *l, const struct field *field,
		  const struct yaml_pair *pair, void *dest)
{
	static const struct field fields[] = {
		{ "mac", field_str, offsetof(struct spec_node, mac), NULL,
		  FIELD_MAC, 0 },
		{ "serial", field_str, offsetof(struct spec_node, serial), NULL,
		  FIELD_SERIAL, 0 },
		{ ""
		  "machineId", field_str, offsetof(struct spec_node, machine_id),
		  NULL, FIELD_ID, 0 },
		{ "productUuid", field_str,
		  offsetof(struct spec_node, product_uuid), NULL, FIELD_UUID, 0 },
		{ 0 },
	};
	static const struct field_section section = { "match", fields };
	struct spec_node *node = dest;

	(void)field;
	node->match_pos = pair->pos;
	field_map(l, pair->value, &section, node);
	if (pair->value->kind == YAML_MAP && pair->value->n == 0)
		loader_error(l, pair->value->pos, "missing-key",
			     "match needs one of mac, serial, machineId, "
			     "productUuid");
}

static const struct field node_fields[] = {
	{ "name", field_str, offsetof(struct spec_node, name), NULL, FIELD_NAME,
	  FIELD_REQUIRED },
	{ "role", field_enum, offsetof(struct spec_node, role), roles, 0, 0 },
	{ "address", field_addr, offsetof(struct spec_node, address), NULL, 0,
	  FIELD_REQUIRED },
	{ "match", match, 0, NULL, 0, 0 },
	{ "labels", field_pairs, offsetof(struct spec_node, labels), NULL,
	  FIELD_LABEL_VALUE, 0 },
	{ "taints", field_strs, offsetof(struct spec_node, taints), NULL,
	  FIELD_TAINT, 0 },
	{ "baseline", field_section, offsetof(struct spec_node, baseline),
	  &keys_baseline, 0, 0 },
	{ 0 },
};
static const struct field_section node_section = { "a node", node_fields };

void keys_nodes(struct loader *l, const struct field *field,
		const struct yaml_pair *pair, void *dest)
{
	const struct yaml_node *n = pair->value;
	struct spec *spec = dest;
	size_t i;

	spec->nodes_pos = pair->pos;
	if (!field_is(l, n, YAML_LIST, field->key))
		return;
	if (n->n > SPEC_NODES_MAX) {
		loader_error(l, n->pos, "too-many", "more than %u nodes",
			     SPEC_NODES_MAX);
		return;
	}
	spec->nodes = loader_alloc(l, n->n, sizeof(*spec->nodes));
	for (i = 0; spec->nodes && i < n->n; i++) {
		struct spec_node *node = &spec->nodes[spec->n_nodes++];

		node->pos = n->items[i]->pos;
		field_map(l, n->items[i], &node_section, node);
	}
}

static const struct field top[] = {
	{ "apiVersion", field_str, AT(api_version), NULL, FIELD_ANY,
	  FIELD_REQUIRED },
	{ "cluster", field_str, AT(cluster), NULL, FIELD_NAME, FIELD_REQUIRED },
	{ "clusterId", field_str, AT(cluster_id), NULL, FIELD_ID, 0 },
	{ "coordinator", field_section, AT(coordinator), &keys_coordinator, 0,
	  FIELD_REQUIRED },
	{ "controlPlane", field_section, AT(control_plane), &keys_control_plane,
	  0, 0 },
	{ "k3s", field_section, AT(k3s), &keys_k3s, 0, FIELD_REQUIRED },
	{ "kubeVip", field_section, AT(kube_vip), &keys_kube_vip, 0, 0 },
	{ "cilium", field_section, AT(cilium), &keys_cilium, 0, 0 },
	{ "network", field_section, AT(network), &keys_network, 0,
	  FIELD_REQUIRED },
	{ "baseline", field_section, AT(baseline), &keys_baseline, 0, 0 },
	{ "egress", field_section, AT(egress), &keys_egress, 0, 0 },
	{ "monitoring", field_section, AT(monitoring), &keys_monitoring, 0, 0 },
	{ "rollout", field_section, AT(rollout), &keys_rollout, 0, 0 },
	{ "nodes", keys_nodes, 0, NULL, 0, FIELD_REQUIRED },
	{ 0 },
};
const struct field_section keys_spec = { "the spec", top };

static const struct field one_box[] = {
	{ "apiVersion", field_str, AT(api_version), NULL, FIELD_ANY,
	  FIELD_REQUIRED },
	{ "network", field_section, AT(network), &keys_network, 0, 0 },
	{ "baseline", field_section, AT(baseline), &keys_baseline, 0, 0 },
	{ "egress", field_section, AT(egress), &keys_egress, 0, 0 },
	{ 0 },
};
const struct field_section keys_one_box = { "a one-box spec", one_box };
