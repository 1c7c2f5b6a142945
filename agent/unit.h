/*
 * unit.h - one resource under the engine: its schedule and its record.
 *
 * Private to the engine. A unit opens its resource lazily, runs it once per
 * call and remembers what was seen, done and told. unit_run() never fails:
 * failures end in the record and in a later try.
 */
#pragma once

#include "agent/engine.h"

struct unit {
	const struct resource *res;	/* NULL: nothing here yet */
	void *state;
	void (*dirtied)(void *userdata);	/* called by look-again */
	void *userdata;
	engine_looked told;	/* told of every look, or NULL */
	void *told_userdata;

	bool dirty;		/* somebody said "look again" */
	bool prompted;		/* the resource itself said so */
	bool fresh;		/* not yet converged since the new desired */
	bool looked;
	bool watch_due;		/* watch() must hear of the new desired */
	bool in_flight;
	bool news;		/* something reportable changed */
	usec due;
	usec applied;		/* when apply last ran */
	usec proof;
	unsigned int attempt;	/* applies in a row that did not help */
	uint64_t tried;		/* digest of the plan they were about */
	unsigned int waits;	/* looks in a row that left something pending */
	enum mode mode;
	struct rate rate;
	uint64_t repairs;

	void *seen;
	struct item_list items;
	struct item_list marks;	/* what the last apply could not do */
	struct change_list plan;
	struct change_list done;
	struct fault fault;
	struct fault stuck;	/* of the last apply, until one helps */

	uint64_t said_plan;	/* digests of what was logged last */
	uint64_t said_trouble;
	bool said_contended;
};

void unit_init(struct unit *u, const struct resource *res,
	       void (*dirtied)(void *userdata), void *userdata);
void unit_done(struct unit *u);

/* The desired state is another one. */
void unit_renew(struct unit *u);

/* True when the node was changed, so that later units look again. */
bool unit_run(struct unit *u, const struct resource_host *host,
	      const struct desired *want, const struct engine_params *p,
	      usec now);

bool unit_contended(const struct unit *u, const struct engine_params *p);
const char *unit_writer(const struct unit *u);	/* never NULL */
