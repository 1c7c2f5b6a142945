#include "agent/res/swap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/bus/systemd1.h"
#include "agent/ours.h"
#include "agent/res/swap_plan.h"
#include "agent/rootpath.h"
#include "agent/wake.h"
#include "common/cleanup.h"

/* An attempt that failed is repeated after this long. */
#define FAILURE_USEC (300 * USEC_PER_SEC)
#define RECORD "swap"

/* One that is being turned off; its address is the userdata of the job. */
struct stop {
	struct swap_state *owner;
	char path[SWAP_PATH_MAX];
	struct systemd1_job *job;
};

struct swap_state {
	const struct resource_host *host;
	struct ours ours;
	bool ours_known;
	struct stop stops[SWAP_ACTIVE_MAX];
	struct systemd1_job *reload;
	bool reload_due;	/* systemd has not heard of our masks */
	char failed[FAULT_TEXT_MAX];
	usec failed_at;
	struct wake *wake;
	sd_event_source *swaps;	/* /proc/swaps, which tells of each change */
	int fd;
	resource_look_again look_again;
	void *userdata;
};

static int swap_open(const struct resource_host *host, void **ret_state,
		     struct fault *f)
{
	struct swap_state *st = calloc(1, sizeof(*st));
	size_t i;

	if (!st)
		return fault_set(f, -ENOMEM, "swap", "out of memory");
	st->host = host;
	st->fd = -1;
	for (i = 0; i < SWAP_ACTIVE_MAX; i++)
		st->stops[i].owner = st;
	*ret_state = st;
	return 0;
}

static void *swap_free(void *state)
{
	struct swap_state *st = state;
	size_t i;

	if (!st)
		return NULL;
	for (i = 0; i < SWAP_ACTIVE_MAX; i++)
		st->stops[i].job = systemd1_cancel(st->stops[i].job);
	st->reload = systemd1_cancel(st->reload);
	st->swaps = sd_event_source_disable_unref(st->swaps);
	if (st->fd >= 0)
		(void)close(st->fd);
	st->wake = wake_free(st->wake);
	ours_done(&st->ours);
	free(st);
	return NULL;
}

/* A damaged record is told once; masks are then nobody's to take back. */
static void read_ours(struct swap_state *st, struct fault *f)
{
	if (st->ours_known)
		return;
	(void)ours_read(st->host->state_dir, RECORD, &st->ours, f);
	st->ours_known = true;
}

static void see_ours(struct swap_state *st, struct swap_seen *seen)
{
	struct swap_unit *u;
	size_t i;

	for (i = 0; i < st->ours.n; i++) {
		u = swap_seen_add(seen, st->host->root, st->ours.v[i].key, "");
		if (u)
			u->ours = true;
	}
}

static int swap_observe(void *state, const struct desired *want,
			void **ret_seen, struct fault *f)
{
	struct swap_state *st = state;
	struct swap_seen *seen = calloc(1, sizeof(*seen));
	size_t i;

	if (!seen)
		return fault_set(f, -ENOMEM, "swap", "out of memory");
	read_ours(st, f);
	if (want->swap_off)
		swap_see(st->host->root, seen);
	see_ours(st, seen);
	for (i = 0; i < SWAP_ACTIVE_MAX; i++)
		seen->turning_off |= st->stops[i].job != NULL;
	seen->reloading = st->reload != NULL;
	if (*st->failed && clock_boottime() - st->failed_at < FAILURE_USEC)
		memcpy(seen->failed, st->failed, sizeof(seen->failed));
	*ret_seen = seen;
	return 0;
}

static void swap_seen_free(void *seen)
{
	free(seen);
}

/* ---- now ---- */

static void look_again(struct swap_state *st)
{
	if (st->look_again)
		st->look_again(st->userdata);
}

static void on_stopped(void *userdata, int r, const char *text)
{
	struct stop *s = userdata;
	struct swap_state *st = s->owner;

	s->job = NULL;
	if (r < 0 && r != -ENOTCONN) {
		(void)snprintf(st->failed, sizeof(st->failed),
			       "%.200s cannot be turned off: %.100s (%s); see "
			       "journalctl -b -u '*.swap', or run swapoff by "
			       "hand", s->path, *text ? text : "no reason",
			       strerror(-r));
		st->failed_at = clock_boottime();
	}
	look_again(st);
}

static int turn_off(struct swap_state *st, const struct swap_seen *seen,
		    const struct change *c, struct item_list *items,
		    struct fault *f)
{
	struct stop *s = NULL;
	size_t i;
	int r;

	for (i = 0; i < seen->n; i++)
		if (strcmp(seen->v[i].path, c->key) == 0)
			break;
	if (i == seen->n)
		return fault_set(f, -EINVAL, c->key, "was not planned");
	s = &st->stops[i];
	if (s->job)
		return 1;
	if (!bus_is_up(st->host->bus) || *st->host->root) {
		item_list_mark(items, c->key, ITEM_PENDING,
			       "D-Bus is not there yet");
		return 0;
	}
	st->failed[0] = '\0';
	(void)snprintf(s->path, sizeof(s->path), "%s", c->key);
	r = systemd1_call(st->host->bus, SYSTEMD1_STOP, seen->v[i].unit,
			  SWAP_OFF_USEC, on_stopped, s, &s->job, f);
	return r < 0 ? r : 1;
}

