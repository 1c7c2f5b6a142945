/*
 * filter.h - runs an imagined packet through a table, as nftables would.
 *
 * It knows the expressions of nft_model.h and no others: a rule that has
 * one it does not know makes the result unsure, never a guess. Pure.
 */
#pragma once

#include "agent/explain/packet.h"
#include "agent/nl/nft_model.h"

enum filter_verdict {
	FILTER_PASS,
	FILTER_DROP,
	FILTER_UNSURE,
};

struct filter_result {
	enum filter_verdict verdict;
	/* The rule that decided, borrowed from the table; NULL: policy. */
	const struct nft_rule *rule;
	size_t number;		/* of the rule in its chain, from 1 */
	const char *chain;	/* its chain; NULL: no rule decided */
	const char *base;	/* the base chain it came from */
};

/*
 * Table inet: output or forward (as the packet came), then postrouting;
 * table netdev: egress, if it is hooked on the device. A table that is
 * dormant, or NULL, lets everything pass.
 */
void filter_run(const struct nft_table *t, const struct packet *p,
		const struct packet_out *out, struct filter_result *ret);
