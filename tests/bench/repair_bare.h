/*
 * repair_bare.h - the least that can repair: it waits for the event and
 * puts the object back, looking at nothing. What the machine allows, taken
 * in the same run as what ours needs.
 */
#pragma once

#include <sys/types.h>

#include "agent/nl/nft_model.h"

/* Adds every rule again that somebody else deletes. Returns the child. */
pid_t bare_rules(void);

/*
 * Commits `table` when somebody else deleted something of it, from a batch
 * that is made beforehand. `whole`: nothing of it is left then.
 */
pid_t bare_table(const struct nft_table *table, bool whole);

void bare_end(pid_t pid);
