/*
 * journal.h - what the coordinator tells people, once.
 *
 * Owns no facts: a note becomes one log line and one row of the store's
 * run log. Refusals of one peer for one reason are told once a minute, so
 * that garbage from the network cannot fill a disk. Text is bounded and
 * cleaned; never pass a secret. In the server part only this module logs
 * above debug (H15).
 */
#pragma once

#include "common/clock.h"

#define JOURNAL_REPEAT (60 * USEC_PER_SEC)

struct journal;
struct store;

/* `store` is borrowed and may be NULL: then only the log is written. */
struct journal *journal_new(struct store *store);
struct journal *journal_free(struct journal *j);	/* returns NULL */

/* `stage` and `node` may be NULL. */
void journal_note(struct journal *j, const char *stage, const char *node,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* A peer was refused; `now` on any monotonic clock. */
void journal_refused(struct journal *j, const char *peer, const char *reason,
		     usec now);
