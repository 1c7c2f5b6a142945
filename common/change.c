#include "common/change.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *change_op_name(enum change_op op)
{
	static const char *const names[CHANGE_OP_MAX] = {
		[CHANGE_ADD] = "add",
		[CHANGE_SET] = "set",
		[CHANGE_REMOVE] = "remove",
	};

	return op < CHANGE_OP_MAX ? names[op] : "unknown";
}

static char *copy_text(const char *text)
{
	size_t n;
	char *copy;

	if (!text)
		text = "";
	n = strlen(text);
	if (n <= CHANGE_TEXT_MAX)
		return strdup(text);
	copy = malloc(CHANGE_TEXT_MAX + 1);
	if (copy)
		(void)snprintf(copy, CHANGE_TEXT_MAX + 1, "%.*s...",
			       CHANGE_TEXT_MAX - 3, text);
	return copy;
}

static void change_done(struct change *c)
{
	free(c->key);
	free(c->have);
	free(c->want);
}

int change_list_add(struct change_list *list, enum change_op op,
		    const char *key, const char *have, const char *want)
{
	struct change c = { .op = op };
	struct change *v;

	if (list->n >= CHANGE_LIST_MAX)
		return -E2BIG;
	/* Room for 8, 16, 32, ... */
	if (list->n == 0 || (list->n >= 8 && !(list->n & (list->n - 1)))) {
		v = reallocarray(list->v, list->n ? 2 * list->n : 8,
				 sizeof(*v));
		if (!v)
			return -ENOMEM;
		list->v = v;
	}
	c.key = copy_text(key);
	c.have = copy_text(have);
	c.want = copy_text(want);
	if (!c.key || !c.have || !c.want) {
		change_done(&c);
		return -ENOMEM;
	}
	list->v[list->n++] = c;
	return 0;
}

const struct change *change_list_find(const struct change_list *list,
				      const char *key)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (strcmp(list->v[i].key, key) == 0)
			return &list->v[i];
	return NULL;
}

void change_list_done(struct change_list *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		change_done(&list->v[i]);
	free(list->v);
	*list = CHANGE_LIST_INIT;
}
