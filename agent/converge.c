#include "agent/converge.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/bus/bus.h"
#include "common/cleanup.h"

#define BUS_SOCKET "/run/dbus/system_bus_socket"
#define BUS_PATIENCE (3 * USEC_PER_SEC)

/* ---- the result ---- */

static void entry_done(struct converge_entry *e)
{
	free(e->key);
	free(e->have);
	free(e->want);
	free(e->reason);
}

void converge_result_done(struct converge_result *r)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		entry_done(&r->v[i]);
	free(r->v);
	*r = (struct converge_result){ 0 };
}

static struct converge_entry *find(struct converge_result *r,
				   enum resource_id id, const char *key)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		if (r->v[i].resource == id && strcmp(r->v[i].key, key) == 0)
			return &r->v[i];
	return NULL;
}

static int add(struct converge_result *r, const struct converge_entry *from)
{
	struct converge_entry e = *from, *v;

	v = reallocarray(r->v, r->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	r->v = v;
	e.key = strdup(from->key);
	e.have = strdup(from->have);
	e.want = strdup(from->want);
	e.reason = strdup(from->reason);
	if (!e.key || !e.have || !e.want || !e.reason) {
		entry_done(&e);
		return -ENOMEM;
	}
	r->v[r->n++] = e;
	return 0;
}

/* A change found earlier keeps what was there before anything was done. */
static int add_changes(struct converge_result *r, enum resource_id id,
		       const struct change_list *list)
{
	size_t i;
	int err;

	for (i = 0; i < list->n; i++) {
		const struct change *c = &list->v[i];

		if (find(r, id, c->key))
			continue;
		err = add(r, &(struct converge_entry){
				     .kind = CONVERGE_CHANGED,
				     .resource = id,
				     .op = c->op,
				     .key = c->key,
				     .have = c->have,
				     .want = c->want,
				     .reason = (char *)"" });
		if (err < 0)
			return err;
	}
	return 0;
}

/* What is in sync is ok, or was changed; the rest is left, and why. */
static int add_items(struct converge_result *r, enum resource_id id,
		     const struct engine_resource *er, bool check)
{
	size_t i;
	int err;

	for (i = 0; i < er->items->n; i++) {
		const struct item *it = &er->items->v[i];
		struct converge_entry *e = find(r, id, it->key);
		bool in_sync = it->state == ITEM_IN_SYNC;
		bool planned = change_list_find(er->plan, it->key) != NULL;

		if (e && (in_sync || (check && planned)))
			continue;
		if (e) {
			e->kind = CONVERGE_LEFT;
			e->state = it->state;
			free(e->reason);
			e->reason = strdup(it->reason);
			if (!e->reason)
				return -ENOMEM;
			continue;
		}
		err = add(r, &(struct converge_entry){
				     .kind = in_sync ? CONVERGE_OK :
						       CONVERGE_LEFT,
				     .resource = id,
				     .state = it->state,
				     .key = it->key,
				     .have = it->have,
				     .want = it->want,
				     .reason = it->reason });
		if (err < 0)
			return err;
	}
	return 0;
}

/* A removal has no item that could say it is still to be done. */
static void mark_unfinished(struct converge_result *r, enum resource_id id,
			    const struct change_list *plan)
{
	size_t i;

	for (i = 0; i < plan->n; i++) {
		struct converge_entry *e = find(r, id, plan->v[i].key);

		if (!e || e->kind != CONVERGE_CHANGED)
			continue;
		e->kind = CONVERGE_LEFT;
		e->state = ITEM_DRIFTED;
	}
}

/* A resource that could not even be opened has no items to say so. */
static int add_fault(struct converge_result *r, enum resource_id id,
		     const struct engine_resource *er)
{
	struct fault f = *er->fault;

	if (!f.err || er->mode == MODE_OFF)
		return 0;
	return add(r, &(struct converge_entry){
			      .kind = CONVERGE_LEFT,
			      .resource = id,
			      .state = ITEM_UNOBSERVABLE,
			      .key = f.object,
			      .have = (char *)"",
			      .want = (char *)"",
			      .reason = f.text });
}

static int conclude(const struct engine *e, bool check,
		    struct converge_result *r)
{
	struct engine_report report;
	size_t i;
	int err = 0;

	engine_report(e, 0, &report);
	for (i = 0; err == 0 && i < RESOURCE_MAX; i++) {
		const struct engine_resource *er = &report.v[i];

		if (!er->present)
			continue;
		if (!check)
			err = add_changes(r, i, er->done);
		else if (er->mode == MODE_ENFORCE)
			err = add_changes(r, i, er->plan);
		if (err == 0)
			err = add_items(r, i, er, check);
		if (err == 0 && !check)
			mark_unfinished(r, i, er->plan);
		if (err == 0)
			err = add_fault(r, i, er);
	}
	for (i = 0; i < r->n; i++) {
		r->count[r->v[i].kind]++;
		if (r->v[i].kind == CONVERGE_LEFT &&
		    r->v[i].state == ITEM_UNOBSERVABLE)
			r->unobservable = true;
	}
	return err;
}

/* ---- the two goes ---- */

static struct engine_params one_shot(bool check)
{
	struct engine_params p = engine_params_default();

	p.check = check;
	p.quiet = true;
	p.oneshot = true;
	return p;
}

/* All as desired, as far as can be told without D-Bus? */
static bool nothing_left(const struct engine *e)
{
	struct engine_report report;
	size_t i;

	engine_report(e, 0, &report);
	for (i = 0; i < RESOURCE_MAX; i++) {
		const struct engine_resource *r = &report.v[i];

		if (!r->present || r->mode == MODE_OFF)
			continue;
		if (r->fault->err || r->plan->n ||
		    item_list_worst(r->items) != ITEM_IN_SYNC)
			return false;
	}
	return true;
}

static int remember_plans(const struct engine *e, struct converge_result *r)
{
	struct engine_report report;
	size_t i;
	int err = 0;

	engine_report(e, 0, &report);
	for (i = 0; err == 0 && i < RESOURCE_MAX; i++)
		if (report.v[i].present && report.v[i].mode == MODE_ENFORCE)
			err = add_changes(r, i, report.v[i].plan);
	return err;
}

static int wait_for_bus(sd_event *event, struct bus *bus)
{
	usec until = clock_boottime() + BUS_PATIENCE;
	int r = 0;

	if (access(BUS_SOCKET, F_OK) < 0)
		return 0;	/* a machine without D-Bus: go on without */
	while (r >= 0 && !bus_is_up(bus) && clock_boottime() < until)
		r = sd_event_run(event, until - clock_boottime());
	return r < 0 ? r : 0;
}

static int drive(struct engine *e, sd_event *event, usec deadline)
{
	usec until = clock_boottime() + deadline;
	int r = 0;

	for (;;) {
		usec now = clock_boottime(), next = engine_pass(e, now);

		if (engine_settled(e) || now >= until)
			return 0;
		if (next > until)
			next = until;
		r = sd_event_run(event, next > now ? next - now : 0);
		if (r < 0)
			return r;
	}
}

static int second_go(const struct converge_params *p, struct desired *desired,
		     struct resource_host *host, struct converge_result *r,
		     struct fault *f)
{
	struct engine_params ep = one_shot(p->check);
	struct engine *e = NULL;
	int err;

	err = bus_new(host->event, NULL, &host->bus, f);
	if (err == 0)
		err = wait_for_bus(host->event, host->bus);
	if (err == 0 && !bus_is_up(host->bus))
		host->bus = bus_free(host->bus);
	if (err == 0)
		err = engine_new(host, p->registry, &ep, &e);
	if (err < 0) {
		(void)desired_free(desired);
		return fault_errno(f, err, "converge", "cannot go on");
	}
	engine_only(e, p->only);
	engine_set_desired(e, desired);
	err = drive(e, host->event, p->deadline);
	if (err == 0)
		err = conclude(e, p->check, r);
	(void)engine_free(e);
	return err < 0 ? fault_errno(f, err, "converge", "cannot go on") : 0;
}

/* The desired state moves on to the second engine. */
static struct desired *first_go(const struct converge_params *p,
				struct engine *e, struct desired *desired)
{
	engine_only(e, p->only);
	engine_set_desired(e, desired);
	(void)engine_pass(e, clock_boottime());
	return nothing_left(e) ? NULL : engine_take_desired(e);
}

int converge(const struct converge_params *p, struct desired *desired,
	     struct converge_result *ret_result, struct fault *f)
{
	struct resource_host host = { .root = p->root,
				      .state_dir = p->state_dir };
	struct engine_params ep = one_shot(true);
	struct converge_result r = { 0 };
	struct engine *e = NULL;
	sigset_t block;
	int err;

	err = engine_new(&host, p->registry, &ep, &e);
	if (err < 0) {
		(void)desired_free(desired);
		return fault_errno(f, err, "converge", "cannot start");
	}
	desired = first_go(p, e, desired);
	err = desired ? remember_plans(e, &r) : conclude(e, true, &r);
	(void)engine_free(e);
	if (err == 0 && desired) {
		(void)sigemptyset(&block);
		(void)sigaddset(&block, SIGCHLD);
		(void)sigprocmask(SIG_BLOCK, &block, NULL);
		err = sd_event_new(&host.event);
		if (err >= 0)
			err = second_go(p, take_ptr(desired), &host, &r, f);
		(void)bus_free(host.bus);
		(void)sd_event_unref(host.event);
	}
	(void)desired_free(desired);
	if (err < 0) {
		converge_result_done(&r);
		return fault_errno(f, err, "converge", "cannot go on");
	}
	*ret_result = r;
	return 0;
}
