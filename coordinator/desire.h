/*
 * desire.h - the desired state of each node of a spec, numbered by content.
 *
 * The generation is taken from the SHA-256 of the encoded state, so that a
 * node that reports it has exactly this state, whoever sent it and
 * whatever the operator host remembers. 63 bits, never 0.
 */
#pragma once

#include <stddef.h>

#include "common/fault.h"

struct desired;
struct spec;

/* *ret_desired is the caller's (desired_free). */
int desire_node(const struct spec *spec, size_t node,
		struct desired **ret_desired, struct fault *f);
