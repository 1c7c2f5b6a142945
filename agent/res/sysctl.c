#include "agent/res/sysctl.h"

#include <errno.h>
#include <limits.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/confdirs.h"
#include "agent/ours.h"
#include "agent/res/sysctl_held.h"
#include "agent/res/sysctl_plan.h"
#include "agent/res/sysctl_unit.h"
#include "agent/rootpath.h"
#include "agent/stamps.h"
#include "agent/wake.h"
#include "common/cleanup.h"
#include "common/file.h"

struct sysctl_state {
	const struct resource_host *host;
	struct sysctl_helds held;
	struct ours ours;
	bool ours_known;
	struct stamps stamps;	/* of the files that `lines` came from */
	struct sysctl_lines lines;
	struct sysctl_asks asks;
	struct wake *wake;
	struct bus_listener *listener;
	resource_look_again look_again;
	void *userdata;
};

static void on_asked(void *userdata, const char *path, const char *value,
		     int r, const char *text);

static int sysctl_open(const struct resource_host *host, void **ret_state,
		       struct fault *f)
{
	struct sysctl_state *st = calloc(1, sizeof(*st));

	if (!st)
		return fault_set(f, -ENOMEM, "sysctl", "out of memory");
	st->host = host;
	st->held.root = host->root;
	st->asks = (struct sysctl_asks){ .done = on_asked, .userdata = st };
	*ret_state = st;
	return 0;
}

static void *sysctl_free(void *state)
{
	struct sysctl_state *st = state;

	if (!st)
		return NULL;
	sysctl_asks_cancel(&st->asks);
	st->listener = bus_unlisten(st->listener);
	st->wake = wake_free(st->wake);
	sysctl_helds_done(&st->held);
	ours_done(&st->ours);
	stamps_done(&st->stamps);
	sysctl_lines_done(&st->lines);
	free(st);
	return NULL;
}

static int copy_text(const char *text, char **ret_copy)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		return -ENOMEM;
	*ret_copy = copy;
	return 0;
}

static int see_key(struct sysctl_state *st, const char *path, size_t glob,
		   struct sysctl_seen *seen)
{
	struct sysctl_seen_key *v, *k;
	struct ours_record *rec;
	char buf[SYSCTL_READ_MAX];
	struct sysctl_held *h;
	int r;

	if (sysctl_seen_find(seen, path))
		return 0;
	v = reallocarray(seen->v, seen->n + 1, sizeof(*v));
	h = sysctl_held_get(&st->held, path);
	if (v)
		seen->v = v;
	if (!v || !h)
		return -ENOMEM;
	k = &v[seen->n++];
	*k = (struct sysctl_seen_key){ .glob = glob };
	h->used = true;
	buf[0] = '\0';
	k->err = sysctl_held_read(&st->held, h, buf);
	k->read_only = h->read_only;
	k->asked = sysctl_is_asked(&st->asks, path);
	k->no_link = k->err == -ENOENT && sysctl_held_lacks_link(&st->held, path);
	sysctl_held_age(h);
	k->refused = h->refused;
	rec = ours_find(&st->ours, path);
	r = copy_text(path, &k->path);
	r = r < 0 ? r : copy_text(k->err ? "" : buf, &k->value);
	r = r < 0 ? r : copy_text(h->refused_value, &k->refused_value);
	r = r < 0 ? r : copy_text(h->refused_note, &k->refused_note);
	r = r < 0 ? r : copy_text(rec ? rec->before : NULL, &k->before);
	return r < 0 ? r : copy_text(rec ? rec->set : NULL, &k->set);
}

static int see_glob(struct sysctl_state *st, const struct desired *want,
		    size_t index, const char *pattern, struct sysctl_seen *seen)
{
	CLEANUP(strlist_done) struct strlist paths = STRLIST_INIT;
	size_t i;
	int r;

	r = sysctl_glob_expand(st->host->root, pattern, &paths);
	for (i = 0; i < paths.n && r == 0; i++)
		if (sysctl_want_glob(want, paths.v[i]) == index)
			r = see_key(st, paths.v[i], index, seen);
	return r;
}

static int see_wanted(struct sysctl_state *st, const struct desired *want,
		      struct sysctl_seen *seen)
{
	char path[SYSCTL_KEY_MAX];
	size_t i;
	int r = 0;

