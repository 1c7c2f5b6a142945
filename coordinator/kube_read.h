/*
 * kube_read.h - what the bring-up needs of Kubernetes objects, as values.
 *
 * Pure: JSON in, bounded plain structs out. A field that is absent or of
 * another type reads as "not so" (not ready, not a voter), never as an
 * error that hides the rest; only a list that is no list is -EPROTO. The
 * meaning of each field: K3S-CONTRACT sections named beside it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KUBE_NAME_MAX 254
#define KUBE_LIST_MAX 1024

/* GET /db/info (4.5); the id is not read: it can exceed 2^53. */
struct kube_member {
	char name[KUBE_NAME_MAX];	/* "" when added but not started */
	char peer[128];			/* first peer URL */
	bool learner;
};

struct kube_members {
	struct kube_member *v;
	size_t n;
};

int kube_read_members(const char *text, struct kube_members *ret_members);
void kube_members_done(struct kube_members *m);

enum kube_tristate {
	KUBE_UNKNOWN,
	KUBE_TRUE,
	KUBE_FALSE,
};

struct kube_node {
	char name[KUBE_NAME_MAX];
	char etcd_name[KUBE_NAME_MAX];	/* annotation of 4.5, "" if none */
	char version[64];		/* kubelet's */
	char address[64];		/* InternalIP */
	enum kube_tristate ready;	/* condition Ready */
	enum kube_tristate voter;	/* condition EtcdIsVoter */
	bool control_plane, etcd;	/* role labels, by existence (B72) */
	bool unschedulable;		/* a cordon */
};

struct kube_nodes {
	struct kube_node *v;
	size_t n;
};

int kube_read_nodes(const json_t *list, struct kube_nodes *ret_nodes);
const struct kube_node *kube_nodes_find(const struct kube_nodes *nodes,
					const char *name);
void kube_nodes_done(struct kube_nodes *nodes);

/* DaemonSet or Deployment. */
struct kube_workload {
	int64_t desired, ready, updated;
	bool observed;		/* status is of the current generation */
};

void kube_read_daemonset(const json_t *o, struct kube_workload *ret_workload);
void kube_read_deployment(const json_t *o, struct kube_workload *ret_workload);

struct kube_lease {
	char holder[KUBE_NAME_MAX];
	char renewed[64];	/* renewTime, only ever compared for equality */
};

void kube_read_lease(const json_t *o, struct kube_lease *ret_lease);

/* Addon.spec.checksum, hex (5.1); "" when absent. Returns ret_sum. */
const char *kube_read_addon(const json_t *o, char ret_sum[65]);

/* Newest Warning of an event list: "Reason: message"; "" when none. */
const char *kube_read_warning(const json_t *list, char *buf, size_t size);

/*
 * Value of an environment variable in the first container of a pod or of a
 * pod template that has it; NULL when there is none. Borrowed.
 */
const char *kube_read_env(const json_t *pod_spec, const char *name);

/* status.conditions[type == name].status */
enum kube_tristate kube_read_condition(const json_t *object, const char *type);
