#include "coordinator/egress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/control_client.h"
#include "coordinator/kube_read.h"
#include "coordinator/yaml_out.h"
#include "proto/up.h"
#include "spec/derive.h"
#include "spec/spec.h"

#define POLICIES "/apis/cilium.io/v2/ciliumegressgatewaypolicies"
#define KIND                                                                  \
	"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"            \
	"ciliumegressgatewaypolicies.cilium.io"
#define CONFIG "/api/v1/namespaces/kube-system/configmaps/cilium-config"
#define PER_NODE "/apis/cilium.io/v2/ciliumnodeconfigs"
#define NODES "/api/v1/nodes"
#define CONFLICTS_MAX 8		/* of one node's object, with the kubelet */

static const json_t *at(const json_t *o, const char *a, const char *b)
{
	return json_object_get(json_object_get(o, a), b);
}

static const char *name_of(const json_t *o)
{
	const char *name = json_string_value(at(o, "metadata", "name"));

	return name ? name : "?";
}

static const json_t *addresses_of(const json_t *policy)
{
	return json_object_get(at(policy, "metadata", "annotations"),
			       EGRESS_ADDRESSES);
}

const struct spec_class *egress_class(const struct spec *spec)
{
	size_t i;

	for (i = 0; i < spec->egress.n_classes; i++)
		if (spec_given(spec->egress.classes[i].pods_pos))
			return &spec->egress.classes[i];
	return NULL;
}

/* ---- the policy ---- */

static int get_or_none(struct kube *k, const char *path, json_t **ret_object,
		       struct fault *f)
{
	struct fault scratch = FAULT_INIT;
	int r = kube_get(k, path, ret_object, &scratch);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return fault_set(f, r, scratch.object, "%s", scratch.text);
	return 1;
}

static int get_policy(struct kube *k, const char *name, json_t **ret_object,
		      struct fault *f)
{
	char path[sizeof(POLICIES) + EGRESS_NAME_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", POLICIES, name);
	return get_or_none(k, path, ret_object, f);
}

/* "NODE=ADDRESS" for what a gateway reports of its tunnel. */
static int reported(const struct control_nodes *nodes, const char *node,
		    const char *tunnel, struct strlist *list)
{
	const struct control_node *n = control_nodes_find(nodes, node);
	size_t i, len = strlen(tunnel), before = list->n;
	char text[CONTROL_NAME_MAX + IP_TEXT_MAX + 2];
	int r = 0;

	if (!n || !n->report)
		return 0;
	for (i = 0; r == 0 && i < n->report->report.tunnels.n; i++) {
		const char *t = n->report->report.tunnels.v[i];

		if (strncmp(t, tunnel, len) != 0 || t[len] != ' ')
			continue;
		(void)snprintf(text, sizeof(text), "%s=%.63s", node,
			       t + len + 1);
		r = strlist_add(list, text);
	}
	return r < 0 ? r : list->n > before;
}

/* What stands for this gateway, so that a tunnel that is down is no news. */
static int standing(const char *text, const char *node, struct strlist *list)
{
	size_t len = strlen(node), n;
	int r = 0;

	for (; r == 0 && *text; text += n + (text[n] == ',')) {
		char one[CONTROL_NAME_MAX + IP_TEXT_MAX + 2];

		n = strcspn(text, ",");
		if (n >= sizeof(one) || n <= len || text[len] != '=' ||
		    strncmp(text, node, len) != 0)
			continue;
		memcpy(one, text, n);
		one[n] = '\0';
		r = strlist_add(list, one);
	}
	return r;
}

static int addresses(const struct spec_class *c, struct control *control,
		     const json_t *live, struct strlist *ret_list,
		     struct fault *f)
{
	const char *text = json_string_value(addresses_of(live));
	struct control_nodes nodes = { 0 };
	size_t i;
	int r = control_nodes(control, &nodes, f);

	for (i = 0; r >= 0 && i < c->gateways.n; i++) {
		r = reported(&nodes, c->gateways.v[i].v, c->tunnel.v,
			     ret_list);
		if (r == 0 && text)
			r = standing(text, c->gateways.v[i].v, ret_list);
	}
	control_nodes_done(&nodes);
	strlist_sort(ret_list);
	return r < 0 ? r : 0;
}

int egress_want(const struct spec *spec, struct control *control,
		struct kube *k, json_t **ret_object, struct fault *f)
{
	const struct spec_class *c = egress_class(spec);
	struct strlist list = STRLIST_INIT;
	struct desired *d = NULL;
	char name[EGRESS_NAME_MAX];
	json_t *live = NULL;
	int r = k ? get_policy(k, egress_name(c->name.v, name), &live, f) : 0;

