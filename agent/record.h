/*
 * record.h - the texts below STATE/ours: what a resource has to remember over
 * a power cut, for programs that may not link a hash library.
 *
 * A file is its owner's text, whose first line names its version, and one
 * line "sum HEX", FNV-1a of all before it. It is replaced atomically, and the
 * copy before it, if that was whole, stays beside it as PATH.old. A text
 * without a sum is of an older version: its reader alone judges it, and the
 * next write gives it one.
 */
#pragma once

#include <stddef.h>

#include "agent/kept.h"
#include "common/fault.h"

/* Is the text whole? 0, -EBADMSG with a fault; -ENOMEM. `userdata` takes it. */
typedef int (*record_take)(const char *text, void *userdata, struct fault *f);

/*
 * Gives the text to `take`: 0, or 1 when the current copy is damaged and it
 * was the previous one. -EBADMSG: neither is whole, the fault is of the
 * current one. -ENOENT without a fault: there is no record. `kept` may be NULL.
 */
int record_read(struct kept *kept, const char *path, size_t limit,
		record_take take, void *userdata, struct fault *f);
/* The directory must be there. */
int record_write(const char *path, const char *text, size_t size,
		 struct fault *f);
/* Length of what stands before the sum line, or of all. */
size_t record_body(const char *file, size_t size);
