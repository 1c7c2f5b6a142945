/* Handlers about the node itself: its baseline, facts, probes and lease. */
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/armed.h"
#include "agent/facts.h"
#include "agent/hardware.h"
#include "agent/k3s.h"
#include "agent/lease.h"
#include "agent/neigh_probe.h"
#include "agent/orders_job.h"
#include "agent/power.h"
#include "agent/trial.h"
#include "common/cleanup.h"
#include "proto/desired_wire.h"
#include "proto/envelope.h"

#define PROBE_DEADLINE (8 * USEC_PER_SEC)

int order_set_desired(struct order_job *job, struct fault *f)
{
	const struct orders_env *env = job_env(job);
	struct desired *d = job->order->desired;
	int r;

	if (strcmp(d->node, env->state->node_name) != 0)
		return job_refuse(f, "SetDesired",
				  "it is meant for node %s, this is %s",
				  d->node, env->state->node_name);
	/* On disk before it is in force: a power cut must not undo it. */
	r = trial_begin(env->trial, d, f);
	if (r < 0)
		return r;
	r = state_put_desired(env->state, job->envelope, job->envelope_size,
			      f);
	if (r < 0) {
		trial_cancel(env->trial);
		return r;
	}
	(void)snprintf(job_result(job)->text, UP_TEXT_MAX,
		       "generation %" PRIu64, d->generation);
	engine_set_desired(env->engine, take_ptr(job->order->desired));
	return JOB_DONE;
}

int orders_decode_desired(const void *bytes, size_t size,
			  struct desired **ret_desired, struct fault *f)
{
	struct order *o = NULL;
	struct envelope e;
	int r;

	/* Our own disk: its signature was verified when it was accepted. */
	if (envelope_peek(bytes, size, &e) != ENVELOPE_OK)
		return fault_set(f, -EBADMSG, "desired", "is no envelope");
	r = order_decode(e.payload, e.header.length, &o, f);
	if (r < 0)
		return r;
	if (o->kind == ORDER_SET_DESIRED)
		*ret_desired = take_ptr(o->desired);
	else
		r = fault_set(f, -EBADMSG, "desired", "is another order");
	(void)order_free(o);
	return r;
}

int orders_stored_desired(const struct node_state *state,
			  struct desired **ret_desired, struct fault *f)
{
	_cleanup_free_ char *bytes = NULL;
	size_t size;
	int r;

	r = state_get_desired(state, &bytes, &size, f);
	if (r == -ENOENT)
		return 1;
	return r < 0 ? r : orders_decode_desired(bytes, size, ret_desired, f);
}

int orders_restore_desired(const struct node_state *state,
			   struct engine *engine, struct fault *f)
{
	struct desired *d = NULL;
	int r = orders_stored_desired(state, &d, f);

	if (r == 0)
		engine_set_desired(engine, d);
	return r;
}

static int fill_facts(const struct orders_env *env, struct up_facts *facts)
{
	const struct desired *d = engine_desired(env->engine);
	int r;

	r = facts_identity(env->host->root, &facts->identity);
	if (r == 0)
		r = facts_leftovers(env->host->root, &facts->leftovers);
	if (r == 0 && d && d->cluster.endpoint.family)
		r = facts_interfaces_for(&d->cluster.endpoint,
					 &facts->vip_interfaces);
	if (r == 0)
		r = k3s_status_copy(env->k3s, &facts->k3s);
	hardware_read(env->host->root, &facts->hardware);
	facts->has_founding = env->state->has_founding;
	facts->founding = env->state->founding;
	facts->clock = clock_realtime();
	facts->clock_synchronised = facts_clock_synchronised();
	return r;
}

int order_read_facts(struct order_job *job, struct fault *f)
{
	struct up_facts *facts = calloc(1, sizeof(*facts));
	int r;

	if (!facts)
		return fault_errno(f, -ENOMEM, "facts", "cannot be read");
	job_result(job)->facts = facts;	/* freed with the result */
	r = fill_facts(job_env(job), facts);
	return r < 0 ? fault_errno(f, r, "facts", "cannot be read") : JOB_DONE;
}

int order_lease(struct order_job *job, struct fault *f)
{
	const struct orders_env *env = job_env(job);
	struct state_lease next;
	int r;

	r = lease_decide(&env->state->lease, &job->order->lease,
			 clock_boottime(), &next, f);
	if (r < 0)
		return JOB_REFUSED;
	return state_set_lease(env->state, &next, f);
}

