/*
 * explain.h - what becomes of one packet on this node, and who says so.
 *
 * Three witnesses are heard: the policy (what the armed classes ask for),
 * the kernel's tables as they stand, run by our own evaluators, and the
 * kernel's answer to "which way?". explain_look() reads, explain_conclude()
 * is pure. Where they do not agree for this packet, each disagreement is a
 * line of its own. Nothing is changed.
 */
#pragma once

#include "agent/armed.h"
#include "agent/explain/fib.h"
#include "agent/explain/filter.h"
#include "agent/nl/rtnl_lookup.h"
#include "agent/res/killswitch_plan.h"
#include "agent/res/routing_want.h"

#define EXPLAIN_TEXT_MAX 512
#define EXPLAIN_LAYERS_MAX 4	/* routing, inet, two devices */
#define EXPLAIN_CLASHES_MAX 12
#define EXPLAIN_NOTES_MAX 8

/* All that was seen; explain_world_done() releases it. */
struct explain_world {
	struct armed policy;		/* what is enforced */
	bool unsure;			/* its record cannot be read */
	struct killswitch_seen *killswitch;
	struct item_list killswitch_items, routing_items;
	struct routing_seen *routing;
	struct rtnl_routes routes;	/* of every table a rule leads to */
	bool routes_known;
	struct rtnl_answer answer;	/* the kernel's */
	struct fault answer_fault;	/* err 0: it was asked */
	bool guessed_in;		/* packet.in was found, not given */
	bool chosen_src;		/* the kernel chose packet.src */
	bool forwards;			/* the input device forwards */
};

/*
 * Completes `p` (source, input device) and reads all that bears on it.
 * `desired` (may be NULL) is the accepted state. -EPERM and the like.
 */
int explain_look(const char *state_dir, const struct desired *desired,
		 struct packet *p, struct explain_world *ret_world,
		 struct fault *f);
void explain_world_done(struct explain_world *w);

enum explain_verdict {
	EXPLAIN_INTERNET,	/* no class: by whatever main says */
	EXPLAIN_TUNNEL,		/* leaves by the tunnel */
	EXPLAIN_ALLOWED,	/* of a class, past the tunnel as it may */
	EXPLAIN_HERE,		/* for this node itself */
	EXPLAIN_DROPPED,
	EXPLAIN_UNREACHABLE,
	EXPLAIN_LEAKS,		/* of a class, past the tunnel */
	EXPLAIN_UNKNOWN,	/* a witness is missing */
	EXPLAIN_VERDICT_MAX,
};

const char *explain_verdict_name(enum explain_verdict v);

struct explain_layer {
	char name[32];			/* "routing", "inet", "netdev up0" */
	bool wanted, stands;
	char text[EXPLAIN_TEXT_MAX];	/* what it would do, and why */
};

struct explanation {
	enum explain_verdict verdict;
	char verdict_text[EXPLAIN_TEXT_MAX];
	char class_name[64];		/* "": none */
	char class_why[EXPLAIN_TEXT_MAX];
	char special[EXPLAIN_TEXT_MAX];	/* DNS, relay, local; or "" */
	char rule[EXPLAIN_TEXT_MAX];	/* with its priority; or "" */
	char route[EXPLAIN_TEXT_MAX];
	char open_way[EXPLAIN_TEXT_MAX]; /* without our rules */
	char kernel[EXPLAIN_TEXT_MAX];
	uint32_t priority, table;
	struct explain_layer layers[EXPLAIN_LAYERS_MAX];
	size_t n_layers;
	char clashes[EXPLAIN_CLASHES_MAX][EXPLAIN_TEXT_MAX];
	size_t n_clashes;
	char notes[EXPLAIN_NOTES_MAX][EXPLAIN_TEXT_MAX];
	size_t n_notes;
};

/* -ENOMEM. */
int explain_conclude(const struct explain_world *w, const struct packet *p,
		     struct explanation *ret);
