/*
 * Cilium by k3s's Helm controller, dialling the endpoint and nothing else
 * (A56..A62). With `owner: external` it is only looked at. Then the one
 * egress policy and the label of its gateways, if a class has pods (B83 to
 * B86): its kind is made by Cilium itself, so it comes after (B67).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/addon.h"
#include "coordinator/cluster.h"
#include "coordinator/cni.h"
#include "coordinator/control_client.h"
#include "coordinator/egress.h"
#include "coordinator/members.h"
#include "coordinator/progress.h"
#include "coordinator/steps/step.h"
#include "spec/spec.h"

struct seen {
	bool external;
	bool applied;
	bool ready;
	char why[CNI_WHY_MAX];
	char through[MEMBERS_NODE_MAX];
	char *manifest;
	bool egress;		/* a class has pods, and k3s is ours */
	bool placed;		/* its policy, by the deploy controller */
	bool stands;		/* the policy and the labels themselves */
	char egress_why[EGRESS_WHY_MAX];
	json_t *policy;
	char *policy_text;
};

static void seen_free(void *seen)
{
	struct seen *s = seen;

	if (!s)
		return;
	free(s->manifest);
	free(s->policy_text);
	json_decref(s->policy);
	free(s);
}

static struct addon our_addon(const struct seen *s)
{
	return (struct addon){ .slot = SLOT_CILIUM,
			       .name = "garboard-cilium",
			       .text = s->manifest };
}

static struct addon egress_addon(const struct seen *s)
{
	return (struct addon){ .slot = SLOT_EGRESS,
			       .name = EGRESS_ADDON,
			       .text = s->policy_text };
}

static int look_egress(const struct step_env *env, struct kube *k,
		       struct seen *s, struct fault *f)
{
	struct addon a;
	int r;

	s->egress = env->spec->k3s.manage.v && egress_class(env->spec);
	if (!s->egress)
		return 0;
	r = egress_want(env->spec, env->control, k, &s->policy, f);
	if (r == 0)
		r = egress_text(s->policy, &s->policy_text, f);
	if (r < 0)
		return r;
	a = egress_addon(s);
	r = addon_applied(k, &a, s->egress_why, sizeof(s->egress_why), f);
	s->placed = r > 0;
	if (r > 0)
		r = egress_stands(k, s->policy, s->egress_why,
				  sizeof(s->egress_why), f);
	if (r > 0)
		r = egress_labels_stand(k, env->spec, s->egress_why,
					sizeof(s->egress_why), f);
	s->stands = r > 0;
	return r < 0 ? r : 0;
}

/* What can change by waiting is "not yet"; the rest is kept as a cause. */
static int look_ready(const struct step_env *env, struct kube *k,
		      struct seen *s, struct fault *f)
{
	struct cni_want want = cni_want_of(env->spec);
	struct fault scratch = FAULT_INIT;
	int r = cni_ready(k, &want, s->why, sizeof(s->why), &scratch);

	s->ready = r > 0;
	if (r == -EINTR || r == -ENOMEM)
		return fault_set(f, r, scratch.object, "%s", scratch.text);
	if (r < 0)
		(void)fault_str(&scratch, s->why, sizeof(s->why));
	return r == -EREMOTEIO ? 1 : 0;
}

static int observe(const struct step_env *env, void **ret_seen,
		   struct fault *f)
{
	struct seen *s = calloc(1, sizeof(*s));
	struct kube *k = NULL;
	int r;

	if (!s)
		return -ENOMEM;
	s->external = env->spec->cilium.owner.v == SPEC_OWNER_EXTERNAL ||
		      !env->spec->k3s.manage.v;
	r = members_open_api(env, "cilium", s->through, &k, f);
	if (r == 0)
		r = cni_manifest(env->spec, &s->manifest, f);
	if (r == 0) {
		struct addon a = our_addon(s);

		r = s->external ? 1 : addon_applied(k, &a, s->why,
						    sizeof(s->why), f);
		s->applied = r > 0;
	}
	if (r >= 0)
		r = look_ready(env, k, s, f);
	if (r >= 0)
		r = look_egress(env, k, s, f);
	if (r < 0) {
		seen_free(s);
		return r;
	}
	*ret_seen = s;
	return 0;
}

static int plan_egress(const struct seen *s, struct change_list *changes)
{
	if (!s->egress || (s->placed && s->stands))
		return 0;
	return change_list_add(changes, CHANGE_SET, "addon " EGRESS_ADDON,
			       s->egress_why,
			       "the egress policy, and its gateways labelled");
}

