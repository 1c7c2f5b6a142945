/*
 * The other servers join one at a time; the next only when the last one is
 * a started, voting member in every view and its own API answers (A38,
 * A41, CO-01, CO-04). The join target is a living voter's node address,
 * the founder's first, never the VIP.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/ask.h"
#include "coordinator/cluster.h"
#include "coordinator/control_client.h"
#include "coordinator/gate.h"
#include "coordinator/k3s_server.h"
#include "coordinator/members.h"
#include "coordinator/progress.h"
#include "coordinator/steps/step.h"
#include "proto/order.h"
#include "proto/up.h"
#include "spec/spec.h"

struct seen {
	struct members members;
	bool *wanted;		/* in scope, per node of the spec */
	bool *configured;	/* with the configuration of the spec */
	bool manage;
};

static void seen_free(void *seen)
{
	struct seen *s = seen;

	if (!s)
		return;
	members_done(&s->members);
	free(s->wanted);
	free(s->configured);
	free(s);
}

static int look_at_nodes(const struct step_env *env, struct seen *s,
			 struct fault *f)
{
	size_t i;

	for (i = 0; i < env->spec->n_nodes; i++) {
		const struct spec_node *n = &env->spec->nodes[i];
		int r;

		if (n->role.v != SPEC_ROLE_SERVER ||
		    (env->limit && strcmp(env->limit, n->name.v) != 0))
			continue;
		s->wanted[i] = true;
		r = k3s_server_configured(env, i, f);
		if (r < 0)
			return r;
		s->configured[i] = r > 0;
	}
	return 0;
}

static int observe(const struct step_env *env, void **ret_seen,
		   struct fault *f)
{
	struct seen *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->manage = env->spec->k3s.manage.v;
	s->wanted = calloc(env->spec->n_nodes + 1, sizeof(bool));
	s->configured = calloc(env->spec->n_nodes + 1, sizeof(bool));
	r = s->wanted && s->configured ? look_at_nodes(env, s, f) : -ENOMEM;
	if (r == 0)
		r = members_read(env, env->gate->founder, &s->members, f);
	if (r < 0) {
		seen_free(s);
		return r;
	}
	*ret_seen = s;
	return 0;
}

static int plan(const struct spec *spec, const void *seen,
		struct change_list *changes, struct fault *f)
{
	const struct seen *s = seen;
	char key[96];
	size_t i;
	int r = 0;

	if (!s->members.api)
		return fault_set(f, -EREMOTEIO, "joiners",
				 "no API answers: %s", s->members.why);
	for (i = 0; r == 0 && i < spec->n_nodes; i++) {
		if (!s->wanted[i])
			continue;
		if (s->members.v[i].voter && !s->configured[i])
			return fault_set(f, -EOPNOTSUPP, spec->nodes[i].name.v,
					 "the spec changes the k3s "
					 "configuration of a running server; "
					 "rolling it is not yet supported "
					 "[k3s-config-roll]. Nothing was "
					 "changed: put the old value back");
		if (s->members.v[i].voter)
			continue;
		if (!s->manage)
			return fault_set(f, -EREMOTEIO, spec->nodes[i].name.v,
					 "k3s.manage is false, and it %s",
					 s->members.v[i].why);
		(void)snprintf(key, sizeof(key), "server %s",
			       spec->nodes[i].name.v);
		r = change_list_add(changes, CHANGE_ADD, key,
				    s->members.v[i].why, "voting member");
	}
	return r;
}

/*
 * Asked now, not taken from the last report: a server whose join was cut
 * off is a learner already, and without its data it would look like a
 * stranger that is in the way of its own second try.
 */
static int has_data(const struct step_env *env, const char *name,
		    bool *ret_has, struct fault *f)
{
	struct order *o = order_new(ORDER_READ_FACTS);
	struct up *up = NULL;
	int r = o ? ask(env->control, name, o, env->times->order, &up, f) :
		    -ENOMEM;

	order_free(o);
	if (r < 0)
		return r;
	if (up && up->result.facts)
		*ret_has = up->result.facts->k3s.has_data;
	else
		r = fault_set(f, -EREMOTEIO, name, "answered without facts");
	up_free(up);
	return r;
}

