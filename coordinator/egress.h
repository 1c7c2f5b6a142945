/*
 * egress.h - the one CiliumEgressGatewayPolicy of the spec, the label that
 * chooses its gateways, and the mode Cilium really runs in (B83 to B86,
 * KS-13, K3S-CONTRACT 7.5).
 *
 * The policy goes into the auto-deploy directory as the other manifests do.
 * It carries the addresses of the tunnels, because Cilium looks at them only
 * when the policy changes: another address is another text, so it is applied
 * again. A gateway that cannot be asked keeps the address that stands there.
 * Only a class with pods has a policy; without one nothing here is asked.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/fault.h"
#include "common/strlist.h"
#include "coordinator/kube.h"
#include "proto/desired.h"

struct control;
struct spec;
struct spec_class;

#define EGRESS_NAME_MAX 128	/* of a policy, of a label */
#define EGRESS_WHY_MAX 400
#define EGRESS_ADDON "garboard-egress"
#define EGRESS_ADDRESSES "garboard/tunnel-addresses"	/* annotation */

/* ---- pure ---- */

struct egress_params {
	const char *cluster, *class_name, *tunnel;
	const struct prefix_list *local;	/* never tunnelled, disjoint */
	const struct ip_addr *dns;	/* its resolvers are tunnelled */
	size_t n_dns;
	const struct strlist *addresses;	/* "server-1=10.61.0.10", sorted */
};

const char *egress_name(const char *class_name, char buf[EGRESS_NAME_MAX]);
const char *egress_label(const char *class_name, char buf[EGRESS_NAME_MAX]);

/* -E2BIG: too many exclusions. *ret_object is the caller's. */
int egress_policy(const struct egress_params *p, json_t **ret_object,
		  struct fault *f);
/* All that `want` says stands in `have` too; more may. */
bool egress_within(const json_t *want, const json_t *have);

/*
 * Does the configuration of the agents (cilium-config) keep the packets of
 * such a class where they are seen? 1; 0: `why` has the first key that does
 * not, what follows from it, and the remedy.
 */
int egress_sight(const json_t *config, bool pool, const char *tunnel,
		 char *why, size_t size);

/* ---- the cluster ---- */

/* The class that has pods, or NULL. */
const struct spec_class *egress_class(const struct spec *spec);

/* The policy as it should be; `k` NULL: no API, only the nodes' reports. */
int egress_want(const struct spec *spec, struct control *control,
		struct kube *k, json_t **ret_object, struct fault *f);
int egress_text(const json_t *object, char **ret_text, struct fault *f);

/* 1: it can be applied; 0: Cilium has not made its kind yet (B67). */
int egress_kind_there(struct kube *k, char *why, size_t size,
		      struct fault *f);
/* 1: exactly this policy stands and no other; 0: `why`. */
int egress_stands(struct kube *k, const json_t *want, char *why, size_t size,
		  struct fault *f);
/* The same, and applied since the tunnel's address last changed. */
int egress_current(struct kube *k, const json_t *want, char *why, size_t size,
		   struct fault *f);
/* Replaces what somebody edited; nothing where it is not there. */
int egress_put_back(struct kube *k, const json_t *want, struct fault *f);
/* 1: the label is on the gateways and on no other node; 0: `why`. */
int egress_labels_stand(struct kube *k, const struct spec *spec, char *why,
			size_t size, struct fault *f);
int egress_labels_set(struct kube *k, const struct spec *spec,
		      struct fault *f);
/* egress_sight() of the running agents, and of each node's exception. */
int egress_mode(struct kube *k, const struct spec *spec, char *why,
		size_t size, struct fault *f);
