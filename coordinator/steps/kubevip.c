/*
 * The endpoint: kube-vip on every server, exactly one carrier, and the API
 * behind the address proven with a verified certificate from every server,
 * for longer than two leases after it was put there (A48..A55, B75..B78,
 * KV-01, KV-06). Cilium must never start before this holds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/addon.h"
#include "coordinator/cluster.h"
#include "coordinator/control_client.h"
#include "coordinator/manifests.h"
#include "coordinator/members.h"
#include "coordinator/progress.h"
#include "coordinator/steps/step.h"
#include "coordinator/vip.h"
#include "spec/spec.h"

#define LEASE_PATH                                                            \
	"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/"         \
	"plndr-cp-lock"

struct seen {
	bool wanted;		/* the spec has an endpoint */
	bool applied;
	bool proven;		/* one carrier, all servers get through */
	char why[VIP_WHY_MAX];
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
	return (struct addon){ .slot = SLOT_KUBE_VIP,
			       .name = "garboard-kube-vip",
			       .text = s->manifest };
}

/* 1: one carrier and every server gets through; 0: `why`. */
static int prove_once(const struct step_env *env, char *why, size_t size,
		      struct fault *f)
{
	char names[200];
	size_t n = 0;
	int r = vip_carriers(env, &n, names, sizeof(names), f);

	if (r < 0)
		return r;
	if (n > 1) {
		(void)snprintf(why, size, "two nodes carry the address: %s",
			       names);
		return 0;
	}
	if (n == 0) {
		(void)snprintf(why, size, "no node carries the address yet");
		return 0;
	}
	return vip_answers(env, why, size, f);
}

static int observe(const struct step_env *env, void **ret_seen,
		   struct fault *f)
{
	struct seen *s = calloc(1, sizeof(*s));
	struct kube *k = NULL;
	int r = 0;

	if (!s)
		return -ENOMEM;
	s->wanted = env->spec->control_plane.endpoint.v.family != 0 &&
		    env->spec->k3s.manage.v;
	if (s->wanted)
		r = members_open_api(env, "kube-vip", s->through, &k, f);
	if (r == 0 && s->wanted)
		r = vip_manifest(env, &s->manifest, f);
	if (r == 0 && s->wanted) {
		struct addon a = our_addon(s);

		r = addon_applied(k, &a, s->why, sizeof(s->why), f);
		s->applied = r > 0;
	}
	if (r >= 0 && s->wanted) {
		r = prove_once(env, s->why, sizeof(s->why), f);
		s->proven = r > 0;
	}
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
	char addr[IP_TEXT_MAX], key[96];
	int r = 0;

	(void)f;
	if (!s->wanted || (s->applied && s->proven))
		return 0;
	if (!s->applied)
		r = change_list_add(changes, CHANGE_SET, "addon garboard-kube-vip",
				    "", "the manifest of the spec");
	if (r == 0 && !s->proven) {
		(void)snprintf(key, sizeof(key), "endpoint %s",
			       ip_addr_format(&spec->control_plane.endpoint.v,
					      addr));
		r = change_list_add(changes, CHANGE_SET, key, s->why,
				    "answers every server, verified");
	}
	return r;
}

/* The holder's renewals must be seen to move; a frozen one looks alive. */
static int lease_moves(const struct step_env *env, struct kube *k,
		       struct fault *f)
{
	usec deadline = clock_boottime() + env->times->vip;
	struct kube_lease first = { 0 }, now;
	char why[VIP_WHY_MAX] = "nobody holds the lease";

	for (;;) {
		struct fault scratch = FAULT_INIT;
		json_t *o = NULL;
		int r = kube_get(k, LEASE_PATH, &o, &scratch);

		if (r == 0) {
			kube_read_lease(o, &now);
			json_decref(o);
			if (!first.renewed[0] && now.holder[0])
				first = now;
			else if (now.holder[0] &&
				 strcmp(first.renewed, now.renewed) != 0)
				return 0;
			if (now.holder[0])
				(void)snprintf(why, sizeof(why),
					       "%s holds the lease, not "
					       "renewed yet", now.holder);
		} else if (r == -EINTR) {
			return r;
		} else {
			(void)fault_str(&scratch, why, sizeof(why));
		}
		if (clock_boottime() >= deadline)
			return fault_set(f, -ETIMEDOUT, "kube-vip",
					 "the election does not move: %s. "
					 "Look at its pods' logs", why);
		progress_wait(env->progress, NULL, "kube-vip: %s", why);
		r = control_sleep(env->control,
				  clock_boottime() + env->times->poll);
		if (r < 0)
			return r;
	}
}

/* One unbroken time of proof; each failure starts it again. */
static int prove(const struct step_env *env, struct fault *f)
{
	usec deadline = clock_boottime() + env->times->vip;
	usec since = 0, now;
	char why[VIP_WHY_MAX] = "";

	for (;;) {
		int r = prove_once(env, why, sizeof(why), f);

		now = clock_boottime();
		if (r < 0)
			return r;
		if (r > 0 && since && now - since >= env->times->vip_proof)
			return 0;
		if (r == 0)
			since = 0;
		else if (!since)
			since = now;
		if (r == 0 && now >= deadline)
			return fault_set(f, -ETIMEDOUT, "endpoint",
					 "does not answer: %s. Cilium was not "
					 "started", why);
		progress_wait(env->progress, NULL, "endpoint: %s",
			      r ? "answers every server, must stay" : why);
		r = control_sleep(env->control, now + env->times->poll);
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
		r = vip_check_free(env, s->through, f);
	if (r == 0 && !s->applied)
		r = addon_put(env, &a, f);
	if (r == 0 && !s->applied)
		r = addon_wait(env, k, &a, env->times->vip, f);
	if (r == 0)
		r = lease_moves(env, k, f);
	if (r == 0)
		r = prove(env, f);
	if (r == 0)
		progress_fact(env->progress, NULL, "the endpoint answers every "
			      "server with a verified certificate");
	return r;
}

const struct step step_kube_vip = {
	.id = STEP_KUBE_VIP,
	.name = "kube-vip",
	.observe = observe,
	.plan = plan,
	.apply = apply,
	.seen_free = seen_free,
	.unverified = "that the endpoint would answer",
};
