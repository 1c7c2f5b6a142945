#include "spec/field.h"

#include <stdio.h>
#include <string.h>

#include "common/parse.h"

void field_str(struct loader *l, const struct field *field,
	       const struct yaml_pair *pair, void *dest)
{
	(void)field_scalar(l, pair->value, field->key, field->text, dest);
}

void field_flag(struct loader *l, const struct field *field,
		const struct yaml_pair *pair, void *dest)
{
	const struct yaml_node *n = pair->value;
	struct spec_flag *flag = dest;

	flag->pos = n->pos;
	if (!field_is(l, n, YAML_SCALAR, field->key) ||
	    yaml_scalar_type(n) == YAML_NULL)
		return;
	if (yaml_scalar_type(n) != YAML_BOOL) {
		loader_error(l, n->pos, "wrong-type",
			     "%s must be true or false, not \"%.80s\"",
			     field->key, n->text);
		return;
	}
	flag->v = *n->text == 't' || *n->text == 'T';
}

void field_num(struct loader *l, const struct field *field,
	       const struct yaml_pair *pair, void *dest)
{
	const struct field_range *range = field->arg;
	const struct yaml_node *n = pair->value;
	struct spec_num *num = dest;
	uint64_t v = 0;

	num->pos = n->pos;
	if (!field_is(l, n, YAML_SCALAR, field->key) ||
	    yaml_scalar_type(n) == YAML_NULL)
		return;
	if (yaml_scalar_type(n) != YAML_INT) {
		loader_error(l, n->pos, "wrong-type",
			     "%s must be a whole number, not \"%.80s\"",
			     field->key, n->text);
		return;
	}
	/* A leading 0 is octal to some readers and decimal to others. */
	if ((n->text[0] == '0' && n->text[1] >= '0' && n->text[1] <= '9') ||
	    parse_u64(n->text, range->max, &v) < 0 || v < range->min) {
		loader_error(l, n->pos, "bad-number",
			     "%s %.40s is not a number from %llu to %llu",
			     field->key, n->text,
			     (unsigned long long)range->min,
			     (unsigned long long)range->max);
		return;
	}
	num->v = v;
}

void field_enum(struct loader *l, const struct field *field,
		const struct yaml_pair *pair, void *dest)
{
	const char *const *names = field->arg;
	struct spec_enum *e = dest;
	struct spec_str s = { NULL, pair->value->pos };
	char list[160] = "";
	size_t used = 0;
	int i;

	e->pos = pair->value->pos;
	if (!field_scalar(l, pair->value, field->key, FIELD_ANY, &s))
		return;
	for (i = 0; names[i]; i++) {
		if (strcmp(names[i], s.v) == 0) {
			e->v = i;
			return;
		}
		if (used + strlen(names[i]) + 3 < sizeof(list))
			used += (size_t)snprintf(list + used,
						 sizeof(list) - used, "%s%s",
						 used ? ", " : "", names[i]);
	}
	loader_error(l, s.pos, "bad-value", "%s \"%.80s\" is none of: %s",
		     field->key, s.v, list);
}

/* ---- addresses: text first, then the value ---- */

static bool parse_addr(struct loader *l, const char *what,
		       const struct yaml_node *n, struct spec_addr *out)
{
	struct spec_str s = { NULL, n->pos };

	out->pos = n->pos;
	if (!field_scalar(l, n, what, FIELD_ANY, &s))
		return false;
	if (ip_addr_parse(s.v, &out->v) == 0)
		return true;
	loader_error(l, n->pos, "bad-address",
		     "%s \"%.80s\" is not an IPv4 or IPv6 address (names are "
		     "not looked up)",
		     what, s.v);
	return false;
}

static bool parse_prefix(struct loader *l, const char *what,
			 const struct yaml_node *n, struct spec_prefix *out)
{
	struct spec_str s = { NULL, n->pos };

	out->pos = n->pos;
	if (!field_scalar(l, n, what, FIELD_ANY, &s))
		return false;
	if (ip_prefix_parse(s.v, &out->v) == 0)
		return true;
	loader_error(l, n->pos, "bad-prefix",
		     "%s \"%.80s\" is not a prefix like 192.0.2.0/24 (no bits "
		     "behind the length)",
		     what, s.v);
	return false;
}

