/*
 * ledger.h - the file of the kill-switch log.
 *
 * Owns state_dir/killswitch.log: lines of record.h, only ever appended to,
 * each batch with one write and flushed to the disk. One writer: who holds
 * the agent's lock. A cut-off end is left where it is and ended with a
 * newline, so that it is found, and told, as a broken record. What is older
 * than thirteen months, or more than fits, is taken away at the front by
 * replacing the file, and a record says how much.
 */
#pragma once

#include "agent/ledger/record.h"
#include "common/fault.h"

#define LEDGER_SIZE_MAX ((size_t)8 * 1024 * 1024)
#define LEDGER_KEEP ((usec)396 * 24 * 3600 * USEC_PER_SEC)
#define LEDGER_PATH_MAX 512

const char *ledger_path(const char *state_dir, char buf[LEDGER_PATH_MAX]);

/* All of it or nothing. */
int ledger_append(const char *state_dir, const char *text, size_t size,
		  struct fault *f);

/* The last sound record near the end. -ENOENT: none. */
int ledger_last(const char *state_dir, struct ledger_record *ret_last);

/*
 * Pure: what is left of the text. `wall` 0: nothing is too old. Beyond
 * `limit` bytes the oldest go, down to three quarters of it. 0: nothing had
 * to go, no output. 1: *ret_text (heap). -ENOMEM.
 */
int ledger_prune(const char *text, size_t size, usec wall, size_t limit,
		 char **ret_text, size_t *ret_size);

/* Prunes the file. */
int ledger_tidy(const char *state_dir, usec wall, size_t limit,
		struct fault *f);
