/* Handlers that install, configure, start and feed k3s. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/blobs.h"
#include "agent/k3s.h"
#include "agent/k3s_files.h"
#include "agent/k3s_paths.h"
#include "agent/k3s_wipe.h"
#include "agent/k3s_work.h"
#include "agent/orders_job.h"
#include "common/cleanup.h"
#include "common/parse.h"

#define VERIFY_DEADLINE (120 * USEC_PER_SEC)
#define WIPE_DEADLINE (60 * USEC_PER_SEC)

static const char *root_of(const struct order_job *job)
{
	return job_env(job)->host->root;
}

/* A refusal of the files is one of the order: nothing was changed. */
static int outcome(int r)
{
	return r == -EPERM || r == -EINVAL ? JOB_REFUSED : r;
}

static int start_verify(struct order_job *job, const char *from,
			const char *to, const uint8_t sha256[32],
			child_done done, struct fault *f)
{
	struct k3s_verify *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return fault_errno(f, -ENOMEM, K3S_BINARY, "not verified");
	(void)snprintf(v->from, sizeof(v->from), "%s", from);
	(void)snprintf(v->to, sizeof(v->to), "%s", to);
	memcpy(v->sha256, sha256, 32);
	job->data = v;		/* freed with the job, after the child */
	r = child_start(job_env(job)->host->event, k3s_work_verify, v,
			VERIFY_DEADLINE, done, job, &job->child, f);
	return r < 0 ? r : JOB_LATER;
}

/* ---- K3sInstall ---- */

static void on_installed(void *userdata, int r, const char *output,
			 size_t size)
{
	struct order_job *job = userdata;
	const struct order_k3s_install *o = &job->order->install;
	const struct orders_env *env = job_env(job);
	struct state_install rec = { 0 };
	struct fault f = FAULT_INIT;

	(void)size;
	job->child = NULL;
	if (r < 0) {
		(void)fault_set(&f, r, "k3s", "%s",
				*output ? output : strerror(-r));
		orders_finish(job, r, &f);
		return;
	}
	memcpy(rec.sha256, o->sha256, sizeof(rec.sha256));
	(void)snprintf(rec.version, sizeof(rec.version), "%s", o->version);
	r = state_set_install(env->state, &rec, &f);
	(void)snprintf(job_result(job)->text, UP_TEXT_MAX, "%s verified",
		       o->version);
	orders_finish(job, r, &f);
}

int order_k3s_install(struct order_job *job, struct fault *f)
{
	const struct order_k3s_install *o = &job->order->install;
	char to[K3S_PATH_MAX], from[K3S_PATH_MAX];
	int r;

	(void)snprintf(to, sizeof(to), "%s%s", root_of(job), K3S_BINARY);
	if (o->from_image)
		return start_verify(job, to, "", o->sha256, on_installed, f);
	r = blobs_path(job_env(job)->state->dir, BLOB_K3S, o->sha256, from,
		       sizeof(from));
	if (r < 0)
		return job_refuse(f, "K3sInstall",
				  "the binary has not been delivered");
	return start_verify(job, from, to, o->sha256, on_installed, f);
}

/* ---- K3sConfigure ---- */

static int unseal_token(struct order_job *job, struct fault *f)
{
	const struct orders_env *env = job_env(job);
	const struct sealed *box = &job->order->configure.token;
	char context[SEAL_CONTEXT_MAX], id[33];
	uint8_t *plain = NULL;
	size_t size = 0;
	int r;

	if (!box->box)
		return 0;
	format_hex(env->state->node_id, sizeof(env->state->node_id), id);
	(void)snprintf(context, sizeof(context), SEAL_CONTEXT_TOKEN, id);
	r = seal_open(env->seal_key, context, box, &plain, &size, f);
	if (r < 0)
		return r;
	r = k3s_files_write_token(root_of(job), (const char *)plain, f);
	key_wipe(plain, size);
	free(plain);
	return r;
}

