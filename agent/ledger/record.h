/*
 * record.h - one record of the kill-switch log, as a value and as a line.
 *
 * A record says what stood from its time on, for who wrote it looked on
 * without a break, until the next record says otherwise. It is whole in
 * itself: boot, both clocks and every layer are in each, so that a broken
 * one costs no more than the time until the next. A line ends with a sum
 * (FNV-1a, 64 bits) of all before it, which shows a cut, a changed byte and
 * bit rot; root can forge it, as root can open the kill-switch. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"

#define LEDGER_LINE_MAX 2048
#define LEDGER_LAYERS_MAX 40		/* routing, inet, 32 uplinks, all */
#define LEDGER_NAME_MAX 32
#define LEDGER_CLASSES_MAX 12
#define LEDGER_CLASS_MAX 64
#define LEDGER_BOOT_MAX 40
#define LEDGER_CAUSE_MAX 48

enum ledger_event {
	LEDGER_START,		/* somebody begins to look */
	LEDGER_LOOK,		/* what stands has changed */
	LEDGER_BEAT,		/* it has not, up to now */
	LEDGER_STOP,		/* nobody looks from here on */
	LEDGER_LOCKDOWN,	/* garboard-lockdown has ended, then */
	LEDGER_LOST,		/* changes before this one were not written */
	LEDGER_CUT,		/* `count` older records are gone (pruned) */
	LEDGER_EVENT_MAX,
};

enum ledger_state {
	LEDGER_STANDS,
	LEDGER_MISSING,
	LEDGER_UNKNOWN,
	LEDGER_STATE_MAX,
};

struct ledger_layer {
	char name[LEDGER_NAME_MAX];	/* "routing", "inet", "netdev:up0" */
	enum ledger_state state;
};

struct ledger_record {
	uint64_t seq;			/* rises by one per record */
	char boot[LEDGER_BOOT_MAX];	/* the kernel's boot id */
	usec at;			/* CLOCK_BOOTTIME */
	usec wall;			/* CLOCK_REALTIME of the same moment */
	usec known;			/* what stood before stood up to here */
	enum ledger_event event;
	uint64_t count;			/* LEDGER_CUT; else gaps summed up */
	char cause[LEDGER_CAUSE_MAX];	/* "nft[1234]"; "": not told */
	char classes[LEDGER_CLASSES_MAX][LEDGER_CLASS_MAX];
	size_t n_classes;		/* armed ones */
	struct ledger_layer layers[LEDGER_LAYERS_MAX];
	size_t n_layers;
};

const char *ledger_event_name(enum ledger_event event);
const char *ledger_state_name(enum ledger_state state);

/* A line with its newline; the length, or -E2BIG. */
int ledger_encode(const struct ledger_record *r, char line[LEDGER_LINE_MAX]);
/* A line without its newline. -EBADMSG: broken; -EPROTO: of a later form. */
int ledger_decode(const char *line, size_t size, struct ledger_record *ret);

/* Same classes, layers and states, whatever the times say. */
bool ledger_same(const struct ledger_record *a, const struct ledger_record *b);

/* -E2BIG. Names are cut down to what a line can hold. */
int ledger_add_layer(struct ledger_record *r, const char *name,
		     enum ledger_state state);
int ledger_add_class(struct ledger_record *r, const char *name);
void ledger_set_cause(struct ledger_record *r, const char *text);
