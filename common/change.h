/*
 * change.h - what a plan consists of: {op, key, have, want}.
 *
 * The same list is the dry run, the log, the report and the expectation of
 * a test (H34). Lists are bounded and own their text.
 */
#pragma once

#include <stddef.h>

#define CHANGE_LIST_MAX 8192
#define CHANGE_TEXT_MAX 1024	/* longer have/want text is cut with "..." */

enum change_op {
	CHANGE_ADD,		/* absent now, wanted */
	CHANGE_SET,		/* there, with another value */
	CHANGE_REMOVE,		/* ours, and no longer wanted */
	CHANGE_OP_MAX,
};

struct change {
	enum change_op op;
	char *key;
	char *have;		/* "" where nothing is there */
	char *want;		/* "" for CHANGE_REMOVE */
};

struct change_list {
	struct change *v;
	size_t n;
};

#define CHANGE_LIST_INIT ((struct change_list){ NULL, 0 })

const char *change_op_name(enum change_op op);	/* "add", "set", "remove" */

/* Appends copies of the texts. -E2BIG, -ENOMEM. NULL text is "". */
int change_list_add(struct change_list *list, enum change_op op,
		    const char *key, const char *have, const char *want);

/* First change with that key, or NULL. */
const struct change *change_list_find(const struct change_list *list,
				      const char *key);

void change_list_done(struct change_list *list);
