/*
 * Cilium by k3s's Helm controller, dialling the endpoint and nothing else
 * (A56..A62). With `owner: external` it is only looked at.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/addon.h"
#include "coordinator/cluster.h"
#include "coordinator/cni.h"
#include "coordinator/control_client.h"
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
};

static void seen_free(void *seen)
{
	struct seen *s = seen;

	if (s)
		free(s->manifest);
	free(s);
}

static struct addon our_addon(const struct seen *s)
{
	return (struct addon){ .slot = SLOT_CILIUM,
			       .name = "garboard-cilium",
			       .text = s->manifest };
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
	int r = 0;

	(void)spec;
	if (s->applied && s->ready)
		return 0;
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
	return r;
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
