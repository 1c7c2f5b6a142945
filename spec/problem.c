#include "spec/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/fault.h"

void spec_problem_add(struct spec_problems *list, enum spec_severity severity,
		      struct spec_pos pos, const char *code, const char *fmt,
		      ...)
{
	struct spec_problem *v;
	va_list ap;

	if (severity == SPEC_ERROR)
		list->errors++;
	else
		list->warnings++;
	if (list->n >= SPEC_PROBLEMS_MAX)
		return;
	v = reallocarray(list->v, list->n + 1, sizeof(*v));
	if (!v)
		return;
	list->v = v;
	v = &list->v[list->n++];
	v->pos = pos;
	v->severity = severity;
	v->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(v->text, sizeof(v->text), fmt, ap);
	va_end(ap);
	fault_sanitize(v->text);
}

static bool after(const struct spec_problem *a, const struct spec_problem *b)
{
	if (a->pos.line != b->pos.line)
		return a->pos.line > b->pos.line;
	return a->pos.column > b->pos.column;
}

void spec_problems_sort(struct spec_problems *list)
{
	size_t i, j;

	/* Insertion: stable, and the list is short. */
	for (i = 1; i < list->n; i++) {
		struct spec_problem p = list->v[i];

		for (j = i; j > 0 && after(&list->v[j - 1], &p); j--)
			list->v[j] = list->v[j - 1];
		list->v[j] = p;
	}
}

const char *spec_problem_format(const char *file, const struct spec_problem *p,
				char *buf)
{
	const char *kind = p->severity == SPEC_ERROR ? "error" : "warning";

	(void)snprintf(buf, SPEC_PROBLEM_LINE_MAX, "%s:%u:%u: %s: %s "
		"[%s]", file,
		       p->pos.line ? p->pos.line : 1,
		       p->pos.column ? p->pos.column : 1, kind, p->text,
		       p->code);
	return buf;
}

void spec_problems_done(struct spec_problems *list)
{
	free(list->v);
	*list = SPEC_PROBLEMS_INIT;
}
