#include "agent/res/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/bus/systemd1.h"
#include "agent/ours.h"
#include "agent/res/mounts_plan.h"
#include "agent/rootpath.h"
#include "agent/wake.h"
#include "common/cleanup.h"

#define FAILURE_USEC (300 * USEC_PER_SEC)
#define RECORD "mounts"

/* One mount on its way; its address is the userdata of the job. */
struct work {
	struct mounts_state *owner;
	char path[160];		/* what `failed` and `job` are about */
	struct systemd1_job *job, *reload;
	char failed[FAULT_TEXT_MAX];
	usec failed_at;
};

struct mounts_state {
	const struct resource_host *host;
	struct ours ours;
	bool ours_known;
	struct work works[DESIRED_MOUNTS_MAX];
	struct wake *wake;
	sd_event_source *table;		/* mountinfo tells of each change */
	int fd;
	resource_look_again look_again;
	void *userdata;
};

static int mounts_open(const struct resource_host *host, void **ret_state,
		       struct fault *f)
{
	struct mounts_state *st = calloc(1, sizeof(*st));
	size_t i;

	if (!st)
		return fault_set(f, -ENOMEM, "mounts", "out of memory");
	st->host = host;
	st->fd = -1;
	for (i = 0; i < DESIRED_MOUNTS_MAX; i++)
		st->works[i].owner = st;
	*ret_state = st;
	return 0;
}

static void *mounts_free(void *state)
{
	struct mounts_state *st = state;
	size_t i;

	if (!st)
		return NULL;
	for (i = 0; i < DESIRED_MOUNTS_MAX; i++) {
		st->works[i].job = systemd1_cancel(st->works[i].job);
		st->works[i].reload = systemd1_cancel(st->works[i].reload);
	}
	st->table = sd_event_source_disable_unref(st->table);
	if (st->fd >= 0)
		(void)close(st->fd);
	st->wake = wake_free(st->wake);
	ours_done(&st->ours);
	free(st);
	return NULL;
}

static bool is_wanted(const struct mounts_seen *seen, const char *unit)
{
	size_t i;

	for (i = 0; i < seen->n; i++)
		if (strcmp(seen->v[i].unit, unit) == 0)
			return true;
	return false;
}

static void see_ours(struct mounts_state *st, struct mounts_seen *seen,
		     struct fault *f)
{
	size_t i;

	if (!st->ours_known)
		(void)ours_read(st->host->state_dir, RECORD, &st->ours, f);
	st->ours_known = true;
	for (i = 0; i < st->ours.n && seen->n_left < DESIRED_MOUNTS_MAX; i++) {
		if (is_wanted(seen, st->ours.v[i].key))
			continue;
		(void)snprintf(seen->left[seen->n_left].unit, UNITNAME_MAX,
			       "%s", st->ours.v[i].key);
		(void)snprintf(seen->left[seen->n_left++].path, 256, "%s",
			       st->ours.v[i].set);
	}
}

static int mounts_observe(void *state, const struct desired *want,
			  void **ret_seen, struct fault *f)
{
	struct mounts_state *st = state;
	struct mounts_seen *seen = calloc(1, sizeof(*seen));
	size_t i;

	if (!seen)
		return fault_set(f, -ENOMEM, "mounts", "out of memory");
	for (i = 0; i < want->n_mounts && i < DESIRED_MOUNTS_MAX; i++) {
		const struct work *w = &st->works[i];
		struct mount_seen *m = &seen->v[seen->n++];

		mount_see(st->host->root, st->host->state_dir,
			  &want->mounts[i], m);
		if (strcmp(w->path, want->mounts[i].path) != 0)
			continue;
		m->working = w->job != NULL;
		if (*w->failed && clock_boottime() - w->failed_at <
					  FAILURE_USEC)
			memcpy(m->failed, w->failed, sizeof(m->failed));
	}
	see_ours(st, seen, f);
	*ret_seen = seen;
	return 0;
}

static void mounts_seen_free(void *seen)
{
	free(seen);
}

