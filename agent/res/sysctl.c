#include "agent/res/sysctl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "agent/confdirs.h"
#include "agent/ours.h"
#include "agent/res/sysctl_plan.h"
#include "agent/rootpath.h"
#include "agent/stamps.h"
#include "agent/wake.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

/* A refused value is tried again after this long, or when it changes. */
#define REFUSAL_USEC (300 * USEC_PER_SEC)

struct held {
	char *path;
	int fd;			/* for pread; -1: not open */
	bool read_only;
	bool used;		/* mark and sweep per observation */
	int refused;
	usec refused_at;
	char *refused_value, *refused_note;
};

struct sysctl_state {
	const struct resource_host *host;
	struct held *v;
	size_t n;
	struct ours ours;
	bool ours_known;
	struct stamps stamps;	/* of the files that `lines` came from */
	struct sysctl_lines lines;
	struct wake *wake;
	resource_look_again look_again;
	void *userdata;
};

static int sysctl_open(const struct resource_host *host, void **ret_state,
		       struct fault *f)
{
	struct sysctl_state *st = calloc(1, sizeof(*st));

	if (!st)
		return fault_set(f, -ENOMEM, "sysctl", "out of memory");
	st->host = host;
	*ret_state = st;
	return 0;
}

static void held_forget_refusal(struct held *h)
{
	h->refused = 0;
	free(take_ptr(h->refused_value));
	free(take_ptr(h->refused_note));
}

static void held_done(struct held *h)
{
	held_forget_refusal(h);
	if (h->fd >= 0)
		(void)close(h->fd);
	free(h->path);
}

static void *sysctl_free(void *state)
{
	struct sysctl_state *st = state;
	size_t i;

	if (!st)
		return NULL;
	st->wake = wake_free(st->wake);
	for (i = 0; i < st->n; i++)
		held_done(&st->v[i]);
	free(st->v);
	ours_done(&st->ours);
	stamps_done(&st->stamps);
	sysctl_lines_done(&st->lines);
	free(st);
	return NULL;
}

static struct held *held_find(struct sysctl_state *st, const char *path)
{
	size_t i;

	for (i = 0; i < st->n; i++)
		if (strcmp(st->v[i].path, path) == 0)
			return &st->v[i];
	return NULL;
}

static struct held *held_get(struct sysctl_state *st, const char *path)
{
	struct held *h = held_find(st, path), *v;

	if (h)
		return h;
	v = reallocarray(st->v, st->n + 1, sizeof(*v));
	if (!v)
		return NULL;
	st->v = v;
	h = &v[st->n];
	*h = (struct held){ .path = strdup(path), .fd = -1 };
	if (!h->path)
		return NULL;
	st->n++;
	return h;
}

static int held_path(struct sysctl_state *st, const char *path, char *buf)
{
	return rootpath(st->host->root, buf, "/proc/sys/%s", path);
}

static int held_open(struct sysctl_state *st, struct held *h)
{
	char path[PATH_MAX];
	struct stat sb;
	int r;

	r = held_path(st, h->path, path);
	if (r < 0)
		return r;
	h->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (h->fd < 0)
		return -errno;
	if (fstat(h->fd, &sb) < 0)
		return -errno;
	if (!S_ISREG(sb.st_mode))
		return -EISDIR;
	h->read_only = (sb.st_mode & 0222) == 0;
	/* Only a fast path: most side effects raise no event (FACTS S9). */
	(void)wake_path(st->wake, path, IN_CLOSE_WRITE, NULL);
	return 0;
}

/* A held descriptor outlives its key (module or interface gone): ENOENT. */
static int held_read(struct sysctl_state *st, struct held *h, char *buf,
		     size_t size)
{
	unsigned int tries;
	ssize_t n = -1;
	int r = 0;

	for (tries = 0; tries < 2; tries++) {
		r = h->fd < 0 ? held_open(st, h) : 0;
		if (r == 0) {
			n = pread(h->fd, buf, size - 1, 0);
			r = n < 0 ? -errno : 0;
		}
		if (r == 0)
			break;
		if (h->fd >= 0)
			(void)close(take_fd(&h->fd));
	}
	if (r < 0)
		return r;
	buf[n] = '\0';
	sysctl_fold(buf);
	return 0;
}