/* ---- at the next boot ---- */

static void on_reloaded(void *userdata, int r, const char *text)
{
	struct swap_state *st = userdata;

	(void)text;
	st->reload = NULL;
	st->reload_due = r < 0;
	look_again(st);
}

/*
 * A start of anything would pull in swap.target again, and with it what was
 * turned off, as long as systemd knows the unit from before its mask.
 */
static int reload(struct swap_state *st)
{
	if (!st->reload_due || st->reload || !bus_is_up(st->host->bus) ||
	    *st->host->root)
		return st->reload != NULL;
	return systemd1_call(st->host->bus, SYSTEMD1_DAEMON_RELOAD, NULL,
			     SWAP_RELOAD_USEC, on_reloaded, st, &st->reload,
			     NULL) == 0;
}

static bool unit_of(const char *key, char *unit)
{
	size_t n = strlen(key), m = strlen(SWAP_PERSISTED);

	if (n <= m || n - m >= UNITNAME_MAX ||
	    strcmp(key + n - m, SWAP_PERSISTED) != 0)
		return false;
	(void)memcpy(unit, key, n - m);
	unit[n - m] = '\0';
	return true;
}

static int write_ours(struct swap_state *st, struct fault *f)
{
	return ours_write(st->host->state_dir, RECORD, &st->ours, f);
}

/* On disk before the link is: nothing of ours is ever without a record. */
static int mask(struct swap_state *st, const char *unit, struct fault *f)
{
	int r;

	r = ours_put(&st->ours, unit, "not masked", "masked");
	if (r < 0)
		return fault_errno(f, r, unit, "cannot be recorded");
	r = write_ours(st, f);
	if (r == 0)
		r = swap_mask_make(st->host->root, unit, f);
	return r;
}

static int unmask(struct swap_state *st, const char *unit, struct fault *f)
{
	int r;

	r = swap_mask_remove(st->host->root, unit, f);
	if (r < 0)
		return r;
	ours_remove(&st->ours, unit);
	return write_ours(st, f);
}

static int apply_one(const struct apply *a, const struct change *c,
		     struct fault *f)
{
	struct swap_state *st = a->state;
	char unit[UNITNAME_MAX];
	int r;

	if (strcmp(c->key, SWAP_RELOAD) == 0)
		return st->reload != NULL;
	if (!unit_of(c->key, unit))
		return turn_off(st, a->seen, c, a->items, f);
	r = c->op == CHANGE_REMOVE ? unmask(st, unit, f) : mask(st, unit, f);
	if (r == 0)
		st->reload_due = true;
	return r;
}

static int swap_apply(void *state, const struct desired *want,
		      const void *seen, const struct change_list *changes,
		      struct item_list *items, struct fault *f)
{
	const struct apply a = { state, want, seen, items };
	int r = apply_each(&a, changes, apply_one, f);
	int started = reload(state);

	return r < 0 ? r : r | started;
}

/* ---- events ---- */

static void on_wake(void *userdata)
{
	look_again(userdata);
}

static int on_swaps(sd_event_source *s, int fd, uint32_t events,
		    void *userdata)
{
	(void)s, (void)fd, (void)events;
	look_again(userdata);
	return 0;
}

static int watch_swaps(struct swap_state *st, struct fault *f)
{
	char path[PATH_MAX];
	int r;

	r = rootpath(st->host->root, path, "/proc/swaps");
	if (r == 0)
		st->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (st->fd < 0)		/* a kernel without swap has no events */
		return 0;
	r = sd_event_add_io(st->host->event, &st->swaps, st->fd, EPOLLPRI,
			    on_swaps, st);
	if (r == -EPERM)	/* a plain file, in tests */
		r = 0;
	return r < 0 ? fault_errno(f, r, path, "cannot be watched") : 0;
}

static int swap_watch(void *state, const struct desired *want,
		      resource_look_again again, void *userdata,
		      struct fault *f)
{
	static const char *const dirs[] = { "/etc", "/etc/systemd/system" };
	struct swap_state *st = state;
	char path[PATH_MAX];
	int r, first = 0;
	size_t i;

	st->look_again = again;
	st->userdata = userdata;
	if (st->wake || !st->host->event || !want->swap_off)
		return 0;
	r = wake_new(st->host->event, on_wake, st, &st->wake, f);
	if (r < 0)
		return r;
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		r = rootpath(st->host->root, path, "%s", dirs[i]);
		if (r == 0)
			r = wake_path(st->wake, path, WAKE_DIR_MASK, f);
		first = first ? first : r;
	}
	r = watch_swaps(st, f);
	return first ? first : r;
}

const struct resource resource_swap = {
	.id = RESOURCE_SWAP,
	.open = swap_open,
	.observe = swap_observe,
	.plan = swap_plan,
	.apply = swap_apply,
	.watch = swap_watch,
	.seen_free = swap_seen_free,
	.free = swap_free,
};
