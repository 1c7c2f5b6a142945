#include "common/strlist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int strlist_add(struct strlist *list, const char *text)
{
	char **v;

	if (list->n >= STRLIST_MAX)
		return -E2BIG;
	v = reallocarray(list->v, list->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	list->v = v;
	v[list->n] = strdup(text);
	if (!v[list->n])
		return -ENOMEM;
	list->n++;
	return 0;
}

bool strlist_has(const struct strlist *list, const char *text)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (strcmp(list->v[i], text) == 0)
			return true;
	return false;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void strlist_sort(struct strlist *list)
{
	if (list->n > 1)
		qsort(list->v, list->n, sizeof(*list->v), compare);
}

int strlist_copy(const struct strlist *from, struct strlist *ret_list)
{
	struct strlist copy = STRLIST_INIT;
	size_t i;

	for (i = 0; i < from->n; i++) {
		int r = strlist_add(&copy, from->v[i]);

		if (r < 0) {
			strlist_done(&copy);
			return r;
		}
	}
	*ret_list = copy;
	return 0;
}

void strlist_done(struct strlist *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		free(list->v[i]);
	free(list->v);
	*list = STRLIST_INIT;
}
