/*
 * cni.h - is Cilium really there: rolled out, and every running agent
 * dialling the endpoint (A56, A57, A62, contract 7.3). "The job is
 * complete" is not an answer to that question.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/fault.h"
#include "common/ip.h"
#include "coordinator/kube.h"

struct spec;

#define CNI_WHY_MAX 300

struct cni_want {
	struct ip_addr host;	/* k8sServiceHost; family 0: single server */
	uint16_t port;
	size_t nodes;		/* each with an agent, each Ready */
};

/*
 * 1: all of it holds; 0: not (yet), `why` says what; an error of the read,
 * or -EREMOTEIO when it will not come by waiting (the job failed, an agent
 * dials somewhere else after the rollout ended).
 */
int cni_ready(struct kube *k, const struct cni_want *want, char *why,
	      size_t size, struct fault *f);

/* Running agents whose environment is host:port, and all agents. */
int cni_agents(struct kube *k, const struct cni_want *want, size_t *ret_right,
	       size_t *ret_all, char *why, size_t size, struct fault *f);

/* What the spec asks of Cilium, for cni_ready() and cni_agents(). */
struct cni_want cni_want_of(const struct spec *spec);

/* The HelmChart of the spec; *ret_text is owned by the caller. */
int cni_manifest(const struct spec *spec, char **ret_text, struct fault *f);
