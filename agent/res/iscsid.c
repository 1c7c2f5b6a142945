#include "agent/res/iscsid.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "agent/kmod.h"
#include "agent/res/iscsid_plan.h"
#include "agent/wake.h"

#define FAILURE_USEC (300 * USEC_PER_SEC)
/* Only until the watches know: then nothing is asked (and never waits). */
#define UNIT_READ_USEC (1 * USEC_PER_SEC)

static const char *const unit_names[] = {
	[ISCSID_SERVICE] = "iscsid.service",
	[ISCSID_SOCKET] = "iscsid.socket",
	[MULTIPATHD_SERVICE] = "multipathd.service",
	[MULTIPATHD_SOCKET] = "multipathd.socket",
};
_Static_assert(sizeof(unit_names) / sizeof(unit_names[0]) == ISCSID_UNIT_MAX,
	       "every unit has a name");

enum step {		/* calls to systemd, sent at once, in this order */
	STEP_ENABLE,
	STEP_RESET_SERVICE,
	STEP_RESET_SOCKET,
	STEP_START,
	STEP_RESTART,
	STEP_MAX,
};

struct iscsid_state;

struct call {
	struct iscsid_state *owner;
	enum step step;
	struct systemd1_job *job;
};

struct iscsid_state {
	const struct resource_host *host;
	struct systemd1_watch *watches[ISCSID_UNIT_MAX];
	struct call calls[STEP_MAX];
	char failed[FAULT_TEXT_MAX];
	usec failed_at;
	struct wake *wake;
	resource_look_again look_again;
	void *userdata;
};

static int iscsid_open(const struct resource_host *host, void **ret_state,
		       struct fault *f)
{
	struct iscsid_state *st = calloc(1, sizeof(*st));
	unsigned int i;

	if (!st)
		return fault_set(f, -ENOMEM, "iscsid", "out of memory");
	st->host = host;
	for (i = 0; i < STEP_MAX; i++)
		st->calls[i] = (struct call){ .owner = st, .step = i };
	*ret_state = st;
	return 0;
}

static void *iscsid_free(void *state)
{
	struct iscsid_state *st = state;
	unsigned int i;

	if (!st)
		return NULL;
	for (i = 0; i < STEP_MAX; i++)
		st->calls[i].job = systemd1_cancel(st->calls[i].job);
	for (i = 0; i < ISCSID_UNIT_MAX; i++)
		st->watches[i] = systemd1_watch_free(st->watches[i]);
	st->wake = wake_free(st->wake);
	free(st);
	return NULL;
}

static void see_units(struct iscsid_state *st, struct iscsid_seen *seen)
{
	unsigned int i;
	int r;

	for (i = 0; i < ISCSID_UNIT_MAX; i++) {
		r = systemd1_watch_get(st->watches[i], &seen->unit[i]);
		if (r < 0 && bus_is_up(st->host->bus))
			r = systemd1_unit_read(st->host->bus, unit_names[i],
					       UNIT_READ_USEC, &seen->unit[i],
					       NULL);
		seen->unit_known[i] = r == 0;
		if (r < 0)	/* one slow answer is enough to wait for */
			return;
	}
}

static int iscsid_observe(void *state, const struct desired *want,
			  void **ret_seen, struct fault *f)
{
	struct iscsid_state *st = state;
	struct iscsid_seen *seen = calloc(1, sizeof(*seen));
	const char *root = st->host->root;

	if (!seen)
		return fault_set(f, -ENOMEM, "iscsid", "out of memory");
	*ret_seen = seen;
	if (!want->iscsid)
		return 0;
	seen->installed = iscsid_is_installed(root);
	seen->has_tcp = kmod_is_there(root, "iscsi_tcp", seen->tcp_obstacle,
				      sizeof(seen->tcp_obstacle));
	seen->name_state = iscsid_name_read(root, seen->name, &seen->name_err);
	seen->sessions = iscsid_sessions(root);
	seen->multipath_tamed = iscsid_multipath_is_tamed(root);
	seen->working = st->calls[STEP_START].job ||
			st->calls[STEP_RESTART].job ||
			st->calls[STEP_ENABLE].job;
	if (clock_boottime() - st->failed_at < FAILURE_USEC)
		memcpy(seen->failed, st->failed, sizeof(seen->failed));
	see_units(st, seen);
	return 0;
}

static void iscsid_seen_free(void *seen)
{
	free(seen);
}

/* A unit that is not loaded has no failure to reset: no failure of ours. */
static void on_step(void *userdata, int r, const char *text)
{
	struct call *c = userdata;
	struct iscsid_state *st = c->owner;

	c->job = NULL;
	if (c->step == STEP_RESET_SERVICE || c->step == STEP_RESET_SOCKET)
		return;
	if (r < 0 && r != -ENOTCONN) {
		(void)snprintf(st->failed, sizeof(st->failed),
			       "iscsid cannot be %s: %.200s (%s); see "
			       "journalctl -u iscsid",
			       c->step == STEP_ENABLE ? "enabled" : "started",
			       *text ? text : "no reason given", strerror(-r));
		st->failed_at = clock_boottime();
	}
	if (st->look_again)
		st->look_again(st->userdata);
}

