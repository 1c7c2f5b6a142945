#include "agent/res/timezone.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "agent/bus/systemd1.h"
#include "agent/bus/timedate1.h"
#include "agent/res/timezone_plan.h"
#include "agent/wake.h"

/* An attempt that failed is repeated after this long. */
#define FAILURE_USEC (300 * USEC_PER_SEC)

struct timezone_state {
	const struct resource_host *host;
	struct timedate1_call *call;
	struct systemd1_job *cron;
	char zone[TIMEZONE_NAME_MAX];	/* what `call` or `failed` is about */
	char failed[FAULT_TEXT_MAX];
	usec failed_at;
	struct wake *wake;
	resource_look_again look_again;
	void *userdata;
};

static int timezone_open(const struct resource_host *host, void **ret_state,
			 struct fault *f)
{
	struct timezone_state *st = calloc(1, sizeof(*st));

	if (!st)
		return fault_set(f, -ENOMEM, "timezone", "out of memory");
	st->host = host;
	*ret_state = st;
	return 0;
}

static void *timezone_free(void *state)
{
	struct timezone_state *st = state;

	if (!st)
		return NULL;
	st->call = timedate1_cancel(st->call);
	st->cron = systemd1_cancel(st->cron);
	st->wake = wake_free(st->wake);
	free(st);
	return NULL;
}

static int timezone_observe(void *state, const struct desired *want,
			    void **ret_seen, struct fault *f)
{
	struct timezone_state *st = state;
	struct timezone_seen *seen = calloc(1, sizeof(*seen));

	if (!seen)
		return fault_set(f, -ENOMEM, "timezone", "out of memory");
	timezone_see(st->host->root, want->timezone, seen);
	seen->setting = st->call != NULL;
	seen->cron = st->cron != NULL;
	if (clock_boottime() - st->failed_at < FAILURE_USEC &&
	    strcmp(st->zone, want->timezone) == 0)
		memcpy(seen->failed, st->failed, sizeof(seen->failed));
	*ret_seen = seen;
	return 0;
}

static void timezone_seen_free(void *seen)
{
	free(seen);
}

static void on_cron(void *userdata, int r, const char *text)
{
	struct timezone_state *st = userdata;

	(void)r;	/* a cron that is not there needs no restart */
	(void)text;
	st->cron = NULL;
	if (st->look_again)
		st->look_again(st->userdata);
}

/*
 * A03: cron reads the zone at its start, and it is the only one told. The
 * end is waited for: systemd drops the wish of a caller that has left.
 */
static void restart_cron(struct timezone_state *st)
{
	if (!st->host->bus || !bus_is_up(st->host->bus))
		return;
	st->cron = systemd1_cancel(st->cron);
	(void)systemd1_call(st->host->bus, SYSTEMD1_TRY_RESTART,
			    "cron.service", TIMEZONE_SET_USEC, on_cron, st,
			    &st->cron, NULL);
}

static int set_ourselves(struct timezone_state *st, const char *zone,
			 struct fault *f)
{
	int r;

	r = timezone_link(st->host->root, zone, f);
	if (r < 0)
		return r;
	restart_cron(st);
	return st->cron != NULL;
}

static void note_failure(struct timezone_state *st, const struct fault *own,
			 const char *service)
{
	(void)snprintf(st->failed, sizeof(st->failed), "%.200s%s%.200s",
		       own->text, *service ? "; systemd-timedated: " : "",
		       service);
	st->failed_at = clock_boottime();
}

static bool is_set(const struct timezone_state *st)
{
	struct timezone_seen seen = { 0 };

	timezone_see(st->host->root, st->zone, &seen);
	return seen.same;
}

static void on_set(void *userdata, int r, const char *text)
{
	struct timezone_state *st = userdata;
	struct fault own = FAULT_INIT;

	st->call = NULL;
	/*
	 * Its "done" is no proof: a timedated that runs compares with the zone
	 * it read at its start, and does nothing about a link that somebody
	 * else has changed since.
	 */
	if (r == 0 && is_set(st))
		restart_cron(st);
	else if (set_ourselves(st, st->zone, &own) < 0)
		note_failure(st, &own, text);
	if (st->look_again)
		st->look_again(st->userdata);
}

static int apply_localtime(struct timezone_state *st, const char *zone,
			   struct item_list *items, struct fault *f)
{
	struct fault own = FAULT_INIT;
	int r;

	if (st->call)
		return 1;
	st->failed[0] = '\0';
	(void)snprintf(st->zone, sizeof(st->zone), "%s", zone);
	/* Another root is not what timedated works on. */
	if (bus_is_up(st->host->bus) && st->host->event && !*st->host->root) {
		r = timedate1_set_timezone(st->host->bus, zone,
					   TIMEZONE_SET_USEC, on_set, st,
					   &st->call, NULL);
		if (r == 0)
			return 1;
	}
	r = set_ourselves(st, zone, &own);
	if (r >= 0)
		return r;
	note_failure(st, &own, "");
	item_list_mark(items, TIMEZONE_LOCALTIME, ITEM_BLOCKED, "%s",
		       st->failed);
	return fault_set(f, r, own.object, "%s", own.text);
}

static int apply_file(struct timezone_state *st, const char *zone,
		      struct item_list *items, struct fault *f)
{
	struct fault own = FAULT_INIT;
	int r;

	r = timezone_file(st->host->root, zone, &own);
	if (r == 0)
		return 0;
	item_list_mark(items, TIMEZONE_FILE, ITEM_BLOCKED, "%s", own.text);
	return fault_set(f, r, own.object, "%s", own.text);
}

static int timezone_apply(void *state, const struct desired *want,
			  const void *seen, const struct change_list *changes,
			  struct item_list *items, struct fault *f)
{
	struct timezone_state *st = state;
	int r = 0, first = 0, started = 0;
	size_t i;

	(void)want;
	(void)seen;
	for (i = 0; i < changes->n; i++) {
		const struct change *c = &changes->v[i];

		if (strcmp(c->key, TIMEZONE_FILE) == 0)
			r = apply_file(st, c->want, items, f);
		else if (strcmp(c->key, TIMEZONE_CRON) == 0)
			r = st->cron != NULL;
		else
			r = apply_localtime(st, c->want, items, f);
		if (r > 0)
			started = 1;
		else
			first = first ? first : r;
	}
	return first ? first : started;
}

static void on_wake(void *userdata)
{
	struct timezone_state *st = userdata;

	st->look_again(st->userdata);
}

static int timezone_watch(void *state, const struct desired *want,
			  resource_look_again look_again, void *userdata,
			  struct fault *f)
{
	static const char *const dirs[] = { "/etc", "/usr/share/zoneinfo",
					    NULL };
	struct timezone_state *st = state;
	int r;

	(void)want;
	st->look_again = look_again;
	st->userdata = userdata;
	if (st->wake || !st->host->event)
		return 0;
	r = wake_new(st->host->event, on_wake, st, &st->wake, f);
	if (r < 0)
		return r;
	return wake_paths(st->wake, st->host->root, dirs, WAKE_DIR_MASK, f);
}

const struct resource resource_timezone = {
	.id = RESOURCE_TIMEZONE,
	.open = timezone_open,
	.observe = timezone_observe,
	.plan = timezone_plan,
	.apply = timezone_apply,
	.watch = timezone_watch,
	.seen_free = timezone_seen_free,
	.free = timezone_free,
};