/* Is it the link that is missing, not the key? Asked of absent keys only. */
static bool lacks_link(struct sysctl_state *st, const char *path)
{
	size_t n = sysctl_key_link(path);
	char link[SYSCTL_KEY_MAX], full[PATH_MAX];
	struct stat sb;

	if (n == 0)
		return false;
	(void)snprintf(link, sizeof(link), "%.*s", (int)n, path);
	return held_path(st, link, full) == 0 && stat(full, &sb) < 0 &&
	       errno == ENOENT;
}

static int copy_text(const char *text, char **ret_copy)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		return -ENOMEM;
	*ret_copy = copy;
	return 0;
}

static int see_key(struct sysctl_state *st, const char *path,
		   struct sysctl_seen *seen)
{
	struct sysctl_seen_key *v, *k;
	struct ours_record *rec;
	char buf[4096];
	struct held *h;
	int r;

	if (sysctl_seen_find(seen, path))
		return 0;
	v = reallocarray(seen->v, seen->n + 1, sizeof(*v));
	h = held_get(st, path);
	if (v)
		seen->v = v;
	if (!v || !h)
		return -ENOMEM;
	k = &v[seen->n++];
	*k = (struct sysctl_seen_key){ 0 };
	h->used = true;
	buf[0] = '\0';
	k->err = held_read(st, h, buf, sizeof(buf));
	k->read_only = h->read_only;
	k->no_link = k->err == -ENOENT && lacks_link(st, path);
	if (h->refused && clock_boottime() - h->refused_at > REFUSAL_USEC)
		held_forget_refusal(h);
	k->refused = h->refused;
	rec = ours_find(&st->ours, path);
	r = copy_text(path, &k->path);
	r = r < 0 ? r : copy_text(k->err ? "" : buf, &k->value);
	r = r < 0 ? r : copy_text(h->refused_value, &k->refused_value);
	r = r < 0 ? r : copy_text(h->refused_note, &k->refused_note);
	r = r < 0 ? r : copy_text(rec ? rec->before : NULL, &k->before);
	return r < 0 ? r : copy_text(rec ? rec->set : NULL, &k->set);
}

