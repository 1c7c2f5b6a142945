#include "coordinator/bringup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"
#include "coordinator/ask.h"
#include "coordinator/cluster.h"
#include "coordinator/cni.h"
#include "coordinator/control_client.h"
#include "coordinator/egress.h"
#include "coordinator/gate.h"
#include "coordinator/k3s_server.h"
#include "coordinator/kubeconfig.h"
#include "coordinator/plan_digest.h"
#include "coordinator/sequencer.h"
#include "coordinator/vip.h"
#include "proto/order.h"
#include "proto/up.h"
#include "spec/spec.h"

struct bringup {
	struct step_env env;
	struct step_times times;
	struct gate_result gate;
	struct gate_server *servers;	/* evidence; texts live in facts */
	struct ask *facts;
	size_t n_servers;
	struct progress *progress;
	struct cluster *cluster;
	char live_uid[64];
	char cluster_id[33];
};

static void bringup_done(struct bringup *b)
{
	gate_result_done(&b->gate);
	free(b->servers);
	if (b->facts)
		ask_done(b->facts, b->n_servers);
	free(b->facts);
	b->cluster = cluster_free(b->cluster);
	b->progress = progress_free(b->progress);
}

static int bringup_init(struct bringup *b, const struct spec *spec,
			struct control *control,
			const struct bringup_options *o, FILE *out,
			struct fault *f)
{
	struct control_info info;
	int r;

	*b = (struct bringup){ 0 };
	step_times_init(&b->times, o->scale > 0 ? o->scale : 1);
	b->progress = progress_new(out, o->style);
	b->servers = calloc(spec->n_nodes + 1, sizeof(*b->servers));
	b->facts = calloc(spec->n_nodes + 1, sizeof(*b->facts));
	if (!b->progress || !b->servers || !b->facts)
		return -ENOMEM;
	b->env = (struct step_env){ .spec = spec,
				    .control = control,
				    .progress = b->progress,
				    .times = &b->times,
				    .gate = &b->gate,
				    .limit = o->limit };
	r = control_info(control, &info, f);
	if (r < 0)
		return r;
	format_hex(info.cluster_id, sizeof(info.cluster_id), b->cluster_id);
	return cluster_new(control, (uint16_t)spec->control_plane.port.v,
			   b->times.order, &b->cluster, f);
}

/* Servers that are not connected are not asked, and are not absent. */
static int ask_servers(struct bringup *b, struct fault *f)
{
	const struct spec *spec = b->env.spec;
	struct control_nodes nodes = { 0 };
	size_t i, n = 0;
	int r = control_nodes(b->env.control, &nodes, f);

	for (i = 0; r == 0 && i < spec->n_nodes; i++) {
		const char *name = spec->nodes[i].name.v;
		const struct control_node *c = control_nodes_find(&nodes, name);

		if (spec->nodes[i].role.v != SPEC_ROLE_SERVER)
			continue;
		b->servers[b->n_servers].name = name;
		b->servers[b->n_servers++].why =
			!c ? "it is not enrolled" :
			!c->connected ? "it is not connected" :
			c->held[0] ? "it is held" : NULL;
	}
	control_nodes_done(&nodes);
	for (i = 0; r == 0 && i < b->n_servers; i++) {
		if (b->servers[i].why)
			continue;
		b->facts[n].node = b->servers[i].name;
		b->facts[n].order = order_new(ORDER_READ_FACTS);
		r = b->facts[n++].order ? 0 : -ENOMEM;
	}
	if (r == 0)
		(void)ask_all(b->env.control, b->facts, n,
			      b->times.order, NULL);
	return r;
}

static const struct ask *facts_of(const struct bringup *b, const char *name)
{
	size_t i;

	for (i = 0; i < b->n_servers && b->facts[i].node; i++)
		if (strcmp(b->facts[i].node, name) == 0)
			return &b->facts[i];
	return NULL;
}

