#include "agent/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"

#define UNIT_UNDONE_MAX 5	/* applies in vain before a writer is blamed */

static uint64_t digest(uint64_t h, const char *text)
{
	/* FNV-1a; only ever compared with itself, to log a fact once. */
	if (!h)
		h = UINT64_C(14695981039346656037);
	do
		h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
	while (*text++);
	return h;
}

void unit_init(struct unit *u, const struct resource *res,
	       void (*dirtied)(void *userdata), void *userdata)
{
	*u = (struct unit){ .res = res,
			    .dirtied = dirtied,
			    .userdata = userdata,
			    .due = ENGINE_NEVER };
}

static void drop_seen(struct unit *u)
{
	if (u->seen)
		u->res->seen_free(u->seen);
	u->seen = NULL;
}

void unit_done(struct unit *u)
{
	if (!u->res)
		return;
	drop_seen(u);
	if (u->state)
		u->state = u->res->free(u->state);
	item_list_done(&u->items);
	item_list_done(&u->marks);
	change_list_done(&u->plan);
	change_list_done(&u->done);
}

void unit_renew(struct unit *u)
{
	u->dirty = true;
	u->fresh = true;
	u->watch_due = true;
	u->looked = false;
	u->attempt = 0;
	u->applied = 0;
	item_list_done(&u->marks);
}

const char *unit_writer(const struct unit *u)
{
	const char *who = NULL;

	if (u->res && u->state && u->res->writer)
		who = u->res->writer(u->state);
	return who ? who : "";
}

bool unit_contended(const struct unit *u, const struct engine_params *p)
{
	return rate_contended(&u->rate, &p->repair) ||
	       (u->attempt >= UNIT_UNDONE_MAX && *unit_writer(u));
}

static void look_again(void *userdata)
{
	struct unit *u = userdata;

	u->dirty = true;
	u->prompted = true;
	u->dirtied(u->userdata);
}

static int prepare(struct unit *u, const struct resource_host *host,
		   const struct desired *want, bool watch)
{
	int r;

	if (!u->state) {
		r = u->res->open(host, &u->state, &u->fault);
		if (r < 0)
			return r;
	}
	if (!watch || !u->watch_due || !u->res->watch)
		return 0;
	r = u->res->watch(u->state, want, look_again, u, &u->fault);
	if (r < 0)
		return r;
	u->watch_due = false;
	return 0;
}

/*
 * The plan knows what is wrong, the last apply knows why it stayed wrong:
 * the reason of a key is kept until the key is right, or until the plan
 * gives it up for a reason of its own.
 */
static void overlay_marks(struct unit *u)
{
	size_t i;

	for (i = 0; i < u->marks.n; i++) {
		const struct item *mark = &u->marks.v[i];
		struct item *it = item_list_find(&u->items, mark->key);
		char *reason;

		if (!it || it->state == ITEM_IN_SYNC ||
		    !change_list_find(&u->plan, mark->key))
			continue;
		reason = strdup(mark->reason);
		if (!reason)
			continue;
		free(it->reason);
		it->reason = reason;
		it->state = mark->state;
	}
}

static void tell_look(const struct unit *u, usec now)
{
	struct engine_look l = {
		.id = u->res->id,
		.items = u->mode == MODE_OFF ? NULL : &u->items,
		.plan = &u->plan,
		.writer = unit_writer(u),
		.began = now,
		.prompted = u->prompted,
	};

	if (u->told)
		u->told(u->told_userdata, &l);
}

/* What follows from `seen`, which is taken. */
static int judge(struct unit *u, const struct desired *want, void *seen)
{
	struct item_list items = ITEM_LIST_INIT;
	struct change_list plan = CHANGE_LIST_INIT;
	int r = u->res->plan(want, seen, &items, &plan, &u->fault);

	if (r < 0) {
		item_list_done(&items);
		change_list_done(&plan);
		u->res->seen_free(seen);
		return r;
	}
	drop_seen(u);
	item_list_done(&u->items);
	change_list_done(&u->plan);
	u->seen = seen;
	u->items = items;
	u->plan = plan;
	overlay_marks(u);
	return 0;
}

static int look(struct unit *u, const struct desired *want, usec now)
{
	void *seen = NULL;
	int r = u->res->observe(u->state, want, &seen, &u->fault);

	if (r == 0)
		r = judge(u, want, seen);
	if (r < 0)
		return r;
	u->proof = now;
	u->looked = true;
	tell_look(u, now);
	return 0;
}

static uint64_t plan_digest(const struct change_list *plan)
{
	uint64_t h = 0;
	size_t i;

	for (i = 0; i < plan->n; i++) {
		h = digest(h, plan->v[i].key);
		h = digest(h, plan->v[i].have);
		h = digest(h, plan->v[i].want);
	}
	return h;
}

