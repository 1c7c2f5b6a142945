/*
 * lockdown_file.h - the one file that garboard-lockdown reads at boot.
 *
 * Text, written by the agent in state_dir/lockdown with a twin beside it,
 * lockdown.copy. It holds up to three policies (records of armed classes)
 * and the last addresses of the tunnels; each part has its own length and
 * checksum, so that a damaged file still gives its sound parts:
 *
 *	garboard-lockdown 1
 *	part confirmed BYTES SUM	then as many bytes; so for trial,
 *	part addresses BYTES SUM	previous, addresses
 *	end SUM				of all bytes before this line
 *
 * SUM is FNV-1a of 64 bits, over the part's name, a newline and its bytes.
 * It is there against truncation and bit rot: every single changed byte and
 * every missing end is seen. It does not and need not hold against root,
 * who may change the file as well as its sums. Pure but for load and save.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/armed.h"
#include "agent/res/routing_record.h"

#define LOCKDOWN_FILE_SIZE_MAX (4u * 1024 * 1024)

enum lockdown_part {
	LOCKDOWN_CONFIRMED,	/* what the coordinator saw us live with */
	LOCKDOWN_TRIAL,		/* accepted, not yet confirmed */
	LOCKDOWN_PREVIOUS,	/* confirmed before the confirmed one */
	LOCKDOWN_ADDRESSES,
	LOCKDOWN_PARTS,
};

#define LOCKDOWN_POLICIES LOCKDOWN_ADDRESSES

const char *lockdown_part_name(enum lockdown_part part);

struct lockdown_file {
	struct armed policy[LOCKDOWN_POLICIES];	/* d NULL: not there */
	bool has_addresses;
	struct routing_record addresses;
};

void lockdown_file_done(struct lockdown_file *file);

/* Heap text. -ENOMEM. */
int lockdown_file_format(const struct lockdown_file *file, char **ret_text);

/*
 * 0: the whole file is sound. 1: it is not, `f` says why, and *ret_file has
 * the parts that are. -ENOMEM.
 */
int lockdown_file_parse(const char *text, size_t size,
			struct lockdown_file *ret_file, struct fault *f);

/* The path of the file, or of its twin; returns `buf`. */
#define LOCKDOWN_PATH_MAX 512
const char *lockdown_file_path(const char *state_dir, bool twin,
			       char buf[LOCKDOWN_PATH_MAX]);

/* As lockdown_file_parse(); -ENOENT without a fault, or the error. */
int lockdown_file_load(const char *path, struct lockdown_file *ret_file,
		       struct fault *f);

/* The file first, then its twin, each atomically. */
int lockdown_file_save(const char *state_dir, const struct lockdown_file *file,
		       struct fault *f);