	if (r >= 0)
		r = addresses(c, control, live, &list, f);
	/* What is never tunnelled is the same on every node. */
	if (r == 0)
		r = spec_derive_node(spec, 0, &d, f);
	if (r == 0) {
		const struct desired_class *dc =
			&d->egress.classes[c - spec->egress.classes];

		r = egress_policy(&(struct egress_params){
					  .cluster = spec->cluster.v,
					  .class_name = c->name.v,
					  .tunnel = c->tunnel.v,
					  .local = &d->egress.local,
					  .dns = dc->dns,
					  .n_dns = dc->n_dns,
					  .addresses = &list },
				  ret_object, f);
	}
	(void)desired_free(d);
	strlist_done(&list);
	json_decref(live);
	return r;
}

int egress_text(const json_t *object, char **ret_text, struct fault *f)
{
	int r = yaml_out(object, ret_text);

	return r < 0 ? fault_errno(f, r, EGRESS_ADDON, "cannot be rendered") :
		       0;
}

int egress_kind_there(struct kube *k, char *why, size_t size, struct fault *f)
{
	json_t *o = NULL;
	int r = get_or_none(k, KIND, &o, f);

	if (r > 0 && kube_read_condition(o, "Established") != KUBE_TRUE)
		r = 0;
	json_decref(o);
	if (r == 0)
		(void)snprintf(why, size, "Cilium's operator has not made the "
			       "kind CiliumEgressGatewayPolicy yet");
	return r;
}

int egress_stands(struct kube *k, const json_t *want, char *why, size_t size,
		  struct fault *f)
{
	json_t *list = NULL;
	const json_t *o, *ours = NULL;
	size_t i;
	int r = get_or_none(k, POLICIES, &list, f);

	if (r < 0)
		return r;
	why[0] = '\0';
	json_array_foreach(json_object_get(list, "items"), i, o) {
		if (strcmp(name_of(o), name_of(want)) == 0)
			ours = o;
		else
			(void)snprintf(why, size, "there is another egress "
				       "policy, %.100s; one class has one "
				       "policy, delete it (B83)", name_of(o));
	}
	if (!ours)
		(void)snprintf(why, size, "the policy %s is not there",
			       name_of(want));
	else if (!egress_within(json_object_get(want, "spec"),
				json_object_get(ours, "spec")))
		(void)snprintf(why, size, "somebody edited the policy %s",
			       name_of(want));
	json_decref(list);
	return why[0] == '\0';
}

int egress_current(struct kube *k, const json_t *want, char *why, size_t size,
		   struct fault *f)
{
	const char *now = json_string_value(addresses_of(want)), *then;
	json_t *live = NULL;
	int r = egress_stands(k, want, why, size, f);

