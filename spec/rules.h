/*
 * rules.h - every finding that a spec can get, by code.
 *
 * A rule is one named check with one code. The rows without a check are
 * found while reading; they are listed so that the manual, the tests and
 * the program share one table. Checks see a spec that may have been read
 * with errors: what is not valid is skipped, never complained about twice.
 */
#pragma once

#include <stddef.h>

#include "spec/problem.h"
#include "spec/spec.h"

struct spec_report;

struct spec_rule {
	const char *code;
	enum spec_severity severity;
	const char *ids;	/* of REQUIREMENTS and CASES */
	const char *text;	/* one sentence: the rule */
	void (*check)(const struct spec *spec, struct spec_report *report);
};

const struct spec_rule *spec_rules(size_t *ret_n);

/* Runs every check; findings carry the code and severity of their rule. */
void spec_rules_run(const struct spec *spec, struct spec_problems *problems);

/* For the checks. `pos` line 0 becomes the start of the file. */
void spec_report(struct spec_report *report, struct spec_pos pos,
		 const char *fmt, ...) __attribute__((format(printf, 3, 4)));
