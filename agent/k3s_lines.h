/*
 * k3s_lines.h - k3s's own last words, fit to be shown. Pure.
 *
 * Fatal lines first, then the latest others; each bounded, without control
 * characters, and with anything that looks like a token taken out (K3-04):
 * what is shown travels to the coordinator and into logs.
 */
#pragma once

#include "common/strlist.h"

#define K3S_LINES_MAX 8
#define K3S_LINES_FATAL_MAX 3
#define K3S_LINE_MAX 400

/* Replaces K10 tokens, the text after "token", and `secret` (may be NULL)
 * by "[redacted]", and control characters by '?', in place. The buffer
 * never grows. */
void k3s_line_clean(char *line, const char *secret);

/* Adds one line, newest first; keeps what belongs into the answer. */
struct k3s_lines {
	struct strlist fatal;
	struct strlist other;
};

int k3s_lines_add(struct k3s_lines *l, const char *line, const char *secret);
/* Fatal first, then the others, oldest first; `l` is emptied. */
int k3s_lines_take(struct k3s_lines *l, struct strlist *ret_lines);
void k3s_lines_done(struct k3s_lines *l);