static void tell_plan(struct unit *u, const struct engine_params *p,
		      const char *verb)
{
	uint64_t h = plan_digest(&u->plan);
	size_t i;

	if (h == u->said_plan)
		return;
	u->said_plan = h;
	u->news = true;
	for (i = 0; i < u->plan.n && !p->quiet; i++)
		log_notice("%s: %s %s %s: %s -> %s",
			   resource_name(u->res->id), verb,
			   change_op_name(u->plan.v[i].op), u->plan.v[i].key,
			   *u->plan.v[i].have ? u->plan.v[i].have : "nothing",
			   *u->plan.v[i].want ? u->plan.v[i].want : "nothing");
}

/* What stands in the way: the fault, and items that will not come right. */
static void tell_trouble(struct unit *u, const struct engine_params *p)
{
	const char *name = resource_name(u->res->id);
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];
	uint64_t h = 0;
	size_t i;

	if (u->fault.err)
		h = digest(h, fault_str(&u->fault, text, sizeof(text)));
	for (i = 0; i < u->items.n; i++)
		if (u->items.v[i].state >= ITEM_BLOCKED) {
			h = digest(h, u->items.v[i].key);
			h = digest(h, u->items.v[i].reason);
		}
	if (h == u->said_trouble)
		return;
	u->said_trouble = h;
	u->news = true;
	if (p->quiet)
		return;
	if (!h)
		log_info("%s: what stood in the way is gone", name);
	if (u->fault.err)
		log_warning("%s: %s", name, text);
	for (i = 0; i < u->items.n; i++)
		if (u->items.v[i].state >= ITEM_BLOCKED)
			log_warning("%s: %s is %s: %s", name,
				    u->items.v[i].key,
				    item_state_name(u->items.v[i].state),
				    u->items.v[i].reason);
}

static void tell_contended(struct unit *u, const struct engine_params *p)
{
	bool contended = unit_contended(u, p);
	const char *who = unit_writer(u);

	if (contended == u->said_contended)
		return;
	u->said_contended = contended;
	u->news = true;
	if (contended)
		log_warning("%s: contended: %s keeps undoing what is desired; "
			    "repairs are spaced out. Stop it, change the "
			    "spec, or set the mode to observe",
			    resource_name(u->res->id),
			    *who ? who : "somebody");
	else
		log_notice("%s: no longer contended",
			   resource_name(u->res->id));
}

/* Not everything comes with an event: troubled items are tried sooner. */
static usec next_look(const struct unit *u, const struct engine_params *p,
		      usec now)
{
	enum item_state worst = item_list_worst(&u->items);
	usec gap = p->reobserve;

	if (worst == ITEM_PENDING || worst == ITEM_UNOBSERVABLE)
		gap = rate_doubled(p->retry_base * 10, p->reobserve,
				   u->waits);
	return now + gap;
}

static void converged(struct unit *u, const struct engine_params *p, usec now)
{
	enum item_state worst = item_list_worst(&u->items);

	if (u->in_flight || u->fresh)
		u->news = true;
	u->in_flight = false;
	u->fresh = false;
	u->due = next_look(u, p, now);
	/* Waiting is no failure: what comes at last is acted on at once. */
	u->attempt = 0;
	if (worst == ITEM_PENDING || worst == ITEM_UNOBSERVABLE)
		u->waits++;
	else
		u->waits = 0;
	(void)rate_settle(&u->rate, &p->repair, now);
	if (!u->rate.taken) {
		u->said_plan = 0;
		return;
	}
	/* The episode is looked at once more when it is over. */
	if (u->rate.last + p->repair.quiet < u->due)
		u->due = u->rate.last + p->repair.quiet;
}

/* How long a repair has to wait; 0: it may be made now. */
/*
 * What was started is over when nothing of the plan is pending any more: the
 * plan may have moved on to what stands on it (a name made, then its daemon).
 */
static bool flying(const struct unit *u)
{
	size_t i;

	if (!u->in_flight)
		return false;
	for (i = 0; i < u->plan.n; i++) {
		const struct item *it = item_list_find(
			(struct item_list *)&u->items, u->plan.v[i].key);

		if (it && it->state == ITEM_PENDING)
			return true;
	}
	return u->tried == plan_digest(&u->plan);
}

static usec must_wait(const struct unit *u, const struct engine_params *p,
		      usec now)
{
	usec wait = 0, until = 0;

	if (flying(u))
		until = u->applied + p->flight;
	else if (u->attempt && u->tried == plan_digest(&u->plan))
		until = u->applied + rate_doubled(p->retry_base, p->retry_cap,
						  u->attempt - 1);
	if (until > now)
		wait = until - now;
	if (!u->fresh) {
		usec rate = rate_wait(&u->rate, &p->repair, now);

		wait = rate > wait ? rate : wait;
	}
	return wait;
}