	for (i = 0; i < want->n_sysctls && r == 0; i++) {
		const struct desired_sysctl *d = &want->sysctls[i];

		if (d->exclude ||
		    sysctl_key_path(d->key, path, sizeof(path)) < 0)
			continue;
		if (sysctl_is_glob(path))
			r = see_glob(st, want, i, path, seen);
		else
			r = see_key(st, path, SYSCTL_NOT_WANTED, seen);
	}
	return r;
}

/*
 * Keys that we once set and that are there no more. Links come and go: the
 * record of one that a wildcard set goes with it.
 */
static int see_ours(struct sysctl_state *st, const struct desired *want,
		    struct sysctl_seen *seen)
{
	size_t i = 0;
	int r = 0;

	while (i < st->ours.n && r == 0) {
		const char *key = st->ours.v[i].key;

		if (!sysctl_seen_find(seen, key) &&
		    sysctl_want_glob(want, key) != SYSCTL_NOT_WANTED) {
			ours_remove(&st->ours, key);
			continue;
		}
		r = see_key(st, key, SYSCTL_NOT_WANTED, seen);
		i++;
	}
	return r;
}

/* A damaged record is a fault once; restoring is then not possible. */
static void read_ours(struct sysctl_state *st, struct fault *f)
{
	if (st->ours_known)
		return;
	(void)ours_read(st->host->state_dir, "sysctl", &st->ours, f);
	st->ours_known = true;
}

/*
 * The files change by the month: while their stamps stand, so do the lines.
 * What could not be read is read again each time.
 */
static int see_files(struct sysctl_state *st, struct sysctl_lines *lines,
		     struct fault *f)
{
	int r;

	if (stamps_fresh(&st->stamps))
		return sysctl_lines_copy(&st->lines, lines);
	stamps_done(&st->stamps);
	sysctl_lines_done(&st->lines);
	r = confdirs_note(st->host->root, "sysctl.d", &st->stamps, NULL);
	if (r == 0)
		stamps_end(&st->stamps);
	r = sysctl_lines_read(st->host->root, lines, f);
	if (r == 0 && sysctl_lines_copy(lines, &st->lines) < 0)
		r = -ENOMEM;
	if (r < 0)
		stamps_done(&st->stamps);
	return r;
}

static int sysctl_observe(void *state, const struct desired *want,
			  void **ret_seen, struct fault *f)
{
	struct sysctl_state *st = state;
	struct sysctl_seen *seen = calloc(1, sizeof(*seen));
	struct fault files = FAULT_INIT;
	int r = seen ? 0 : -ENOMEM;

	read_ours(st, f);
	if (r == 0)
		r = see_wanted(st, want, seen);
	if (r == 0)
		r = see_ours(st, want, seen);
	if (r == 0) {
		sysctl_held_sweep(&st->held);
		seen->files_err = see_files(st, &seen->lines, &files);
		if (seen->files_err == -ENOMEM)
			r = -ENOMEM;
		(void)fault_str(&files, seen->files_note,
				sizeof(seen->files_note));
	}
	if (r < 0) {
		sysctl_seen_free(seen);
		return fault_errno(f, r, "sysctl", "cannot be observed");
	}
	*ret_seen = seen;
	return 0;
}

static const char *remedy(int err)
{
	switch (-err) {
	case EINVAL:
	case ERANGE:
	case EDOM:
		return "the kernel refuses this value; correct it in the spec";
	case EPERM:
	case EACCES:
		return "needs a capability that the agent does not have";
	case EROFS:
		return "/proc/sys is read-only here; it has to be set on the "
		       "host";
	default:
		return "cannot be set";
	}
}

static bool is_beyond(int err)
{
	return err == -EPERM || err == -EACCES || err == -EROFS;
}

/* Another root is not what systemd works on. */
static bool has_systemd(const struct sysctl_state *st)
{
	return bus_is_up(st->host->bus) && !*st->host->root;
}

static int blocked(struct sysctl_state *st, const char *path,
		   const struct change *c, int err, const char *note,
		   struct item_list *items, struct fault *f)
{
	struct sysctl_held *h = sysctl_held_get(&st->held, path);

	if (h)
		sysctl_held_refuse(h, c->want, err, note);
	item_list_mark(items, c->key, ITEM_BLOCKED, "%s", note);
	return fault_set(f, err, c->key, "%s", note);
}

