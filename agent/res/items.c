#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/res/resource.h"

const char *item_state_name(enum item_state state)
{
	static const char *const names[] = {
		[ITEM_IN_SYNC] = "in-sync",
		[ITEM_PENDING] = "pending",
		[ITEM_ABSENT] = "absent",
		[ITEM_DRIFTED] = "drifted",
		[ITEM_BLOCKED] = "blocked",
		[ITEM_UNOBSERVABLE] = "unobservable",
	};
	_Static_assert(sizeof(names) / sizeof(names[0]) == ITEM_STATE_MAX,
		       "every state has a name");

	return state < ITEM_STATE_MAX ? names[state] : "unknown";
}

static void item_done(struct item *it)
{
	free(it->key);		/* and with it have and want */
	free(it->reason);
}

static char *copy_text(const char *text)
{
	return strndup(text ? text : "", CHANGE_TEXT_MAX);
}

/* In one piece: they are made by the dozen at every look. */
static int copy_texts(struct item *it, const char *key, const char *have,
		      const char *want)
{
	size_t k, h, w;

	key = key ? key : "";
	have = have ? have : "";
	want = want ? want : "";
	k = strnlen(key, CHANGE_TEXT_MAX);
	h = strnlen(have, CHANGE_TEXT_MAX);
	w = strnlen(want, CHANGE_TEXT_MAX);
	it->key = malloc(k + h + w + 3);
	if (!it->key)
		return -ENOMEM;
	it->have = it->key + k + 1;
	it->want = it->have + h + 1;
	(void)memcpy(it->key, key, k);
	(void)memcpy(it->have, have, h);
	(void)memcpy(it->want, want, w);
	it->key[k] = it->have[h] = it->want[w] = '\0';
	return 0;
}

int item_list_add(struct item_list *list, const char *key,
		  enum item_state state, const char *have, const char *want,
		  const char *reason)
{
	struct item it = { .state = state };
	struct item *v;

	if (list->n >= ITEM_LIST_MAX)
		return -E2BIG;
	/* Room for 8, 16, 32, ... */
	if (list->n == 0 || (list->n >= 8 && !(list->n & (list->n - 1)))) {
		v = reallocarray(list->v, list->n ? 2 * list->n : 8,
				 sizeof(*v));
		if (!v)
			return -ENOMEM;
		list->v = v;
	}
	it.reason = copy_text(reason);
	if (copy_texts(&it, key, have, want) < 0 || !it.reason) {
		item_done(&it);
		return -ENOMEM;
	}
	list->v[list->n++] = it;
	return 0;
}

struct item *item_list_find(struct item_list *list, const char *key)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (strcmp(list->v[i].key, key) == 0)
			return &list->v[i];
	return NULL;
}

void item_list_mark(struct item_list *list, const char *key,
		    enum item_state state, const char *fmt, ...)
{
	char reason[CHANGE_TEXT_MAX];
	struct item *it = item_list_find(list, key);
	va_list ap;
	char *copy;

	va_start(ap, fmt);
	(void)vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	if (!it) {
		(void)item_list_add(list, key, state, "", "", reason);
		return;
	}
	it->state = state;
	copy = copy_text(reason);
	if (!copy)
		return;
	free(it->reason);
	it->reason = copy;
}

enum item_state item_list_worst(const struct item_list *list)
{
	enum item_state worst = ITEM_IN_SYNC;
	size_t i;

	for (i = 0; i < list->n; i++)
		if (list->v[i].state > worst)
			worst = list->v[i].state;
	return worst;
}

void item_list_done(struct item_list *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		item_done(&list->v[i]);
	free(list->v);
	*list = ITEM_LIST_INIT;
}

int apply_each(const struct apply *a, const struct change_list *changes,
	       int (*one)(const struct apply *a, const struct change *c,
			  struct fault *f),
	       struct fault *f)
{
	int r, first = 0, started = 0;
	char text[FAULT_TEXT_MAX];
	size_t i;

	for (i = 0; i < changes->n; i++) {
		struct fault own = FAULT_INIT;

		r = one(a, &changes->v[i], &own);
		if (r >= 0) {
			started |= r;
			continue;
		}
		item_list_mark(a->items, changes->v[i].key, ITEM_BLOCKED,
			       "%s", fault_str(&own, text, sizeof(text)));
		(void)fault_set(f, r, own.object, "%s", own.text);
		first = first ? first : r;
	}
	return first ? first : started;
}
