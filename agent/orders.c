#include "agent/orders.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/k3s.h"
#include "agent/orders_job.h"
#include "agent/trial.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "proto/envelope.h"

struct orders {
	struct orders_env env;
	uint8_t binding[16];	/* the nonce, or that of our enrolment */
	bool bound;		/* there is a session to answer to */
	uint64_t told;		/* bits: reasons logged in this session */
	struct order_job *jobs;
	size_t n_jobs;
};

enum drop_reason {		/* beside those of envelope.h, for `told` */
	DROP_NO_SESSION = ENVELOPE_REASON_MAX,
	DROP_NO_STATEMENT,
	DROP_OTHER_SESSION,
	DROP_OTHER_EPOCH,
	DROP_STALE,
	DROP_NUMBER_REUSED,
	DROP_DISK,
	DROP_REVOKED,
	DROP_STATEMENT,
	DROP_MAX,
};
_Static_assert(DROP_MAX <= 64, "a bit for every reason");

const struct orders_env *job_env(const struct order_job *job)
{
	return &job->orders->env;
}

struct up_result *job_result(struct order_job *job)
{
	return &job->up->result;
}

int job_refuse(struct fault *f, const char *object, const char *fmt, ...)
{
	char text[FAULT_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)fault_set(f, -EPERM, object, "%s", text);
	return JOB_REFUSED;
}

/* Each reason once per session: a hostile relay must not fill the journal. */
static int drop(struct orders *o, unsigned int reason, struct fault *f)
{
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];
	uint64_t bit = UINT64_C(1) << reason;

	if (!(o->told & bit))
		log_warning("order dropped: %s",
			    fault_str(f, text, sizeof(text)));
	o->told |= bit;
	return f->err;
}

int orders_new(const struct orders_env *env, struct orders **ret_orders)
{
	struct orders *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->env = *env;
	*ret_orders = o;
	return 0;
}

static void job_free(struct order_job *job)
{
	struct order_job **p = &job->orders->jobs;

	while (*p && *p != job)
		p = &(*p)->next;
	if (*p) {
		*p = job->next;
		job->orders->n_jobs--;
	}
	(void)child_free(job->child);
	(void)neigh_probe_free(job->probe);
	if (job->orders->env.k3s)
		k3s_forget(job->orders->env.k3s, job);
	(void)sd_event_source_disable_unref(job->timer);
	(void)order_free(job->order);
	(void)up_free(job->up);
	free(job->data);
	free(job->frame);
	free(job);
}

struct orders *orders_free(struct orders *o)
{
	if (!o)
		return NULL;
	while (o->jobs)
		job_free(o->jobs);
	free(o);
	return NULL;
}

void orders_session(struct orders *o, const uint8_t nonce[16])
{
	memcpy(o->binding, nonce, 16);
	o->bound = true;
	o->told = 0;
}

void orders_expect_enrolment(struct orders *o, const uint8_t binding[16])
{
	orders_session(o, binding);
}

int orders_statement(struct orders *o, const void *bytes, size_t size,
		     struct fault *f)
{
	const struct bundle *b = o->env.bundle;
	struct node_state *s = o->env.state;
	struct statement next, seen;
	int r;

	r = statement_verify(bytes, size, b->cluster_id, b->trust_root, &next,
			     f);
	if (r < 0)
		return drop(o, DROP_STATEMENT, f);
	if (s->has_statement &&
	    statement_verify(s->statement, STATEMENT_SIZE, b->cluster_id,
			     b->trust_root, &seen, NULL) == 0) {
		if (!statement_supersedes(&seen, &next)) {
			(void)fault_set(f, -ESTALE, "statement",
					"order key of epoch %" PRIu64
					" is older than, or contradicts, that "
					"of epoch %" PRIu64,
					next.epoch, seen.epoch);
			return drop(o, DROP_STATEMENT, f);
		}
		if (memcmp(s->statement, bytes, STATEMENT_SIZE) == 0)
			return 0;
	}
	r = state_set_statement(s, bytes, &next, f);
	if (r < 0)
		return drop(o, DROP_DISK, f);
	log_notice("order key of epoch %" PRIu64 " accepted", next.epoch);
	return 0;
}

/* ---- the answer ---- */

static void answer_stored(struct orders *o, const void *bytes, size_t size)
{
	o->env.emit(o->env.userdata, bytes, size);
}