/*
 * Writes, and reads back: some keys take a value and keep another. What is
 * beyond us is left to ask_units(); a value that goes back is in no file
 * for a unit to read.
 */
static int apply_live(struct sysctl_state *st, const char *path,
		      const struct change *c, bool wanted,
		      struct item_list *items, struct fault *f)
{
	char note[CHANGE_TEXT_MAX], now[SYSCTL_READ_MAX];
	struct sysctl_held *h = sysctl_held_get(&st->held, path);
	int r;

	if (!h)
		return fault_set(f, -ENOMEM, c->key, "out of memory");
	if (sysctl_is_asked(&st->asks, path))
		return 0;
	r = sysctl_held_write(&st->held, path, c->want);
	h->beyond = is_beyond(r) && wanted;
	if (h->beyond)
		return 0;
	if (r < 0) {
		(void)snprintf(note, sizeof(note), "%s (%s)", remedy(r),
			       strerror(-r));
		return blocked(st, path, c, r, note, items, f);
	}
	if (sysctl_held_read(&st->held, h, now) < 0 ||
	    sysctl_value_equal(now, c->want))
		return 0;
	(void)snprintf(note, sizeof(note), "the kernel took %.200s and keeps "
		       "%.200s; write that in the spec", c->want, now);
	return blocked(st, path, c, -EDOM, note, items, f);
}

/* The outcome of a unit of ours: the key tells, the job explains. */
static void on_asked(void *userdata, const char *path, const char *value,
		     int r, const char *text)
{
	struct sysctl_state *st = userdata;
	struct sysctl_held *h = sysctl_held_get(&st->held, path);
	char note[CHANGE_TEXT_MAX], unit[SYSTEMD1_UNIT_NAME_MAX];
	char now[SYSCTL_READ_MAX] = "";
	int err = -EPERM;

	if (sysctl_unit_name(path, unit, sizeof(unit)) < 0)
		*unit = '\0';
	if (!h || (sysctl_held_read(&st->held, h, now) == 0 &&
		   sysctl_value_equal(now, value))) {
		r = -ENOTCONN;	/* nothing to note */
	} else if (r == -EIO) {
		err = -EINVAL;	/* systemd-sysctl fails over a value only */
		(void)snprintf(note, sizeof(note), "the kernel refuses this "
			       "value, from %s too (%.100s); correct it in the "
			       "spec, or see journalctl -u %s", unit, text,
			       unit);
	} else if (r == -ENOENT) {
		(void)snprintf(note, sizeof(note), "needs a capability that "
			       "the agent does not have, and %s is not there; "
			       "reinstall garboard-agent", unit);
	} else if (r < 0) {
		(void)snprintf(note, sizeof(note), "%s: %.200s (%s)", unit,
			       text, strerror(-r));
	} else {
		(void)snprintf(note, sizeof(note), "%s ran, and the key is "
			       "still %.200s: another file of sysctl.d wins, "
			       "or the kernel forbids it to everybody", unit,
			       now);
	}
	if (r != -ENOTCONN)
		sysctl_held_refuse(h, value, err, note);
	if (st->look_again)
		st->look_again(st->userdata);
}

static bool is_persisted(const char *key)
{
	size_t n = strlen(key), m = strlen(SYSCTL_PERSISTED);

	return n > m && strcmp(key + n - m, SYSCTL_PERSISTED) == 0;
}

/* What was there before us must be on disk before it is gone (SY-06). */
static int record_before(struct sysctl_state *st,
			 const struct change_list *changes, struct fault *f)
{
	char path[SYSCTL_KEY_MAX];
	bool dirty = false;
	size_t i;
	int r = 0;

	for (i = 0; i < changes->n; i++) {
		const struct change *c = &changes->v[i];
		struct ours_record *rec;

		if (c->op != CHANGE_SET || is_persisted(c->key) ||
		    sysctl_key_path(c->key, path, sizeof(path)) < 0)
			continue;
		rec = ours_find(&st->ours, path);
		if (rec && strcmp(rec->set, c->want) == 0)
			continue;
		/* Back to what it was: the record goes after the write. */
		if (rec && strcmp(rec->before, c->want) == 0)
			continue;
		r = ours_put(&st->ours, path, c->have, c->want);
		if (r < 0)
			return fault_errno(f, r, c->key, "cannot be recorded");
		dirty = true;
	}
	if (dirty)
		r = ours_write(st->host->state_dir, "sysctl", &st->ours, f);
	return r;
}

