/*
 * Every node has the desired state of the spec and reports that all of it
 * holds (A66, A69, A72). An item that cannot hold passes only by a waiver
 * the spec names, and then it is shown each time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/ask.h"
#include "coordinator/control_client.h"
#include "coordinator/desire.h"
#include "coordinator/progress.h"
#include "coordinator/steps/step.h"
#include "proto/order.h"
#include "proto/up.h"
#include "spec/spec.h"

/* Of one question to nodes that have just taken a state. */
#define HEAR_TIME (10 * USEC_PER_SEC)

struct node_seen {
	bool current;		/* has accepted exactly this state */
	bool settled;		/* and reports that all of it holds */
	uint64_t have, want;	/* generations */
	char why[256];		/* the first item that does not hold */
};

struct seen {
	struct node_seen *v;	/* one per node of the spec */
	size_t n;
};

static bool in_scope(const struct step_env *env, size_t i)
{
	return !env->limit || strcmp(env->limit,
				     env->spec->nodes[i].name.v) == 0;
}

static const char *state_name(uint8_t state)
{
	/* enum item_state of the agent, as up.h carries it. */
	static const char *const names[UP_ITEM_STATES] = {
		"in sync", "pending", "absent", "drifted", "blocked",
		"unobservable",
	};

	return state < UP_ITEM_STATES ? names[state] : "unknown";
}

static bool item_passes(const struct step_env *env, size_t node,
			const struct up_resource *r, const struct up_item *it)
{
	return r->mode == MODE_OBSERVE &&
	       spec_waived(env->spec, node, r->id, it->key);
}

/* What a waiver lets pass is shown each time. */
static void tell_waived(const struct step_env *env, size_t node,
			const struct up_resource *r, size_t n,
			const struct up_item *first)
{
	if (n > 0)
		progress_fact(env->progress, env->spec->nodes[node].name.v,
			      "waived by the spec: %zu item%s of %s, such as "
			      "%s (%s)", n, n == 1 ? "" : "s",
			      resource_name(r->id), first->key,
			      state_name(first->state));
}

static bool judge_resource(const struct step_env *env, size_t node,
			   const struct up_resource *r, struct node_seen *s,
			   bool tell)
{
	const struct up_item *first = NULL;
	size_t i, waived = 0;

	if (r->mode == MODE_OFF && r->id != RESOURCE_KILLSWITCH)
		return true;
	if (r->fault[0]) {
		(void)snprintf(s->why, sizeof(s->why), "%s: %.200s",
			       resource_name(r->id), r->fault);
		return false;
	}
	for (i = 0; i < r->n_items; i++) {
		const struct up_item *it = &r->items[i];

		if (it->state == 0)
			continue;
		if (item_passes(env, node, r, it)) {
			if (waived++ == 0)
				first = it;
			continue;
		}
		(void)snprintf(s->why, sizeof(s->why),
			       "%s %.60s is %s%s%.120s", resource_name(r->id),
			       it->key, state_name(it->state),
			       it->reason[0] ? ": " : "", it->reason);
		return false;
	}
	if (tell)
		tell_waived(env, node, r, waived, first);
	return true;
}

/* A69: a report counts only when it covers what we expect. */
static void judge_report(const struct step_env *env, size_t node,
			 const struct up_report *rep, struct node_seen *s,
			 bool tell)
{
	size_t i;

	s->have = rep->generation;
	s->current = s->have == s->want;
	if (!s->current) {
		(void)snprintf(s->why, sizeof(s->why), "has another state");
		return;
	}
	if (!rep->settled) {
		(void)snprintf(s->why, sizeof(s->why), "is still converging");
		return;
	}
	if (rep->n_resources != RESOURCE_MAX) {
		(void)snprintf(s->why, sizeof(s->why),
			       "reports %zu resources, not %d: upgrade "
			       "garboard-agent there",
			       rep->n_resources, RESOURCE_MAX);
		return;
	}
	for (i = 0; i < rep->n_resources; i++)
		if (!judge_resource(env, node, &rep->resources[i], s,
				    tell))
			return;
	s->settled = true;
}

