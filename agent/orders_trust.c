/* Handlers about trust: who we are, streams, and secrets that leave. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/k3s_files.h"
#include "agent/orders_job.h"
#include "common/cleanup.h"
#include "common/parse.h"
#include "proto/frame.h"

#define DIAL_DEADLINE (20 * USEC_PER_SEC)

/* ---- TrustUpdate ---- */

/* After the result: the link drops its session when it gets this. */
static int hand_over_certificate(struct order_job *job, struct fault *f)
{
	const struct order_trust_update *t = &job->order->trust;
	const void **items = calloc(t->n_ca + 1, sizeof(*items));
	_cleanup_free_ size_t *sizes = calloc(t->n_ca + 1, sizeof(*sizes));
	size_t i;
	int r;

	if (!items || !sizes) {
		free(items);
		return fault_errno(f, -ENOMEM, "certificate", "not passed on");
	}
	items[0] = t->certificate.v;
	sizes[0] = t->certificate.n;
	for (i = 0; i < t->n_ca; i++) {
		items[i + 1] = t->ca[i].v;
		sizes[i + 1] = t->ca[i].n;
	}
	r = frame_pack_list(items, sizes, t->n_ca + 1, &job->frame,
			    &job->frame_size);
	job->frame_type = FRAME_CERTIFICATE;
	free(items);
	return r < 0 ? fault_errno(f, r, "certificate", "not passed on") : 0;
}

static int hand_over_addresses(const struct orders_env *env,
			       const struct strlist *addresses,
			       struct fault *f)
{
	char body[4096];
	size_t i, n = 0;
	int r;

	for (i = 0; i < addresses->n && n < sizeof(body); i++)
		n += (size_t)snprintf(body + n, sizeof(body) - n, "%s\n",
				      addresses->v[i]);
	if (n >= sizeof(body))
		return fault_set(f, -E2BIG, "addresses", "too many");
	r = env->send(env->userdata, FRAME_ADDRESSES, body, n);
	return r < 0 ? fault_errno(f, r, "addresses", "not passed on") : 0;
}

static int bind_identity(struct order_job *job, struct fault *f)
{
	static const uint8_t nobody[16];
	const struct order_trust_update *t = &job->order->trust;
	const struct orders_env *env = job_env(job);
	const char *name = t->node_name[0] ? t->node_name :
					     env->state->node_name;

	if (!t->has_node_id && !t->node_name[0])
		return 0;
	if (!*name)
		return job_refuse(f, "TrustUpdate", "it names no node");
	/* Nobody's, in envelopes before an enrolment. */
	if (t->has_node_id && memcmp(t->node_id, nobody, sizeof(nobody)) == 0)
		return job_refuse(f, "TrustUpdate", "a node id of zeros");
	if (env->state->enrolled && t->has_node_id &&
	    memcmp(env->state->node_id, t->node_id, 16) != 0)
		return job_refuse(f, "TrustUpdate",
				  "the id of an enrolled node never changes");
	return state_set_identity(env->state,
				  t->has_node_id ? t->node_id :
						   env->state->node_id,
				  name, f);
}

int order_trust_update(struct order_job *job, struct fault *f)
{
	const struct order_trust_update *t = &job->order->trust;
	const struct orders_env *env = job_env(job);
	bool was_enrolled = env->state->enrolled;
	int r;

	if (!was_enrolled && (!t->has_node_id || !t->certificate.n))
		return job_refuse(f, "TrustUpdate",
				  "an enrolment needs a node id and a "
				  "certificate");
	if (t->revoke) {
		r = state_set_revoked(env->state, f);
		if (r == 0)
			env->identity_changed(env->userdata);
		return r;
	}
	r = bind_identity(job, f);
	if (r != 0)
		return r;
	if (t->addresses.n) {
		r = state_set_addresses(env->state, &t->addresses, f);
		if (r == 0)
			r = hand_over_addresses(env, &t->addresses, f);
		if (r < 0)
			return r;
	}
	if (t->certificate.n)
		r = hand_over_certificate(job, f);
	if (r == 0 && !was_enrolled)
		env->identity_changed(env->userdata);
	return r;
}

