#include "spec/yaml.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

#define PAIRS_MAX 4096	/* per map: duplicates are found pair by pair */

struct reader {
	struct spec_arena *arena;
	struct spec_problems *problems;
	yaml_document_t *doc;
	bool *seen;		/* per node of the document */
	size_t n_nodes;
	int err;		/* -ENOMEM, or -EINVAL after a finding */
};

static struct spec_pos mark_pos(const yaml_mark_t *mark)
{
	return (struct spec_pos){ (unsigned int)mark->line + 1,
				  (unsigned int)mark->column + 1 };
}

static void *no_memory(struct reader *r)
{
	r->err = -ENOMEM;
	return NULL;
}

static struct yaml_node *read_node(struct reader *r, int index,
				   unsigned int depth);

static void refuse(struct reader *r, struct spec_pos pos, const char *code,
		   const char *text)
{
	spec_problem_add(r->problems, SPEC_ERROR, pos, code, "%s", text);
	if (!r->err)
		r->err = -EINVAL;
}

static bool default_tag(const yaml_node_t *n)
{
	const char *tag = (const char *)n->tag;

	switch (n->type) {
	case YAML_SCALAR_NODE:
		return strcmp(tag, YAML_DEFAULT_SCALAR_TAG) == 0;
	case YAML_SEQUENCE_NODE:
		return strcmp(tag, YAML_DEFAULT_SEQUENCE_TAG) == 0;
	case YAML_MAPPING_NODE:
		return strcmp(tag, YAML_DEFAULT_MAPPING_TAG) == 0;
	case YAML_NO_NODE:
		break;
	}
	return false;
}

static int read_list(struct reader *r, const yaml_node_t *n,
		     struct yaml_node *out, unsigned int depth)
{
	const yaml_node_item_t *it = n->data.sequence.items.start;
	size_t count = (size_t)(n->data.sequence.items.top - it), i;

	out->kind = YAML_LIST;
	out->items = spec_arena_alloc(r->arena, count + 1, sizeof(void *));
	if (!out->items)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		struct yaml_node *item = read_node(r, it[i], depth + 1);

