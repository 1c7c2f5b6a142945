/*
 * plan_digest.h - one name for a plan, so that what was read is what runs.
 *
 * SHA-256 over the cluster's id, the spec's text, --limit and --only, and
 * every change in its order with what is there and what is wanted; each
 * field with its length before it, so that no two plans read alike. A plan
 * ends at the first stage that would change something: what follows is not
 * in it, but follows from the same spec.
 */
#pragma once

#include <stddef.h>

#include "common/change.h"
#include "common/fault.h"

#define PLAN_DIGEST_SIZE 65	/* hex and the final 0 */

struct plan_digest;

/* NULL when there is no memory; NULL texts count as absent. */
struct plan_digest *plan_digest_new(const char *cluster_id, const char *spec,
				    size_t spec_size, const char *limit,
				    const char *only);
struct plan_digest *plan_digest_free(struct plan_digest *d);	/* NULL */

void plan_digest_add(struct plan_digest *d, const char *stage,
		     const struct change_list *changes);

/* Of what was added so far. -ENOMEM or an error of libcrypto. */
int plan_digest_get(struct plan_digest *d, char ret_hex[PLAN_DIGEST_SIZE]);

/* -EPERM, with what to do: the plan of now is not that one. */
int plan_digest_check(struct plan_digest *d, const char *approved,
		      struct fault *f);
