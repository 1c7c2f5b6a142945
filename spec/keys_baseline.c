/* The baseline, once for all nodes and once more as a node's override. */
#include "spec/field.h"

#include <string.h>

#define AT(member) offsetof(struct spec_baseline, member)

static const char *const swaps[] = { "ignore", "disabled", NULL };
static const char *const storages[] = { "none", "longhorn", NULL };
static const char *const mode_names[] = { "enforce", "observe", "off", NULL };

static void require(struct loader *l, const struct field *field,
		    const struct yaml_pair *pair, void *dest)
{
	static const struct field fields[] = {
		{ "kernel", field_str, offsetof(struct spec_require, kernel),
		  NULL, FIELD_KERNEL, 0 },
		{ "clockSynchronised", field_flag,
		  offsetof(struct spec_require, clock_synchronised), NULL, 0, 0 },
		{ "memoryTolerance", field_str,
		  offsetof(struct spec_require, memory_tolerance), NULL,
		  FIELD_PERCENT, 0 },
		{ 0 },
	};
	static const struct field_section section = { "require", fields };
	struct spec_require *out = dest;

	(void)field;
	out->pos = pair->pos;
	field_map(l, pair->value, &section, out);
}

static void modes(struct loader *l, const struct field *field,
		  const struct yaml_pair *pair, void *dest)
{
	struct field fields[RESOURCE_MAX + 1] = { 0 };
	struct field_section section = { "modes", fields };
	size_t i;

	(void)field;
	for (i = 0; i < RESOURCE_MAX; i++) {
		fields[i].key = resource_name((enum resource_id)i);
		fields[i].parse = field_enum;
		fields[i].offset = i * sizeof(struct spec_enum);
		fields[i].arg = mode_names;
	}
	field_map(l, pair->value, &section, dest);
}

/* "key: value", "key: {value: .., optional: true}", "key: {exclude: true}". */
static void one_sysctl(struct loader *l, const struct yaml_pair *pair,
		       struct spec_sysctl *out)
{
	static const struct field fields[] = {
		{ "value", field_str, offsetof(struct spec_sysctl, value), NULL,
		  FIELD_LINE, 0 },
		{ ""
		  "optional", field_flag, offsetof(struct spec_sysctl, optional),
		  NULL, 0, 0 },
		{ ""
		  "exclude", field_flag, offsetof(struct spec_sysctl, exclude),
		  NULL, 0, 0 },
		{ 0 },
	};
	static const struct field_section section = { "a sysctl", fields };

	if (pair->value->kind != YAML_MAP) {
		(void)field_scalar(l, pair->value, pair->key, FIELD_LINE,
				   &out->value);
		return;
	}
	field_map(l, pair->value, &section, out);
	if (!out->exclude.v && !yaml_pair(pair->value, "value"))
		loader_error(l, pair->value->pos, "missing-key",
			     "a sysctl needs \"value\"");
	else if (out->exclude.v && yaml_pair(pair->value, "value"))
		loader_error(l, out->value.pos, "unused",
			     "a key that is excluded has no value");
}

static void sysctls(struct loader *l, const struct field *field,
		    const struct yaml_pair *pair, void *dest)
{
	const struct yaml_node *n = pair->value;
	struct spec_baseline *b = dest;
	size_t i;

	if (!field_is(l, n, YAML_MAP, field->key))
		return;
	b->sysctls = loader_alloc(l, n->n, sizeof(*b->sysctls));
	for (i = 0; b->sysctls && i < n->n; i++) {
		struct yaml_node key = { .kind = YAML_SCALAR,
					 .pos = n->pairs[i].pos,
					 .text = n->pairs[i].key };
		struct spec_sysctl *s = &b->sysctls[b->n_sysctls];

		if (!field_scalar(l, &key, "sysctl", FIELD_SYSCTL, &s->key))
			continue;
		b->n_sysctls++;
		one_sysctl(l, &n->pairs[i], s);
	}
}

static void mounts(struct loader *l, const struct field *field,
		   const struct yaml_pair *pair, void *dest)
{
	static const struct field fields[] = {
		{ ""
		  "device", field_str, offsetof(struct spec_mount, device), NULL,
		  FIELD_ANY, FIELD_REQUIRED },
		{ "path", field_str, offsetof(struct spec_mount, path), NULL,
		  FIELD_PATH, FIELD_REQUIRED },
		{ "fs", field_str, offsetof(struct spec_mount, fs), NULL,
		  FIELD_NAME, FIELD_REQUIRED },
		{ ""
		  "format", field_str, offsetof(struct spec_mount, format), NULL,
		  FIELD_NAME, 0 },
		{ 0 },
	};
	static const struct field_section section = { "a mount", fields };
	const struct yaml_node *n = pair->value;
	struct spec_baseline *b = dest;
	size_t i;

	if (!field_is(l, n, YAML_LIST, field->key))
		return;
	b->mounts = loader_alloc(l, n->n, sizeof(*b->mounts));
	for (i = 0; b->mounts && i < n->n; i++) {
		b->mounts[i].pos = n->items[i]->pos;
		field_map(l, n->items[i], &section, &b->mounts[i]);
		b->n_mounts++;
	}
}

static const struct field baseline[] = {
	{ "timezone", field_str, AT(timezone), NULL, FIELD_ANY, 0 },
	{ "modules", field_strs, AT(modules), NULL, FIELD_MODULE, 0 },
	{ "sysctl", sysctls, 0, NULL, 0, 0 },
	{ "swap", field_enum, AT(swap), swaps, 0, 0 },
	{ "storage", field_enum, AT(storage), storages, 0, 0 },
	{ "require", require, AT(require), NULL, 0, 0 },
	{ "modes", modes, AT(modes), NULL, 0, 0 },
	{ "waivers", field_strs, AT(waivers), NULL, FIELD_WAIVER, 0 },
	{ "mounts", mounts, 0, NULL, 0, 0 },
	{ 0 },
};
const struct field_section keys_baseline = { "baseline", baseline };
