#include "coordinator/kube_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const json_t *at(const json_t *o, const char *a, const char *b)
{
	return json_object_get(json_object_get(o, a), b);
}

static void copy_string(char *buf, size_t size, const json_t *value)
{
	const char *text = json_string_value(value);

	(void)snprintf(buf, size, "%s", text ? text : "");
}

int kube_read_members(const char *text, struct kube_members *ret_members)
{
	/* An etcd id is a full u64, which jansson reads only as a real. */
	json_t *root = json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);
	const json_t *list = json_object_get(root, "members"), *m;
	struct kube_members out = { 0 };
	size_t i;
	int r = 0;

	if (!json_is_array(list) || json_array_size(list) > KUBE_LIST_MAX)
		r = -EPROTO;
	else
		out.v = calloc(json_array_size(list) + 1, sizeof(*out.v));
	if (r == 0 && !out.v)
		r = -ENOMEM;
	if (r == 0) {
		json_array_foreach(list, i, m) {
			struct kube_member *o = &out.v[out.n++];

			copy_string(o->name, sizeof(o->name),
				    json_object_get(m, "name"));
			copy_string(o->peer, sizeof(o->peer),
				    json_array_get(json_object_get(m,
								   "peerURLs"),
						   0));
			o->learner = json_is_true(
				json_object_get(m, "isLearner"));
		}
		*ret_members = out;
	}
	json_decref(root);
	return r;
}

void kube_members_done(struct kube_members *m)
{
	free(m->v);
	*m = (struct kube_members){ 0 };
}

enum kube_tristate kube_read_condition(const json_t *object, const char *type)
{
	const json_t *list = at(object, "status", "conditions"), *c;
	size_t i;

	json_array_foreach(list, i, c) {
		const char *t = json_string_value(json_object_get(c, "type"));
		const char *s = json_string_value(json_object_get(c, "status"));

		if (!t || !s || strcmp(t, type) != 0)
			continue;
		if (strcmp(s, "True") == 0)
			return KUBE_TRUE;
		return strcmp(s, "False") == 0 ? KUBE_FALSE : KUBE_UNKNOWN;
	}
	return KUBE_UNKNOWN;
}

static void read_address(const json_t *node, char *buf, size_t size)
{
	const json_t *list = at(node, "status", "addresses"), *a;
	size_t i;

	buf[0] = '\0';
	json_array_foreach(list, i, a) {
		const char *t = json_string_value(json_object_get(a, "type"));

		if (t && strcmp(t, "InternalIP") == 0 && !buf[0])
			copy_string(buf, size, json_object_get(a, "address"));
	}
}

static void read_node(const json_t *o, struct kube_node *n)
{
	const json_t *meta = json_object_get(o, "metadata");
	const json_t *labels = json_object_get(meta, "labels");

	copy_string(n->name, sizeof(n->name), json_object_get(meta, "name"));
	copy_string(n->etcd_name, sizeof(n->etcd_name),
		    at(meta, "annotations", "etcd.k3s.cattle.io/node-name"));
	copy_string(n->version, sizeof(n->version),
		    json_object_get(at(o, "status", "nodeInfo"),
				    "kubeletVersion"));
	read_address(o, n->address, sizeof(n->address));
	n->ready = kube_read_condition(o, "Ready");
	n->voter = kube_read_condition(o, "EtcdIsVoter");
	n->control_plane = json_object_get(
		labels, "node-role.kubernetes.io/control-plane");
	n->etcd = json_object_get(labels, "node-role.kubernetes.io/etcd");
	n->unschedulable = json_is_true(at(o, "spec", "unschedulable"));
}

int kube_read_nodes(const json_t *list, struct kube_nodes *ret_nodes)
{
	const json_t *items = json_object_get(list, "items"), *o;
	struct kube_nodes out = { 0 };
	size_t i;

	if (!json_is_array(items) || json_array_size(items) > KUBE_LIST_MAX)
		return -EPROTO;
	out.v = calloc(json_array_size(items) + 1, sizeof(*out.v));
	if (!out.v)
		return -ENOMEM;
	json_array_foreach(items, i, o)
		read_node(o, &out.v[out.n++]);
	*ret_nodes = out;
	return 0;
}

