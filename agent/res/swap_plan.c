#include "agent/res/swap_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int plan_active(const struct swap_seen *s, const struct swap_active *a,
		       uint64_t used, struct item_list *items,
		       struct change_list *changes)
{
	char have[96], why[CHANGE_TEXT_MAX] = "";
	enum item_state state = ITEM_DRIFTED;
	int r;

	(void)snprintf(have, sizeof(have), "on, %" PRIu64 " of %" PRIu64
		       " kB used", a->used, a->size);
	if (!*a->unit) {
		state = ITEM_BLOCKED;
		(void)snprintf(why, sizeof(why), "its path makes no name of a "
			       "unit: run swapoff by hand");
	} else if (s->available && used > s->available) {
		state = ITEM_BLOCKED;
		(void)snprintf(why, sizeof(why), "%" PRIu64 " kB are swapped "
			       "out and only %" PRIu64 " kB of memory are "
			       "available: stop something, or reboot", used,
			       s->available);
	} else if (s->turning_off) {
		state = ITEM_PENDING;
		(void)snprintf(why, sizeof(why), "it is being turned off");
	} else if (*s->failed) {
		state = ITEM_BLOCKED;
		(void)snprintf(why, sizeof(why), "%s", s->failed);
	}
	r = item_list_add(items, a->path, state, have, "off", why);
	if (r < 0 || state == ITEM_BLOCKED)
		return r;
	return change_list_add(changes, CHANGE_SET, a->path, have, "off");
}

static int plan_now(const struct swap_seen *s, struct item_list *items,
		    struct change_list *changes)
{
	uint64_t used = 0;
	size_t i;
	int r = 0;

	if (s->err < 0)
		return item_list_add(items, SWAP_NOW, ITEM_UNOBSERVABLE, "",
				     "off", strerror(-s->err));
	if (s->n == 0)
		return item_list_add(items, SWAP_NOW, ITEM_IN_SYNC, "off",
				     "off", "");
	for (i = 0; i < s->n; i++)
		used += s->v[i].used;
	for (i = 0; i < s->n && r == 0; i++)
		r = plan_active(s, &s->v[i], used, items, changes);
	return r;
}

static void unit_key(const struct swap_unit *u, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s" SWAP_PERSISTED, u->name);
}

static void tell_cause(const struct swap_seen *s, const struct swap_unit *u,
		       char *buf, size_t size)
{
	*buf = '\0';
	if (*u->by)
		(void)snprintf(buf, size, "%s starts it at each boot", u->by);
	else if (strcmp(u->name, SWAP_TARGET) == 0 && s->fstab_entries > 1)
		(void)snprintf(buf, size, "/etc/fstab:%u (%.200s) and %u more "
			       "would be back after a boot", s->fstab_line,
			       s->fstab_first, s->fstab_entries - 1);
	else if (strcmp(u->name, SWAP_TARGET) == 0 && s->fstab_entries)
		(void)snprintf(buf, size, "/etc/fstab:%u (%.200s) would be "
			       "back after a boot", s->fstab_line,
			       s->fstab_first);
}

static int plan_mask(const struct swap_seen *s, const struct swap_unit *u,
		     struct item_list *items, struct change_list *changes)
{
	char key[UNITNAME_MAX + sizeof(SWAP_PERSISTED)], why[512];
	int r;

	unit_key(u, key, sizeof(key));
	switch (u->mask) {
	case SWAP_MASKED:
		return item_list_add(items, key, ITEM_IN_SYNC, "masked",
				     "masked", "");
	case SWAP_MASK_UNKNOWN:
		return item_list_add(items, key, ITEM_UNOBSERVABLE, "",
				     "masked", "its file in /etc/systemd/"
				     "system cannot be read");
	case SWAP_OTHER:
		(void)snprintf(why, sizeof(why), "/etc/systemd/system/%.200s "
			       "is somebody's own file, which we do not "
			       "replace: systemctl disable it, or remove it",
			       u->name);
		return item_list_add(items, key, ITEM_BLOCKED, "a file",
				     "masked", why);
	case SWAP_UNMASKED:
		break;
	}
	/* systemd no longer knows how to stop a swap that is masked. */
	if (s->n && strcmp(u->name + strlen(u->name) - 5, ".swap") == 0)
		return item_list_add(items, key, ITEM_PENDING, "not masked",
				     "masked", "masked once swap is off");
	tell_cause(s, u, why, sizeof(why));
	r = item_list_add(items, key, ITEM_ABSENT, "not masked", "masked",
			  why);
	return r < 0 ? r : change_list_add(changes, CHANGE_ADD, key,
					   "not masked", "masked");
}

/* A mask of ours that nobody wants, or a record without its mask. */
static int plan_unmask(const struct swap_unit *u, struct item_list *items,
		       struct change_list *changes)
{
	char key[UNITNAME_MAX + sizeof(SWAP_PERSISTED)];
	const char *have = u->mask == SWAP_MASKED ? "masked" : "not masked";
	int r;

	unit_key(u, key, sizeof(key));
	r = item_list_add(items, key, ITEM_DRIFTED, have, "",
			  "masked by us, and no longer in the spec");
	return r < 0 ? r : change_list_add(changes, CHANGE_REMOVE, key, have,
					   "");
}

static int plan_reload(struct item_list *items, struct change_list *changes)
{
	int r;

	r = item_list_add(items, SWAP_RELOAD, ITEM_PENDING, "other units",
			  "reloaded", "it is reading its units");
	return r < 0 ? r : change_list_add(changes, CHANGE_SET, SWAP_RELOAD,
					   "other units", "reloaded");
}

int swap_plan(const struct desired *want, const void *seen,
	      struct item_list *items, struct change_list *changes,
	      struct fault *f)
{
	const struct swap_seen *s = seen;
	size_t i;
	int r = 0;

	if (want->swap_off)
		r = plan_now(s, items, changes);
	for (i = 0; i < s->n_units && r == 0; i++) {
		const struct swap_unit *u = &s->units[i];

		if (want->swap_off && u->present)
			r = plan_mask(s, u, items, changes);
		else if (u->ours)
			r = plan_unmask(u, items, changes);
	}
	/* Until it has ended it stays planned, and nothing is settled. */
	if (r == 0 && s->reloading)
		r = plan_reload(items, changes);
	return r < 0 ? fault_errno(f, r, "swap", "cannot be planned") : 0;
}
