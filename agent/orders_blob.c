/* Handler of Blob: chunks in order, the last one hashed in a child. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/blobs.h"
#include "agent/k3s_work.h"
#include "agent/orders_job.h"

#define HASH_DEADLINE (600 * USEC_PER_SEC)

static void on_hashed(void *userdata, int r, const char *output, size_t size)
{
	struct order_job *job = userdata;
	const struct orders_env *env = job_env(job);
	const struct k3s_verify *v = job->data;
	struct fault f = FAULT_INIT;

	(void)size;
	job->child = NULL;
	if (r < 0) {
		(void)fault_set(&f, r, "blob", "%s",
				*output ? output : strerror(-r));
		(void)remove(v->from);
	} else {
		r = blobs_accept(env->state->dir, env->host->root,
				 &job->order->blob, &f);
	}
	orders_finish(job, r, &f);
}

int order_blob(struct order_job *job, struct fault *f)
{
	const struct orders_env *env = job_env(job);
	const struct order_blob *chunk = &job->order->blob;
	struct k3s_verify *v;
	int r;

	r = blobs_append(env->state->dir, chunk, f);
	if (r <= 0)
		return r == -ESPIPE ? JOB_REFUSED : r;
	v = calloc(1, sizeof(*v));
	if (!v)
		return fault_errno(f, -ENOMEM, "blob", "not hashed");
	job->data = v;
	memcpy(v->sha256, chunk->sha256, sizeof(v->sha256));
	r = blobs_part(env->state->dir, chunk->kind, chunk->sha256, v->from,
		       sizeof(v->from));
	if (r == 0)
		r = child_start(env->host->event, k3s_work_digest, v,
				HASH_DEADLINE, on_hashed, job, &job->child, f);
	return r < 0 ? r : JOB_LATER;
}
