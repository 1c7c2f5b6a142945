/*
 * cluster.h - the living cluster as the coordinator reaches it: streams
 * through nodes, the admin credential, and the few reads that every step
 * shares.
 *
 * Clients are opened lazily, once per (node, target, address), and kept for
 * the run. The credential comes from the store, or is read once from a
 * server, sealed, and then kept in the store (A63); it is never printed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fault.h"
#include "common/ip.h"
#include "coordinator/kube.h"
#include "coordinator/kube_read.h"
#include "proto/order.h"

struct cluster;
struct control;

#define CLUSTER_SECRET_ADMIN "admin-credential"
#define CLUSTER_SECRET_TOKEN "k3s-token"

/* `control` is borrowed and outlives it. `order_timeout`: of one order. */
int cluster_new(struct control *control, uint16_t port, usec order_timeout,
		struct cluster **ret_cluster, struct fault *f);
struct cluster *cluster_free(struct cluster *c);	/* returns NULL */
DEFINE_CLEANUP(cluster, struct cluster, cluster_free)

/* 1: there (now), 0: neither kept nor readable from `node` yet. */
int cluster_credential(struct cluster *c, const char *node, struct fault *f);
/* Forgets the kept credential, in the store too. */
int cluster_credential_drop(struct cluster *c, struct fault *f);

/* PEM texts, borrowed; NULL before cluster_credential() returned 1. */
struct cluster_credential {
	const char *ca, *cert, *key;
};
struct cluster_credential cluster_credential_get(const struct cluster *c);

/*
 * A client through `node`. For STREAM_API_LOCAL the address is 127.0.0.1
 * and `address` is ignored. *ret_kube is borrowed. -ENOKEY: no credential.
 */
int cluster_kube(struct cluster *c, const char *node,
		 enum stream_target target, const struct ip_addr *address,
		 struct kube **ret_kube, struct fault *f);

/* GET /readyz must be 200 with the body "ok" (B77). */
int cluster_ready(struct kube *k, struct fault *f);
/* Through the node's own loopback, where it needs no credential (4.5). */
int cluster_members(struct cluster *c, const char *node,
		    struct kube_members *ret_members, struct fault *f);
int cluster_nodes(struct kube *k, struct kube_nodes *ret_nodes,
		  struct fault *f);
/* UID of the namespace kube-system, which names a cluster. */
int cluster_uid(struct kube *k, char ret_uid[64], struct fault *f);