static int plan(const struct spec *spec, const void *seen,
		struct change_list *changes, struct fault *f)
{
	const struct seen *s = seen;
	int r = 0;

	(void)spec;
	if (s->applied && s->ready)
		return plan_egress(s, changes);
	if (s->external)
		return fault_set(f, -EREMOTEIO, "cilium",
				 "belongs to others (cilium.owner: external) "
				 "and does not hold: %s", s->why);
	if (!s->applied)
		r = change_list_add(changes, CHANGE_SET, "addon garboard-cilium", "",
				    "the HelmChart of the spec");
	if (r == 0 && !s->ready)
		r = change_list_add(changes, CHANGE_SET, "cilium", s->why,
				    "ready on every node, dialling the "
				    "endpoint");
	return r < 0 ? r : plan_egress(s, changes);
}

static int wait_ready(const struct step_env *env, struct kube *k,
		      struct fault *f)
{
	usec deadline = clock_boottime() + env->times->rollout;
	struct seen now = { 0 };

	for (;;) {
		int r = look_ready(env, k, &now, f);

		if (r < 0 || now.ready)
			return r < 0 ? r : 0;
		if (r > 0)
			return fault_set(f, -EREMOTEIO, "cilium", "%s",
					 now.why);
		if (clock_boottime() >= deadline)
			return fault_set(f, -ETIMEDOUT, "cilium",
					 "was not rolled out in time: %s",
					 now.why);
		progress_wait(env->progress, NULL, "cilium: %s", now.why);
		r = control_sleep(env->control,
				  clock_boottime() + env->times->poll);
		if (r < 0)
			return r;
	}
}

static int wait_kind(const struct step_env *env, struct kube *k,
		     struct fault *f)
{
	usec deadline = clock_boottime() + env->times->vip;
	char why[EGRESS_WHY_MAX] = "";

	for (;;) {
		int r = egress_kind_there(k, why, sizeof(why), f);

		if (r != 0)
			return r < 0 ? r : 0;
		if (clock_boottime() >= deadline)
			return fault_set(f, -ETIMEDOUT, EGRESS_ADDON, "%s",
					 why);
		progress_wait(env->progress, NULL, "egress: %s", why);
		r = control_sleep(env->control,
				  clock_boottime() + env->times->poll);
		if (r < 0)
			return r;
	}
}

static int apply_egress(const struct step_env *env, const struct seen *s,
			struct kube *k, struct fault *f)
{
	struct addon a = egress_addon(s);
	char why[EGRESS_WHY_MAX] = "";
	int r = wait_kind(env, k, f);

	/* The label first: a policy without a gateway drops, which is right
	 * for a class and of no use to it. */
	if (r == 0)
		r = egress_labels_set(k, env->spec, f);
	if (r == 0 && !s->placed)
		r = addon_put(env, &a, f);
	if (r == 0)
		r = addon_wait(env, k, &a, env->times->vip, f);
	if (r == 0)
		r = egress_put_back(k, s->policy, f);
	if (r == 0)
		r = egress_stands(k, s->policy, why, sizeof(why), f);
	if (r == 0)
		return fault_set(f, -EREMOTEIO, EGRESS_ADDON, "%s", why);
	if (r < 0)
		return r;
	progress_fact(env->progress, NULL, "the egress policy stands, its "
		      "gateways are labelled");
	return 0;
}

static int apply(const struct step_env *env, const void *seen,
		 const struct change_list *changes, struct fault *f)
{
	const struct seen *s = seen;
	struct addon a = our_addon(s);
	struct kube *k = NULL;
	int r = cluster_kube(env->cluster, s->through, STREAM_API_LOCAL, NULL,
			     &k, f);

	(void)changes;
	if (r == 0 && !s->applied)
		r = addon_put(env, &a, f);
	if (r == 0 && !s->applied)
		r = addon_wait(env, k, &a, env->times->vip, f);
	if (r == 0)
		r = wait_ready(env, k, f);
	if (r == 0)
		progress_fact(env->progress, NULL, "cilium is ready on every "
			      "node and dials the endpoint");
	if (r == 0 && s->egress)
		r = apply_egress(env, s, k, f);
	return r;
}

const struct step step_cilium = {
	.id = STEP_CILIUM,
	.name = "cilium",
	.observe = observe,
	.plan = plan,
	.apply = apply,
	.seen_free = seen_free,
	.unverified = "that Cilium would roll out",
};