	if (r > 0)
		r = get_policy(k, name_of(want), &live, f);
	if (r > 0 && !json_equal(addresses_of(want), addresses_of(live))) {
		then = json_string_value(addresses_of(live));
		(void)snprintf(why, size, "the tunnel's address is %.120s, "
			       "the policy was applied for %.120s, and Cilium "
			       "looks at it only then: run `garboard up`", now,
			       then ? then : "none");
		r = 0;
	}
	json_decref(live);
	return r;
}

int egress_put_back(struct kube *k, const json_t *want, struct fault *f)
{
	char path[sizeof(POLICIES) + EGRESS_NAME_MAX];
	json_t *live = NULL;
	int r = get_policy(k, name_of(want), &live, f);

	if (r <= 0)
		return r;
	r = 0;
	if (!egress_within(json_object_get(want, "spec"),
			   json_object_get(live, "spec"))) {
		(void)snprintf(path, sizeof(path), "%s/%s", POLICIES,
			       name_of(want));
		r = json_object_set(live, "spec", json_object_get(want, "spec"))
				    < 0 ? -ENOMEM :
		    kube_put(k, path, live, NULL, f);
	}
	json_decref(live);
	return r;
}

/* ---- labels of the gateways ---- */

static bool is_gateway(const struct spec_class *c, const char *node)
{
	size_t i;

	for (i = 0; i < c->gateways.n; i++)
		if (strcmp(c->gateways.v[i].v, node) == 0)
			return true;
	return false;
}

static bool labelled(const json_t *node, const char *label)
{
	const char *v = json_string_value(json_object_get(
		at(node, "metadata", "labels"), label));

	return v && strcmp(v, "true") == 0;
}

int egress_labels_stand(struct kube *k, const struct spec *spec, char *why,
			size_t size, struct fault *f)
{
	const struct spec_class *c = egress_class(spec);
	char label[EGRESS_NAME_MAX];
	size_t i, gateways = 0;
	json_t *list = NULL;
	const json_t *o;
	int r = kube_get(k, NODES, &list, f);

	if (r < 0)
		return r;
	(void)egress_label(c->name.v, label);
	why[0] = '\0';
	json_array_foreach(json_object_get(list, "items"), i, o) {
		bool want = is_gateway(c, name_of(o));

		gateways += want;
		if (labelled(o, label) != want)
			(void)snprintf(why, size, "node %s %s the label %s",
				       name_of(o), want ? "has not" :
				       "is no gateway and has", label);
	}
	if (gateways == 0)
		(void)snprintf(why, size, "no gateway of class %s is a node "
			       "of the cluster: Cilium drops its packets",
			       c->name.v);
	json_decref(list);
	return why[0] == '\0';
}

static int set_label(struct kube *k, const char *node, const char *label,
		     bool want, struct fault *f)
{
	char path[sizeof(NODES) + 256];
	int r = -ESTALE, tries;

	(void)snprintf(path, sizeof(path), "%s/%s", NODES, node);
	/* The kubelet writes the same object; a lost race is tried again. */
	for (tries = 0; r == -ESTALE && tries < CONFLICTS_MAX; tries++) {
		struct fault scratch = FAULT_INIT;
		json_t *o = NULL, *labels;

		r = kube_get(k, path, &o, &scratch);
		labels = json_object_get(json_object_get(o, "metadata"),
					 "labels");
		if (r == 0 && !json_is_object(labels))
			r = fault_set(&scratch, -EPROTO, node, "has no labels");
		if (r == 0 && want)
			r = json_object_set_new(labels, label,
						json_string("true")) < 0 ?
				    -ENOMEM : 0;
		else if (r == 0)
			(void)json_object_del(labels, label);
		if (r == 0)
			r = kube_put(k, path, o, NULL, &scratch);
		json_decref(o);
		if (r < 0 && (r != -ESTALE || tries + 1 == CONFLICTS_MAX))
			return fault_set(f, r, node, "its label %s cannot be "
					 "set: %s", label, scratch.text);
	}
	return r;
}

int egress_labels_set(struct kube *k, const struct spec *spec,
		      struct fault *f)
{
	const struct spec_class *c = egress_class(spec);
	char label[EGRESS_NAME_MAX];
	json_t *list = NULL;
	const json_t *o;
	size_t i;
	int r = kube_get(k, NODES, &list, f);

	(void)egress_label(c->name.v, label);
	json_array_foreach(json_object_get(list, "items"), i, o) {
		bool want = is_gateway(c, name_of(o));

		if (r == 0 && labelled(o, label) != want)
			r = set_label(k, name_of(o), label, want, f);
	}
	json_decref(list);
	return r;
}

/* ---- the mode that runs ---- */

/* An exception for some nodes, with the keys of cilium-config. */
static int look_exceptions(struct kube *k, const struct spec_class *c,
			   const json_t *config, char *why, size_t size,
			   struct fault *f)
{
	bool pool = c->pool_cidr.v.addr.family != 0;
	char one[EGRESS_WHY_MAX - 100];
	json_t *list = NULL;
	const json_t *o;
	size_t i;
	int r = get_or_none(k, PER_NODE, &list, f);

	if (r < 0)
		return r;
	r = 1;
	json_array_foreach(json_object_get(list, "items"), i, o) {
		json_t *merged = json_copy((json_t *)(uintptr_t)config);

		if (!merged)
			r = -ENOMEM;
		(void)json_object_update(merged, (json_t *)(uintptr_t)at(
						 o, "spec", "defaults"));
		if (r > 0 && egress_sight(merged, pool, c->tunnel.v, one,
					  sizeof(one)) == 0) {
			(void)snprintf(why, size, "on the nodes of "
				       "CiliumNodeConfig %.60s: %s",
				       name_of(o), one);
			r = 0;
		}
		json_decref(merged);
	}
	json_decref(list);
	return r;
}

int egress_mode(struct kube *k, const struct spec *spec, char *why,
		size_t size, struct fault *f)
{
	const struct spec_class *c = egress_class(spec);
	const json_t *config;
	json_t *o = NULL;
	int r = get_or_none(k, CONFIG, &o, f);

	if (r < 0)
		return r;
	config = json_object_get(o, "data");
	if (!json_is_object(config)) {
		(void)snprintf(why, size, "there is no cilium-config: the "
			       "mode cannot be read");
		r = 0;
	} else {
		r = egress_sight(config, c->pool_cidr.v.addr.family != 0,
				 c->tunnel.v, why, size);
	}
	if (r > 0)
		r = look_exceptions(k, c, config, why, size, f);
	json_decref(o);
	return r;
}