static void remember_marks(struct unit *u)
{
	size_t i;

	item_list_done(&u->marks);
	for (i = 0; i < u->items.n; i++) {
		const struct item *it = &u->items.v[i];

		if ((it->state == ITEM_BLOCKED || it->state == ITEM_PENDING) &&
		    change_list_find(&u->plan, it->key))
			(void)item_list_add(&u->marks, it->key, it->state,
					    "", "", it->reason);
	}
}

static bool repair(struct unit *u, const struct desired *want,
		   const struct engine_params *p, usec now)
{
	int r;

	tell_plan(u, p, u->fresh ? "apply" : "repair");
	if (!u->fresh) {
		rate_take(&u->rate, &p->repair, now);
		u->repairs++;
	}
	u->news = true;
	u->applied = now;
	u->tried = plan_digest(&u->plan);
	/* A one-shot hears only of the end of what it starts. */
	if (p->oneshot)
		(void)prepare(u, NULL, want, true);
	r = u->res->apply(u->state, want, u->seen, &u->plan, &u->items,
			  &u->fault);
	u->stuck = u->fault;
	remember_marks(u);
	change_list_done(&u->done);
	u->done = u->plan;
	u->plan = CHANGE_LIST_INIT;
	u->in_flight = r > 0;
	if (u->in_flight) {
		u->due = now + p->flight;
		return true;
	}
	if (look(u, want, now) == 0 && !u->plan.n) {
		/* What apply could not do is now a reason of an item. */
		fault_clear(&u->fault);
		converged(u, p, now);
		return true;
	}
	u->attempt++;
	u->due = now + rate_doubled(p->retry_base, p->retry_cap,
				    u->attempt - 1);
	/* Another plan than before: the node moved, so the next try is new. */
	if (u->tried != plan_digest(&u->plan))
		u->due = now + p->retry_base / 10;
	return r == 0;
}

static bool enforce(struct unit *u, const struct desired *want,
		    const struct engine_params *p, usec now)
{
	usec wait = must_wait(u, p, now);

	if (wait) {
		u->due = now + wait;
		if (u->stuck.err)
			u->fault = u->stuck;
		return false;
	}
	if (u->in_flight && !flying(u))
		u->in_flight = false;
	if (u->in_flight) {
		(void)fault_set(&u->fault, -ETIMEDOUT,
				resource_name(u->res->id),
				"what was started has not ended in time; "
				"it is started again");
		u->in_flight = false;
		u->attempt++;
	}
	return repair(u, want, p, now);
}

static void failed(struct unit *u, const struct engine_params *p, usec now)
{
	u->due = now + rate_doubled(p->retry_base, p->reobserve, u->attempt);
	u->attempt++;
}

/*
 * What an event was about is put right first and looked at after: the way
 * is open meanwhile. Only where a repair may be made at once, and only from
 * a node that was right before.
 */
static bool glance(struct unit *u, const struct desired *want,
		   const struct engine_params *p, usec now)
{
	void *seen = NULL;

	if (!u->res->glance || u->mode != MODE_ENFORCE || p->check ||
	    u->fresh || !u->looked || u->in_flight || u->attempt ||
	    rate_wait(&u->rate, &p->repair, now))
		return false;
	if (u->res->glance(u->state, want, &seen) <= 0)
		return false;
	if (judge(u, want, seen) < 0 || !u->plan.n)
		return false;
	tell_look(u, now);
	return true;
}

static bool run(struct unit *u, const struct resource_host *host,
		const struct desired *want, const struct engine_params *p,
		usec now)
{
	fault_clear(&u->fault);
	if (prepare(u, host, want, !p->check && !p->oneshot) < 0) {
		failed(u, p, now);
		return false;
	}
	if (glance(u, want, p, now))
		return repair(u, want, p, now);
	fault_clear(&u->fault);
	if (look(u, want, now) < 0) {
		failed(u, p, now);
		return false;
	}
	if (!u->plan.n) {
		/* The end of what was under way is news for the next ones. */
		bool ended = u->in_flight;

		converged(u, p, now);
		return ended;
	}
	if (u->mode == MODE_ENFORCE && !p->check)
		return enforce(u, want, p, now);
	tell_plan(u, p, "would");
	u->in_flight = false;
	u->due = next_look(u, p, now);
	return false;
}

bool unit_run(struct unit *u, const struct resource_host *host,
	      const struct desired *want, const struct engine_params *p,
	      usec now)
{
	bool changed;

	u->dirty = false;
	u->mode = want->modes[u->res->id];
	if (u->mode == MODE_OFF) {
		/* Not looked at; what stands on the node goes on standing. */
		item_list_done(&u->items);
		change_list_done(&u->plan);
		fault_clear(&u->fault);
		u->in_flight = false;
		u->looked = true;
		u->due = ENGINE_NEVER;
		tell_look(u, now);
		return false;
	}
	changed = run(u, host, want, p, now);
	u->prompted = false;
	drop_seen(u);
	tell_trouble(u, p);
	tell_contended(u, p);
	return changed;
}
