/*
 * problem.h - what is wrong with a spec, all of it in one run.
 *
 * A bounded list of findings with positions. Each carries a code that the
 * manual explains (spec_rules() in rules.h lists them). Texts are bounded
 * and control characters are replaced.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SPEC_PROBLEMS_MAX 256	/* further ones are only counted */
#define SPEC_PROBLEM_TEXT_MAX 384
#define SPEC_PROBLEM_LINE_MAX 1024

struct spec_pos {
	unsigned int line;	/* from 1; 0: not written in the file */
	unsigned int column;	/* from 1 */
};

enum spec_severity {
	SPEC_ERROR,		/* nothing may be started */
	SPEC_WARNING,
	SPEC_SEVERITY_MAX,
};

struct spec_problem {
	struct spec_pos pos;
	enum spec_severity severity;
	const char *code;	/* static text, "unknown-key" */
	char text[SPEC_PROBLEM_TEXT_MAX];
};

struct spec_problems {
	struct spec_problem *v;
	size_t n;
	size_t errors, warnings;	/* all found, kept or not */
};

#define SPEC_PROBLEMS_INIT ((struct spec_problems){ NULL, 0, 0, 0 })

/* Keeps the finding; without memory or room it is only counted. */
void spec_problem_add(struct spec_problems *list, enum spec_severity severity,
		      struct spec_pos pos, const char *code, const char *fmt,
		      ...) __attribute__((format(printf, 5, 6)));

/* Orders by position; findings of one place keep their order. */
void spec_problems_sort(struct spec_problems *list);

/*
 * "FILE:LINE:COL: error: text [code]" without a newline, into `buf` of
 * SPEC_PROBLEM_LINE_MAX bytes; returns `buf`.
 */
const char *spec_problem_format(const char *file, const struct spec_problem *p,
				char *buf);

void spec_problems_done(struct spec_problems *list);