/* A key that left the spec is ours no more, once its value went back. */
static int forget_unwanted(struct sysctl_state *st,
			   const struct desired *want,
			   const struct change_list *changes, struct fault *f)
{
	char path[SYSCTL_KEY_MAX];
	bool dirty = false;
	size_t i;

	for (i = 0; i < changes->n; i++) {
		const struct change *c = &changes->v[i];
		struct sysctl_held *h;

		if (is_persisted(c->key) ||
		    sysctl_key_path(c->key, path, sizeof(path)) < 0 ||
		    sysctl_wants(want, path))
			continue;
		h = sysctl_held_find(&st->held, path);
		if (c->op == CHANGE_SET && h && h->refused)
			continue;
		ours_remove(&st->ours, path);
		dirty = true;
	}
	if (!dirty)
		return 0;
	return ours_write(st->host->state_dir, "sysctl", &st->ours, f);
}

/* The key, or the wildcard that stands for it. */
static int leave_out(const struct desired *want, const char *path,
		     struct strlist *without)
{
	size_t i = sysctl_want_glob(want, path);
	char pattern[SYSCTL_KEY_MAX];

	if (i == SYSCTL_NOT_WANTED)
		return strlist_add(without, path);
	if (sysctl_key_path(want->sysctls[i].key, pattern, sizeof(pattern)) < 0)
		return 0;
	return strlist_add(without, pattern);
}

static int write_file(struct sysctl_state *st, const struct desired *want,
		      struct fault *f)
{
	CLEANUP(strlist_done) struct strlist without = STRLIST_INIT;
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX];
	size_t size = 0, i;
	int r = 0;

	for (i = 0; i < st->held.n && r == 0; i++)
		if (sysctl_refuses_value(st->held.v[i].refused))
			r = leave_out(want, st->held.v[i].path, &without);
	if (r == 0)
		r = sysctl_render(want, &without, &text, &size);
	if (r == 0)
		r = rootpath(st->host->root, path, "/etc/sysctl.d");
	if (r < 0)
		return fault_errno(f, r, SYSCTL_OWN_FILE, "cannot be made");
	r = file_mkdirs(path, 0755, f);
	if (r < 0)
		return r;
	r = rootpath(st->host->root, path, "%s", SYSCTL_OWN_FILE);
	if (r < 0)
		return fault_errno(f, r, SYSCTL_OWN_FILE, "cannot be made");
	return file_write(path, 0644, text, size, f);
}

static int apply_file(struct sysctl_state *st, const struct desired *want,
		      const struct change_list *changes,
		      struct item_list *items, struct fault *f)
{
	struct fault own = FAULT_INIT;
	char text[FAULT_TEXT_MAX];
	size_t i;
	int r;

	for (i = 0; i < changes->n; i++)
		if (is_persisted(changes->v[i].key))
			break;
	if (i == changes->n)
		return 0;
	r = write_file(st, want, &own);
	if (r == 0)
		return 0;
	(void)fault_str(&own, text, sizeof(text));
	for (i = 0; i < changes->n; i++)
		if (is_persisted(changes->v[i].key))
			item_list_mark(items, changes->v[i].key, ITEM_BLOCKED,
				       "%s", text);
	return fault_set(f, r, own.object, "%s", own.text);
}

/* 1: something is under way. */
static int ask_unit(struct sysctl_state *st, const char *path,
		    const struct change *c, int file_err,
		    struct item_list *items, struct fault *f)
{
	char note[FAULT_TEXT_MAX], unit[SYSTEMD1_UNIT_NAME_MAX] = "";
	struct fault own = FAULT_INIT;
	int r;

	(void)sysctl_unit_name(path, unit, sizeof(unit));
	if (file_err < 0) {
		item_list_mark(items, c->key, ITEM_PENDING, "beyond the "
			       "agent's capabilities: %s has to set it, once "
			       SYSCTL_OWN_FILE " can be written", unit);
		return 0;
	}
	if (!has_systemd(st)) {
		item_list_mark(items, c->key, ITEM_PENDING, "beyond the "
			       "agent's capabilities: %s has to set it, and "
			       "D-Bus is not there yet; the next boot sets it "
			       "from " SYSCTL_OWN_FILE, unit);
		return 0;
	}
	r = sysctl_ask(&st->asks, st->host->bus, path, c->want, &own);
	if (r < 0)
		return blocked(st, path, c, r,
			       fault_str(&own, note, sizeof(note)), items, f);
	item_list_mark(items, c->key, ITEM_PENDING, "%s sets it", unit);
	return 1;
}

