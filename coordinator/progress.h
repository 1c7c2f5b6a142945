/*
 * progress.h - what the operator sees while stages run.
 *
 * One line per fact in plain form (also for logs and screen readers), a
 * small live line on a terminal, JSON lines for programs. Text from nodes
 * is bounded and cleaned before it is shown. Owns nothing but its state.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "common/clock.h"

enum progress_style {
	PROGRESS_PLAIN,
	PROGRESS_LIVE,
	PROGRESS_JSON,
};

struct progress;

/* `out` is borrowed. NULL when there is no memory. */
struct progress *progress_new(FILE *out, enum progress_style style);
struct progress *progress_free(struct progress *p);

/* PROGRESS_LIVE for a terminal that can move the cursor, else plain. */
enum progress_style progress_style_for(FILE *out, bool plain);

void progress_stage(struct progress *p, unsigned int number,
		    unsigned int total, const char *stage);
/* The stage ended: "holds", "done", "would change", "failed". */
void progress_stage_end(struct progress *p, const char *outcome);
/* A fact that stays: a change, a node that is done. */
void progress_fact(struct progress *p, const char *node, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * What is being waited for; repeated calls with the same text only move
 * the clock. Plain output prints it once, and again each 30 s.
 */
void progress_wait(struct progress *p, const char *node, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