static bool parse_endpoint(struct loader *l, const char *what,
			   const struct yaml_node *n, struct spec_endpoint *out)
{
	struct spec_str s = { NULL, n->pos };

	out->pos = n->pos;
	if (!field_scalar(l, n, what, FIELD_ANY, &s))
		return false;
	if (ip_endpoint_parse(s.v, &out->v) == 0)
		return true;
	/* TL-07: a name would need DNS, which may need the tunnel. */
	loader_error(l, n->pos, "bad-endpoint",
		     "%s \"%.80s\" is not ADDRESS:PORT (a name would need DNS "
		     "before the network is up)",
		     what, s.v);
	return false;
}

void field_addr(struct loader *l, const struct field *field,
		const struct yaml_pair *pair, void *dest)
{
	(void)parse_addr(l, field->key, pair->value, dest);
}

void field_prefix(struct loader *l, const struct field *field,
		  const struct yaml_pair *pair, void *dest)
{
	(void)parse_prefix(l, field->key, pair->value, dest);
}

/* Room for the list's items, or NULL after a finding. */
static void *list_room(struct loader *l, const struct field *field,
		       const struct yaml_node *n, size_t size,
		       struct spec_pos *ret_pos)
{
	*ret_pos = n->pos;
	if (!field_is(l, n, YAML_LIST, field->key))
		return NULL;
	if (n->n > FIELD_LIST_MAX) {
		loader_error(l, n->pos, "too-many", "%s has more than %u items",
			     field->key, FIELD_LIST_MAX);
		return NULL;
	}
	return loader_alloc(l, n->n, size);
}

void field_strs(struct loader *l, const struct field *field,
		const struct yaml_pair *pair, void *dest)
{
	struct spec_strs *out = dest;
	size_t i;

	out->v = list_room(l, field, pair->value, sizeof(*out->v), &out->pos);
	for (i = 0; out->v && i < pair->value->n; i++)
		if (field_scalar(l, pair->value->items[i], field->key,
				 field->text, &out->v[out->n]))
			out->n++;
}

void field_addrs(struct loader *l, const struct field *field,
		 const struct yaml_pair *pair, void *dest)
{
	struct spec_addrs *out = dest;
	size_t i;

	out->v = list_room(l, field, pair->value, sizeof(*out->v), &out->pos);
	for (i = 0; out->v && i < pair->value->n; i++)
		if (parse_addr(l, field->key, pair->value->items[i],
			       &out->v[out->n]))
			out->n++;
}

void field_prefixes(struct loader *l, const struct field *field,
		    const struct yaml_pair *pair, void *dest)
{
	struct spec_prefixes *out = dest;
	size_t i;

	out->v = list_room(l, field, pair->value, sizeof(*out->v), &out->pos);
	for (i = 0; out->v && i < pair->value->n; i++)
		if (parse_prefix(l, field->key, pair->value->items[i],
				 &out->v[out->n]))
			out->n++;
}

void field_endpoints(struct loader *l, const struct field *field,
		     const struct yaml_pair *pair, void *dest)
{
	struct spec_endpoints *out = dest;
	size_t i;

	out->v = list_room(l, field, pair->value, sizeof(*out->v), &out->pos);
	for (i = 0; out->v && i < pair->value->n; i++)
		if (parse_endpoint(l, field->key, pair->value->items[i],
				   &out->v[out->n]))
			out->n++;
}

/* Keys by the label pattern unless `arg` lists the allowed ones. */
void field_pairs(struct loader *l, const struct field *field,
		 const struct yaml_pair *pair, void *dest)
{
	const struct yaml_node *n = pair->value;
	const char *const *allowed = field->arg;
	struct spec_pairs *out = dest;
	size_t i, k;

	out->pos = n->pos;
	if (!field_is(l, n, YAML_MAP, field->key))
		return;
	out->v = loader_alloc(l, n->n, sizeof(*out->v));
	for (i = 0; out->v && i < n->n; i++) {
		struct yaml_node key = { .kind = YAML_SCALAR,
					 .pos = n->pairs[i].pos,
					 .text = n->pairs[i].key };
		struct spec_pair *p = &out->v[out->n];

		for (k = 0; allowed && allowed[k]; k++)
			if (strcmp(allowed[k], key.text) == 0)
				break;
		if (allowed && !allowed[k]) {
			loader_error(l, key.pos, "unknown-key",
				     "\"%.80s\" is not a key of %s", key.text,
				     field->key);
			continue;
		}
		if (!field_scalar(l, &key, field->key,
				  allowed ? FIELD_ANY : FIELD_LABEL_KEY,
				  &p->key))
			continue;
		if (field_scalar(l, n->pairs[i].value, key.text, field->text,
				 &p->value))
			out->n++;
	}
}