/* ---- what takes time ---- */

static void look_again(struct mounts_state *st)
{
	if (st->look_again)
		st->look_again(st->userdata);
}

static void on_done(void *userdata, int r, const char *text)
{
	struct work *w = userdata;

	w->job = NULL;
	if (r < 0 && r != -ENOTCONN) {
		(void)snprintf(w->failed, sizeof(w->failed), "the disk cannot "
			       "be looked at, made or mounted: %.100s (%s); "
			       "see journalctl -b -u 'garboard-disk@*' -u "
			       "'*.mount'", *text ? text : "no reason",
			       strerror(-r));
		w->failed_at = clock_boottime();
	}
	look_again(w->owner);
}

static void on_reloaded(void *userdata, int r, const char *text)
{
	struct work *w = userdata;

	(void)r, (void)text;	/* the start that follows tells */
	w->reload = NULL;
}

static int visit(struct mounts_state *st, struct work *w,
		 const struct desired_mount *want,
		 const struct mount_seen *seen, bool make, struct fault *f)
{
	struct disk_want note = { .format = make };
	char unit[UNITNAME_MAX + 32];
	int r;

	if (!st->host->state_dir)
		return fault_set(f, -ENOENT, want->path, "no state directory");
	(void)snprintf(note.device, sizeof(note.device), "%s", want->device);
	(void)snprintf(note.fs, sizeof(note.fs), "%s", want->fs);
	r = disk_want_write(st->host->state_dir, seen->name, &note, f);
	if (r < 0)
		return r;
	(void)snprintf(unit, sizeof(unit), "garboard-disk@%s.service",
		       seen->name);
	return systemd1_call(st->host->bus, SYSTEMD1_START, unit,
			     make ? MOUNTS_MAKE_USEC : MOUNTS_LOOK_USEC,
			     on_done, w, &w->job, f);
}

/* On disk before the unit is: nothing of ours is ever without a record. */
static int write_unit(struct mounts_state *st,
		      const struct desired_mount *want,
		      const struct mount_seen *seen, struct fault *f)
{
	int r = ours_put(&st->ours, seen->unit, "absent", want->path);

	if (r < 0)
		return fault_errno(f, r, seen->unit, "cannot be recorded");
	r = ours_write(st->host->state_dir, RECORD, &st->ours, f);
	return r < 0 ? r : mount_unit_write(st->host->root, want, seen->unit,
					    f);
}

/* systemd takes the calls of one connection in their order. */
static int start(struct mounts_state *st, struct work *w,
		 const struct desired_mount *want,
		 const struct mount_seen *seen, struct fault *f)
{
	int r = 0;

	if (seen->file != MOUNT_UNIT_SAME)
		r = write_unit(st, want, seen, f);
	if (r == 0 && !w->reload)
		r = systemd1_call(st->host->bus, SYSTEMD1_DAEMON_RELOAD, NULL,
				  MOUNTS_LOOK_USEC, on_reloaded, w,
				  &w->reload, f);
	if (r == 0)
		r = systemd1_call(st->host->bus, SYSTEMD1_START, seen->unit,
				  MOUNTS_MOUNT_USEC, on_done, w, &w->job, f);
	return r;
}

static int advance(struct mounts_state *st, size_t i,
		   const struct desired_mount *want,
		   const struct mount_seen *seen, struct item_list *items,
		   struct fault *f)
{
	enum mount_step step = mount_step(want, seen);
	struct work *w = &st->works[i];
	int r = 0;

	if (w->job)
		return 1;
	if (!bus_is_up(st->host->bus) || *st->host->root) {
		item_list_mark(items, want->path, ITEM_PENDING,
			       "D-Bus is not there yet");
		return 0;
	}
	w->failed[0] = '\0';
	(void)snprintf(w->path, sizeof(w->path), "%s", want->path);
	switch (step) {
	case MOUNT_NOTHING:
		return 0;
	case MOUNT_LOOK:
	case MOUNT_MAKE:
		r = visit(st, w, want, seen, step == MOUNT_MAKE, f);
		break;
	case MOUNT_MOUNT:
		r = start(st, w, want, seen, f);
		break;
	}
	return r < 0 ? r : 1;
}

