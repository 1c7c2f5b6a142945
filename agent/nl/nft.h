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
 * All tables for which `ours` says yes, with everything in them, as of one
 * generation of the ruleset. -EAGAIN: it kept changing. Releases and
 * replaces *tables only on success.
 */
int nft_read(struct nl_sock *s, bool (*ours)(const struct nft_table *head),
	     struct nft_tables *tables, struct fault *f);
