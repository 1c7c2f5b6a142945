/*
 * addon.h - a manifest in the auto-deploy directory of every server, and
 * the proof that k3s applied it (K3S-CONTRACT 5.1, trap 16).
 *
 * There is no status: applied means that the Addon's checksum equals the
 * SHA-256 of the text; a failure shows only as a Warning event.
 */
#pragma once

#include <stdbool.h>

#include "common/fault.h"
#include "coordinator/kube.h"
#include "coordinator/steps/step.h"
#include "proto/order.h"

struct addon {
	enum manifest_slot slot;
	const char *name;	/* of the Addon object: the file's base name */
	const char *text;
};

/* 1: applied, 0: not (`why` says it), or an error of the read. */
int addon_applied(struct kube *k, const struct addon *a, char *why,
		  size_t size, struct fault *f);
/* The same file, byte for byte, on every server. */
int addon_put(const struct step_env *env, const struct addon *a,
	      struct fault *f);
/* Until addon_applied() says 1. */
int addon_wait(const struct step_env *env, struct kube *k,
	       const struct addon *a, usec timeout, struct fault *f);
