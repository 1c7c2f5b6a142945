#include "agent/converge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/converge_look.h"

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

/*
 * A resource that could not even be opened has no items to say so. One that
 * was looked at has a fault of its last apply: seen, and not done.
 */
static int add_fault(struct converge_result *r, enum resource_id id,
		     const struct engine_resource *er)
{
	struct fault f = *er->fault;

	if (!f.err || er->mode == MODE_OFF)
		return 0;
	return add(r, &(struct converge_entry){
			      .kind = CONVERGE_LEFT,
			      .resource = id,
			      .state = er->looked ? ITEM_BLOCKED :
						    ITEM_UNOBSERVABLE,
			      .key = f.object,
			      .have = (char *)"",
			      .want = (char *)"",
			      .reason = f.text });
}

/* One resource, by the last look at it. */
static int conclude_one(const struct engine_resource *er, enum resource_id id,
			bool check, struct converge_result *r)
{
	int err = 0;

	if (!check)
		err = add_changes(r, id, er->done);
	else if (er->mode == MODE_ENFORCE)
		err = add_changes(r, id, er->plan);
	if (err == 0)
		err = add_items(r, id, er, check);
	if (err == 0 && !check)
		mark_unfinished(r, id, er->plan);
	return err < 0 ? err : add_fault(r, id, er);
}

static void count(struct converge_result *r)
{
	size_t i;

	for (i = 0; i < r->n; i++) {
		r->count[r->v[i].kind]++;
		if (r->v[i].kind == CONVERGE_LEFT &&
		    r->v[i].state == ITEM_UNOBSERVABLE)
			r->unobservable = true;
	}
}

int converge_conclude(const struct engine *first, const struct engine *second,
		      uint32_t mask, bool check, struct converge_result *r)
{
	struct engine_report a, b = { 0 };
	size_t i;
	int err = 0;

	engine_report(first, 0, &a);
	if (second)
		engine_report(second, 0, &b);
	for (i = 0; err == 0 && i < RESOURCE_MAX; i++) {
		bool again = mask & (UINT32_C(1) << i);

		if (a.v[i].present)
			err = conclude_one(again ? &b.v[i] : &a.v[i], i,
					   check, r);
	}
	count(r);
	return err;
}

int converge_remember(const struct engine *e, struct converge_result *r)
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

/* ---- the first look ---- */

struct engine_params converge_params(bool check)
{
	struct engine_params p = engine_params_default();

	p.check = check;
	p.quiet = true;
	p.oneshot = true;
	return p;
}

/* Would this item look otherwise with D-Bus? */
static bool is_unsure(const struct engine_resource *r)
{
	size_t i;

	for (i = 0; i < r->items->n; i++)
		if (r->items->v[i].state == ITEM_PENDING ||
		    r->items->v[i].state == ITEM_UNOBSERVABLE)
			return true;
	return r->fault->err != 0;
}

uint32_t converge_left(const struct engine *e, const struct converge_params *p)
{
	bool has_bus = access(CONVERGE_BUS_SOCKET, F_OK) == 0;
	struct engine_report report;
	uint32_t mask = 0;
	size_t i;

	engine_report(e, 0, &report);
	for (i = 0; i < RESOURCE_MAX; i++) {
		const struct engine_resource *r = &report.v[i];

		if (!r->present || r->mode == MODE_OFF)
			continue;
		if (r->mode == MODE_ENFORCE && r->plan->n && !p->check)
			return p->only;
		if (has_bus && is_unsure(r))
			mask |= UINT32_C(1) << i;
	}
	return mask;
}

int converge_first(const struct resource_host *bare,
		   const struct converge_params *p, struct desired *desired,
		   struct engine **ret_engine, struct fault *f)
{
	struct engine_params ep = converge_params(true);
	struct engine *e = NULL;
	int err;

	err = engine_new(bare, p->registry, &ep, &e);
	if (err < 0) {
		(void)desired_free(desired);
		return fault_errno(f, err, "converge", "cannot start");
	}
	engine_only(e, p->only);
	engine_set_desired(e, desired);
	(void)engine_pass(e, clock_boottime());
	*ret_engine = e;
	return 0;
}

int converge_look(const struct converge_params *p, struct desired *desired,
		  struct converge_result *ret_result, struct fault *f)
{
	struct resource_host bare = { .root = p->root,
				      .state_dir = p->state_dir,
				      .oneshot = true };
	struct converge_result r = { 0 };
	struct engine *e = NULL;
	bool more;
	int err;

	err = converge_first(&bare, p, desired, &e, f);
	if (err < 0)
		return err;
	more = converge_left(e, p) != 0;
	if (!more)
		err = converge_conclude(e, NULL, 0, p->check, &r);
	(void)engine_free(e);
	if (err < 0) {
		converge_result_done(&r);
		return fault_errno(f, err, "converge", "cannot go on");
	}
	if (!more)
		*ret_result = r;
	return more;
}
