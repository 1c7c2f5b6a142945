/*
 * stamps.h - whether files are still what they were when they were noted.
 *
 * Directories and files that rarely change are read once; later looks only
 * ask the kernel whether the same objects are still there, unchanged: device,
 * inode, size, times, or that there is none. Note first and read after: then
 * what changes in between shows. A time that was young when it was noted may
 * hide a second change in the same tick, so such stamps never count as fresh.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define STAMPS_MAX 4096

struct stamp;		/* one path and what stat(2) said of it */

struct stamps {
	struct stamp *v;
	size_t n;
	bool young;
	bool complete;		/* stamps_end() was called */
};

#define STAMPS_INIT ((struct stamps){ NULL, 0, false, false })

/* Forgets everything; also for an empty one. */
void stamps_done(struct stamps *s);
/* Links are followed. -E2BIG, -ENOMEM. */
int stamps_note(struct stamps *s, const char *path);
/* All is noted; before this, nothing is fresh. */
void stamps_end(struct stamps *s);
bool stamps_fresh(const struct stamps *s);