/* On disk first; an answer that cannot be kept is sent all the same. */
static void answer(struct order_job *job)
{
	struct orders *o = job->orders;
	_cleanup_free_ uint8_t *bytes = NULL;
	struct fault f = FAULT_INIT;
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];
	size_t size = 0;

	if (up_encode(job->up, &bytes, &size, &f) < 0 ||
	    state_put_result(o->env.state, job->epoch, job->sequence,
			     job->digest, bytes, size, &f) < 0)
		log_error("result of order %" PRIu64 ".%" PRIu64
			  " is not kept: %s",
			  job->epoch, job->sequence,
			  fault_str(&f, text, sizeof(text)));
	if (bytes)
		answer_stored(o, bytes, size);
}

static void log_outcome(const struct order_job *job)
{
	const struct up_result *res = &job->up->result;
	const char *name = job->order ? order_row(job->order->kind)->name :
					"order";

	if (res->code == RESULT_DONE) {
		/* A secret that leaves the node is as good as a change. */
		if (job->order && (order_row(job->order->kind)->changes ||
				   job->order->kind == ORDER_READ_CREDENTIAL))
			log_notice("%s done%s%s", name, *res->text ? ": " : "",
				   res->text);
		return;
	}
	log_warning("%s %s: %s", name,
		    res->code == RESULT_REFUSED ? "refused" : "failed",
		    res->text);
}

void orders_finish(struct order_job *job, int r, const struct fault *f)
{
	struct up_result *res = job_result(job);
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];

	if (r == JOB_DONE)
		res->code = RESULT_DONE;
	else
		res->code = r == JOB_REFUSED ? RESULT_REFUSED : RESULT_FAILED;
	if (r != JOB_DONE)
		(void)snprintf(res->text, sizeof(res->text), "%s",
			       fault_str(f, text, sizeof(text)));
	log_outcome(job);
	answer(job);
	if (job->frame)	/* a link that is away asks again when it is back */
		(void)job->orders->env.send(job->orders->env.userdata,
					    job->frame_type, job->frame,
					    job->frame_size);
	job_free(job);
}

static void answer_interrupted(struct orders *o, uint64_t epoch,
			       uint64_t sequence)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct up *up = up_new(UP_RESULT);
	size_t size;

	if (!up)
		return;
	up->result.epoch = epoch;
	up->result.sequence = sequence;
	up->result.code = RESULT_FAILED;
	(void)snprintf(up->result.text, sizeof(up->result.text),
		       "interrupted by a restart of the agent: outcome "
		       "unknown, look before asking again");
	if (up_encode(up, &bytes, &size, NULL) == 0)
		answer_stored(o, bytes, size);
	(void)up_free(up);
}

/* ---- acceptance ---- */

static bool is_running(const struct orders *o, uint64_t epoch, uint64_t seq)
{
	const struct order_job *j;

	for (j = o->jobs; j; j = j->next)
		if (j->epoch == epoch && j->sequence == seq)
			return true;
	return false;
}

/* Not newer: either it was answered already, or it is not for us to do. */
static int answer_old(struct orders *o, const struct envelope *e,
		      const uint8_t digest[32], struct fault *f)
{
	const struct envelope_header *h = &e->header;
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size;
	int r;

	if (is_running(o, h->epoch, h->sequence))
		return 0;
	r = state_get_result(o->env.state, h->epoch, h->sequence, digest,
			     &bytes, &size, f);
	if (r >= 0) {
		fault_clear(f);
		answer_stored(o, bytes, size);
		return 0;
	}
	if (r == -EEXIST)
		return drop(o, DROP_NUMBER_REUSED, f);
	fault_clear(f);
	if (envelope_compare(o->env.state->epoch, o->env.state->sequence,
			     h->epoch, h->sequence) == ENVELOPE_REPEATED) {
		answer_interrupted(o, h->epoch, h->sequence);
		return 0;
	}
	(void)fault_set(f, -ESTALE, "envelope",
			"order %" PRIu64 ".%" PRIu64 " is older than %" PRIu64
			".%" PRIu64 ", the last one acted on",
			h->epoch, h->sequence, o->env.state->epoch,
			o->env.state->sequence);
	return drop(o, DROP_STALE, f);
}

static int verify(struct orders *o, const void *bytes, size_t size,
		  struct envelope *ret, struct fault *f)
{
	struct node_state *s = o->env.state;
	struct envelope_expect expect = { .direction = ENVELOPE_DOWN };
	enum envelope_reason reason;
	struct statement st;

