/*
 * manifests.h - the manifests that go into k3s's auto-deploy directory.
 *
 * Pure text from plain parameters; the same text is what `garboard
 * manifests` prints, what is put on every server byte for byte, and whose
 * SHA-256 the Addon must report (K3S-CONTRACT 5.1). Every object carries
 * our own label `garboard/cluster`; Helm's managed-by is left alone (B109).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/fault.h"
#include "common/ip.h"
#include "common/strlist.h"

#define KUBE_VIP_LEASE_SECONDS 15	/* A54 */

/* Servers whose endpoint subnet is on the same interface name. */
struct vip_group {
	char interface[16];
	struct strlist nodes;		/* node names */
};

struct kube_vip_params {
	const char *cluster;
	const char *version;		/* "v1.2.3" */
	struct ip_addr endpoint;
	uint16_t port;
	const struct vip_group *groups;	/* sorted by interface */
	size_t n_groups;
};

struct cilium_pool {
	const char *name;
	const char *cidr;
};

struct cilium_params {
	const char *cluster;
	const char *version;		/* "1.20.1" */
	const char *chart;		/* NULL: the project's own repository */
	struct ip_addr endpoint;	/* k8sServiceHost: never empty (A57) */
	uint16_t port;
	const char *pod_cidr;
	unsigned int servers;
	const struct cilium_pool *pools;	/* of egress classes */
	size_t n_pools;
	bool egress;			/* a class has pods */
	const json_t *values;		/* the spec's own, or NULL */
};

/* Name of the DaemonSet of a group: "kube-vip", or "kube-vip-<interface>". */
const char *manifest_kube_vip_name(const struct kube_vip_params *p,
				   size_t group, char buf[64]);

int manifest_kube_vip(const struct kube_vip_params *p, char **ret_text,
		      struct fault *f);

/* -EEXIST: a value of the spec contradicts one of ours; names the key. */
int manifest_cilium(const struct cilium_params *p, char **ret_text,
		    struct fault *f);

/* Ours merged over the spec's, as the chart gets them. */
int manifest_cilium_values(const struct cilium_params *p, json_t **ret_values,
			   struct fault *f);