static void take_facts(struct bringup *b)
{
	size_t i;

	for (i = 0; i < b->n_servers; i++) {
		struct gate_server *s = &b->servers[i];
		const struct ask *a = facts_of(b, s->name);
		const struct up_facts *u;

		if (!a)
			continue;
		if (a->err < 0 || !a->result || !a->result->result.facts) {
			s->why = a->err < 0 ? a->fault.text :
					      "it answered without facts";
			continue;
		}
		u = a->result->result.facts;
		s->observed = true;
		s->has_record = u->has_founding;
		s->record = u->founding;
		s->has_data = u->k3s.has_data;
		(void)snprintf(s->ca_sha256, sizeof(s->ca_sha256), "%s",
			       u->k3s.ca_sha256);
	}
}

/* Only a cluster we hold a credential of can be asked for its identity. */
static const char *read_live_uid(struct bringup *b)
{
	struct fault scratch = FAULT_INIT;
	size_t i;

	for (i = 0; i < b->n_servers; i++) {
		const struct ask *a = facts_of(b, b->servers[i].name);
		struct kube *k = NULL;

		if (!b->servers[i].observed || !b->servers[i].has_data ||
		    !k3s_server_active(&a->result->result.facts->k3s))
			continue;
		if (cluster_credential(b->cluster, a->node, &scratch) > 0 &&
		    cluster_kube(b->cluster, a->node, STREAM_API_LOCAL, NULL,
				 &k, &scratch) == 0 &&
		    cluster_uid(k, b->live_uid, &scratch) == 0)
			return b->live_uid;
		fault_clear(&scratch);
	}
	return NULL;
}

static int run_gate(struct bringup *b, struct fault *f)
{
	const struct spec *spec = b->env.spec;
	struct fault scratch = FAULT_INIT;
	struct gate_input in = { .servers = b->servers };
	size_t founder = 0;
	int r = ask_servers(b, f);

	if (r < 0)
		return r;
	take_facts(b);
	r = control_founding_get(b->env.control, &in.record, &scratch);
	if (r < 0 && r != -ENOENT)
		return fault_set(f, r, scratch.object, "%s", scratch.text);
	in.has_record = r == 0;
	in.n_servers = b->n_servers;
	in.pin = spec->cluster_id.v;
	in.cluster_id = b->cluster_id;
	in.live_uid = in.has_record ? read_live_uid(b) : NULL;
	if (spec_founder(spec, &founder) == 0)
		in.founder = spec->nodes[founder].name.v;
	r = gate_judge(&in, &b->gate);
	if (r == 0 && !in.has_record && b->gate.verdict == GATE_KNOWN)
		r = fault_set(f, -EPERM, "founding record",
			      "is missing on this host, but the servers keep "
			      "one: this is not the state directory the "
			      "cluster was founded from. Restore it "
			      "(`garboard state restore`)");
	b->env.cluster = b->cluster;
	return r;
}

static int gate_exit(const struct gate_result *g, struct fault *f)
{
	switch (g->verdict) {
	case GATE_MAY_FOUND:
	case GATE_RESUME_FOUNDING:
	case GATE_KNOWN:
		return BRINGUP_DONE;
	case GATE_STOP_DIFFERENT:
		(void)fault_set(f, -EPERM, "provenance gate", "%s", g->text);
		return BRINGUP_REFUSED;
	case GATE_STOP_UNKNOWN:
		(void)fault_set(f, -EAGAIN, "provenance gate", "%s", g->text);
		return BRINGUP_INCOMPLETE;
	}
	return BRINGUP_FAILED;
}

static size_t workers(const struct spec *spec)
{
	return spec_count(spec, SPEC_ROLE_WORKER);
}

static int refuse_unsupported(const struct spec *spec, struct fault *f)
{
	if (workers(spec) > 0 && spec->k3s.manage.v)
		return fault_set(f, -EOPNOTSUPP, "nodes",
				 "%zu worker%s in the spec: joining workers is "
				 "not yet supported [workers]; nothing was "
				 "started", workers(spec),
				 workers(spec) == 1 ? "" : "s");
	if (spec->k3s.source.v == SPEC_SOURCE_PUSH)
		return fault_set(f, -EOPNOTSUPP, "k3s.source",
				 "push is not yet supported [k3s-push]; put "
				 "the binary into the image");
	return 0;
}

