/*
 * orders_job.h - one order under way, and the handlers of all kinds.
 *
 * Private to agent/orders*.c. A handler fills job->result and returns:
 * JOB_DONE; JOB_LATER, and then calls orders_finish() once; JOB_REFUSED
 * (illegal here, nothing was done; the fault says why); or a negative errno
 * (tried and failed; the fault is the cause).
 */
#pragma once

#include "agent/child.h"
#include "agent/neigh_probe.h"
#include "agent/orders.h"

#define JOB_DONE 0
#define JOB_LATER 1
#define JOB_REFUSED 2

struct order_job {
	struct orders *orders;
	struct order_job *next;
	struct order *order;
	const void *envelope;		/* valid until the handler returns */
	size_t envelope_size;
	uint64_t epoch, sequence;
	uint8_t digest[32];		/* of the payload */
	struct up *up;			/* kind UP_RESULT */
	struct child *child;		/* freed with the job */
	struct neigh_probe *probe;	/* freed with the job */
	sd_event_source *timer;		/* freed with the job */
	void *data;			/* of the handler; free(3)d with it */
	/* A frame for the link that must follow the result, not precede it. */
	uint8_t *frame;
	size_t frame_size;
	uint8_t frame_type;
};

const struct orders_env *job_env(const struct order_job *job);
struct up_result *job_result(struct order_job *job);

/* Sets a fault and returns JOB_REFUSED. */
int job_refuse(struct fault *f, const char *object, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* For JOB_LATER; `r` and `f` as a handler's own. The job is gone after. */
void orders_finish(struct order_job *job, int r, const struct fault *f);

typedef int (*order_handler)(struct order_job *job, struct fault *f);

/* orders_table.c: a handler for every kind; NULL for none. */
order_handler orders_handler(enum order_kind kind);

/* orders_node.c */
int order_set_desired(struct order_job *job, struct fault *f);
int order_read_facts(struct order_job *job, struct fault *f);
int order_lease(struct order_job *job, struct fault *f);
int order_probe(struct order_job *job, struct fault *f);
int order_reboot(struct order_job *job, struct fault *f);
int order_disarm(struct order_job *job, struct fault *f);
int order_arm(struct order_job *job, struct fault *f);
int order_record_founding(struct order_job *job, struct fault *f);

/* orders_trust.c */
int order_trust_update(struct order_job *job, struct fault *f);
int order_open_stream(struct order_job *job, struct fault *f);
int order_read_credential(struct order_job *job, struct fault *f);

/* orders_blob.c */
int order_blob(struct order_job *job, struct fault *f);

/* orders_k3s.c */
int order_k3s_install(struct order_job *job, struct fault *f);
int order_k3s_configure(struct order_job *job, struct fault *f);
int order_k3s_start(struct order_job *job, struct fault *f);
int order_k3s_stop(struct order_job *job, struct fault *f);
int order_k3s_reset(struct order_job *job, struct fault *f);
int order_put_manifest(struct order_job *job, struct fault *f);