	if (!o->bound) {
		(void)fault_set(f, -ENOTCONN, "envelope",
				"there is no session");
		return drop(o, DROP_NO_SESSION, f);
	}
	if (!s->has_statement ||
	    statement_verify(s->statement, STATEMENT_SIZE,
			     o->env.bundle->cluster_id,
			     o->env.bundle->trust_root, &st, f) < 0) {
		(void)fault_set(f, -ENOKEY, "envelope",
				"no order key is known: the statement of the "
				"trust root has not arrived");
		return drop(o, DROP_NO_STATEMENT, f);
	}
	memcpy(expect.cluster_id, o->env.bundle->cluster_id, 16);
	memcpy(expect.node_id, s->node_id, 16);
	memcpy(expect.public_key, st.order_key, KEY_PUBLIC_SIZE);
	reason = envelope_verify(bytes, size, &expect, ret);
	if (reason != ENVELOPE_OK) {
		(void)fault_set(f, -EBADMSG, "envelope", "%s",
				envelope_reason_text(reason));
		return drop(o, reason, f);
	}
	if (ret->header.epoch != st.epoch) {
		(void)fault_set(f, -ESTALE, "envelope",
				"epoch %" PRIu64 " is not that of the order "
				"key, %" PRIu64, ret->header.epoch, st.epoch);
		return drop(o, DROP_OTHER_EPOCH, f);
	}
	if (!key_equal(ret->header.binding, o->binding, 16)) {
		(void)fault_set(f, -EBADMSG, "envelope",
				"it belongs to another session");
		return drop(o, DROP_OTHER_SESSION, f);
	}
	return 0;
}

/* The shape of the order against what we are; then its handler. */
static int carry_out(struct order_job *job, const struct envelope *e,
		     struct fault *f)
{
	const struct orders_env *env = job_env(job);
	unsigned int now = env->state->enrolled ? ORDER_WHEN_ENROLLED :
						  ORDER_WHEN_UNENROLLED;
	const struct order_row *row;
	order_handler handler;
	int r;

	r = order_decode(e->payload, e->header.length, &job->order, f);
	if (r < 0)
		return JOB_REFUSED;
	row = order_row(job->order->kind);
	if (!(row->states & now))
		return job_refuse(f, row->name, "not legal %s enrolment",
				  env->state->enrolled ? "after" : "before");
	if (job->orders->n_jobs > ORDERS_RUNNING_MAX)
		return job_refuse(f, row->name, "too many orders under way");
	handler = orders_handler(job->order->kind);
	if (!handler)
		return job_refuse(f, row->name, "not yet supported");
	return handler(job, f);
}

static int start_job(struct orders *o, const struct envelope *e,
		     const uint8_t digest[32], const void *bytes, size_t size)
{
	struct order_job *job = calloc(1, sizeof(*job));
	struct fault f = FAULT_INIT;
	int r;

	if (!job)
		return -ENOMEM;
	job->orders = o;
	job->up = up_new(UP_RESULT);
	if (!job->up) {
		free(job);
		return -ENOMEM;
	}
	job->next = o->jobs;
	o->jobs = job;
	o->n_jobs++;
	job->envelope = bytes;
	job->envelope_size = size;
	job->epoch = job->up->result.epoch = e->header.epoch;
	job->sequence = job->up->result.sequence = e->header.sequence;
	memcpy(job->digest, digest, sizeof(job->digest));
	r = carry_out(job, e, &f);
	job->envelope = NULL;
	if (r != JOB_LATER)
		orders_finish(job, r, &f);
	return 0;
}

int orders_receive(struct orders *o, const void *bytes, size_t size,
		   struct fault *f)
{
	struct node_state *s = o->env.state;
	uint8_t digest[32];
	struct envelope e;
	int r;

	r = verify(o, bytes, size, &e, f);
	if (r < 0)
		return r;
	r = key_sha256(e.payload, e.header.length, digest);
	if (r < 0)
		return r;
	if (envelope_compare(s->epoch, s->sequence, e.header.epoch,
			     e.header.sequence) != ENVELOPE_NEXT)
		return answer_old(o, &e, digest, f);
	if (s->revoked) {
		(void)fault_set(f, -EKEYREVOKED, "envelope",
				"this node is revoked: reset-identity and "
				"enrol it again");
		return drop(o, DROP_REVOKED, f);
	}
	r = state_set_order(s, e.header.epoch, e.header.sequence, f);
	if (r < 0)
		return drop(o, DROP_DISK, f);
	trial_heard(o->env.trial);
	return start_job(o, &e, digest, bytes, size);
}

void orders_stream_result(struct orders *o, const uint8_t stream_id[16],
			  int err, const char *text)
{
	struct fault f = FAULT_INIT;
	struct order_job *j;

	for (j = o->jobs; j; j = j->next)
		if (j->order && j->order->kind == ORDER_OPEN_STREAM &&
		    memcmp(j->order->stream.stream_id, stream_id, 16) == 0)
			break;
	if (!j)
		return;
	if (err < 0)
		(void)fault_set(&f, err, "stream", "%s", text);
	orders_finish(j, err < 0 ? err : JOB_DONE, &f);
}
