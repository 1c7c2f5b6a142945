/*
 * sysctl_plan.h - what was seen of the sysctls, and what is to be done.
 *
 * Pure: no file is read here. Two items per key, judged apart (SY-01): the
 * live value under the key as the spec wrote it, the persisted one under
 * the same text with " (persisted)" behind it. A wildcard has both, too; of
 * the keys that it stands for only those that are not right have an item.
 */
#pragma once

#include "agent/res/resource.h"
#include "agent/res/sysctl_files.h"
#include "agent/res/sysctl_glob.h"

#define SYSCTL_PERSISTED " (persisted)"

struct sysctl_seen_key {
	char *path;		/* canonical */
	int err;		/* 0 or the negative errno of reading */
	bool read_only;		/* no write bit on the file */
	bool no_link;		/* ENOENT, as its network link is not there */
	char *value;		/* folded; "" when not read */
	size_t glob;		/* the wildcard it is there for, or NOT_WANTED */
	bool asked;		/* a unit of ours is at it */
	/* The last refusal by the kernel of exactly this value, or 0. */
	int refused;
	char *refused_value;	/* what was written */
	char *refused_note;	/* why, and the remedy */
	/* Our record, NULL when there is none. */
	char *before, *set;
};

struct sysctl_seen {
	struct sysctl_seen_key *v;
	size_t n;
	struct sysctl_lines lines;
	int files_err;		/* some file of sysctl.d was unreadable */
	char files_note[FAULT_TEXT_MAX];
};

struct sysctl_seen_key *sysctl_seen_find(const struct sysctl_seen *seen,
					 const char *path);
void sysctl_seen_free(void *seen);

int sysctl_plan(const struct desired *want, const void *seen,
		struct item_list *items, struct change_list *changes,
		struct fault *f);

/* The kernel dislikes the value itself (not our rights); 0 is no refusal. */
bool sysctl_refuses_value(int refused);

/* The module that brings the key, or NULL. */
const char *sysctl_key_module(const char *path);

/*
 * Our file as it is to be; *ret_text is the caller's (free). Keys in
 * `without` (canonical) and keys that are no keys are left out.
 */
int sysctl_render(const struct desired *want, const struct strlist *without,
		  char **ret_text, size_t *ret_size);