static int exit_of(int r, const struct sequence_result *res,
		   const struct bringup_options *o)
{
	if (r == -ENOENT && !res->failed)
		return BRINGUP_USAGE;
	if (r == -EPERM && res->changes == 0)
		return BRINGUP_REFUSED;
	if (r < 0)
		return BRINGUP_FAILED;
	if (res->outcome == SEQUENCE_WOULD_CHANGE && o->exit_code)
		return BRINGUP_PENDING;
	return BRINGUP_DONE;
}

static void tell_end(struct bringup *b, const struct sequence_result *res,
		     const struct bringup_options *o)
{
	if (res->unseen)
		progress_fact(b->progress, NULL, "not looked at: %s and what "
			      "follows, which stand on the changes above",
			      res->unseen);
	if (o->check)
		progress_fact(b->progress, NULL, "dry run: nothing was "
			      "changed, %zu change%s pending",
			      res->changes, res->changes == 1 ? "" : "s");
	else if (res->outcome == SEQUENCE_HOLDS)
		progress_fact(b->progress, NULL, "no change: everything "
			      "already holds");
	else if (res->outcome == SEQUENCE_CHANGED)
		progress_fact(b->progress, NULL, "%zu change%s, all of it "
			      "holds now", res->changes,
			      res->changes == 1 ? "" : "s");
}

struct approval {
	struct plan_digest *digest;
	const char *approved;	/* NULL: anything, or seen already */
};

/* Only the first stage that changes is in a plan; the rest follows it. */
static int approve(void *userdata, const char *stage,
		   const struct change_list *changes, struct fault *f)
{
	struct approval *a = userdata;
	int r = 0;

	plan_digest_add(a->digest, stage, changes);
	if (a->approved)
		r = plan_digest_check(a->digest, a->approved, f);
	a->approved = NULL;
	return r;
}

static int tell_plan(struct bringup *b, struct plan_digest *d)
{
	char hex[PLAN_DIGEST_SIZE];
	int r = plan_digest_get(d, hex);

	if (r == 0)
		progress_fact(b->progress, NULL, "plan %s", hex);
	return r;
}

/* sequence_run() for exactly the plan that was approved, if one was. */
static int run_sequence(struct bringup *b, const struct bringup_options *o,
			const char *only, struct sequence_result *res,
			struct fault *f)
{
	const struct spec *spec = b->env.spec;
	struct approval a = { .approved = o->plan };
	struct sequence_options so = { .check = o->check,
				       .only = only,
				       .approve = approve,
				       .userdata = &a };
	int r;

	a.digest = plan_digest_new(b->cluster_id, spec->source,
				   spec->source_size, o->limit, o->only);
	if (!a.digest)
		return -ENOMEM;
	r = sequence_run(step_registry, STEP_MAX, &b->env, &so, res, f);
	if (r >= 0 && a.approved)	/* nothing had to be changed */
		r = plan_digest_check(a.digest, a.approved, f);
	if (r >= 0)
		tell_end(b, res, o);
	if (r >= 0 && o->check)
		r = tell_plan(b, a.digest);
	(void)plan_digest_free(a.digest);
	return r;
}

static int run_stages(struct bringup *b, const struct bringup_options *o,
		      const char *only, struct fault *f)
{
	struct sequence_result res = { 0 };
	struct fault scratch = FAULT_INIT;
	int r = run_sequence(b, o, only, &res, f);

	if (r < 0 && res.failed && !o->check)
		(void)control_event(b->env.control, res.failed, NULL, f->text,
				    &scratch);
	if (r == -EINTR)
		progress_fact(b->progress, NULL, "stopped by the operator; "
			      "nodes keep what they have, `garboard up` goes "
			      "on from here");
	return exit_of(r, &res, o);
}

int bringup_up(const struct spec *spec, struct control *control,
	       const struct bringup_options *options, FILE *out,
	       struct fault *f)
{
	struct bringup b;
	int code = BRINGUP_FAILED, r = bringup_init(&b, spec, control,
						    options, out, f);

