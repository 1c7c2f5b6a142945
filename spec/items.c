#include "spec/print.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/build.h"

void build_failed(struct build *b, int err)
{
	if (!b->err)
		b->err = err;
}

static void item_done(struct spec_item *it)
{
	free(it->group);
	free(it->key);
	free(it->value);
	free(it->origin);
}

void spec_items_done(struct spec_items *items)
{
	size_t i;

	for (i = 0; i < items->n; i++)
		item_done(&items->v[i]);
	free(items->v);
	*items = SPEC_ITEMS_INIT;
}

static int items_add(struct spec_items *items, const char *group,
		     const char *key, const char *value, const char *origin)
{
	struct spec_item it, *v;

	if (items->n >= SPEC_ITEMS_MAX)
		return -E2BIG;
	v = reallocarray(items->v, items->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	items->v = v;
	it.group = strdup(group);
	it.key = strdup(key);
	it.value = strdup(value);
	it.origin = strdup(origin);
	if (!it.group || !it.key || !it.value || !it.origin) {
		item_done(&it);
		return -ENOMEM;
	}
	v[items->n++] = it;
	return 0;
}

void build_say(struct build *b, const char *group, const char *key,
	       const char *value, struct spec_pos pos)
{
	char origin[512] = "default";
	int r;

	if (!b->items || b->err)
		return;
	if (spec_given(pos))
		(void)snprintf(origin, sizeof(origin), "%s:%u", b->spec->file,
			       pos.line);
	r = items_add(b->items, group, key, value, origin);
	if (r < 0)
		build_failed(b, r);
}

void build_say_derived(struct build *b, const char *group, const char *key,
		       const char *value, const char *fmt, ...)
{
	char origin[512] = "derived from ";
	size_t used = strlen(origin);
	va_list ap;
	int r;

	if (!b->items || b->err)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(origin + used, sizeof(origin) - used, fmt, ap);
	va_end(ap);
	r = items_add(b->items, group, key, value, origin);
	if (r < 0)
		build_failed(b, r);
}
