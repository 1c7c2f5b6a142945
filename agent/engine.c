#include "agent/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "agent/unit.h"
#include "common/cleanup.h"

struct engine {
	const struct resource_host *host;
	struct engine_params params;
	struct desired *desired;
	uint32_t mask;
	bool running;		/* inside a pass: look-again only marks */
	engine_changed changed;
	void *userdata;
	sd_event_source *timer;
	sd_event_source *soon;
	struct unit units[RESOURCE_MAX];
};

struct engine_params engine_params_default(void)
{
	return (struct engine_params){
		.reobserve = 60 * USEC_PER_SEC,
		.flight = 60 * USEC_PER_SEC,
		.retry_base = 100 * USEC_PER_MSEC,
		.retry_cap = 30 * USEC_PER_SEC,
		.repair = { .burst = 20,
			    .spacing = 100 * USEC_PER_MSEC,
			    .cap = 30 * USEC_PER_SEC,
			    .quiet = 60 * USEC_PER_SEC },
	};
}

/* Many events of one cause become one pass: the source is deferred. */
static void soon(struct engine *e)
{
	if (e->soon && !e->running)
		(void)sd_event_source_set_enabled(e->soon, SD_EVENT_ONESHOT);
}

static void dirtied(void *userdata)
{
	soon(userdata);
}

int engine_new(const struct resource_host *host,
	       const struct resource *const *registry,
	       const struct engine_params *params, struct engine **ret_engine)
{
	struct engine *e = calloc(1, sizeof(*e));
	size_t i;

	if (!e)
		return -ENOMEM;
	e->host = host;
	e->params = *params;
	e->mask = UINT32_MAX;
	for (i = 0; i < RESOURCE_MAX; i++)
		unit_init(&e->units[i], registry[i], dirtied, e);
	*ret_engine = e;
	return 0;
}

struct engine *engine_free(struct engine *e)
{
	size_t i;

	if (!e)
		return NULL;
	(void)sd_event_source_disable_unref(e->timer);
	(void)sd_event_source_disable_unref(e->soon);
	for (i = RESOURCE_MAX; i > 0; i--)
		unit_done(&e->units[i - 1]);
	(void)desired_free(e->desired);
	free(e);
	return NULL;
}

void engine_set_desired(struct engine *e, struct desired *desired)
{
	struct desired *old = e->desired;
	size_t i;

	e->desired = desired;
	for (i = 0; i < RESOURCE_MAX; i++)
		if (e->units[i].res)
			unit_renew(&e->units[i]);
	(void)desired_free(old);
	soon(e);
}

const struct desired *engine_desired(const struct engine *e)
{
	return e->desired;
}

struct desired *engine_take_desired(struct engine *e)
{
	return take_ptr(e->desired);
}

void engine_only(struct engine *e, uint32_t mask)
{
	e->mask = mask;
}

void engine_look_again(struct engine *e)
{
	size_t i;

	for (i = 0; i < RESOURCE_MAX; i++)
		e->units[i].dirty = e->units[i].res != NULL;
	soon(e);
}

static bool takes_part(const struct engine *e, size_t i)
{
	return e->units[i].res && (e->mask & (UINT32_C(1) << i));
}

static bool run_due(struct engine *e, usec now)
{
	bool news = false;
	size_t i, k;

	for (i = 0; i < RESOURCE_MAX; i++) {
		struct unit *u = &e->units[i];

		if (!takes_part(e, i) || (!u->dirty && u->due > now))
			continue;
		u->news = false;
		/* What one resource changed is what the next builds on. */
		if (unit_run(u, e->host, e->desired, &e->params, now))
			for (k = i + 1; k < RESOURCE_MAX; k++)
				e->units[k].dirty = e->units[k].res != NULL;
		news = news || u->news;
	}
	return news;
}

usec engine_pass(struct engine *e, usec now)
{
	usec next = ENGINE_NEVER;
	bool news = false;
	size_t i;

	if (!e->desired)
		return ENGINE_NEVER;
	e->running = true;
	news = run_due(e, now);
	e->running = false;
	for (i = 0; i < RESOURCE_MAX; i++) {
		const struct unit *u = &e->units[i];

		if (!takes_part(e, i))
			continue;
		if (u->dirty)
			next = now;
		else if (u->due < next)
			next = u->due;
	}
	if (news && e->changed)
		e->changed(e->userdata);
	return next;
}

static bool unit_settled(const struct unit *u)
{
	return u->looked && !u->dirty && !u->in_flight;
}

bool engine_settled(const struct engine *e)
{
	size_t i;

	for (i = 0; i < RESOURCE_MAX; i++) {
		const struct unit *u = &e->units[i];

		if (takes_part(e, i) && (u->dirty || u->in_flight))
			return false;
	}
	return true;
}

static void report_unit(const struct engine *e, const struct unit *u, usec now,
			struct engine_resource *ret)
{
	bool idle = u->mode != MODE_ENFORCE || !u->plan.n;

	*ret = (struct engine_resource){
		.present = true,
		.mode = e->desired ? e->desired->modes[u->res->id] : u->mode,
		.looked = u->looked,
		.settled = unit_settled(u) && idle,
		.contended = unit_contended(u, &e->params),
		.proof_age = u->proof && now > u->proof ? now - u->proof : 0,
		.repairs = u->repairs,
		.items = &u->items,
		.plan = &u->plan,
		.done = &u->done,
		.writer = unit_writer(u),
		.fault = &u->fault,
	};
}

void engine_report(const struct engine *e, usec now,
		   struct engine_report *ret_report)
{
	size_t i;

	*ret_report = (struct engine_report){ .desired = e->desired != NULL,
					      .settled = true };
	if (e->desired)
		ret_report->generation = e->desired->generation;
	for (i = 0; i < RESOURCE_MAX; i++) {
		if (!takes_part(e, i))
			continue;
		report_unit(e, &e->units[i], now, &ret_report->v[i]);
		if (!ret_report->v[i].settled)
			ret_report->settled = false;
	}
}

void engine_on_change(struct engine *e, engine_changed changed, void *userdata)
{
	e->changed = changed;
	e->userdata = userdata;
}

void engine_on_look(struct engine *e, engine_looked looked, void *userdata)
{
	size_t i;

	for (i = 0; i < RESOURCE_MAX; i++) {
		e->units[i].told = looked;
		e->units[i].told_userdata = userdata;
	}
}

static void pass_from_loop(struct engine *e)
{
	usec now = clock_boottime(), next = engine_pass(e, now);

	if (next == now) {
		soon(e);
		return;
	}
	(void)sd_event_source_set_time(e->timer, next);
	(void)sd_event_source_set_enabled(
		e->timer,
		next == ENGINE_NEVER ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *s, uint64_t usec_due, void *userdata)
{
	(void)s;
	(void)usec_due;
	pass_from_loop(userdata);
	return 0;
}

static int on_soon(sd_event_source *s, void *userdata)
{
	(void)s;
	pass_from_loop(userdata);
	return 0;
}

int engine_attach(struct engine *e)
{
	int r;

	r = sd_event_add_time(e->host->event, &e->timer, CLOCK_BOOTTIME,
			      UINT64_MAX, 10 * USEC_PER_MSEC, on_timer, e);
	if (r < 0)
		return r;
	r = sd_event_add_defer(e->host->event, &e->soon, on_soon, e);
	if (r < 0)
		return r;
	/* After whatever else is ready: bursts end in one look. */
	return sd_event_source_set_priority(e->soon,
					    SD_EVENT_PRIORITY_NORMAL + 10);
}
