/*
 * statement.h - the trust root's word on which order key is valid.
 *
 * Binary, fixed size, big endian: magic "GBK1", cluster id 16, order public
 * key 32 (Ed25519), epoch 8, signature 64 by the trust root. A node accepts
 * a statement of the same epoch only if it is the same key, and never one
 * of a lower epoch than it has seen (statement_supersedes()).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"
#include "proto/keys.h"

#define STATEMENT_SIZE 124

struct statement {
	uint8_t cluster_id[16];
	uint8_t order_key[KEY_PUBLIC_SIZE];
	uint64_t epoch;
};

int statement_sign(const struct statement *s, const struct key *trust_root,
		   uint8_t ret_bytes[STATEMENT_SIZE], struct fault *f);

/* -EBADMSG wrong size or magic, -EXDEV foreign cluster, -EKEYREJECTED. */
int statement_verify(const void *bytes, size_t size,
		     const uint8_t cluster_id[16],
		     const uint8_t trust_root[KEY_PUBLIC_SIZE],
		     struct statement *ret_statement, struct fault *f);

/* Pure: may `next` follow `seen`? The same statement again is fine. */
bool statement_supersedes(const struct statement *seen,
			  const struct statement *next);