int order_record_founding(struct order_job *job, struct fault *f)
{
	const struct orders_env *env = job_env(job);
	const struct founding_record *have = &env->state->founding;
	const struct founding_record *rec = &job->order->founding;

	/* What is founded is never overwritten: that is the gate's evidence. */
	if (env->state->has_founding && have->cluster_uid[0] &&
	    strcmp(have->cluster_uid, rec->cluster_uid) != 0)
		return job_refuse(f, "founding record",
				  "cluster %s was founded here by %s; it is "
				  "not replaced by %s",
				  have->cluster_uid, have->founder,
				  rec->cluster_uid[0] ? rec->cluster_uid :
							"an intent");
	return state_set_founding(env->state, rec, f);
}

static void probe_answer(struct order_job *job, bool ok, const char *text)
{
	struct up_probe *p = job_result(job)->probe;

	p->ok = ok;
	(void)snprintf(p->text, sizeof(p->text), "%s", text);
}

static void on_neighbour(void *userdata, int r, const char *mac)
{
	struct order_job *job = userdata;
	struct fault f = FAULT_INIT;
	char text[96];

	job->probe = NULL;
	if (r < 0) {
		(void)fault_errno(&f, r, "probe", "no verdict of the kernel");
		orders_finish(job, r, &f);
		return;
	}
	(void)snprintf(text, sizeof(text), "%s%s",
		       r ? "answered by " : "nobody answers", r ? mac : "");
	probe_answer(job, r == 0, text);
	orders_finish(job, JOB_DONE, &f);
}

static int probe_address_free(struct order_job *job, const struct ip_addr *vip,
			      struct fault *f)
{
	const struct orders_env *env = job_env(job);
	struct strlist names = STRLIST_INIT;
	unsigned int ifindex = 0;
	int r;

	if (facts_carries(vip)) {
		probe_answer(job, false, "carried by this node");
		return JOB_DONE;
	}
	r = facts_interfaces_for(vip, &names);
	if (r == 0 && names.n > 0)
		ifindex = if_nametoindex(names.v[0]);
	strlist_done(&names);
	if (!ifindex)
		return fault_set(f, -ENODEV, "probe",
				 "no interface of this node is in the "
				 "endpoint's subnet");
	r = neigh_probe_start(env->host->event, ifindex, vip, PROBE_DEADLINE,
			      on_neighbour, job, &job->probe, f);
	return r < 0 ? r : JOB_LATER;
}

int order_probe(struct order_job *job, struct fault *f)
{
	const struct desired *d = engine_desired(job_env(job)->engine);
	const struct ip_addr *vip = d ? &d->cluster.endpoint : NULL;

	if (job->order->probe == PROBE_DB_INFO)
		return job_refuse(f, "probe",
				  "the agent has no IP socket: use a stream");
	if (!vip || !vip->family)
		return job_refuse(f, "probe", "no endpoint is desired");
	job_result(job)->probe = calloc(1, sizeof(struct up_probe));
	if (!job_result(job)->probe)
		return fault_errno(f, -ENOMEM, "probe", "cannot be made");
	switch (job->order->probe) {
	case PROBE_ADDRESS_FREE:
		return probe_address_free(job, vip, f);
	case PROBE_CARRIES_ENDPOINT:
		probe_answer(job, facts_carries(vip), "");
		return JOB_DONE;
	case PROBE_DB_INFO:
	case PROBE_KIND_MAX:
		break;
	}
	return job_refuse(f, "probe", "unknown kind");
}

int order_reboot(struct order_job *job, struct fault *f)
{
	/* The result goes out first; then the node goes down. */
	int r = power_reboot_soon(job_env(job)->host, f);

	return r < 0 ? r : JOB_DONE;
}

/* The only ways to open a class but root on the console (DESIGN 5.1). */
static int set_class(struct order_job *job,
		     int (*set)(const char *state_dir, const char *name,
				struct fault *f),
		     struct fault *f)
{
	const struct orders_env *env = job_env(job);
	const struct order_class *o = &job->order->klass;
	int r = set(env->state->dir, o->class_name, f);

	if (r == -ENOENT)
		return job_refuse(f, o->class_name,
				  "no class of that name was ever armed here");
	if (r < 0)
		return r;
	(void)snprintf(job_result(job)->text, UP_TEXT_MAX, "class %s: %s",
		       o->class_name, o->reason);
	engine_look_again(env->engine);
	return JOB_DONE;
}

int order_disarm(struct order_job *job, struct fault *f)
{
	return set_class(job, armed_disarm, f);
}

int order_arm(struct order_job *job, struct fault *f)
{
	return set_class(job, armed_arm, f);
}
