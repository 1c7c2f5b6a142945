/*
 * note.h - what garboard-agent and garboard-disk tell each other about one
 * disk: two small text files in the state directory, NAME.want and
 * NAME.seen, where NAME is the mount path as the name of a unit.
 *
 * The agent has no device in its /dev and no right to make a filesystem;
 * garboard-disk has both, and nothing else (units/garboard-disk@.service).
 * Lines of "key value", written by rename; anything else is -EBADMSG.
 */
#pragma once

#include <stdbool.h>

#include "common/fault.h"

#define DISK_DIR "disk"		/* below the state directory */
#define DISK_TEXT_MAX 256

enum disk_state {
	DISK_ERROR,		/* could not be looked at; see text */
	DISK_ABSENT,		/* no such device */
	DISK_BUSY,		/* mounted, or held by something */
	DISK_BLANK,		/* proven: nothing on it */
	DISK_FILESYSTEM,	/* exactly one, of type fs */
	DISK_OTHER,		/* something else; see text */
	DISK_STATE_MAX,
};

struct disk_want {
	char device[DISK_TEXT_MAX];
	char fs[16];
	bool format;		/* make it, if the device is blank */
};

struct disk_seen {
	char boot[64];		/* of the boot it was seen in */
	char device[DISK_TEXT_MAX];
	unsigned int major, minor;
	enum disk_state state;
	char fs[32], uuid[64];	/* of a filesystem */
	char text[DISK_TEXT_MAX];	/* for people */
};

const char *disk_state_name(enum disk_state state);

/* `dir` is the state directory. Makes its sub-directory. */
int disk_want_write(const char *dir, const char *name,
		    const struct disk_want *want, struct fault *f);
int disk_want_read(const char *dir, const char *name,
		   struct disk_want *ret_want, struct fault *f);
int disk_seen_write(const char *dir, const char *name,
		    const struct disk_seen *seen, struct fault *f);
/* -ENOENT: there is none. */
int disk_seen_read(const char *dir, const char *name,
		   struct disk_seen *ret_seen, struct fault *f);
/* Removes both files. */
void disk_forget(const char *dir, const char *name);
