/*
 * nft_batch.h - a netfilter transaction: all of it happens, or nothing.
 *
 * Building is pure and only appends messages; nft_batch_commit() is the one
 * step that talks to the kernel. The first error while building is kept and
 * returned by the commit, so that callers need not check each step.
 *
 * Order matters: a table that is deleted and made again in one batch is
 * replaced without a moment in between.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/nl/nft_model.h"
#include "agent/nl/nl_sock.h"
#include "common/fault.h"

#define NFT_BATCH_SIZE_MAX (8u * 1024 * 1024)

struct nft_batch {
	unsigned char *buf;
	size_t size, room;
	uint32_t n;		/* messages */
	size_t last;		/* offset of the last object message */
	int err;
};

void nft_batch_init(struct nft_batch *b);
void nft_batch_done(struct nft_batch *b);

void nft_batch_add_table(struct nft_batch *b, uint8_t family,
			 const char *name, uint32_t flags);
void nft_batch_delete_table(struct nft_batch *b, uint8_t family,
			    const char *name);

/* The table with everything in it; its flags and content are `t`'s. */
void nft_batch_fill_table(struct nft_batch *b, const struct nft_table *t);

/*
 * Errors as of nl_sock.h; -EINVAL for a table that holds what the model
 * cannot make. An empty batch is 0.
 */
int nft_batch_commit(struct nft_batch *b, struct nl_sock *s,
		     struct fault *f);
