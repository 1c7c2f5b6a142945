#include "agent/res/mounts_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct plan {
	struct item_list *items;
	struct change_list *changes;
	const struct desired_mount *want;
	const struct mount_seen *seen;
	char text[400];		/* what is wanted */
};

static int item(struct plan *p, enum item_state state, const char *have,
		const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static int item(struct plan *p, enum item_state state, const char *have,
		const char *fmt, ...)
{
	char reason[CHANGE_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	return item_list_add(p->items, p->want->path, state, have, p->text,
			     reason);
}

static bool fits(const struct desired_mount *want,
		 const struct mount_seen *seen)
{
	return seen->answer.state == DISK_FILESYSTEM &&
	       strcmp(seen->answer.fs, want->fs) == 0;
}

enum mount_step mount_step(const struct desired_mount *want,
			   const struct mount_seen *seen)
{
	if (seen->mounted || !seen->present || !*seen->unit ||
	    seen->point != POINT_FREE || seen->file == MOUNT_UNIT_FOREIGN ||
	    seen->fstab_line)
		return MOUNT_NOTHING;
	/* Asked again after a while, when it could not be told. */
	if (!seen->answered || seen->answer.state < DISK_BLANK)
		return MOUNT_LOOK;
	if (seen->answer.state == DISK_BLANK && want->format)
		return MOUNT_MAKE;
	return fits(want, seen) ? MOUNT_MOUNT : MOUNT_NOTHING;
}

static int plan_mounted(struct plan *p)
{
	const struct mount_seen *s = p->seen;
	char have[320];

	(void)snprintf(have, sizeof(have), "%s of %s", s->fs, s->source);
	if (!s->right)
		return item(p, ITEM_BLOCKED, have, "something else is mounted "
			    "there, which is left alone: umount it, or change "
			    "the spec");
	if (strcmp(s->fs, p->want->fs) != 0)
		return item(p, ITEM_BLOCKED, have, "it is %s, not %s: change "
			    "the spec, or move the data and wipe the disk",
			    s->fs, p->want->fs);
	if (!s->shared)
		return item(p, ITEM_BLOCKED, have, "mounts below it do not "
			    "propagate, which storage needs: mount "
			    "--make-rshared %s", p->want->path);
	return item_list_add(p->items, p->want->path, ITEM_IN_SYNC, have,
			     p->text, "");
}

/* Why nothing can be done; 1: there is a next step. */
static int plan_obstacle(struct plan *p)
{
	const struct mount_seen *s = p->seen;
	const char *path = p->want->path;

	if (!*s->unit)
		return item(p, ITEM_BLOCKED, "", "the path makes no name of a "
			    "unit");
	if (!s->present)
		return item(p, ITEM_PENDING, "", "no such device: is the disk "
			    "connected? see ls -l /dev/disk/by-id");
	if (s->point == POINT_FILLED)
		return item(p, ITEM_BLOCKED, "", "%s is not empty, and what is "
			    "in it would be hidden: move it away", path);
	if (s->point == POINT_OTHER)
		return item(p, ITEM_BLOCKED, "", "%s is no directory", path);
	if (s->file == MOUNT_UNIT_FOREIGN)
		return item(p, ITEM_BLOCKED, "", "/etc/systemd/system/%s is "
			    "somebody's own unit: remove it, or take the mount "
			    "out of the spec", s->unit);
	if (s->fstab_line)
		return item(p, ITEM_BLOCKED, "", "/etc/fstab:%u mounts there: "
			    "remove that line, or mount it", s->fstab_line);
	if (*s->failed && !s->working)
		return item(p, ITEM_BLOCKED, "", "%s", s->failed);
	if (!s->answered || s->answer.state < DISK_BLANK)
		return s->answered && !s->working ?
		       item(p, ITEM_BLOCKED, "", "the device %s",
			    s->answer.text) : 1;
	if (s->answer.state == DISK_BLANK && !p->want->format)
		return item(p, ITEM_BLOCKED, "", "the device is blank, and the "
			    "spec does not say format: if-blank");
	if (s->answer.state != DISK_BLANK && !fits(p->want, s))
		return item(p, ITEM_BLOCKED, "", "the device %s, and is not "
			    "touched: is it the right one? wipefs it by hand "
			    "if nobody needs that", s->answer.text);
	return 1;
}

static int plan_now(struct plan *p)
{
	static const char *const said[] = {
		[MOUNT_NOTHING] = "", [MOUNT_LOOK] = "it is looked at first",
		[MOUNT_MAKE] = "the device is blank: the filesystem is made",
		[MOUNT_MOUNT] = "",
	};
	enum mount_step step = mount_step(p->want, p->seen);
	const char *have = p->seen->answered ? p->seen->answer.text :
					       "not looked at";
	int r;

	if (p->seen->mounted)
		return plan_mounted(p);
	r = plan_obstacle(p);
	if (r <= 0)
		return r;
	/* Each step is a change of its own: the one before did help. */
	r = item(p, p->seen->working ? ITEM_PENDING : ITEM_ABSENT, have,
		 "%s", said[step]);
	return r < 0 ? r : change_list_add(p->changes, CHANGE_ADD,
					   p->want->path, have, p->text);
}

static int plan_persisted(struct plan *p)
{
	const struct mount_seen *s = p->seen;
	enum mount_unit file = s->file;
	char key[160], where[32];
	int r;

	(void)snprintf(key, sizeof(key), "%.120s" MOUNTS_PERSISTED,
		       p->want->path);
	(void)snprintf(where, sizeof(where), "/etc/fstab:%u", s->fstab_line);
	if (s->fstab_line && s->right)
		return item_list_add(p->items, key, ITEM_IN_SYNC, where,
				     "at boot", "");
	if (file == MOUNT_UNIT_SAME)
		return item_list_add(p->items, key, ITEM_IN_SYNC, s->unit,
				     s->unit, "");
	if (file == MOUNT_UNIT_FOREIGN)
		return item_list_add(p->items, key, ITEM_BLOCKED, "a file",
				     s->unit, "somebody's own unit");
	/* A unit for a disk that may hold anything would mount it at boot. */
	if (!s->right && !(s->answered && fits(p->want, s)))
		return item_list_add(p->items, key, ITEM_PENDING, "", s->unit,
				     "written once the disk is right");
	r = item_list_add(p->items, key, file == MOUNT_UNIT_ABSENT ?
			  ITEM_ABSENT : ITEM_DRIFTED, "", s->unit, "");
	return r < 0 ? r : change_list_add(p->changes, file ==
					   MOUNT_UNIT_ABSENT ? CHANGE_ADD :
					   CHANGE_SET, key, "", s->unit);
}

static int plan_left(const struct mounts_seen *s, size_t i,
		     struct item_list *items, struct change_list *changes)
{
	char key[UNITNAME_MAX + sizeof(MOUNTS_PERSISTED)];
	int r;

	(void)snprintf(key, sizeof(key), "%s" MOUNTS_PERSISTED,
		       s->left[i].unit);
	r = item_list_add(items, key, ITEM_DRIFTED, s->left[i].path, "",
			  "ours, and no longer in the spec; what is mounted "
			  "stays until it is unmounted by hand, or a reboot");
	return r < 0 ? r : change_list_add(changes, CHANGE_REMOVE, key,
					   s->left[i].path, "");
}

int mounts_plan(const struct desired *want, const void *seen,
		struct item_list *items, struct change_list *changes,
		struct fault *f)
{
	const struct mounts_seen *s = seen;
	size_t i;
	int r = 0;

	for (i = 0; i < s->n && i < want->n_mounts && r >= 0; i++) {
		struct plan p = { items, changes, &want->mounts[i], &s->v[i],
				  "" };

		(void)snprintf(p.text, sizeof(p.text), "%s of %.250s",
			       p.want->fs, p.want->device);
		r = plan_now(&p);
		if (r >= 0)
			r = plan_persisted(&p);
	}
	for (i = 0; i < s->n_left && r >= 0; i++)
		r = plan_left(s, i, items, changes);
	return r < 0 ? fault_errno(f, r, "mounts", "cannot be planned") : 0;
}