int order_k3s_configure(struct order_job *job, struct fault *f)
{
	const struct order_k3s_configure *o = &job->order->configure;
	int config, unit, token;
	bool ours = true;

	/* The refusals come first, so that a refused order changed nothing. */
	if (k3s_files_unit_is_ours(root_of(job), &ours) == 0 && !ours)
		return outcome(k3s_files_write_unit(root_of(job), o->agent, f));
	config = k3s_files_write_config(root_of(job), o, f);
	if (config < 0)
		return outcome(config);
	unit = k3s_files_write_unit(root_of(job), o->agent, f);
	if (unit < 0)
		return outcome(unit);
	token = unseal_token(job, f);
	if (token < 0)
		return token;
	(void)snprintf(job_result(job)->text, UP_TEXT_MAX, "%s",
		       config || unit || token ? "changed" : "unchanged");
	return JOB_DONE;
}

/* ---- K3sStart, K3sStop ---- */

static void on_acted(void *userdata, int r, const char *text)
{
	struct order_job *job = userdata;
	struct fault f = FAULT_INIT;

	if (r < 0)
		(void)fault_set(&f, r, K3S_UNIT, "%s",
				*text ? text : strerror(-r));
	orders_finish(job, r, &f);
}

static int act(struct order_job *job, enum k3s_action action, struct fault *f)
{
	int r = k3s_act(job_env(job)->k3s, action, on_acted, job, f);

	return r < 0 ? r : JOB_LATER;
}

/* Verified again just before it runs, not only when it was installed. */
static void on_verified(void *userdata, int r, const char *output, size_t size)
{
	struct order_job *job = userdata;
	struct fault f = FAULT_INIT;
	bool restart = job->order->start.mode == START_RESTART;

	(void)size;
	job->child = NULL;
	if (r < 0)
		(void)fault_set(&f, r, "k3s", "%s",
				*output ? output : strerror(-r));
	else
		r = act(job, restart ? K3S_RESTART : K3S_START, &f);
	if (r != JOB_LATER)
		orders_finish(job, r, &f);
}

static int check_found(struct order_job *job, bool has_data, struct fault *f)
{
	const struct orders_env *env = job_env(job);
	const struct order_k3s_start *o = &job->order->start;

	if (has_data)
		return job_refuse(f, "K3sStart",
				  "there is etcd data in " K3S_WAL "; "
				  "founding over it would make a second "
				  "cluster");
	if (!k3s_files_config_says(root_of(job), "cluster-init: true"))
		return job_refuse(f, "K3sStart",
				  "it is not configured as the founder");
	if (env->state->has_founding && env->state->founding.cluster_uid[0])
		return job_refuse(f, "K3sStart",
				  "cluster %s was founded here already",
				  env->state->founding.cluster_uid);
	/* The intent is on disk before anything can come of it. */
	if (o->has_intent)
		return state_set_founding(env->state, &o->intent, f);
	return 0;
}

static int check_join(struct order_job *job, bool has_data, struct fault *f)
{
	/* A server without `server:` would found a cluster of its own. */
	if (!k3s_files_config_says(root_of(job), "server: "))
		return job_refuse(f, "K3sStart",
				  "it is not configured to join anybody");
	if (has_data)
		return job_refuse(f, "K3sStart",
				  "there is etcd data of an earlier life in "
				  K3S_WAL "; resume it, or reset the node");
	return 0;
}

static int check_start(struct order_job *job, struct fault *f)
{
	bool has_data = k3s_files_has_data(root_of(job)), ours = false;

	if (k3s_files_unit_is_ours(root_of(job), &ours) < 0 || !ours)
		return job_refuse(f, "K3sStart",
				  K3S_UNIT " is not there or not Garboard's");
	switch (job->order->start.mode) {
	case START_FOUND:
		return check_found(job, has_data, f);
	case START_JOIN:
		return check_join(job, has_data, f);
	case START_RESUME:
	case START_RESTART:
		return 0;
	case START_MODE_MAX:
		break;
	}
	return job_refuse(f, "K3sStart", "unknown mode");
}

