/*
 * journal.h - what the coordinator tells people, once.
 *
 * Owns no facts: a note becomes one log line and one row of the store's
 * run log. Refusals of one peer for one reason are told once a minute, so
 * that garbage from the network cannot fill a disk. Text is bounded and
 * cleaned; never pass a secret. In the server part only this module logs
 * above debug (H15).
 *
 * Rows are written together, at most a second later: one transaction for
 * many costs one flush of the disk. The log line is out at once.
 */
#pragma once

#include <systemd/sd-event.h>

#include "common/clock.h"

#define JOURNAL_REPEAT (60 * USEC_PER_SEC)

struct journal;
struct store;

/* `store` is borrowed. NULL: no memory. */
struct journal *journal_new(sd_event *event, struct store *store);
/* Writes what is left; returns NULL. */
struct journal *journal_free(struct journal *j);

/* Writes what waits, before the rows are read. */
void journal_flush(struct journal *j);

/* `stage` and `node` may be NULL. */
void journal_note(struct journal *j, const char *stage, const char *node,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* A peer was refused; `now` on any monotonic clock. */
void journal_refused(struct journal *j, const char *peer, const char *reason,
		     usec now);
