/*
 * Counted proof of the whole: each property is one line, and the count
 * must reach what is computed from the spec alone (B50, B72..B78). Changes
 * nothing; a failing or missing property fails the stage.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/cluster.h"
#include "coordinator/cni.h"
#include "coordinator/control_client.h"
#include "coordinator/egress.h"
#include "coordinator/members.h"
#include "coordinator/progress.h"
#include "coordinator/steps/step.h"
#include "coordinator/vip.h"
#include "proto/up.h"
#include "spec/spec.h"

struct seen {
	size_t passed, failed;
	size_t floor;		/* how many there must be */
	char first[FAULT_TEXT_MAX];
};

static void prop(const struct step_env *env, struct seen *s, bool ok,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static void prop(const struct step_env *env, struct seen *s, bool ok,
		 const char *fmt, ...)
{
	char text[FAULT_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	progress_fact(env->progress, NULL, "%s %s", ok ? "ok  " : "FAIL",
		      text);
	if (ok) {
		s->passed++;
		return;
	}
	if (s->failed++ == 0)
		(void)snprintf(s->first, sizeof(s->first), "%s", text);
}

/* Independent of what was run: five a server, and the rest. */
static size_t count_floor(const struct spec *spec)
{
	size_t servers = spec_count(spec, SPEC_ROLE_SERVER);
	size_t n = 5 * servers + 4;

	if (spec->control_plane.endpoint.v.family)
		n += 2;
	if (spec->egress.n_classes > 0)
		n += 1;
	if (egress_class(spec))
		n += 3;
	return n;
}

static void verify_server(const struct step_env *env, struct seen *s,
			  size_t i, const struct members *m,
			  const struct kube_nodes *nodes)
{
	const char *name = env->spec->nodes[i].name.v;
	const struct kube_node *n = kube_nodes_find(nodes, name);
	struct fault scratch = FAULT_INIT;
	struct kube *k = NULL;
	int r;

	prop(env, s, n && n->ready == KUBE_TRUE, "%s is Ready", name);
	prop(env, s, n && strstr(n->version, "+k3s"),
	     "%s runs k3s (kubelet %s)", name, n ? n->version : "?");
	prop(env, s, n && m->v[i].voter && n->etcd && n->control_plane,
	     "%s is a voting etcd member and control plane%s%s", name,
	     m->v[i].why[0] ? ": " : "", m->v[i].why);
	prop(env, s, n && !n->unschedulable, "%s is not cordoned", name);
	r = cluster_kube(env->cluster, m->through, STREAM_API_SERVER,
			 &env->spec->nodes[i].address.v, &k, &scratch);
	if (r == 0)
		r = cluster_ready(k, &scratch);
	prop(env, s, r == 0, "%s answers /readyz at its own address, "
	     "verified%s%s", name, r ? ": " : "", r ? scratch.text : "");
}

static void verify_topology(const struct step_env *env, struct seen *s,
			    const struct members *m,
			    const struct kube_nodes *nodes)
{
	size_t servers = spec_count(env->spec, SPEC_ROLE_SERVER), i;

	prop(env, s, nodes->n == env->spec->n_nodes,
	     "the cluster has %zu nodes, the spec %zu", nodes->n,
	     env->spec->n_nodes);
	prop(env, s, m->voters == servers && m->learners == 0 &&
	     !m->strangers, "etcd has %zu voters and %zu learners for %zu "
	     "servers", m->voters, m->learners, servers);
	prop(env, s, servers == 1 || spec_tolerance(servers) >= 1,
	     "%zu servers survive the loss of %zu", servers,
	     spec_tolerance(servers));
	for (i = 0; i < env->spec->n_nodes; i++)
		if (env->spec->nodes[i].role.v == SPEC_ROLE_SERVER)
			verify_server(env, s, i, m, nodes);
}

static int verify_endpoint(const struct step_env *env, struct seen *s,
			   struct fault *f)
{
	char names[200], why[VIP_WHY_MAX] = "";
	size_t n = 0;
	int r;

	if (!env->spec->control_plane.endpoint.v.family)
		return 0;
	r = vip_carriers(env, &n, names, sizeof(names), f);
	if (r < 0)
		return r;
	prop(env, s, n == 1, "exactly one node carries the endpoint (%s)",
	     n ? names : "none");
	r = vip_answers(env, why, sizeof(why), f);
	if (r < 0)
		return r;
	prop(env, s, r > 0, "the endpoint answers /readyz from every server, "
	     "verified%s%s", r ? "" : ": ", why);
	return 0;
}

static void verify_cilium(const struct step_env *env, struct seen *s,
			  struct kube *k)
{
	struct cni_want want = cni_want_of(env->spec);
	struct fault scratch = FAULT_INIT;
	char why[CNI_WHY_MAX] = "";
	int r = cni_ready(k, &want, why, sizeof(why), &scratch);

	prop(env, s, r > 0, "cilium is ready on every node and dials the "
	     "endpoint%s%s", r > 0 ? "" : ": ",
	     r < 0 ? scratch.text : why);
}

/* MN-03: a path that no layer sees is never shown as fine. */
static int verify_covered(const struct step_env *env, struct seen *s,
			  struct fault *f)
{
	struct control_nodes nodes = { 0 };
	char first[256] = "";
	size_t i, told = 0;
	int r = 0;

	if (env->spec->egress.n_classes == 0)
		return 0;
	r = control_nodes(env->control, &nodes, f);
	for (i = 0; r == 0 && i < env->spec->n_nodes; i++) {
		const char *name = env->spec->nodes[i].name.v;
		const struct control_node *n = control_nodes_find(&nodes, name);
		bool there = n && n->connected && n->report;

		told += there;
		if (first[0] || (there && !n->report->report.uncovered.n))
			continue;
		(void)snprintf(first, sizeof(first), "%s: %.180s", name,
			       there ? n->report->report.uncovered.v[0] :
				       "cannot tell, no report");
	}
	control_nodes_done(&nodes);
	if (r < 0)
		return r;
	prop(env, s, !first[0], "no path of the class is without a layer that "
	     "sees it, on %zu nodes%s%s", told, first[0] ? ": " : "", first);
	return 0;
}

/* The egress class as Cilium carries it out (B83 to B86, KS-13). */
static int verify_egress(const struct step_env *env, struct seen *s,
			 struct kube *k, struct fault *f)
{
	char why[EGRESS_WHY_MAX] = "";
	json_t *want = NULL;
	int r;

	if (!egress_class(env->spec))
		return 0;
	r = egress_want(env->spec, env->control, k, &want, f);
	if (r < 0)
		return r;
	r = egress_current(k, want, why, sizeof(why), f);
	json_decref(want);
	if (r < 0)
		return r;
	prop(env, s, r > 0, "one egress policy stands, with the tunnel's "
	     "address of now%s%s", r > 0 ? "" : ": ", r > 0 ? "" : why);
	r = egress_labels_stand(k, env->spec, why, sizeof(why), f);
	if (r < 0)
		return r;
	prop(env, s, r > 0, "the class's gateways carry its label, and no "
	     "other node%s%s", r > 0 ? "" : ": ", r > 0 ? "" : why);
	r = egress_mode(k, env->spec, why, sizeof(why), f);
	if (r < 0)
		return r;
	prop(env, s, r > 0, "cilium runs in a mode that keeps the class's "
	     "packets in sight%s%s", r > 0 ? "" : ": ", r > 0 ? "" : why);
	return 0;
}

static int run_all(const struct step_env *env, struct seen *s,
		   struct fault *f)
{
	struct members m = { 0 };
	struct kube_nodes nodes = { 0 };
	struct kube *k = NULL;
	int r = members_read(env, NULL, &m, f);

	if (r < 0)
		return r;
	if (!m.api)
		r = fault_set(f, -EREMOTEIO, "verify", "no API answers: %s",
			      m.why);
	if (r == 0)
		r = cluster_kube(env->cluster, m.through, STREAM_API_LOCAL,
				 NULL, &k, f);
	if (r == 0)
		r = cluster_nodes(k, &nodes, f);
	if (r == 0) {
		verify_topology(env, s, &m, &nodes);
		r = verify_endpoint(env, s, f);
	}
	if (r == 0) {
		verify_cilium(env, s, k);
		r = verify_covered(env, s, f);
	}
	if (r == 0) {
		r = verify_egress(env, s, k, f);
	}
	kube_nodes_done(&nodes);
	members_done(&m);
	return r;
}

static void seen_free(void *seen)
{
	free(seen);
}

static int observe(const struct step_env *env, void **ret_seen,
		   struct fault *f)
{
	struct seen *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->floor = count_floor(env->spec);
	r = run_all(env, s, f);
	if (r < 0) {
		free(s);
		return r;
	}
	progress_fact(env->progress, NULL, "%zu properties hold, %zu fail, at "
		      "least %zu are required", s->passed, s->failed,
		      s->floor);
	*ret_seen = s;
	return 0;
}

static int plan(const struct spec *spec, const void *seen,
		struct change_list *changes, struct fault *f)
{
	const struct seen *s = seen;

	(void)spec;
	(void)changes;
	if (s->failed)
		return fault_set(f, -EREMOTEIO, "verify",
				 "%zu of %zu properties do not hold; the "
				 "first: %.300s", s->failed,
				 s->failed + s->passed, s->first);
	if (s->passed < s->floor)
		return fault_set(f, -EREMOTEIO, "verify",
				 "only %zu properties were checked, the spec "
				 "asks for %zu: too few is a failure",
				 s->passed, s->floor);
	return 0;
}

static int apply(const struct step_env *env, const void *seen,
		 const struct change_list *changes, struct fault *f)
{
	(void)env;
	(void)seen;
	(void)changes;
	(void)f;
	return 0;	/* it never plans a change */
}

const struct step step_verify = {
	.id = STEP_VERIFY,
	.name = "verify",
	.observe = observe,
	.plan = plan,
	.apply = apply,
	.seen_free = seen_free,
};
