/*
 * ours.h - what a resource recorded about its own doings: one small text
 * file per resource below state_dir/ours, so that what leaves the spec can
 * be undone, and nothing else is ever touched (SY-06, H32).
 *
 * A record is a key, the value that was there before us, and the value we
 * set. Texts must not hold tabs or newlines (-EINVAL). How the file survives:
 * record.h; a damaged one is reported, never guessed at.
 */
#pragma once

#include <stddef.h>

#include "common/fault.h"

#define OURS_RECORDS_MAX 1024
#define OURS_FILE_MAX (4 * 1024 * 1024)

struct ours_record {
	char *key;
	char *before;
	char *set;
};

struct ours {
	struct ours_record *v;
	size_t n;
};

#define OURS_INIT ((struct ours){ NULL, 0 })

/*
 * An absent file, or state_dir NULL, is an empty list. 1: it was damaged, the
 * copy before it was read, and `f` says so.
 */
int ours_read(const char *state_dir, const char *name, struct ours *ret_ours,
	      struct fault *f);
/* Makes the directories. state_dir NULL: nothing is kept, success. */
int ours_write(const char *state_dir, const char *name,
	       const struct ours *ours, struct fault *f);

struct ours_record *ours_find(const struct ours *ours, const char *key);
/* Adds, or replaces `set` only: what was there before us stays. */
int ours_put(struct ours *ours, const char *key, const char *before,
	     const char *set);
void ours_remove(struct ours *ours, const char *key);
void ours_done(struct ours *ours);
