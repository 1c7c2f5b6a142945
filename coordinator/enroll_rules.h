/*
 * enroll_rules.h - who may become a node, as a pure decision.
 *
 * Everything is passed in; nothing is read, written or logged. The caller
 * has already verified that the request is signed by the report key inside.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/clock.h"
#include "coordinator/store.h"

enum enroll_verdict {
	ENROLL_ISSUE,	/* give it a certificate under `name` */
	ENROLL_WAIT,	/* queue for approval, with the reason */
	ENROLL_REFUSE,	/* with the reason; nothing is kept */
	ENROLL_VERDICT_MAX,
};

struct enroll_facts {
	usec now;			/* wall clock */
	const char *hostname;		/* as the node says */
	const char *peer;		/* address it comes from */
	bool token_given;
	const struct store_token *token;	/* NULL: unknown text */
	const uint8_t *report_key;
	const struct store_node *known;	/* the node with that key, or NULL */
	const struct store_pending *pending;	/* an earlier request, or NULL */
	/* another active node with the same machine-id, and its address */
	const struct store_node *machine;
	const char *machine_peer;
	bool name_taken;		/* enroll_name() is another node's */
};

struct enroll_decision {
	enum enroll_verdict verdict;
	char name[STORE_NAME_MAX];
	char reason[256];
};

/* The name it would get: the token's, the approved one, its own. */
const char *enroll_name(const struct enroll_facts *facts);
void enroll_decide(const struct enroll_facts *facts,
		   struct enroll_decision *ret_decision);
