/*
 * founding.h - the record that a cluster was founded: first the intent,
 * then its identity, on the operator host and on every server (B97, CO-02).
 */
#pragma once

#include "common/fault.h"
#include "coordinator/steps/step.h"

/*
 * Writes our intent to found on `founder` everywhere, before anything is
 * started. An intent that stands already is kept.
 */
int founding_intend(const struct step_env *env, const char *founder,
		    struct fault *f);

/*
 * Completes the record once the API answers through `node`. 1: it was
 * complete on the operator host already.
 */
int founding_complete(const struct step_env *env, const char *node,
		      struct fault *f);
