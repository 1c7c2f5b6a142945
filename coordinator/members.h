/*
 * members.h - who counts in the cluster: etcd members and Kubernetes nodes
 * seen together, so that "Ready" is never taken for "joined" (CO-04).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/fault.h"
#include "coordinator/steps/step.h"

#define MEMBERS_WHY_MAX 300
#define MEMBERS_NODE_MAX 64

struct kube;

struct member_state {
	bool voter;		/* started, not a learner, node agrees */
	char why[MEMBERS_WHY_MAX];	/* where it is not */
};

struct members {
	bool api;		/* some server answered /readyz */
	char through[MEMBERS_NODE_MAX];	/* the node it was asked through */
	char why[MEMBERS_WHY_MAX];	/* why there is no API */
	struct member_state *v;	/* one per node of the spec; servers count */
	size_t n;
	size_t voters, learners, total;	/* of the member list itself */
	bool strangers;		/* a member that is no node of the spec */
};

/*
 * Asks the servers in order, `first` before all others, until one answers.
 * No server answering is no error: `api` is false. Needs no earlier state.
 */
int members_read(const struct step_env *env, const char *first,
		 struct members *ret_members, struct fault *f);
void members_done(struct members *m);

/* Whether this is the name k3s gives the etcd member of that node. */
bool members_named_after(const char *member, const char *node);

/* Index of a server whose member votes, `first` preferred; -ENOENT. */
int members_any_voter(const struct step_env *env, const struct members *m,
		      const char *first, size_t *ret_node);

/*
 * A client of any server that answers, through its own node; the endpoint
 * is not used, so that it can be looked at. `what` names who asks in the
 * fault. *ret_kube is borrowed from the cluster, `ret_through` the node.
 */
int members_open_api(const struct step_env *env, const char *what,
		     char ret_through[MEMBERS_NODE_MAX], struct kube **ret_kube,
		     struct fault *f);