		if (item)
			out->items[out->n++] = item;
		else if (r->err == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

static bool duplicate(struct reader *r, const struct yaml_node *map,
		      const char *key, struct spec_pos pos)
{
	size_t i;

	for (i = 0; i < map->n; i++) {
		if (strcmp(map->pairs[i].key, key) != 0)
			continue;
		spec_problem_add(r->problems, SPEC_ERROR, pos, "duplicate-key",
				 "\"%s\" is here twice; the first is in line "
				 "%u",
				 key, map->pairs[i].pos.line);
		r->err = -EINVAL;
		return true;
	}
	return false;
}

static int read_pair(struct reader *r, const yaml_node_pair_t *p,
		     struct yaml_node *out, unsigned int depth)
{
	struct yaml_node *key = read_node(r, p->key, depth + 1);
	struct yaml_node *value;

	if (!key)
		return r->err;
	if (key->kind != YAML_SCALAR) {
		refuse(r, key->pos, "yaml-syntax",
		       "a key must be plain text; for a brace or a bracket as "
		       "text, quote it");
		return -EINVAL;
	}
	value = read_node(r, p->value, depth + 1);
	if (!value)
		return r->err;
	if (duplicate(r, out, key->text, key->pos))
		return -EINVAL;
	out->pairs[out->n].key = key->text;
	out->pairs[out->n].pos = key->pos;
	out->pairs[out->n++].value = value;
	return 0;
}

static int read_map(struct reader *r, const yaml_node_t *n,
		    struct yaml_node *out, unsigned int depth)
{
	const yaml_node_pair_t *p = n->data.mapping.pairs.start;
	size_t count = (size_t)(n->data.mapping.pairs.top - p), i;

	out->kind = YAML_MAP;
	if (count > PAIRS_MAX) {
		refuse(r, out->pos, "yaml-limit", "more than 4096 keys in one "
			"map");
		return -EINVAL;
	}
	out->pairs = spec_arena_alloc(r->arena, count + 1, sizeof(*out->pairs));
	if (!out->pairs)
		return -ENOMEM;
	/* A bad pair is recorded and left out; the others are still read. */
	for (i = 0; i < count; i++)
		if (read_pair(r, &p[i], out, depth) == -ENOMEM)
			return -ENOMEM;
	return 0;
}

static int read_scalar(struct reader *r, const yaml_node_t *n,
		       struct yaml_node *out)
{
	const char *text = (const char *)n->data.scalar.value;
	size_t len = n->data.scalar.length;

	out->kind = YAML_SCALAR;
	out->plain = n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	if (memchr(text, '\0', len)) {
		refuse(r, out->pos, "yaml-syntax", "a NUL byte inside a value");
		len = 0;
	}
	out->text = spec_arena_text(r->arena, text, len);
	return out->text ? 0 : -ENOMEM;
}

/* NULL after a finding, or without memory (r->err tells). */
static struct yaml_node *read_node(struct reader *r, int index,
				   unsigned int depth)
{
	const yaml_node_t *n = yaml_document_get_node(r->doc, index);
	struct spec_pos pos = mark_pos(&n->start_mark);
	struct yaml_node *out;
	int err = 0;

	if (depth > YAML_DEPTH_MAX) {
		refuse(r, pos, "yaml-limit", "nested more than 32 deep");
		return NULL;
	}
	if (r->seen[index - 1]) {
		/* Only the original's position is known to libyaml. */
		refuse(r, pos, "yaml-alias",
		       "this value is used again through an alias (*name); "
		       "write each value once");
		return NULL;
	}
	r->seen[index - 1] = true;
	if (!default_tag(n)) {
		refuse(r, pos, "yaml-syntax", "tags (!name) are not used here");
		return NULL;
	}
	out = spec_arena_alloc(r->arena, 1, sizeof(*out));
	if (!out)
		return no_memory(r);
	out->pos = pos;
	if (n->type == YAML_SCALAR_NODE)
		err = read_scalar(r, n, out);
	else if (n->type == YAML_SEQUENCE_NODE)
		err = read_list(r, n, out, depth);
	else
		err = read_map(r, n, out, depth);
	if (err == -ENOMEM)
		return no_memory(r);
	return out;
}

static struct spec_pos offset_pos(const char *text, size_t size, size_t offset)
{
	struct spec_pos pos = { 1, 1 };
	size_t i;

	for (i = 0; i < offset && i < size; i++) {
		if (text[i] == '\n') {
			pos.line++;
			pos.column = 1;
		} else if (((unsigned char)text[i] & 0xc0) != 0x80) {
			pos.column++;
		}
	}
	return pos;
}

static int syntax_error(const yaml_parser_t *p, const char *text, size_t size,
			struct spec_problems *problems)
{
	struct spec_pos pos = mark_pos(&p->problem_mark);
	const char *hint = "";

	if (p->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (p->error == YAML_READER_ERROR)
		pos = offset_pos(text, size, p->problem_offset);
	if (p->problem && strstr(p->problem, "cannot start any token"))
		hint = " (a tab? indent with blanks; quote values that start "
		       "with @, ` or %)";
	spec_problem_add(problems, SPEC_ERROR, pos, "yaml-syntax",
			 "not YAML: %s%s%s%s", p->context ? p->context : "",
			 p->context ? ", " : "",
			 p->problem ? p->problem : "unreadable", hint);
	return -EINVAL;
}

/* Whether something follows the first document. */
static int check_single(yaml_parser_t *parser, const char *text, size_t size,
			struct spec_problems *problems)
{
	yaml_document_t doc;
	yaml_node_t *root;
	int r = 0;

	if (!yaml_parser_load(parser, &doc))
		return syntax_error(parser, text, size, problems);
	root = yaml_document_get_root_node(&doc);
	if (root) {
		spec_problem_add(problems, SPEC_ERROR,
				 mark_pos(&root->start_mark), "yaml-syntax",
				 "a second document begins here; one file is "
				 "one cluster");
		r = -EINVAL;
	}
	yaml_document_delete(&doc);
	return r;
}

static int read_document(struct spec_arena *arena, yaml_document_t *doc,
			 struct spec_problems *problems,
			 struct yaml_node **ret_root)
{
	struct reader r = { .arena = arena, .problems = problems, .doc = doc };
	const yaml_node_t *root = yaml_document_get_root_node(doc);

	if (!root) {
		refuse(&r, (struct spec_pos){ 1, 1 }, "yaml-syntax",
		       "the file is empty");
		return r.err;
	}
	r.n_nodes = (size_t)(doc->nodes.top - doc->nodes.start);
	if (r.n_nodes > YAML_NODES_MAX) {
		refuse(&r, (struct spec_pos){ 1, 1 }, "yaml-limit",
		       "more than 65536 values");
		return r.err;
	}
	r.seen = spec_arena_alloc(arena, r.n_nodes, sizeof(*r.seen));
	if (!r.seen)
		return -ENOMEM;
	*ret_root = read_node(&r, 1, 0);
	return r.err;
}

int yaml_read(struct spec_arena *arena, const char *text, size_t size,
	      struct spec_problems *problems, struct yaml_node **ret_root)
{
	yaml_parser_t parser;
	yaml_document_t doc;
	int r, r2;

	*ret_root = NULL;
	if (size > YAML_SIZE_MAX) {
		spec_problem_add(problems, SPEC_ERROR, (struct spec_pos){ 1, 1 },
				 "yaml-limit", "larger than 1 MiB");
		return -EINVAL;
	}
	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
	if (!yaml_parser_load(&parser, &doc)) {
		r = syntax_error(&parser, text, size, problems);
	} else {
		r = read_document(arena, &doc, problems, ret_root);
		/* After an empty document the parser is at its end. */
		if (*ret_root) {
			r2 = check_single(&parser, text, size, problems);
			r = r ? r : r2;
		}
		yaml_document_delete(&doc);
	}
	yaml_parser_delete(&parser);
	return r;
}
