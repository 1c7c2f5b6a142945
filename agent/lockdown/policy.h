/*
 * policy.h - what garboard-lockdown closes, from whatever is left on disk.
 *
 * Both copies of the lockdown file, and where neither is whole the armed
 * record as well, give policies; what is enforced is their union: a packet
 * that any of them drops is dropped, a local prefix is one only if all of
 * them say so. Where nothing sound is left of a file that was there, the
 * built-in form takes its place: every address and prefix that can still be
 * read in it, and every mark a class may have. Reads files, nothing else.
 */
#pragma once

#include "agent/armed.h"
#include "agent/res/routing_record.h"
#include "common/fault.h"

enum policy_source {
	POLICY_NONE,		/* nobody ever armed anything here */
	POLICY_WHOLE,		/* from a whole copy */
	POLICY_PARTS,		/* from what still checks */
	POLICY_RECORD,		/* from the armed record alone */
	POLICY_BUILT_IN,
};

struct policy {
	enum policy_source source;
	struct desired *d;	/* only d->egress; uplinks as named */
	bool automatic;		/* hardware uplinks as well */
	struct routing_record addresses;
	struct fault why;	/* what is wrong with the files, if it is */
};

void policy_done(struct policy *p);

/* -ENOMEM, -E2BIG. Damage of the files is no error. */
int policy_read(const char *state_dir, struct policy *ret_policy);

/* Adds what `a` closes. -ENOMEM. */
int policy_add(struct policy *p, const struct armed *a);
/* Adds what can be read in the text, and all marks a class may have. */
int policy_add_built_in(struct policy *p, const char *text, size_t size);