	if (r == 0 && refuse_unsupported(spec, f) < 0) {
		bringup_done(&b);
		return BRINGUP_REFUSED;
	}
	if (r == 0)
		r = run_gate(&b, f);
	if (r == -EPERM)
		code = BRINGUP_REFUSED;
	if (r == 0) {
		code = gate_exit(&b.gate, f);
		if (code == BRINGUP_DONE)
			progress_fact(b.progress, NULL, "gate: %s",
				      b.gate.text);
	}
	if (r == 0 && code == BRINGUP_DONE)
		code = run_stages(&b, options, options->only, f);
	bringup_done(&b);
	return code;
}

int bringup_verify(const struct spec *spec, struct control *control,
		   const struct bringup_options *options, FILE *out,
		   struct fault *f)
{
	struct bringup_options o = *options;

	o.check = true;
	o.only = "verify";
	return bringup_up(spec, control, &o, out, f);
}

int bringup_doctor(const struct spec *spec, struct control *control,
		   const struct bringup_options *options, FILE *out,
		   struct fault *f)
{
	struct bringup b;
	int code = BRINGUP_FAILED, r = bringup_init(&b, spec, control,
						    options, out, f);
	size_t i;

	if (r == 0)
		r = run_gate(&b, f);
	for (i = 0; r == 0 && i < b.gate.n; i++)
		progress_fact(b.progress, b.gate.v[i].where, "%s: %s%s%s",
			      b.gate.v[i].what,
			      gate_rating_name(b.gate.v[i].rating),
			      b.gate.v[i].text[0] ? ", " : "",
			      b.gate.v[i].text);
	if (r == 0) {
		progress_fact(b.progress, NULL, "verdict: %s", b.gate.text);
		code = gate_exit(&b.gate, f);
	}
	bringup_done(&b);
	return code;
}

int bringup_kubeconfig(const struct spec *spec, struct control *control,
		       char **ret_text, struct fault *f)
{
	struct cluster_credential cred;
	struct cluster *cluster = NULL;
	struct ip_addr api = spec_api_address(spec);
	struct step_times times;
	size_t founder = 0;
	int r;

	step_times_init(&times, 1);
	r = cluster_new(control, (uint16_t)spec->control_plane.port.v,
			times.order, &cluster, f);
	if (r == 0)
		r = spec_founder(spec, &founder);
	if (r == 0)
		r = cluster_credential(cluster, spec->nodes[founder].name.v,
				       f);
	if (r == 0)
		r = fault_set(f, -ENOENT, "kubeconfig",
			      "there is no admin credential yet; run "
			      "`garboard up` first");
	if (r > 0) {
		cred = cluster_credential_get(cluster);
		r = kubeconfig_render(spec->cluster.v, &api,
				      (uint16_t)spec->control_plane.port.v,
				      &cred, ret_text, f);
	}
	(void)cluster_free(cluster);
	return r;
}

int bringup_manifests(const struct spec *spec, struct control *control,
		      FILE *out, struct fault *f)
{
	char *kube_vip = NULL, *cilium = NULL, *egress = NULL;
	json_t *policy = NULL;
	struct step_times times;
	struct step_env env = { .spec = spec,
				.control = control,
				.times = &times };
	int r = 0;

	step_times_init(&times, 1);
	if (spec->control_plane.endpoint.v.family)
		r = vip_manifest(&env, &kube_vip, f);
	if (r == 0)
		r = cni_manifest(spec, &cilium, f);
	if (r == 0 && egress_class(spec))
		r = egress_want(spec, control, NULL, &policy, f);
	if (r == 0 && policy)
		r = egress_text(policy, &egress, f);
	if (r == 0)
		(void)fprintf(out, "%s---\n%s%s%s", kube_vip ? kube_vip : "",
			      cilium, egress ? "---\n" : "",
			      egress ? egress : "");
	free(kube_vip);
	free(cilium);
	free(egress);
	json_decref(policy);
	return r;
}
