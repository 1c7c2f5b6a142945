/* Egress: classes, tunnels, uplinks. */
#include "spec/field.h"

#include <string.h>

static const char *const kinds[] = { "wireguard", "openvpn", NULL };
static const struct field_range u32_range = { 0, UINT32_MAX };

static void pool(struct loader *l, const struct field *field,
		 const struct yaml_pair *pair, void *dest)
{
	static const struct field fields[] = {
		{ "name", field_str, offsetof(struct spec_class, pool_name),
		  NULL, FIELD_NAME, FIELD_REQUIRED },
		{ "cidr", field_prefix, offsetof(struct spec_class, pool_cidr),
		  NULL, 0, FIELD_REQUIRED },
		{ 0 },
	};
	static const struct field_section section = { "pods.pool", fields };

	(void)field;
	field_map(l, pair->value, &section, dest);
}

static void pods(struct loader *l, const struct field *field,
		 const struct yaml_pair *pair, void *dest)
{
	static const struct field fields[] = {
		{ ""
		  "label", field_pairs, offsetof(struct spec_class, label), NULL,
		  FIELD_LABEL_VALUE, FIELD_REQUIRED },
		{ "pool", pool, 0, NULL, 0, 0 },
		{ 0 },
	};
	static const struct field_section section = { "pods", fields };
	struct spec_class *c = dest;

	(void)field;
	c->pods_pos = pair->pos;
	field_map(l, pair->value, &section, c);
}

static void mark(struct loader *l, const struct field *field,
		 const struct yaml_pair *pair, void *dest)
{
	static const struct field fields[] = {
		{ "value", field_num, offsetof(struct spec_class, mark),
		  &u32_range, 0, FIELD_REQUIRED },
		{ "mask", field_num, offsetof(struct spec_class, mask),
		  &u32_range, 0, FIELD_REQUIRED },
		{ 0 },
	};
	static const struct field_section section = { "mark", fields };
	struct spec_class *c = dest;

	(void)field;
	c->mark_pos = pair->pos;
	field_map(l, pair->value, &section, c);
}

static const struct field class_fields[] = {
	{ "pods", pods, 0, NULL, 0, 0 },
	{ "sources", field_prefixes, offsetof(struct spec_class, sources), NULL,
	  0, 0 },
	{ "mark", mark, 0, NULL, 0, 0 },
	{ "gateways", field_strs, offsetof(struct spec_class, gateways), NULL,
	  FIELD_NAME, 0 },
	{ "tunnel", field_str, offsetof(struct spec_class, tunnel), NULL,
	  FIELD_INTERFACE, FIELD_REQUIRED },
	{ "dns", field_addrs, offsetof(struct spec_class, dns), NULL, 0, 0 },
	{ 0 },
};
static const struct field_section class_section = { "a class", class_fields };

static const struct field tunnel_fields[] = {
	{ "kind", field_enum, offsetof(struct spec_tunnel, kind), kinds, 0,
	  FIELD_REQUIRED },
	{ "endpoints", field_endpoints, offsetof(struct spec_tunnel, endpoints),
	  NULL, 0, FIELD_REQUIRED },
	{ ""
	  "table", field_num, offsetof(struct spec_tunnel, table), &u32_range, 0,
	  FIELD_REQUIRED },
	{ "rulePriority", field_num, offsetof(struct spec_tunnel, priority),
	  &u32_range, 0, FIELD_REQUIRED },
	{ 0 },
};
static const struct field_section tunnel_section = { "a tunnel",
						     tunnel_fields };

/* Room for the values of a map with free keys, or NULL after a finding. */
static void *map_room(struct loader *l, const struct field *field,
		      const struct yaml_node *n, size_t max, size_t size)
{
	if (!field_is(l, n, YAML_MAP, field->key))
		return NULL;
	if (n->n > max) {
		loader_error(l, n->pos, "too-many", "%s has more than %zu "
			"items",
			     field->key, max);
		return NULL;
	}
	return loader_alloc(l, n->n, size);
}

void keys_classes(struct loader *l, const struct field *field,
		  const struct yaml_pair *pair, void *dest)
{
	const struct yaml_node *n = pair->value;
	struct spec_egress *e = dest;
	size_t i;

	e->classes = map_room(l, field, n, DESIRED_CLASSES_MAX,
			      sizeof(*e->classes));
	for (i = 0; e->classes && i < n->n; i++) {
		struct spec_class *c = &e->classes[e->n_classes++];

		c->name.v = n->pairs[i].key;
		c->name.pos = n->pairs[i].pos;
		/* The rule on classes says more about these than a parser. */
		if (strcmp(c->name.v, SPEC_CLASS_VPN) == 0)
			field_map(l, n->pairs[i].value, &class_section, c);
	}
}

void keys_tunnels(struct loader *l, const struct field *field,
		  const struct yaml_pair *pair, void *dest)
{
	const struct yaml_node *n = pair->value;
	struct spec_egress *e = dest;
	size_t i;

	e->tunnels = map_room(l, field, n, DESIRED_TUNNELS_MAX,
			      sizeof(*e->tunnels));
	for (i = 0; e->tunnels && i < n->n; i++) {
		struct spec_tunnel *t = &e->tunnels[e->n_tunnels];
		struct yaml_node key = { .kind = YAML_SCALAR,
					 .pos = n->pairs[i].pos,
					 .text = n->pairs[i].key };

		if (!field_scalar(l, &key, "tunnel", FIELD_INTERFACE, &t->name))
			continue;
		e->n_tunnels++;
		field_map(l, n->pairs[i].value, &tunnel_section, t);
	}
}

/* "auto" is an empty list; an empty list written out means nothing. */
void keys_uplinks(struct loader *l, const struct field *field,
		  const struct yaml_pair *pair, void *dest)
{
	const struct yaml_node *n = pair->value;

	if (n->kind == YAML_SCALAR && strcmp(n->text, "auto") == 0) {
		((struct spec_strs *)dest)->pos = n->pos;
		return;
	}
	field_strs(l, field, pair, dest);
	if (n->kind == YAML_LIST && n->n == 0)
		loader_error(l, n->pos, "bad-value",
			     "uplinks: write auto, or name at least one "
			     "interface");
}

static const struct field egress[] = {
	{ "classes", keys_classes, 0, NULL, 0, 0 },
	{ "tunnels", keys_tunnels, 0, NULL, 0, 0 },
	{ "uplinks", keys_uplinks, offsetof(struct spec_egress, uplinks), NULL,
	  FIELD_INTERFACE, 0 },
	{ 0 },
};
const struct field_section keys_egress = { "egress", egress };