static int look(const struct step_env *env, struct seen *s, bool tell,
		uint64_t *ret_revision, struct fault *f)
{
	struct control_nodes nodes = { 0 };
	size_t i;
	int r = control_nodes(env->control, &nodes, f);

	if (r < 0)
		return r;
	for (i = 0; i < s->n; i++) {
		const struct control_node *n = control_nodes_find(
			&nodes, env->spec->nodes[i].name.v);

		s->v[i].current = s->v[i].settled = false;
		if (!n || !n->connected || !n->report)
			(void)snprintf(s->v[i].why, sizeof(s->v[i].why),
				       "no report");
		else
			judge_report(env, i, &n->report->report, &s->v[i],
				     tell);
	}
	*ret_revision = nodes.revision;
	control_nodes_done(&nodes);
	return 0;
}

static void seen_free(void *seen)
{
	struct seen *s = seen;

	if (s)
		free(s->v);
	free(s);
}

static int want_all(const struct step_env *env, struct seen *s,
		    struct fault *f)
{
	size_t i;

	for (i = 0; i < s->n; i++) {
		struct desired *d = NULL;
		int r = desire_node(env->spec, i, &d, f);

		if (r < 0)
			return r;
		s->v[i].want = d->generation;
		(void)desired_free(d);
	}
	return 0;
}

static int observe(const struct step_env *env, void **ret_seen,
		   struct fault *f)
{
	struct seen *s = calloc(1, sizeof(*s));
	uint64_t revision;
	size_t i;
	int r;

	if (!s)
		return -ENOMEM;
	s->n = env->spec->n_nodes;
	s->v = calloc(s->n + 1, sizeof(*s->v));
	r = s->v ? want_all(env, s, f) : -ENOMEM;
	if (r == 0)
		r = look(env, s, true, &revision, f);
	if (r < 0) {
		seen_free(s);
		return r;
	}
	for (i = 0; i < s->n; i++)
		if (!in_scope(env, i))
			s->v[i].current = s->v[i].settled = true;
	*ret_seen = s;
	return 0;
}

static int plan(const struct spec *spec, const void *seen,
		struct change_list *changes, struct fault *f)
{
	const struct seen *s = seen;
	char key[128], have[320], want[64];
	size_t i;
	int r = 0;

	(void)f;
	for (i = 0; r == 0 && i < s->n; i++) {
		if (s->v[i].settled)
			continue;
		(void)snprintf(key, sizeof(key), "node %s",
			       spec->nodes[i].name.v);
		(void)snprintf(have, sizeof(have), "state %016llx, %s",
			       (unsigned long long)s->v[i].have, s->v[i].why);
		(void)snprintf(want, sizeof(want), "state %016llx, in sync",
			       (unsigned long long)s->v[i].want);
		r = change_list_add(changes, CHANGE_SET, key, have, want);
	}
	return r;
}

static int send_states(const struct step_env *env, const struct seen *s,
		       struct fault *f)
{
	struct ask list[CONTROL_ORDERS_MAX];
	size_t i, n = 0;
	int r = 0;

	for (i = 0; r == 0 && i < s->n && n < CONTROL_ORDERS_MAX; i++) {
		if (s->v[i].current)
			continue;
		list[n] = (struct ask){ .node = env->spec->nodes[i].name.v };
		list[n].order = order_new(ORDER_SET_DESIRED);
		r = list[n].order ? desire_node(env->spec, i,
						&list[n].order->desired, f) :
				    -ENOMEM;
		n++;
	}
	if (r == 0)
		r = ask_all(env->control, list, n, env->times->order, f);
	ask_done(list, n);
	return r;
}

static const struct node_seen *first_open(const struct step_env *env,
					  const struct seen *s, size_t *ret_i)
{
	for (*ret_i = 0; *ret_i < s->n; ++*ret_i)
		if (in_scope(env, *ret_i) && !s->v[*ret_i].settled)
			return &s->v[*ret_i];
	return NULL;
}

