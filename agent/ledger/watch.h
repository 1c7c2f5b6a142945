/*
 * watch.h - writes the kill-switch log from what the engine sees.
 *
 * Owns the running agent's part of the log: a record when it begins to
 * look, whenever what stands has changed, once an hour when nothing has, and
 * when it ends in order. Records are gathered for a second, so that no
 * repair waits for the disk; what dies with the process in that second shows
 * as unknown, since the next one begins anew. The time something is missing
 * begins with the pass that found it and ends when it was seen to stand.
 *
 * Somebody who takes things away again and again does not fill the disk:
 * beyond a number of records an hour, it is written as missing all along,
 * until it has stood for a minute.
 */
#pragma once

#include <systemd/sd-event.h>

#include "agent/engine.h"
#include "agent/ledger/record.h"

struct ledger_params {
	usec gather, beat, calm;
	usec lookback;		/* prune after so long without a clock step */
	unsigned int hourly;	/* records, before it is a storm */
	size_t limit;		/* of the file */
};

/* 1 s, 1 h, 1 min, 1 day, 240, LEDGER_SIZE_MAX. */
struct ledger_params ledger_params_default(void);

struct ledger;

/*
 * `stood`: what garboard-lockdown left of this boot. `event` NULL: nothing
 * is timed, ledger_tick() is called by hand.
 */
int ledger_new(sd_event *event, const char *state_dir, const char *boot_id,
	       const char *stood, const struct ledger_params *p,
	       struct ledger **ret_ledger);
/* Says that nobody looks any more. */
struct ledger *ledger_free(struct ledger *l);

/* An engine_looked, with the ledger as userdata. */
void ledger_looked(void *userdata, const struct engine_look *look);

/* The pure part, with both clocks given. */
void ledger_see(struct ledger *l, const struct engine_look *look, usec now,
		usec wall);
/* Writes what is due; returns when to come again. */
usec ledger_tick(struct ledger *l, usec now, usec wall);
/* A heartbeat now, for somebody who wants to read. */
void ledger_beat(struct ledger *l);

/* The file of garboard-lockdown: its one line. -EBADMSG. */
#define LEDGER_STOOD "/run/garboard-lockdown/stood"
int ledger_stood_format(usec now, usec wall, bool all, char *buf,
			size_t size);
int ledger_stood_parse(const char *text, usec *ret_at, usec *ret_wall,
		       bool *ret_all);
