/*
 * derive.h - what follows from a spec.
 *
 * Every fact is written once in the spec; here it becomes the desired state
 * of one node. Pure: the same spec gives the same value. The generation is
 * left 0 for the coordinator to number.
 */
#pragma once

#include <stddef.h>

#include "common/fault.h"
#include "proto/desired.h"
#include "spec/spec.h"

/*
 * The desired state of node `node` (0 for a one-box spec). *ret_desired is
 * the caller's (desired_free). -E2BIG: more than desired.h allows, in `f`.
 */
int spec_derive_node(const struct spec *spec, size_t node,
		     struct desired **ret_desired, struct fault *f);
