#include "coordinator/cni.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/kube_read.h"

#define SYSTEM "/api/v1/namespaces/kube-system"
#define APPS "/apis/apps/v1/namespaces/kube-system"
#define JOB "/apis/batch/v1/namespaces/kube-system/jobs/helm-install-cilium"

static const json_t *at(const json_t *o, const char *a, const char *b)
{
	return json_object_get(json_object_get(o, a), b);
}

/* The last words of a terminated container of the job's pods. */
static void job_words(struct kube *k, char *buf, size_t size)
{
	struct fault scratch = FAULT_INIT;
	json_t *list = NULL;
	const json_t *pod, *c, *last;
	size_t i, n;

	if (kube_get(k, SYSTEM "/pods?labelSelector=job-name%3D"
			       "helm-install-cilium", &list, &scratch) < 0)
		return;
	json_array_foreach(json_object_get(list, "items"), i, pod) {
		json_array_foreach(at(pod, "status", "containerStatuses"), n,
				   c) {
			last = json_object_get(json_object_get(c, "lastState"),
					       "terminated");
			if (json_string_value(json_object_get(last, "message")))
				(void)snprintf(buf, size, "%.200s",
					       json_string_value(
						       json_object_get(
							       last,
							       "message")));
		}
	}
	json_decref(list);
}

/* 1: complete. A job that is gone after its success is complete too. */
static int job_done(struct kube *k, char *why, size_t size, struct fault *f)
{
	struct fault scratch = FAULT_INIT;
	char words[220] = "";
	json_t *job = NULL;
	int r = kube_get(k, JOB, &job, &scratch);

	if (r == -ENOENT)
		return 1;
	if (r < 0)
		return fault_set(f, r, scratch.object, "%s", scratch.text);
	if (kube_read_condition(job, "Complete") == KUBE_TRUE) {
		r = 1;
	} else {
		job_words(k, words, sizeof(words));
		(void)snprintf(why, size, "the Helm job runs (%lld failed "
			       "tries)%s%s", (long long)json_integer_value(
				       at(job, "status", "failed")),
			       words[0] ? ": " : "", words);
		if (kube_read_condition(job, "Failed") == KUBE_TRUE)
			r = fault_set(f, -EREMOTEIO, "helm-install-cilium",
				      "failed for good: %s", words[0] ?
				      words : "see the job's pods");
	}
	json_decref(job);
	return r;
}

static int get_workload(struct kube *k, const char *path, bool daemonset,
			struct kube_workload *ret, char *why, size_t size,
			struct fault *f)
{
	struct fault scratch = FAULT_INIT;
	json_t *o = NULL;
	int r = kube_get(k, path, &o, &scratch);

	if (r == -ENOENT) {
		(void)snprintf(why, size, "%s is not there yet",
			       strrchr(path, '/') + 1);
		return 0;
	}
	if (r < 0)
		return fault_set(f, r, scratch.object, "%s", scratch.text);
	if (daemonset)
		kube_read_daemonset(o, ret);
	else
		kube_read_deployment(o, ret);
	json_decref(o);
	return 1;
}

static int rolled_out(struct kube *k, const struct cni_want *want, char *why,
		      size_t size, struct fault *f)
{
	struct kube_workload ds = { 0 }, op = { 0 };
	int r = get_workload(k, APPS "/daemonsets/cilium", true, &ds, why,
			     size, f);

	if (r > 0)
		r = get_workload(k, APPS "/deployments/cilium-operator", false,
				 &op, why, size, f);
	if (r <= 0)
		return r;
	if (!ds.observed || (size_t)ds.ready != want->nodes ||
	    ds.updated < ds.desired) {
		(void)snprintf(why, size, "%lld of %zu agents are ready, %lld "
			       "up to date", (long long)ds.ready, want->nodes,
			       (long long)ds.updated);
		return 0;
	}
	if (op.ready < 1) {
		(void)snprintf(why, size, "no operator is ready");
		return 0;
	}
	return 1;
}

static int nodes_ready(struct kube *k, const struct cni_want *want, char *why,
		       size_t size, struct fault *f)
{
	struct kube_nodes nodes = { 0 };
	json_t *list = NULL;
	size_t i, ready = 0;
	int r = kube_get(k, "/api/v1/nodes", &list, f);

	if (r == 0)
		r = kube_read_nodes(list, &nodes);
	json_decref(list);
	if (r < 0)
		return r;
	for (i = 0; i < nodes.n; i++)
		ready += nodes.v[i].ready == KUBE_TRUE;
	if (ready != nodes.n || nodes.n < want->nodes) {
		(void)snprintf(why, size, "%zu of %zu nodes are Ready", ready,
			       want->nodes);
		kube_nodes_done(&nodes);
		return 0;
	}
	kube_nodes_done(&nodes);
	return 1;
}

static bool pod_dials(const json_t *pod, const char *host, const char *port)
{
	const json_t *spec = json_object_get(pod, "spec");
	const char *h = kube_read_env(spec, "KUBERNETES_SERVICE_HOST");
	const char *p = kube_read_env(spec, "KUBERNETES_SERVICE_PORT");

	return h && p && strcmp(h, host) == 0 && strcmp(p, port) == 0;
}

int cni_agents(struct kube *k, const struct cni_want *want, size_t *ret_right,
	       size_t *ret_all, char *why, size_t size, struct fault *f)
{
	char host[IP_TEXT_MAX], port[16];
	json_t *list = NULL;
	const json_t *pod;
	size_t i, right = 0, all = 0;
	int r = kube_get(k, SYSTEM "/pods?labelSelector=k8s-app%3Dcilium",
			 &list, f);

	if (r < 0)
		return r;
	(void)ip_addr_format(&want->host, host);
	(void)snprintf(port, sizeof(port), "%u", want->port);
	json_array_foreach(json_object_get(list, "items"), i, pod) {
		const char *name = json_string_value(
			at(pod, "spec", "nodeName"));

		all++;
		if (pod_dials(pod, host, port))
			right++;
		else
			(void)snprintf(why, size, "the agent on %s does not "
				       "dial %s:%s", name ? name : "?", host,
				       port);
	}
	json_decref(list);
	*ret_right = right;
	*ret_all = all;
	return 0;
}

int cni_ready(struct kube *k, const struct cni_want *want, char *why,
	      size_t size, struct fault *f)
{
	size_t right = 0, all = 0;
	int r = job_done(k, why, size, f);

	if (r > 0)
		r = rolled_out(k, want, why, size, f);
	if (r > 0)
		r = nodes_ready(k, want, why, size, f);
	if (r <= 0)
		return r;
	r = cni_agents(k, want, &right, &all, why, size, f);
	if (r < 0)
		return r;
	if (all == want->nodes && right == all)
		return 1;
	if (all != want->nodes) {
		(void)snprintf(why, size, "%zu agents for %zu nodes", all,
			       want->nodes);
		return 0;
	}
	return fault_set(f, -EREMOTEIO, "cilium",
			 "is rolled out, but %s; somebody edited the "
			 "DaemonSet or the values", why);
}
