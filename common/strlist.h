/*
 * strlist.h - a bounded list of owned strings.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define STRLIST_MAX 4096

struct strlist {
	char **v;
	size_t n;
};

#define STRLIST_INIT ((struct strlist){ NULL, 0 })

int strlist_add(struct strlist *list, const char *text); /* copies */
bool strlist_has(const struct strlist *list, const char *text);
void strlist_sort(struct strlist *list);	/* C collation (B54) */
int strlist_copy(const struct strlist *from, struct strlist *ret_list);
void strlist_done(struct strlist *list);