int order_k3s_start(struct order_job *job, struct fault *f)
{
	const struct orders_env *env = job_env(job);
	char path[K3S_PATH_MAX];
	int r;

	if (!env->state->install.version[0])
		return job_refuse(f, "K3sStart",
				  "no k3s binary was verified on this node");
	/* Asked again after an interruption: it runs, so it is done. */
	if (job->order->start.mode != START_RESTART &&
	    strncmp(k3s_unit_state(env->k3s), "active/", 7) == 0) {
		(void)snprintf(job_result(job)->text, UP_TEXT_MAX,
			       "already active");
		return JOB_DONE;
	}
	r = check_start(job, f);
	if (r != 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s%s", root_of(job), K3S_BINARY);
	return start_verify(job, path, "", env->state->install.sha256,
			    on_verified, f);
}

int order_k3s_stop(struct order_job *job, struct fault *f)
{
	return act(job, K3S_STOP, f);
}

/* ---- K3sReset ---- */

static void on_wiped(void *userdata, int r, const char *output, size_t size)
{
	struct order_job *job = userdata;
	struct fault f = FAULT_INIT;

	(void)size;
	job->child = NULL;
	if (r < 0)
		(void)fault_set(&f, r, "k3s", "%s",
				*output ? output : strerror(-r));
	else
		(void)snprintf(job_result(job)->text, UP_TEXT_MAX, "wiped");
	orders_finish(job, r, &f);
}

static int wipe(struct order_job *job, struct fault *f)
{
	struct k3s_wipe *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return fault_errno(f, -ENOMEM, "k3s", "not wiped");
	(void)snprintf(w->root, sizeof(w->root), "%s", root_of(job));
	job->data = w;		/* freed with the job, after the child */
	r = child_start(job_env(job)->host->event, k3s_wipe_work, w,
			WIPE_DEADLINE, on_wiped, job, &job->child, f);
	return r < 0 ? r : JOB_LATER;
}

static void on_stopped(void *userdata, int r, const char *text)
{
	struct order_job *job = userdata;
	struct fault f = FAULT_INIT;

	if (r < 0)
		(void)fault_set(&f, r, K3S_UNIT, "%s",
				*text ? text : strerror(-r));
	else
		r = wipe(job, &f);
	if (r != JOB_LATER)
		orders_finish(job, r, &f);
}

/*
 * READY means that the local member votes (K3S-CONTRACT 2.1): what runs is
 * never wiped, whatever the coordinator believes. The founding record
 * stays: it keeps a wiped server from founding a second cluster (CO-02).
 */
int order_k3s_reset(struct order_job *job, struct fault *f)
{
	const struct orders_env *env = job_env(job);
	bool ours = false;
	int r;

	if (strcmp(env->state->node_name, job->order->confirm_node) != 0)
		return job_refuse(f, "K3sReset", "it names another node");
	if (strncmp(k3s_unit_state(env->k3s), "active/", 7) == 0)
		return job_refuse(f, "K3sReset",
				  "k3s is up here: this server may be a "
				  "voting member");
	r = k3s_files_unit_is_ours(root_of(job), &ours);
	if (r == -ENOENT)	/* never started, or wiped to its end */
		return wipe(job, f);
	if (r < 0 || !ours)
		return job_refuse(f, "K3sReset", K3S_UNIT
				  " was not written by Garboard");
	r = k3s_act(env->k3s, K3S_STOP, on_stopped, job, f);
	return r < 0 ? r : JOB_LATER;
}

int order_put_manifest(struct order_job *job, struct fault *f)
{
	const struct order_put_manifest *o = &job->order->manifest;
	int r = k3s_files_write_manifest(root_of(job), o->slot, o->content.v,
					 o->content.n, f);

	if (r < 0)
		return r;
	(void)snprintf(job_result(job)->text, UP_TEXT_MAX, "%s",
		       r ? "changed" : "unchanged");
	return JOB_DONE;
}