/* ---- OpenStream ---- */

static int on_dial_deadline(sd_event_source *s, uint64_t due, void *userdata)
{
	struct fault f = FAULT_INIT;

	(void)s;
	(void)due;
	(void)fault_set(&f, -ETIMEDOUT, "stream", "the link does not answer");
	orders_finish(userdata, -ETIMEDOUT, &f);
	return 0;
}

/* Only where the accepted desired state already points to. */
static int stream_address(const struct order_open_stream *o,
			  const struct desired *d, struct ip_addr *ret,
			  struct fault *f)
{
	size_t i;

	switch (o->target) {
	case STREAM_API_LOCAL:
		return ip_addr_parse("127.0.0.1", ret);
	case STREAM_API_ENDPOINT:
		if (!d->cluster.endpoint.family)
			return job_refuse(f, "OpenStream",
					  "no endpoint is desired");
		*ret = d->cluster.endpoint;
		return 0;
	case STREAM_API_SERVER:
		for (i = 0; i < d->cluster.n_servers; i++)
			if (ip_addr_cmp(&d->cluster.servers[i],
					&o->server) == 0) {
				*ret = o->server;
				return 0;
			}
		return job_refuse(f, "OpenStream",
				  "the address is no server's of the desired "
				  "state");
	case STREAM_TARGET_MAX:
		break;
	}
	return job_refuse(f, "OpenStream", "unknown target");
}

static int send_dial(struct order_job *job, const struct ip_addr *address,
		     uint16_t port, struct fault *f)
{
	const struct orders_env *env = job_env(job);
	char text[IP_TEXT_MAX];
	uint8_t body[18 + IP_TEXT_MAX];
	size_t n;
	int r;

	(void)ip_addr_format(address, text);
	n = strlen(text);
	memcpy(body, job->order->stream.stream_id, 16);
	body[16] = port >> 8;
	body[17] = port & 0xff;
	memcpy(body + 18, text, n);
	r = env->send(env->userdata, FRAME_STREAM_DIAL, body, 18 + n);
	return r < 0 ? fault_errno(f, r, "stream", "the link was not asked") :
		       0;
}

int order_open_stream(struct order_job *job, struct fault *f)
{
	const struct orders_env *env = job_env(job);
	const struct desired *d = engine_desired(env->engine);
	struct ip_addr address = { 0 };
	int r;

	if (!d)
		return job_refuse(f, "OpenStream", "nothing is desired yet");
	r = stream_address(&job->order->stream, d, &address, f);
	if (r != 0)
		return r;
	r = send_dial(job, &address, d->cluster.port, f);
	if (r == 0)
		r = sd_event_add_time_relative(env->host->event, &job->timer,
					       CLOCK_BOOTTIME, DIAL_DEADLINE,
					       0, on_dial_deadline, job);
	return r < 0 ? r : JOB_LATER;
}

/* ---- ReadCredential ---- */

int order_read_credential(struct order_job *job, struct fault *f)
{
	const struct orders_env *env = job_env(job);
	const struct order_read_credential *o = &job->order->credential;
	char context[SEAL_CONTEXT_MAX], id[33], *text = NULL;
	size_t size = 0;
	int r;

	r = k3s_files_credential(env->host->root, o->kind, &text, &size, f);
	if (r < 0)
		return r;
	format_hex(env->state->node_id, sizeof(env->state->node_id), id);
	(void)snprintf(context, sizeof(context), SEAL_CONTEXT_CREDENTIAL, id);
	r = seal_to(o->seal_key, context, text, size,
		    &job_result(job)->credential, f);
	key_wipe(text, size);
	free(text);
	return r;
}
