/*
 * twins.h - which nodes say the same of themselves as another one does
 * (TL-01, IS-01). Pure: it names the pairs, and holds nothing.
 *
 * What a node says is evidence, not proof: see docs/security.md. MACs that
 * are locally administered are made up by bridges and hypervisors and may
 * well be the same; a product UUID is filled in by some vendors alike.
 */
#pragma once

#include <stddef.h>

#include "proto/up.h"

enum twin_kind {
	TWIN_MACHINE_ID,
	TWIN_INITIATOR,
	TWIN_MAC,
	TWIN_PRODUCT_UUID,	/* a hint only */
	TWIN_KIND_MAX,
};

const char *twin_kind_name(enum twin_kind kind);	/* "machine-id" */

struct twin {
	size_t a, b;		/* indexes of the input; a < b */
	enum twin_kind kind;
	const char *value;	/* of identity b; borrowed */
};

/*
 * ids[i] may be NULL: nothing is known of it. Each node that shares a value
 * is paired with the first one that has it. *ret_twins is the caller's
 * (free), sorted by b. -ENOMEM.
 */
int twins_find(const struct identity *const *ids, size_t n,
	       struct twin **ret_twins, size_t *ret_n);
