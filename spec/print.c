#include "spec/print.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMN_MAX 48

static int finish(FILE *out, char **text, char **ret_text)
{
	if (fclose(out) != 0) {
		free(*text);
		return -ENOMEM;
	}
	*ret_text = *text;
	return 0;
}

int spec_print_problems(const char *file, const struct spec_problems *problems,
			char **ret_text)
{
	char line[SPEC_PROBLEM_LINE_MAX];
	size_t size = 0, i, hidden;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	for (i = 0; i < problems->n; i++)
		fprintf(out, "%s\n", spec_problem_format(file, &problems->v[i],
							 line));
	hidden = problems->errors + problems->warnings - problems->n;
	if (hidden)
		fprintf(out, "%s: and %zu more\n", file, hidden);
	return finish(out, &text, ret_text);
}

static int column(const struct spec_items *items, size_t offset)
{
	size_t width = 0, i;

	for (i = 0; i < items->n; i++) {
		const char *field;

		memcpy(&field, (const char *)&items->v[i] + offset,
		       sizeof(field));
		if (strlen(field) > width)
			width = strlen(field);
	}
	return (int)(width > COLUMN_MAX ? COLUMN_MAX : width);
}

int spec_print_table(const struct spec_items *items, char **ret_text)
{
	int group = column(items, offsetof(struct spec_item, group));
	int key = column(items, offsetof(struct spec_item, key));
	int value = column(items, offsetof(struct spec_item, value));
	size_t size = 0, i;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	for (i = 0; i < items->n; i++) {
		const struct spec_item *it = &items->v[i];

		fprintf(out, "%-*s  %-*s  %-*s  %s\n", group, it->group, key,
			it->key, value, it->value, it->origin);
	}
	return finish(out, &text, ret_text);
}

/* Spec texts are printable ASCII; the file's name may be anything. */
static void put_json(FILE *out, const char *name, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	fprintf(out, "\"%s\":\"", name);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (*s < 0x20 || *s == 0x7f)
			fprintf(out, "\\u%04x", *s);
		else
			fputc(*s, out);
	}
	fputc('"', out);
}

int spec_print_json(const struct spec_items *items, char **ret_text)
{
	size_t size = 0, i;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	fputc('[', out);
	for (i = 0; i < items->n; i++) {
		const struct spec_item *it = &items->v[i];

		fputs(i ? ",\n {" : "\n {", out);
		put_json(out, "group", it->group);
		fputc(',', out);
		put_json(out, "key", it->key);
		fputc(',', out);
		put_json(out, "value", it->value);
		fputc(',', out);
		put_json(out, "origin", it->origin);
		fputc('}', out);
	}
	fputs("\n]\n", out);
	return finish(out, &text, ret_text);
}
