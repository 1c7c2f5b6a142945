#include "coordinator/yaml_out.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "common/cleanup.h"

#define YAML_OUT_DEPTH_MAX 32

/*
 * The emitter leaves out only the tag of strings; a plain scalar with it
 * is resolved by its look, which is what numbers and booleans need.
 */
static int add_scalar(yaml_document_t *doc, const char *text,
		      yaml_scalar_style_t style)
{
	return yaml_document_add_scalar(doc, NULL,
					(yaml_char_t *)(uintptr_t)text,
					(int)strlen(text), style);
}

static int add_node(yaml_document_t *doc, const json_t *o, unsigned int depth);

static int add_map(yaml_document_t *doc, const json_t *o, unsigned int depth)
{
	int map =
		yaml_document_add_mapping(doc, NULL, YAML_BLOCK_MAPPING_STYLE);
	const char *key;
	json_t *value;

	if (!map)
		return 0;
	json_object_foreach((json_t *)(uintptr_t)o, key, value)
	{
		int k = add_scalar(doc, key, YAML_PLAIN_SCALAR_STYLE);
		int v = add_node(doc, value, depth + 1);

		if (!k || !v ||
		    !yaml_document_append_mapping_pair(doc, map, k, v))
			return 0;
	}
	return map;
}

static int add_list(yaml_document_t *doc, const json_t *o, unsigned int depth)
{
	int list = yaml_document_add_sequence(doc, NULL,
					      YAML_BLOCK_SEQUENCE_STYLE);
	const json_t *value;
	size_t i;

	if (!list)
		return 0;
	json_array_foreach(o, i, value)
	{
		int v = add_node(doc, value, depth + 1);

		if (!v || !yaml_document_append_sequence_item(doc, list, v))
			return 0;
	}
	return list;
}

static int add_number(yaml_document_t *doc, const json_t *o)
{
	char text[64];

	if (json_is_integer(o)) {
		(void)snprintf(text, sizeof(text), "%lld",
			       (long long)json_integer_value(o));
		return add_scalar(doc, text, YAML_PLAIN_SCALAR_STYLE);
	}
	(void)snprintf(text, sizeof(text), "%.17g", json_real_value(o));
	return add_scalar(doc, text, YAML_PLAIN_SCALAR_STYLE);
}

/* libyaml's node ids start at 1; 0 is its failure. */
static int add_node(yaml_document_t *doc, const json_t *o, unsigned int depth)
{
	if (depth > YAML_OUT_DEPTH_MAX)
		return 0;
	switch (json_typeof(o)) {
	case JSON_OBJECT:
		return add_map(doc, o, depth);
	case JSON_ARRAY:
		return add_list(doc, o, depth);
	case JSON_STRING:
		return add_scalar(doc, json_string_value(o),
				  YAML_DOUBLE_QUOTED_SCALAR_STYLE);
	case JSON_INTEGER:
	case JSON_REAL:
		return add_number(doc, o);
	case JSON_TRUE:
		return add_scalar(doc, "true", YAML_PLAIN_SCALAR_STYLE);
	case JSON_FALSE:
		return add_scalar(doc, "false", YAML_PLAIN_SCALAR_STYLE);
	case JSON_NULL:
		return add_scalar(doc, "null", YAML_PLAIN_SCALAR_STYLE);
	}
	return 0;
}

static int on_text(void *userdata, unsigned char *text, size_t size)
{
	return fwrite(text, 1, size, userdata) == size;
}

static int emit(const json_t *tree, FILE *out)
{
	yaml_emitter_t emitter;
	yaml_document_t doc;
	int ok;

	if (!yaml_emitter_initialize(&emitter))
		return -ENOMEM;
	yaml_emitter_set_output(&emitter, on_text, out);
	yaml_emitter_set_unicode(&emitter, 1);
	yaml_emitter_set_width(&emitter, -1);
	ok = yaml_emitter_open(&emitter) &&
	     yaml_document_initialize(&doc, NULL, NULL, NULL, 1, 1);
	if (ok) {
		ok = add_node(&doc, tree, 0);
		/* Dumping also deletes the document. */
		if (ok)
			ok = yaml_emitter_dump(&emitter, &doc) &&
			     yaml_emitter_close(&emitter);
		else
			yaml_document_delete(&doc);
	}
	yaml_emitter_delete(&emitter);
	return ok ? 0 : -ENOMEM;
}

int yaml_out(const json_t *tree, char **ret_text)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out;
	int r;

	if (!tree)
		return -EINVAL;
	out = open_memstream(&text, &size);
	if (!out)
		return -ENOMEM;
	r = emit(tree, out);
	if (fclose(out) != 0 && r == 0)
		r = -ENOMEM;
	if (r < 0) {
		free(text);
		return r;
	}
	*ret_text = text;
	return 0;
}

int yaml_out_indented(const json_t *tree, unsigned int indent, char **ret_text)
{
	_cleanup_free_ char *plain = NULL;
	char *text = NULL, *line, *rest;
	size_t size = 0;
	FILE *out;
	int r = yaml_out(tree, &plain);

	if (r < 0)
		return r;
	out = open_memstream(&text, &size);
	if (!out)
		return -ENOMEM;
	rest = plain;
	while ((line = strsep(&rest, "\n")) && (*line || rest))
		(void)fprintf(out, "%*s%s\n", *line ? (int)indent : 0, "",
			      line);
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
	return 0;
}
