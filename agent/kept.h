/*
 * kept.h - the text of a small file, read again only when its stamp changed.
 *
 * Owns a copy of what was read last, and the stamp noted before reading it
 * (stamps.h): a file that was replaced, written, removed or made anew is
 * read again, and one so young that a second change might not show is never
 * trusted. One value serves one path.
 */
#pragma once

#include <stddef.h>

#include "agent/stamps.h"
#include "common/fault.h"

struct kept {
	struct stamps stamps;
	char *text;		/* NULL: there is no file */
	size_t size;
};

#define KEPT_INIT ((struct kept){ STAMPS_INIT, NULL, 0 })

/*
 * As file_read(), but the text is borrowed until the next call: -ENOENT
 * without a fault when there is no such file; failures are not kept.
 */
int kept_read(struct kept *k, const char *path, size_t limit,
	      const char **ret_text, size_t *ret_size, struct fault *f);
void kept_done(struct kept *k);