static int step(struct iscsid_state *st, enum step step, struct fault *f)
{
	static const struct {
		enum systemd1_verb verb;
		enum iscsid_unit unit;
	} t[] = {
		[STEP_ENABLE] = { SYSTEMD1_ENABLE, ISCSID_SOCKET },
		[STEP_RESET_SERVICE] = { SYSTEMD1_RESET_FAILED,
					 ISCSID_SERVICE },
		[STEP_RESET_SOCKET] = { SYSTEMD1_RESET_FAILED, ISCSID_SOCKET },
		[STEP_START] = { SYSTEMD1_START, ISCSID_SOCKET },
		[STEP_RESTART] = { SYSTEMD1_TRY_RESTART, ISCSID_SERVICE },
	};
	struct call *c = &st->calls[step];

	if (c->job)
		return 0;
	return systemd1_call(st->host->bus, t[step].verb,
			     unit_names[t[step].unit], ISCSID_START_USEC,
			     on_step, c, &c->job, f);
}

/* systemd takes the calls of one connection in their order. */
static int apply_start(struct iscsid_state *st, struct fault *f)
{
	int r;

	st->failed[0] = '\0';
	r = step(st, STEP_RESET_SERVICE, f);
	if (r == 0)
		r = step(st, STEP_RESET_SOCKET, f);
	if (r == 0)
		r = step(st, STEP_START, f);
	return r < 0 ? r : 1;
}

/*
 * iscsid reads its name at its start only (FACTS S12). The end is waited
 * for: systemd drops the wish of a caller that has left.
 */
static int apply_name(struct iscsid_state *st, struct fault *f)
{
	int r;

	r = iscsid_name_write(st->host->root, f);
	if (r < 0 || !bus_is_up(st->host->bus) || *st->host->root)
		return r;
	return step(st, STEP_RESTART, f) == 0;
}

static int apply_one(const struct apply *a, const struct change *c,
		     struct fault *f)
{
	struct iscsid_state *st = a->state;
	int r;

	if (strcmp(c->key, "initiatorname") == 0)
		return apply_name(st, f);
	if (!bus_is_up(st->host->bus)) {
		item_list_mark(a->items, c->key, ITEM_PENDING,
			       "D-Bus is not there yet");
		return 0;
	}
	if (strcmp(c->key, "iscsid") == 0)
		return apply_start(st, f);
	r = step(st, STEP_ENABLE, f);
	return r < 0 ? r : 1;
}

static int iscsid_apply(void *state, const struct desired *want,
			const void *seen, const struct change_list *changes,
			struct item_list *items, struct fault *f)
{
	const struct apply a = { state, want, seen, items };

	return apply_each(&a, changes, apply_one, f);
}

static void on_wake(void *userdata)
{
	struct iscsid_state *st = userdata;

	st->look_again(st->userdata);
}

static int watch_units(struct iscsid_state *st, const struct desired *want,
		       struct fault *f)
{
	unsigned int i;
	int r;

	for (i = 0; i < ISCSID_UNIT_MAX; i++) {
		if (!want->iscsid || !st->host->bus) {
			st->watches[i] = systemd1_watch_free(st->watches[i]);
			continue;
		}
		if (st->watches[i])
			continue;
		r = systemd1_watch_new(st->host->bus, unit_names[i], on_wake,
				       st, &st->watches[i], f);
		if (r < 0)
			return r;
	}
	return 0;
}

static int iscsid_watch(void *state, const struct desired *want,
			resource_look_again look_again, void *userdata,
			struct fault *f)
{
	static const char *const etc[] = { "/etc", NULL };
	static const char *const dirs[] = { "/etc/iscsi", NULL };
	struct iscsid_state *st = state;
	const char *root = st->host->root;
	int r;

	st->look_again = look_again;
	st->userdata = userdata;
	if (!st->host->event)
		return 0;
	r = watch_units(st, want, f);
	if (r < 0 || !want->iscsid)
		return r;
	if (!st->wake) {
		r = wake_new(st->host->event, on_wake, st, &st->wake, f);
		if (r == 0)
			r = wake_netlink(st->wake, NETLINK_KOBJECT_UEVENT, 1,
					 "/module/iscsi_tcp", f);
		if (r < 0)
			return r;
	}
	/* /etc tells when the package brings its directory. */
	r = wake_paths(st->wake, root, etc, IN_CREATE, f);
	return r < 0 ? r : wake_paths(st->wake, root, dirs, WAKE_DIR_MASK, f);
}

const struct resource resource_iscsid = {
	.id = RESOURCE_ISCSID,
	.open = iscsid_open,
	.observe = iscsid_observe,
	.plan = iscsid_plan,
	.apply = iscsid_apply,
	.watch = iscsid_watch,
	.seen_free = iscsid_seen_free,
	.free = iscsid_free,
};