/* ---- the plan, change by change ---- */

static bool key_is(const char *key, const char *name)
{
	size_t n = strlen(name);

	return strncmp(key, name, n) == 0 &&
	       strcmp(key + n, MOUNTS_PERSISTED) == 0;
}

static int take_back(struct mounts_state *st, const struct mounts_seen *seen,
		     const char *key, struct fault *f)
{
	size_t i;
	int r;

	for (i = 0; i < seen->n_left; i++) {
		const char *unit = seen->left[i].unit;
		char name[UNITNAME_MAX];

		if (!key_is(key, unit))
			continue;
		r = mount_unit_remove(st->host->root, unit, f);
		if (r < 0)
			return r;
		if (unitname_from_path(seen->left[i].path, "", name) == 0 &&
		    st->host->state_dir)
			disk_forget(st->host->state_dir, name);
		ours_remove(&st->ours, unit);
		return ours_write(st->host->state_dir, RECORD, &st->ours, f);
	}
	return fault_set(f, -EINVAL, key, "was not planned");
}

static int apply_one(const struct apply *a, const struct change *c,
		     struct fault *f)
{
	const struct mounts_seen *seen = a->seen;
	size_t i;

	if (c->op == CHANGE_REMOVE)
		return take_back(a->state, seen, c->key, f);
	for (i = 0; i < seen->n; i++) {
		const struct desired_mount *m = &a->want->mounts[i];

		if (strcmp(c->key, m->path) == 0)
			return advance(a->state, i, m, &seen->v[i], a->items,
				       f);
		if (key_is(c->key, m->path))
			return write_unit(a->state, m, &seen->v[i], f);
	}
	return fault_set(f, -EINVAL, c->key, "was not planned");
}

static int mounts_apply(void *state, const struct desired *want,
			const void *seen, const struct change_list *changes,
			struct item_list *items, struct fault *f)
{
	const struct apply a = { state, want, seen, items };

	return apply_each(&a, changes, apply_one, f);
}

/* ---- events ---- */

static void on_wake(void *userdata)
{
	look_again(userdata);
}

static int on_table(sd_event_source *s, int fd, uint32_t events,
		    void *userdata)
{
	(void)s, (void)fd, (void)events;
	look_again(userdata);
	return 0;
}

static int watch_table(struct mounts_state *st, struct fault *f)
{
	char path[PATH_MAX];
	int r;

	r = rootpath(st->host->root, path, "/proc/1/mountinfo");
	if (r == 0)
		st->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (st->fd < 0)
		return 0;
	r = sd_event_add_io(st->host->event, &st->table, st->fd, EPOLLPRI,
			    on_table, st);
	if (r == -EPERM)	/* a plain file, in tests */
		r = 0;
	return r < 0 ? fault_errno(f, r, path, "cannot be watched") : 0;
}

static int mounts_watch(void *state, const struct desired *want,
			resource_look_again again, void *userdata,
			struct fault *f)
{
	struct mounts_state *st = state;
	char path[PATH_MAX];
	int r;

	st->look_again = again;
	st->userdata = userdata;
	if (st->wake || !st->host->event || want->n_mounts == 0)
		return 0;
	r = wake_new(st->host->event, on_wake, st, &st->wake, f);
	if (r == 0)
		r = rootpath(st->host->root, path, "/etc/systemd/system");
	if (r == 0)
		r = wake_path(st->wake, path, WAKE_DIR_MASK, f);
	return r < 0 ? r : watch_table(st, f);
}

const struct resource resource_mounts = {
	.id = RESOURCE_MOUNTS,
	.open = mounts_open,
	.observe = mounts_observe,
	.plan = mounts_plan,
	.apply = mounts_apply,
	.watch = mounts_watch,
	.seen_free = mounts_seen_free,
	.free = mounts_free,
};