static void tell_settled(const struct step_env *env, const struct seen *before,
			 bool *told)
{
	size_t i;

	for (i = 0; i < before->n; i++) {
		if (told[i] || !in_scope(env, i) || !before->v[i].settled)
			continue;
		progress_fact(env->progress, env->spec->nodes[i].name.v,
			      "baseline holds");
		told[i] = true;
	}
}

/*
 * A state that touches egress or forwarding is on trial at the node until
 * an order of ours is read under it (KS-05). So every node that took a state is asked
 * something: as soon as it says that it has the state, in case the rest of
 * its baseline takes long, and once more when all of it holds.
 */
static int hear(const struct step_env *env, const struct seen *before,
		const struct seen *now, bool *heard, usec timeout,
		struct fault *f)
{
	struct ask list[CONTROL_ORDERS_MAX];
	size_t of[CONTROL_ORDERS_MAX];
	size_t i, n = 0;
	int r = 0;

	for (i = 0; i < now->n && n < CONTROL_ORDERS_MAX && r == 0; i++) {
		if (!in_scope(env, i) || before->v[i].current ||
		    !now->v[i].current || heard[i])
			continue;
		list[n] = (struct ask){ .node = env->spec->nodes[i].name.v,
					.order = order_new(ORDER_READ_FACTS) };
		if (!list[n].order)
			r = -ENOMEM;
		of[n++] = i;
	}
	if (r == 0 && n > 0)
		r = ask_all(env->control, list, n, timeout, f);
	for (i = 0; i < n; i++)
		heard[of[i]] = list[i].err == 0 && list[i].result;
	ask_done(list, n);
	return r;
}

static int wait_settled(const struct step_env *env, const struct seen *before,
			struct seen *s, bool *told, bool *heard,
			struct fault *f)
{
	usec deadline = clock_boottime() + env->times->settle;
	const struct node_seen *open;
	uint64_t revision;
	size_t i;

	for (;;) {
		usec now;
		int r = look(env, s, false, &revision, f);

		if (r < 0)
			return r;
		tell_settled(env, s, told);
		open = first_open(env, s, &i);
		if (!open) {
			(void)memset(heard, 0, s->n * sizeof(*heard));
			return hear(env, before, s, heard, env->times->order,
				    f);
		}
		/* One that is cut off by its own state shows as not settled. */
		(void)hear(env, before, s, heard, HEAR_TIME, NULL);
		now = clock_boottime();
		if (now >= deadline)
			return fault_set(f, -ETIMEDOUT,
					 env->spec->nodes[i].name.v,
					 "baseline does not hold: %s. Mend "
					 "it there, or waive it in the spec "
					 "(baseline.waivers) with the "
					 "resource in observe", open->why);
		progress_wait(env->progress, env->spec->nodes[i].name.v, "%s",
			      open->why);
		r = control_wait(env->control, revision,
				 now + env->times->poll, f);
		if (r < 0)
			return r;
	}
}

static int apply(const struct step_env *env, const void *seen,
		 const struct change_list *changes, struct fault *f)
{
	const struct seen *before = seen;
	struct seen s = { .n = before->n };
	bool *told = calloc(s.n + 1, sizeof(*told));
	bool *heard = calloc(s.n + 1, sizeof(*heard));
	int r;

	(void)changes;
	s.v = calloc(s.n + 1, sizeof(*s.v));
	if (!s.v || !told || !heard) {
		free(s.v);
		free(told);
		free(heard);
		return -ENOMEM;
	}
	memcpy(s.v, before->v, s.n * sizeof(*s.v));
	r = send_states(env, before, f);
	if (r == 0)
		r = wait_settled(env, before, &s, told, heard, f);
	free(s.v);
	free(told);
	free(heard);
	return r;
}

const struct step step_baseline = {
	.id = STEP_BASELINE,
	.name = "baseline",
	.observe = observe,
	.plan = plan,
	.apply = apply,
	.seen_free = seen_free,
	.unverified = "that the baseline would converge on each node",
};
