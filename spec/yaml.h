/*
 * yaml.h - a YAML document as a plain tree with positions.
 *
 * Reads one document through libyaml's document API, which keeps line and
 * column. Refused, each with a position: a second document, duplicate keys,
 * keys that are not plain text, aliases (one value in two places, and the
 * road to exponential documents), tags of other types, NUL bytes, tabs as
 * indentation, more than the limits below.
 *
 * Scalars keep their text and whether they were plain, because only a plain
 * `true` is a boolean. The tree lives in the arena it was read into.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spec/arena.h"
#include "spec/problem.h"

#define YAML_SIZE_MAX (1024 * 1024)
#define YAML_DEPTH_MAX 32
#define YAML_NODES_MAX 65536

enum yaml_kind {
	YAML_SCALAR,
	YAML_LIST,
	YAML_MAP,
	YAML_KIND_MAX,
};

enum yaml_type {	/* of a scalar, by the YAML 1.2 core schema */
	YAML_TEXT,
	YAML_NULL,
	YAML_BOOL,
	YAML_INT,
	YAML_FLOAT,
	YAML_TYPE_MAX,
};

struct yaml_pair;

struct yaml_node {
	enum yaml_kind kind;
	struct spec_pos pos;
	bool plain;			/* scalar without quotes */
	const char *text;		/* scalar; never NULL there */
	struct yaml_node **items;	/* list */
	struct yaml_pair *pairs;	/* map, in the order of the file */
	size_t n;
};

struct yaml_pair {
	const char *key;
	struct spec_pos pos;		/* of the key */
	struct yaml_node *value;
};

/*
 * *ret_root is NULL after an error, which is in `problems` (codes
 * yaml-syntax, yaml-limit, yaml-alias, duplicate-key). -EINVAL, -ENOMEM.
 */
int yaml_read(struct spec_arena *arena, const char *text, size_t size,
	      struct spec_problems *problems, struct yaml_node **ret_root);

enum yaml_type yaml_scalar_type(const struct yaml_node *node);
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);
const struct yaml_pair *yaml_pair(const struct yaml_node *map,
				  const char *key);
/* "ipam.operator.mode": descends through maps; NULL where there is none. */
const struct yaml_node *yaml_path(const struct yaml_node *map,
				  const char *path);
/* "a map", "a list", "text", ... for messages. */
const char *yaml_describe(const struct yaml_node *node);

/*
 * yaml_write.c: the tree as block YAML, indented by `indent` blanks, or as
 * JSON. *ret_text is the caller's (free). -ENOMEM.
 */
int yaml_write(const struct yaml_node *node, unsigned int indent,
	       char **ret_text);
int yaml_write_json(const struct yaml_node *node, char **ret_text);
