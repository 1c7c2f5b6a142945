/*
 * fault.h - the detail of a failure, owned by the caller.
 *
 * A fallible function returns 0, a positive meaning, or a negative errno,
 * and describes a failure in a fixed-size `struct fault` that the caller
 * provides (NULL is accepted). The first writer wins, so the cause nearest
 * to the failure is kept (H12, H14). Text is bounded, control characters
 * are replaced, and no secret may be put into it.
 */
#pragma once

#include <stdbool.h>

#define FAULT_OBJECT_MAX 160
#define FAULT_TEXT_MAX 512

struct fault {
	int err;			/* negative errno; 0: no fault yet */
	char object[FAULT_OBJECT_MAX];	/* what failed: file, key, node */
	char text[FAULT_TEXT_MAX];	/* why, and the remedy */
};

#define FAULT_INIT ((struct fault){ 0 })

/*
 * Records a failure and returns `err` (which must be negative), so that
 * callers can write `return fault_set(f, -EINVAL, path, "...")`.
 */
int fault_set(struct fault *f, int err, const char *object, const char *fmt,
	      ...) __attribute__((format(printf, 4, 5)));

/* As fault_set(), with ": <strerror(err)>" appended to the text. */
int fault_errno(struct fault *f, int err, const char *object, const char *fmt,
		...) __attribute__((format(printf, 4, 5)));

void fault_clear(struct fault *f);

/* "object: text", or "no error"; valid while `f` and until the next call. */
const char *fault_str(const struct fault *f, char *buf, unsigned long size);

/* Replaces bytes below 0x20, 0x7f and invalid UTF-8 by '?', in place. */
void fault_sanitize(char *text);
