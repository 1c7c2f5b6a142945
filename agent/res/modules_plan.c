#include "agent/res/modules_plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/put.h"

struct plan {
	const struct modules_seen *seen;
	struct item_list *items;
	struct change_list *changes;
};

#define KEY_MAX (CHANGE_TEXT_MAX + sizeof(MODULES_PERSISTED))

const struct module_seen *modules_seen_find(const struct modules_seen *seen,
					    const char *name)
{
	size_t i;

	for (i = 0; i < seen->n; i++)
		if (strcmp(seen->v[i].name, name) == 0)
			return &seen->v[i];
	return NULL;
}

void modules_seen_free(void *p)
{
	struct modules_seen *seen = p;
	size_t i;

	if (!seen)
		return;
	for (i = 0; i < seen->n; i++) {
		free(seen->v[i].name);
		free(seen->v[i].denied);
		free(seen->v[i].drift);
		free(seen->v[i].failed);
	}
	free(seen->v);
	strlist_done(&seen->own);
	free(seen);
}

static int item(struct plan *p, const char *key, enum item_state state,
		const char *have, const char *want, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

static int item(struct plan *p, const char *key, enum item_state state,
		const char *have, const char *want, const char *fmt, ...)
{
	char reason[CHANGE_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	return item_list_add(p->items, key, state, have, want, reason);
}

/* Without a reason: there is none to give. */
static int plain(struct plan *p, const char *key, enum item_state state,
		 const char *have, const char *want)
{
	return item_list_add(p->items, key, state, have, want, "");
}

static int blocked(struct plan *p, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int blocked(struct plan *p, const char *key, const char *fmt, ...)
{
	char reason[CHANGE_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	return item_list_add(p->items, key, ITEM_BLOCKED, "", "loaded",
			     reason);
}

/* Why it is not loaded and will not be (MO-04). */
static int plan_obstacle(struct plan *p, const struct module_seen *m,
			 bool *ret_found)
{
	const struct kmod_obstacle o = {
		.release = p->seen->release,
		.disabled = p->seen->loading_disabled,
		.impossible = p->seen->loading_impossible,
		.denied = m->denied,
		.where = m->where,
	};
	char text[CHANGE_TEXT_MAX];

	*ret_found = kmod_obstacle_text(&o, text, sizeof(text));
	if (*ret_found)
		return blocked(p, m->name, "%s", text);
	*ret_found = m->failed != NULL;
	return m->failed ? blocked(p, m->name, "%s", m->failed) : 0;
}

static int plan_live(struct plan *p, const struct module_seen *m)
{
	bool found;
	int r;

	switch (m->live) {
	case KMOD_LOADED:
		return item_list_add(p->items, m->name, ITEM_IN_SYNC, "loaded",
				     "loaded", m->drift);
	case KMOD_BUILT_IN:
		return plain(p, m->name, ITEM_IN_SYNC, "built-in", "loaded");
	case KMOD_COMING:
		return item(p, m->name, ITEM_PENDING, "", "loaded",
			    "it is being loaded");
	case KMOD_NOT_LOADED:
	case KMOD_LIVE_MAX:
		break;
	}
	if (m->where == KMOD_INDEX_BUILT_IN)
		return plain(p, m->name, ITEM_IN_SYNC, "built-in", "loaded");
	r = plan_obstacle(p, m, &found);
	if (r < 0 || found)
		return r;
	/* Until it has ended it stays planned, and nothing is settled. */
	if (m->loading)
		r = item(p, m->name, ITEM_PENDING, "", "loaded",
			 "it is being loaded");
	else
		r = plain(p, m->name, ITEM_ABSENT, "", "loaded");
	return r < 0 ? r : change_list_add(p->changes, CHANGE_ADD, m->name, "",
					   "loaded");
}

/* A name that no kernel has would fail systemd-modules-load each boot. */
static bool is_kept(const struct module_seen *m)
{
	return m->live != KMOD_NOT_LOADED ||
	       m->where != KMOD_INDEX_ABSENT;
}

static bool own_has(const struct strlist *own, const char *name)
{
	size_t i;

	for (i = 0; i < own->n; i++)
		if (kmod_name_equal(own->v[i], name))
			return true;
	return false;
}

static int plan_persisted(struct plan *p, const struct module_seen *m)
{
	bool has = own_has(&p->seen->own, m->name);
	char key[KEY_MAX];
	int r;

	(void)put_text(put_text(key, key + sizeof(key), m->name),
		       key + sizeof(key), MODULES_PERSISTED);
	if (p->seen->own_err)
		return item(p, key, ITEM_UNOBSERVABLE, "", "listed",
			    "%s cannot be read: %s", MODULES_OWN_FILE,
			    strerror(-p->seen->own_err));
	if (!is_kept(m)) {
		r = item(p, key, ITEM_BLOCKED, has ? "listed" : "", "listed",
			 "not kept for the next boot: this kernel has no such "
			 "module");
		if (r < 0 || !has)
			return r;
		return change_list_add(p->changes, CHANGE_REMOVE, key,
				       "listed", "");
	}
	if (has && m->denied && m->live == KMOD_LOADED)
		return item(p, key, ITEM_BLOCKED, "listed", "listed",
			    "it is loaded, but the next boot will not load it: "
			    "deny-listed by %s; remove that entry", m->denied);
	if (has)
		return plain(p, key, ITEM_IN_SYNC, "listed", "listed");
	r = plain(p, key, ITEM_ABSENT, "", "listed");
	return r < 0 ? r : change_list_add(p->changes, CHANGE_ADD, key, "",
					   "listed");
}

static bool wants(const struct desired *want, const char *name, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (kmod_name_equal(want->modules.v[i], name))
			return true;
	return false;
}

/* What left the spec is not loaded at the next boot; it is not unloaded. */
static int plan_leftover(struct plan *p, const char *name)
{
	char key[KEY_MAX];
	int r;

	(void)snprintf(key, sizeof(key), "%s%s", name, MODULES_PERSISTED);
	if (change_list_find(p->changes, key))
		return 0;
	r = item(p, key, ITEM_DRIFTED, "listed", "", "no longer in the spec; "
		 "a loaded module stays until the next reboot");
	return r < 0 ? r : change_list_add(p->changes, CHANGE_REMOVE, key,
					   "listed", "");
}

static int plan_wanted(struct plan *p, const struct desired *want, size_t i)
{
	const char *name = want->modules.v[i];
	const struct module_seen *m = modules_seen_find(p->seen, name);
	int r;

	if (wants(want, name, i))
		return 0;
	if (!kmod_name_is_valid(name))
		return blocked(p, name, "is no name of a module");
	if (!m)
		return item(p, name, ITEM_UNOBSERVABLE, "", "loaded",
			    "was not looked at");
	r = plan_live(p, m);
	return r < 0 ? r : plan_persisted(p, m);
}

int modules_plan(const struct desired *want, const void *seen_,
		 struct item_list *items, struct change_list *changes,
		 struct fault *f)
{
	const struct modules_seen *seen = seen_;
	struct plan p = { seen, items, changes };
	size_t i;
	int r = 0;

	for (i = 0; i < want->modules.n && r >= 0; i++)
		r = plan_wanted(&p, want, i);
	for (i = 0; i < seen->own.n && r >= 0; i++)
		if (!wants(want, seen->own.v[i], want->modules.n))
			r = plan_leftover(&p, seen->own.v[i]);
	return r < 0 ? fault_errno(f, r, "modules", "cannot be planned") : 0;
}

int modules_render(const struct desired *want,
		   const struct modules_seen *seen, char **ret_text,
		   size_t *ret_size)
{
	_cleanup_fclose_ FILE *out = NULL;
	_cleanup_free_ char *text = NULL;
	size_t size = 0, i;

	out = open_memstream(&text, &size);
	if (!out)
		return -errno;
	(void)fputs("# Written by garboard-agent from the cluster's spec; "
		    "changes here are undone.\n", out);
	for (i = 0; i < want->modules.n; i++) {
		const struct module_seen *m =
			modules_seen_find(seen, want->modules.v[i]);

		if (m && is_kept(m) && !wants(want, m->name, i))
			(void)fprintf(out, "%s\n", m->name);
	}
	if (fclose(take_ptr(out)) != 0)
		return -ENOMEM;
	*ret_text = take_ptr(text);
	*ret_size = size;
	return 0;
}