/* Nothing joins while anything else is in between. */
static int check_quiet(const struct members *m, const char *name,
		       bool resuming, struct fault *f)
{
	if (m->strangers)
		return fault_set(f, -EPERM, name,
				 "etcd has a voting member that is no node of "
				 "this cluster; find it before anything joins");
	if (m->learners > 0 && !resuming)
		return fault_set(f, -EAGAIN, name,
				 "another member is still joining");
	return 0;
}

/* Its own API, over the network, through another server. */
static int own_api(const struct step_env *env, size_t node,
		   const char *through, struct fault *f)
{
	struct kube *k = NULL;
	int r = cluster_kube(env->cluster, through, STREAM_API_SERVER,
			     &env->spec->nodes[node].address.v, &k, f);

	return r < 0 ? r : cluster_ready(k, f);
}

static int look_once(const struct step_env *env, size_t node, char *why,
		     size_t size, struct fault *f)
{
	struct fault scratch = FAULT_INIT;
	struct members m = { 0 };
	int r = members_read(env, env->gate->founder, &m, f);

	if (r < 0)
		return r;
	r = 0;
	if (!m.api)
		(void)snprintf(why, size, "no API answers: %s", m.why);
	else if (m.learners > 0 || !m.v[node].voter)
		(void)snprintf(why, size, "%s", m.v[node].voter ?
			       "another member is still a learner" :
			       m.v[node].why);
	else
		r = own_api(env, node, m.through, &scratch) < 0 ? 0 : 1;
	if (scratch.err)
		(void)fault_str(&scratch, why, size);
	members_done(&m);
	return scratch.err == -EINTR ? -EINTR : r;
}

static int wait_voter(const struct step_env *env, size_t node,
		      struct fault *f)
{
	const char *name = env->spec->nodes[node].name.v;
	usec deadline = clock_boottime() + env->times->join;
	char why[MEMBERS_WHY_MAX] = "";

	for (;;) {
		int r = look_once(env, node, why, sizeof(why), f);

		if (r != 0)
			return r < 0 ? r : 0;
		if (clock_boottime() >= deadline)
			return fault_set(f, -ETIMEDOUT, name,
					 "did not become a voting member in "
					 "time: %s. Nothing after it was "
					 "started", why);
		progress_wait(env->progress, name, "voting membership: %s",
			      why);
		r = control_sleep(env->control,
				  clock_boottime() + env->times->poll);
		if (r < 0)
			return r;
	}
}

static int join_one(const struct step_env *env, size_t node, struct fault *f)
{
	const char *name = env->spec->nodes[node].name.v;
	struct k3s_server server = { .node = node, .mode = START_JOIN };
	struct members m = { 0 };
	bool data = false;
	size_t target = 0;
	int r = has_data(env, name, &data, f);

	if (r == 0)
		r = members_read(env, env->gate->founder, &m, f);
	if (r < 0)
		return r;
	r = check_quiet(&m, name, data, f);
	if (r == 0 && members_any_voter(env, &m, env->gate->founder,
					&target) < 0)
		r = fault_set(f, -EREMOTEIO, name,
			      "there is no voting member to join");
	members_done(&m);
	if (r < 0)
		return r;
	if (data)
		server.mode = START_RESUME;
	server.join_address = env->spec->nodes[target].address.v;
	progress_fact(env->progress, name, "joins through %s",
		      env->spec->nodes[target].name.v);
	r = k3s_server_bring(env, &server, f);
	if (r == 0)
		r = wait_voter(env, node, f);
	if (r == 0)
		progress_fact(env->progress, name, "is a voting member");
	return r;
}

static int apply(const struct step_env *env, const void *seen,
		 const struct change_list *changes, struct fault *f)
{
	const struct seen *s = seen;
	size_t i;
	int r = 0;

	(void)changes;	/* one per node that does not vote yet */
	for (i = 0; r == 0 && i < env->spec->n_nodes; i++)
		if (s->wanted[i] && !s->members.v[i].voter)
			r = join_one(env, i, f);
	return r;
}

const struct step step_joiners = {
	.id = STEP_JOINERS,
	.name = "joiners",
	.observe = observe,
	.plan = plan,
	.apply = apply,
	.seen_free = seen_free,
	.unverified = "that each server would become a voting member",
};
