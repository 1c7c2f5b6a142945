#include "spec/yaml.h"

#include <stdlib.h>
#include <string.h>

#define PATH_PART_MAX 128

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

static bool all_of(const char *text, const char *set)
{
	return *text && text[strspn(text, set)] == '\0';
}

static enum yaml_type number_type(const char *t)
{
	static const char *const special[] = { ".inf", ".Inf", ".INF", ".nan",
					       ".NaN", ".NAN", NULL };
	char *end = NULL;

	if (strncmp(t, "0x", 2) == 0)
		return all_of(t + 2, "0123456789abcdefABCDEF") ? YAML_INT :
								 YAML_TEXT;
	if (strncmp(t, "0o", 2) == 0)
		return all_of(t + 2, "01234567") ? YAML_INT : YAML_TEXT;
	if (*t == '-' || *t == '+')
		t++;
	if (is_one_of(t, special))
		return YAML_FLOAT;
	if (all_of(t, "0123456789"))
		return YAML_INT;
	if (strchr("0123456789.", *t) && all_of(t, "0123456789.eE+-") &&
	    strpbrk(t, "0123456789")) {
		(void)strtod(t, &end);
		if (*end == '\0')
			return YAML_FLOAT;
	}
	return YAML_TEXT;
}

enum yaml_type yaml_scalar_type(const struct yaml_node *node)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL",
					     NULL };
	static const char *const bools[] = { "true", "True", "TRUE", "false",
					     "False", "FALSE", NULL };

	if (!node->plain)
		return YAML_TEXT;
	if (is_one_of(node->text, nulls))
		return YAML_NULL;
	if (is_one_of(node->text, bools))
		return YAML_BOOL;
	return number_type(node->text);
}

const struct yaml_pair *yaml_pair(const struct yaml_node *map,
				  const char *key)
{
	size_t i;

	if (!map || map->kind != YAML_MAP)
		return NULL;
	for (i = 0; i < map->n; i++)
		if (strcmp(map->pairs[i].key, key) == 0)
			return &map->pairs[i];
	return NULL;
}

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key)
{
	const struct yaml_pair *p = yaml_pair(map, key);

	return p ? p->value : NULL;
}

/* Copies the part before the next dot; returns what follows, or NULL. */
static const char *path_part(const char *path, char *part)
{
	const char *dot = strchr(path, '.');
	size_t len = dot ? (size_t)(dot - path) : strlen(path);

	if (len >= PATH_PART_MAX)
		len = PATH_PART_MAX - 1;
	memcpy(part, path, len);
	part[len] = '\0';
	return dot ? dot + 1 : NULL;
}

const struct yaml_node *yaml_path(const struct yaml_node *map, const char *path)
{
	char part[PATH_PART_MAX];

	while (map && path) {
		path = path_part(path, part);
		map = yaml_get(map, part);
	}
	return map;
}

const char *yaml_describe(const struct yaml_node *node)
{
	static const char *const types[] = {
		[YAML_TEXT] = "text",
		[YAML_NULL] = "nothing",
		[YAML_BOOL] = "a boolean",
		[YAML_INT] = "a whole number",
		[YAML_FLOAT] = "a fraction",
	};
	_Static_assert(sizeof(types) / sizeof(types[0]) == YAML_TYPE_MAX,
		       "every type has a name");

	if (node->kind == YAML_MAP)
		return "a map";
	if (node->kind == YAML_LIST)
		return "a list";
	return types[yaml_scalar_type(node)];
}
