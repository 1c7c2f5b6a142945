/*
 * upward.h - signs what the root process says (reports, results).
 *
 * The envelope carries the boot id and a counter under the start counter,
 * so that a relay can neither forge, replay nor reorder a report unnoticed
 * (DESIGN section 7). Everything is borrowed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/state.h"
#include "proto/keys.h"
#include "proto/up.h"

struct upward {
	const struct node_state *state;
	uint8_t cluster_id[16];
	const struct key *report_key;
	uint64_t counter;	/* of the last envelope made */
};

/* An encoded message into one signed envelope (heap). */
int upward_seal(struct upward *u, const void *payload, size_t size,
		uint8_t **ret_bytes, size_t *ret_size, struct fault *f);
