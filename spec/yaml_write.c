#include "spec/yaml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A JSON string, which is also a double-quoted YAML scalar. */
static void put_quoted(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	fputc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (*s == '\n')
			fputs("\\n", out);
		else if (*s == '\t')
			fputs("\\t", out);
		else if (*s < 0x20 || *s == 0x7f)
			fprintf(out, "\\u%04x", *s);
		else
			fputc(*s, out);
	}
	fputc('"', out);
}

static bool plain_key(const char *key)
{
	static const char safe[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
	struct yaml_node n = { .kind = YAML_SCALAR, .plain = true, .text = key };

	return *key && key[strspn(key, safe)] == '\0' && *key != '-' &&
	       yaml_scalar_type(&n) == YAML_TEXT;
}

static void put_scalar(FILE *out, const struct yaml_node *n)
{
	switch (yaml_scalar_type(n)) {
	case YAML_BOOL:
	case YAML_INT:
	case YAML_FLOAT:
		fputs(n->text, out);
		return;
	case YAML_NULL:
		fputs("null", out);
		return;
	case YAML_TEXT:
	case YAML_TYPE_MAX:
		break;
	}
	put_quoted(out, n->text);
}

static void put_indent(FILE *out, unsigned int indent)
{
	fprintf(out, "%*s", (int)indent, "");
}

static void put_block(FILE *out, const struct yaml_node *n,
		      unsigned int indent);

/* What follows "key:" or "-": a scalar, or an empty or nested collection. */
static void put_value(FILE *out, const struct yaml_node *n,
		      unsigned int indent)
{
	if (n->kind == YAML_SCALAR) {
		fputc(' ', out);
		put_scalar(out, n);
		fputc('\n', out);
	} else if (n->n == 0) {
		fputs(n->kind == YAML_MAP ? " {}\n" : " []\n", out);
	} else {
		fputc('\n', out);
		put_block(out, n, indent);
	}
}

static void put_block(FILE *out, const struct yaml_node *n, unsigned int indent)
{
	size_t i;

	for (i = 0; i < n->n; i++) {
		put_indent(out, indent);
		if (n->kind == YAML_LIST) {
			fputc('-', out);
			put_value(out, n->items[i], indent + 2);
			continue;
		}
		if (plain_key(n->pairs[i].key))
			fputs(n->pairs[i].key, out);
		else
			put_quoted(out, n->pairs[i].key);
		fputc(':', out);
		put_value(out, n->pairs[i].value, indent + 2);
	}
}

/* Numbers that JSON does not know (hexadecimal, ".5") become text. */
static bool json_number(const char *t)
{
	size_t digits;

	if (*t == '-')
		t++;
	digits = strspn(t, "0123456789");
	if (digits == 0 || (digits > 1 && *t == '0'))
		return false;
	t += digits;
	if (*t == '.') {
		t++;
		digits = strspn(t, "0123456789");
		if (digits == 0)
			return false;
		t += digits;
	}
	return *t == '\0';
}

static void put_json_scalar(FILE *out, const struct yaml_node *n)
{
	enum yaml_type type = yaml_scalar_type(n);

	if (type == YAML_NULL)
		fputs("null", out);
	else if (type == YAML_BOOL)
		fputs(*n->text == 't' || *n->text == 'T' ? "true" : ""
			"false", out);
	else if ((type == YAML_INT || type == YAML_FLOAT) &&
		 json_number(n->text))
		fputs(n->text, out);
	else
		put_quoted(out, n->text);
}

static void put_json(FILE *out, const struct yaml_node *n)
{
	size_t i;

	if (n->kind == YAML_SCALAR) {
		put_json_scalar(out, n);
		return;
	}
	fputc(n->kind == YAML_MAP ? '{' : '[', out);
	for (i = 0; i < n->n; i++) {
		if (i)
			fputc(',', out);
		if (n->kind == YAML_LIST) {
			put_json(out, n->items[i]);
			continue;
		}
		put_quoted(out, n->pairs[i].key);
		fputc(':', out);
		put_json(out, n->pairs[i].value);
	}
	fputc(n->kind == YAML_MAP ? '}' : ']', out);
}

/* The stream's text exists only after the stream is closed. */
static int finish(FILE *out, char **text, char **ret_text)
{
	if (fclose(out) != 0) {
		free(*text);
		return -ENOMEM;
	}
	*ret_text = *text;
	return 0;
}

int yaml_write(const struct yaml_node *node, unsigned int indent,
	       char **ret_text)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	if (node->kind == YAML_SCALAR || node->n == 0) {
		put_indent(out, indent);
		if (node->kind == YAML_SCALAR)
			put_scalar(out, node);
		else
			fputs(node->kind == YAML_MAP ? "{}" : "[]", out);
		fputc('\n', out);
	} else {
		put_block(out, node, indent);
	}
	return finish(out, &text, ret_text);
}

int yaml_write_json(const struct yaml_node *node, char **ret_text)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	put_json(out, node);
	return finish(out, &text, ret_text);
}
