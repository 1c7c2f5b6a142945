/*
 * One server founds the cluster, once. Whether it may is the gate's word;
 * this step never founds over a record, and resumes a founder that only
 * stands still.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"
#include "coordinator/cluster.h"
#include "coordinator/control_client.h"
#include "coordinator/founding.h"
#include "coordinator/gate.h"
#include "coordinator/k3s_server.h"
#include "coordinator/members.h"
#include "coordinator/progress.h"
#include "coordinator/steps/step.h"
#include "coordinator/vip.h"
#include "proto/up.h"
#include "spec/spec.h"

struct seen {
	char founder[ORDER_NAME_MAX];
	size_t node;		/* its index in the spec */
	bool manage;
	bool in_spec;		/* the recorded founder may be gone */
	bool has_data;
	bool recorded;		/* the founding record is complete */
	int configured;		/* k3s_server_configured() */
	struct members members;
};

static void seen_free(void *seen)
{
	struct seen *s = seen;

	if (s)
		members_done(&s->members);
	free(s);
}

static int look_at_founder(const struct step_env *env, struct seen *s,
			   struct fault *f)
{
	struct control_nodes nodes = { 0 };
	const struct control_node *n;
	int r = control_nodes(env->control, &nodes, f);

	if (r < 0)
		return r;
	n = control_nodes_find(&nodes, s->founder);
	s->has_data = n && n->report && n->report->report.k3s.has_data;
	control_nodes_done(&nodes);
	return 0;
}

static int look_at_record(const struct step_env *env, struct seen *s,
			  struct fault *f)
{
	struct founding_record record = { 0 };
	struct fault scratch = FAULT_INIT;
	int r = control_founding_get(env->control, &record, &scratch);

	if (r < 0 && r != -ENOENT)
		return fault_set(f, r, scratch.object, "%s", scratch.text);
	s->recorded = r == 0 && record.cluster_uid[0];
	return 0;
}

static int observe(const struct step_env *env, void **ret_seen,
		   struct fault *f)
{
	struct seen *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	(void)snprintf(s->founder, sizeof(s->founder), "%s",
		       env->gate->founder);
	s->manage = env->spec->k3s.manage.v;
	s->in_spec = spec_find_node(env->spec, s->founder, &s->node) == 0;
	r = s->manage ? look_at_founder(env, s, f) : 0;
	if (r == 0)
		r = look_at_record(env, s, f);
	if (r == 0)
		r = members_read(env, s->founder, &s->members, f);
	if (r == 0 && s->in_spec) {
		s->configured = k3s_server_configured(env, s->node, f);
		r = s->configured < 0 ? s->configured : 0;
	}
	if (r < 0) {
		seen_free(s);
		return r;
	}
	*ret_seen = s;
	return 0;
}

/* The first member votes at once, but its node says so a tick later. */
static bool has_voter(const struct members *m)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		if (m->v[i].voter)
			return true;
	return false;
}

static int plan(const struct spec *spec, const void *seen,
		struct change_list *changes, struct fault *f)
{
	const struct seen *s = seen;
	char key[96];

	(void)spec;
	if (s->members.api && !s->configured)
		return fault_set(f, -EOPNOTSUPP, s->founder,
				 "the spec changes the k3s configuration of a "
				 "running server; rolling it is not yet "
				 "supported [k3s-config-roll]. Nothing was "
				 "changed: put the old value back");
	if (s->members.api && s->recorded && has_voter(&s->members))
		return 0;
	if (!s->manage)
		return fault_set(f, -EREMOTEIO, "k3s",
				 "k3s.manage is false and no API answers: %s",
				 s->members.why);
	(void)snprintf(key, sizeof(key), "server %s", s->founder);
	return change_list_add(changes, CHANGE_ADD, key, "",
			       s->members.api ? "founding recorded" :
			       s->has_data ? "k3s running again" :
					     "k3s founded, API answering");
}

/* After READY the API is there at once; the rest of it may lag. */
static int wait_voter(const struct step_env *env, const struct seen *s,
		      struct fault *f)
{
	usec deadline = clock_boottime() + env->times->start;

	for (;;) {
		struct members m = { 0 };
		int r = members_read(env, s->founder, &m, f);
		bool votes = r == 0 && m.api && has_voter(&m);

		if (r == 0 && !votes) {
			const char *why = m.api ? m.v[s->node].why : m.why;

			progress_wait(env->progress, s->founder, "%s", why);
			if (clock_boottime() >= deadline)
				r = fault_set(f, -ETIMEDOUT, s->founder,
					      "k3s is active, but does not "
					      "serve as a cluster: %s", why);
		}
		members_done(&m);
		if (r < 0 || votes)
			return r;
		r = control_sleep(env->control,
				  clock_boottime() + env->times->poll);
		if (r < 0)
			return r;
	}
}

static int start_founder(const struct step_env *env, const struct seen *s,
			 struct fault *f)
{
	struct founding_record intent = { 0 };
	struct k3s_server server = { .node = s->node, .mode = START_RESUME };
	int r = 0;

	if (!s->in_spec)
		return fault_set(f, -EPERM, s->founder,
				 "founded this cluster, is no longer in the "
				 "spec, and no other server answers; bring "
				 "one of the recorded servers back");
	if (!s->has_data) {
		if (s->recorded)
			return fault_set(f, -EPERM, s->founder,
					 "the cluster was founded and no "
					 "server answers; founding again would "
					 "make a second one (CO-02). Start one "
					 "of its servers");
		server.mode = START_FOUND;
		server.intent = &intent;
		/* Found out now, it costs nothing; after the joins, a day. */
		if (env->spec->control_plane.endpoint.v.family)
			r = vip_check_free(env, s->founder, f);
		/* A credential or token of an earlier cluster is no use. */
		if (r == 0 && env->gate->verdict == GATE_MAY_FOUND)
			r = cluster_credential_drop(env->cluster, f);
		if (r == 0)
			r = founding_intend(env, s->founder, f);
		if (r == 0)
			r = control_founding_get(env->control, &intent, f);
	}
	if (r == 0)
		r = k3s_server_bring(env, &server, f);
	return r;
}

static int apply(const struct step_env *env, const void *seen,
		 const struct change_list *changes, struct fault *f)
{
	const struct seen *s = seen;
	int r = 0;

	(void)changes;
	if (!s->members.api)
		r = start_founder(env, s, f);
	if (r == 0 && !has_voter(&s->members))
		r = wait_voter(env, s, f);
	if (r == 0)
		r = founding_complete(env, s->members.api ?
				      s->members.through : s->founder, f);
	if (r < 0)
		return r;
	progress_fact(env->progress, s->founder, "the API answers, the "
		      "founding is recorded on every server");
	return 0;
}

const struct step step_founder = {
	.id = STEP_FOUNDER,
	.name = "founder",
	.observe = observe,
	.plan = plan,
	.apply = apply,
	.seen_free = seen_free,
	.unverified = "that k3s would start and answer",
};