const struct kube_node *kube_nodes_find(const struct kube_nodes *nodes,
					const char *name)
{
	size_t i;

	for (i = 0; i < nodes->n; i++)
		if (strcmp(nodes->v[i].name, name) == 0)
			return &nodes->v[i];
	return NULL;
}

void kube_nodes_done(struct kube_nodes *nodes)
{
	free(nodes->v);
	*nodes = (struct kube_nodes){ 0 };
}

static bool generation_seen(const json_t *o)
{
	const json_t *want = at(o, "metadata", "generation");
	const json_t *seen = at(o, "status", "observedGeneration");

	return json_integer_value(want) == json_integer_value(seen);
}

void kube_read_daemonset(const json_t *o, struct kube_workload *ret_workload)
{
	const json_t *s = json_object_get(o, "status");

	*ret_workload = (struct kube_workload){
		.desired = json_integer_value(
			json_object_get(s, "desiredNumberScheduled")),
		.ready = json_integer_value(json_object_get(s, "numberReady")),
		.updated = json_integer_value(
			json_object_get(s, "updatedNumberScheduled")),
		.observed = generation_seen(o),
	};
}

void kube_read_deployment(const json_t *o, struct kube_workload *ret_workload)
{
	const json_t *s = json_object_get(o, "status");

	*ret_workload = (struct kube_workload){
		.desired = json_integer_value(at(o, "spec", "replicas")),
		.ready = json_integer_value(json_object_get(s, "readyReplicas")),
		.updated = json_integer_value(
			json_object_get(s, "updatedReplicas")),
		.observed = generation_seen(o),
	};
}

void kube_read_lease(const json_t *o, struct kube_lease *ret_lease)
{
	copy_string(ret_lease->holder, sizeof(ret_lease->holder),
		    at(o, "spec", "holderIdentity"));
	copy_string(ret_lease->renewed, sizeof(ret_lease->renewed),
		    at(o, "spec", "renewTime"));
}

const char *kube_read_addon(const json_t *o, char ret_sum[65])
{
	copy_string(ret_sum, 65, at(o, "spec", "checksum"));
	return ret_sum;
}

static const char *event_time(const json_t *e)
{
	const char *t = json_string_value(json_object_get(e, "lastTimestamp"));

	if (!t)
		t = json_string_value(json_object_get(e, "eventTime"));
	return t ? t : "";
}

const char *kube_read_warning(const json_t *list, char *buf, size_t size)
{
	const json_t *items = json_object_get(list, "items"), *e;
	const char *newest = "";
	size_t i;

	buf[0] = '\0';
	json_array_foreach(items, i, e) {
		const char *type = json_string_value(json_object_get(e, "type"));
		const char *why = json_string_value(
			json_object_get(e, "reason"));
		const char *text = json_string_value(
			json_object_get(e, "message"));

		if (!type || strcmp(type, "Warning") != 0 ||
		    strcmp(event_time(e), newest) < 0)
			continue;
		newest = event_time(e);
		(void)snprintf(buf, size, "%s: %s", why ? why : "(no reason)",
			       text ? text : "");
	}
	return buf;
}

static const char *container_env(const json_t *container, const char *name)
{
	const json_t *list = json_object_get(container, "env"), *e;
	size_t i;

	json_array_foreach(list, i, e) {
		const char *n = json_string_value(json_object_get(e, "name"));

		if (n && strcmp(n, name) == 0)
			return json_string_value(json_object_get(e, "value"));
	}
	return NULL;
}

const char *kube_read_env(const json_t *pod_spec, const char *name)
{
	const json_t *list = json_object_get(pod_spec, "containers"), *c;
	const char *value;
	size_t i;

	json_array_foreach(list, i, c) {
		value = container_env(c, name);
		if (value)
			return value;
	}
	return NULL;
}
