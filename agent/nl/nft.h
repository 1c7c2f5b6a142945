/*
 * nft.h - reads tables of the kernel as values.
 */
#pragma once

#include "agent/nl/nft_batch.h"
#include "agent/nl/nft_model.h"
#include "agent/nl/nft_msg.h"
#include "agent/nl/nl_sock.h"

#define NFT_TABLES_MAX 64

struct nft_tables {
	struct nft_table *v;
	size_t n;
};

void nft_tables_done(struct nft_tables *t);
struct nft_table *nft_tables_find(const struct nft_tables *t, uint8_t family,
				  const char *name);

/*
 * One reading of the ruleset, never changed after it is made, so that it
 * can be shared: nft_view_ref() and nft_view_unref() (NULL is accepted).
 */
struct nft_view {
	unsigned int refs;
	uint32_t generation;
	struct nft_tables tables;
};

struct nft_view *nft_view_ref(struct nft_view *v);
struct nft_view *nft_view_unref(struct nft_view *v);	/* returns NULL */

/*
 * All tables for which `ours` says yes, with everything in them, as of one
 * generation of the ruleset. -EAGAIN: it kept changing.
 */
int nft_read(struct nl_sock *s, bool (*ours)(const struct nft_table *head),
	     struct nft_view **ret_view, struct fault *f);

/*
 * As nft_read(), cheaper: rules, sets and their elements change with a new
 * generation only, so when `last` (may be NULL) is of this one, only what
 * changes silently is listed again (tables and their owners, chains and the
 * devices they are hooked on: FACTS S1, S3), and `last` itself is returned,
 * with one more reference, if all of that is as it was.
 */
int nft_look(struct nl_sock *s, bool (*ours)(const struct nft_table *head),
	     struct nft_view *last, struct nft_view **ret_view,
	     struct fault *f);

/*
 * Reads one table of `view` again, in place: its chains and rules, and its
 * sets unless the rules differ already. The caller is the only one to have
 * `view`. Afterwards it is of no generation: good for
 * starting a repair, and proving nothing. On failure it is good for nothing.
 */
int nft_glance(struct nl_sock *s, struct nft_view *view, uint8_t family,
	       const char *name);