static void sweep_unused(struct sysctl_state *st)
{
	size_t i = 0;

	while (i < st->n) {
		if (st->v[i].used) {
			st->v[i++].used = false;
			continue;
		}
		held_done(&st->v[i]);
		st->v[i] = st->v[--st->n];
	}
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
	char path[SYSCTL_KEY_MAX];
	size_t i;
	int r = seen ? 0 : -ENOMEM;

	read_ours(st, f);
	for (i = 0; i < want->n_sysctls && r == 0; i++)
		if (sysctl_key_path(want->sysctls[i].key, path,
				    sizeof(path)) == 0 && !sysctl_is_glob(path))
			r = see_key(st, path, seen);
	for (i = 0; i < st->ours.n && r == 0; i++)
		r = see_key(st, st->ours.v[i].key, seen);
	if (r == 0) {
		sweep_unused(st);
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

static int write_value(struct sysctl_state *st, const char *path,
		       const char *value)
{
	_cleanup_close_ int fd = -1;
	char full[PATH_MAX], text[SYSCTL_VALUE_MAX + 2];
	ssize_t w;
	int n, r;

	r = held_path(st, path, full);
	if (r < 0)
		return r;
	n = snprintf(text, sizeof(text), "%s\n", value);
	if (n >= (int)sizeof(text))
		return -E2BIG;
	fd = open(full, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	/* One write: the kernel takes the value as a whole or not at all. */
	w = write(fd, text, (size_t)n);
	return w < 0 ? -errno : 0;
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
		return "needs a capability that the agent does not have; run "
		       "\"systemctl restart systemd-sysctl\" or reboot, the "
		       "value is in " SYSCTL_OWN_FILE;
	case EROFS:
		return "/proc/sys is read-only here; it has to be set on the "
		       "host";
	default:
		return "cannot be set";
	}
}

static void note_refusal(struct sysctl_state *st, const char *path,
			 const char *value, int err, const char *note)
{
	struct held *h = held_get(st, path);

	if (!h)
		return;
	held_forget_refusal(h);
	h->refused_value = strdup(value);
	h->refused_note = strdup(note);
	if (!h->refused_value || !h->refused_note) {
		held_forget_refusal(h);
		return;
	}
	h->refused = err;
	h->refused_at = clock_boottime();
}

/* Writes, and reads back: some keys take a value and keep another. */
static int apply_live(struct sysctl_state *st, const char *path,
		      const struct change *c, struct item_list *items,
		      struct fault *f)
{
	char note[CHANGE_TEXT_MAX], now[4096];
	struct held *h;
	int r;

	r = write_value(st, path, c->want);
	if (r < 0) {
		(void)snprintf(note, sizeof(note), "%s (%s)", remedy(r),
			       strerror(-r));
	} else {
		h = held_get(st, path);
		if (!h || held_read(st, h, now, sizeof(now)) < 0 ||
		    sysctl_value_equal(now, c->want))
			return 0;
		r = -EDOM;
		(void)snprintf(note, sizeof(note),
			       "the kernel took %.200s and keeps %.200s; "
			       "write that in the spec", c->want, now);
	}
	note_refusal(st, path, c->want, r, note);
	item_list_mark(items, c->key, ITEM_BLOCKED, "%s", note);
	return fault_set(f, r, c->key, "%s", note);
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

static bool wants_path(const struct desired *want, const char *path)
{
	char other[SYSCTL_KEY_MAX];
	size_t i;

	for (i = 0; i < want->n_sysctls; i++)
		if (sysctl_key_path(want->sysctls[i].key, other,
				    sizeof(other)) == 0 &&
		    strcmp(other, path) == 0)
			return true;
	return false;
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
		struct held *h;

		if (is_persisted(c->key) ||
		    sysctl_key_path(c->key, path, sizeof(path)) < 0 ||
		    wants_path(want, path))
			continue;
		h = held_find(st, path);
		if (c->op == CHANGE_SET && h && h->refused)
			continue;
		ours_remove(&st->ours, path);
		dirty = true;
	}
	if (!dirty)
		return 0;
	return ours_write(st->host->state_dir, "sysctl", &st->ours, f);
}

static int write_file(struct sysctl_state *st, const struct desired *want,
		      struct fault *f)
{
	CLEANUP(strlist_done) struct strlist without = STRLIST_INIT;
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX];
	size_t size = 0, i;
	int r = 0;

	for (i = 0; i < st->n && r == 0; i++)
		if (sysctl_refuses_value(st->v[i].refused))
			r = strlist_add(&without, st->v[i].path);
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

static int sysctl_apply(void *state, const struct desired *want,
			const void *seen, const struct change_list *changes,
			struct item_list *items, struct fault *f)
{
	struct sysctl_state *st = state;
	char path[SYSCTL_KEY_MAX];
	int r, first;
	size_t i;

	(void)seen;
	first = record_before(st, changes, f);
	for (i = 0; i < changes->n; i++) {
		const struct change *c = &changes->v[i];

		if (c->op == CHANGE_REMOVE || is_persisted(c->key) ||
		    sysctl_key_path(c->key, path, sizeof(path)) < 0)
			continue;
		r = apply_live(st, path, c, items, f);
		first = first ? first : r;
	}
	r = apply_file(st, want, changes, items, f);
	first = first ? first : r;
	r = forget_unwanted(st, want, changes, f);
	return first ? first : r;
}

static void on_wake(void *userdata)
{
	struct sysctl_state *st = userdata;

	st->look_again(st->userdata);
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
