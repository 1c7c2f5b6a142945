/*
 * report.h - what the lines of the log come to: boots, intervals, sums.
 *
 * Lines are fed one after the other; pure. Time between two records counts
 * as what the earlier one says only if they are neighbours (by number, of
 * one boot, and the later one is not a beginning); all else is unknown, with
 * the reason. Lengths are of CLOCK_BOOTTIME, which nobody sets; wall times
 * are made from it with the last clock known of that boot, so that a step
 * moves no interval, and each step is told.
 */
#pragma once

#include "agent/ledger/record.h"

#define LEDGER_STEPS_MAX 64
#define LEDGER_BROKEN_MAX 1024

enum ledger_kind {
	LEDGER_ALL,		/* every layer stood */
	LEDGER_SOME,		/* one or more were missing */
	LEDGER_NONE,		/* none stood */
	LEDGER_NOBODY,		/* unknown */
	LEDGER_UNARMED,		/* no class to hold */
	LEDGER_KIND_MAX,
};

const char *ledger_kind_name(enum ledger_kind kind);

struct ledger_segment {
	enum ledger_kind kind;
	usec from, to;			/* boottime */
	char *stands, *missing, *unknown;	/* layers; owned, "" */
	char *classes;
	char cause[96];
	uint64_t gaps;			/* that it sums up, at least one
					   where something was missing */
};

struct ledger_step {
	usec at;			/* boottime, found then */
	int64_t by;			/* microseconds */
};

struct ledger_boot {
	char id[LEDGER_BOOT_MAX];
	usec last;			/* boottime of its last record */
	usec last_wall;
	uint64_t records;
	struct ledger_segment *v;
	size_t n;
	struct ledger_step steps[LEDGER_STEPS_MAX];
	size_t n_steps;			/* may exceed what is kept */
};

/* One class, and its share of every layer. */
struct ledger_sum {
	char class_name[LEDGER_CLASS_MAX];
	char layer[LEDGER_NAME_MAX];	/* "": the class as a whole */
	usec kinds[LEDGER_KIND_MAX];	/* a layer: ALL, NONE, NOBODY */
	uint64_t gaps;
};

struct ledger_broken {
	size_t line;
	bool torn;			/* the file ends in it */
};

struct ledger_report {
	usec since;			/* wall; 0: all */
	struct ledger_boot *boots;
	size_t n_boots;
	struct ledger_sum *sums;
	size_t n_sums;
	usec kinds[LEDGER_KIND_MAX];
	uint64_t gaps;
	struct ledger_broken broken[LEDGER_BROKEN_MAX];
	size_t n_broken;		/* may exceed what is kept */
	uint64_t cut, cut_broken;	/* pruned before the first line */
	usec cut_wall;

	/* of the feeding */
	size_t lines;
	bool has_last, gap, after_cut;
	struct ledger_record last;
};

/* A line without its newline; `torn`: the file had none behind it. */
int ledger_report_feed(struct ledger_report *r, const char *line, size_t size,
		       bool torn);
/*
 * The end. In the boot that goes on now (id `boot`, NULL for none), the
 * time since its last record is unknown up to `now`.
 */
int ledger_report_end(struct ledger_report *r, const char *boot, usec now);
void ledger_report_done(struct ledger_report *r);

/* Wall time of a moment of this boot. */
usec ledger_wall(const struct ledger_boot *b, usec at);
