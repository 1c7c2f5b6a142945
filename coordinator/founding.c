#include "coordinator/founding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"
#include "coordinator/ask_servers.h"
#include "coordinator/cluster.h"
#include "coordinator/control_client.h"
#include "proto/keys.h"
#include "proto/up.h"
#include "spec/spec.h"

static int fill_record(struct order *o, const void *what)
{
	o->founding = *(const struct founding_record *)what;
	return 0;
}

static int tell_record(const struct step_env *env,
		       const struct founding_record *record, struct fault *f)
{
	return tell_servers(env, ORDER_RECORD_FOUNDING, fill_record, record,
			    f);
}

static int get_record(const struct step_env *env,
		      struct founding_record *ret_record, struct fault *f)
{
	struct fault scratch = FAULT_INIT;
	int r = control_founding_get(env->control, ret_record, &scratch);

	if (r < 0 && r != -ENOENT)
		return fault_set(f, r, scratch.object, "%s", scratch.text);
	return r;
}

int founding_intend(const struct step_env *env, const char *founder,
		    struct fault *f)
{
	struct founding_record record = { 0 };
	int r = get_record(env, &record, f);

	if (r == -ENOENT) {
		r = key_random(&record.intent, sizeof(record.intent));
		if (r < 0)
			return r;
		record.intent |= 1;	/* 0 means none */
		(void)snprintf(record.founder, sizeof(record.founder), "%s",
			       founder);
		r = control_founding_put(env->control, &record, f);
	}
	if (r < 0)
		return r;
	return tell_record(env, &record, f);
}

int founding_complete(const struct step_env *env, const char *node,
		      struct fault *f)
{
	struct cluster_credential cred = cluster_credential_get(env->cluster);
	struct founding_record record = { 0 };
	struct kube *k = NULL;
	char uid[64];
	int r = get_record(env, &record, f);

	if (r < 0)
		return r == -ENOENT ? fault_set(f, r, "founding record",
						"is missing on this host") : r;
	if (record.cluster_uid[0])
		return 1;
	r = cluster_kube(env->cluster, node, STREAM_API_LOCAL, NULL, &k, f);
	if (r == 0)
		r = cluster_uid(k, uid, f);
	if (r == 0)
		r = key_sha256(cred.ca, strlen(cred.ca), record.ca_sha256);
	if (r < 0)
		return r;
	record.has_ca = true;
	(void)snprintf(record.cluster_uid, sizeof(record.cluster_uid), "%s",
		       uid);
	/* Servers first: this host's record says that all of them know. */
	r = tell_record(env, &record, f);
	if (r == 0)
		r = control_founding_put(env->control, &record, f);
	return r;
}