/* After our file is written, which the units read. */
static int ask_units(struct sysctl_state *st, const struct change_list *changes,
		     int file_err, struct item_list *items, struct fault *f)
{
	int r, first = 0, started = 0;
	char path[SYSCTL_KEY_MAX];
	size_t i;

	for (i = 0; i < changes->n; i++) {
		const struct change *c = &changes->v[i];
		struct sysctl_held *h;

		if (c->op == CHANGE_REMOVE || is_persisted(c->key) ||
		    sysctl_key_path(c->key, path, sizeof(path)) < 0)
			continue;
		h = sysctl_held_find(&st->held, path);
		started |= sysctl_is_asked(&st->asks, path);
		if (!h || !h->beyond)
			continue;
		h->beyond = false;
		r = ask_unit(st, path, c, file_err, items, f);
		started |= r > 0;
		first = first ? first : r < 0 ? r : 0;
	}
	return first ? first : started;
}

static int sysctl_apply(void *state, const struct desired *want,
			const void *seen, const struct change_list *changes,
			struct item_list *items, struct fault *f)
{
	struct sysctl_state *st = state;
	char path[SYSCTL_KEY_MAX];
	int r, first, started;
	size_t i;

	(void)seen;
	first = record_before(st, changes, f);
	for (i = 0; i < changes->n; i++) {
		const struct change *c = &changes->v[i];

		if (c->op == CHANGE_REMOVE || is_persisted(c->key) ||
		    sysctl_key_path(c->key, path, sizeof(path)) < 0)
			continue;
		r = apply_live(st, path, c, sysctl_wants(want, path), items, f);
		first = first ? first : r;
	}
	r = apply_file(st, want, changes, items, f);
	first = first ? first : r;
	r = started = ask_units(st, changes, r, items, f);
	first = first || r > 0 ? first : r;
	r = forget_unwanted(st, want, changes, f);
	first = first ? first : r;
	return first ? first : started;
}

static void on_wake(void *userdata)
{
	struct sysctl_state *st = userdata;

	st->look_again(st->userdata);
}

static void on_bus(void *userdata, bool up)
{
	if (up)
		on_wake(userdata);
}

static int watch_files(struct sysctl_state *st, struct fault *f)
{
	/* On Debian a link of sysctl.d names it. */
	static const char *const files[] = { "/etc/sysctl.conf", NULL };
	const char *root = st->host->root;
	int r, first;

	first = wake_paths(st->wake, root, files, WAKE_DIR_MASK, f);
	r = confdirs_watch(root, "sysctl.d", st->wake, f);
	return first ? first : r;
}

static int sysctl_watch(void *state, const struct desired *want,
			resource_look_again look_again, void *userdata,
			struct fault *f)
{
	struct sysctl_state *st = state;
	int r;

	(void)want;	/* the held files are watched when they are opened */
	st->look_again = look_again;
	st->userdata = userdata;
	if (st->wake || !st->host->event)
		return 0;
	r = wake_new(st->host->event, on_wake, st, &st->wake, f);
	if (r < 0)
		return r;
	st->held.wake = st->wake;
	if (st->host->bus && !st->listener) {
		r = bus_listen(st->host->bus, on_bus, st, &st->listener);
		if (r < 0)
			return fault_errno(f, r, "sysctl", "cannot listen");
	}
	r = watch_files(st, f);
	if (r < 0)
		return r;
	/* Modules and links bring keys of their own (SY-03). */
	r = wake_netlink(st->wake, NETLINK_KOBJECT_UEVENT, 1, "/module/", f);
	if (r < 0)
		return r;
	return wake_netlink(st->wake, NETLINK_ROUTE, RTMGRP_LINK, NULL, f);
}

const struct resource resource_sysctl = {
	.id = RESOURCE_SYSCTL,
	.open = sysctl_open,
	.observe = sysctl_observe,
	.plan = sysctl_plan,
	.apply = sysctl_apply,
	.watch = sysctl_watch,
	.seen_free = sysctl_seen_free,
	.free = sysctl_free,
};
