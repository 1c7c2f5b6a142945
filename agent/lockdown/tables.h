/*
 * tables.h - the tables of garboard-lockdown, in three forms. Pure.
 *
 * The full form is exactly the resident kill-switch's, so that the agent
 * takes the table over as it is. Where the kernel refuses that one, less is
 * asked of it (KS-03): a class then loses what it may do, never its drop.
 */
#pragma once

#include "agent/nl/nft_model.h"
#include "proto/desired.h"

enum tables_form {
	TABLES_FULL,
	TABLES_SETS,		/* sources by sets, marks; lo; nothing else */
	TABLES_MINIMAL,		/* the same without sets or counters */
	TABLES_FORMS,
};

const char *tables_form_name(enum tables_form form);

/*
 * As killswitch_table(). *ret_left: prefixes there was no room for, which
 * is said aloud; 0 but in the minimal form.
 */
int tables_make(const struct desired_egress *egress, const char *device,
		enum tables_form form, struct nft_table *ret_table,
		size_t *ret_left);

/*
 * A table of one rule that needs one kind of expression, to ask the kernel
 * which it refuses. -ENOENT behind the last; *ret_name is its name.
 */
int tables_probe(unsigned int i, struct nft_table *ret_table,
		 const char **ret_name);
