/*
 * blobs.h - large files delivered in chunks: /var/lib/garboard/blobs.
 *
 * A blob is known by its kind and SHA-256. Chunks must come in order;
 * offset 0 begins anew. While it grows it is NAME.part; only a blob whose
 * hash was verified (by the caller, in a child) gets its name. The volume
 * must keep a reserve free, so that a blob cannot fill the node's disk.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"
#include "proto/order.h"

#define BLOBS_RESERVE (UINT64_C(512) << 20)

/* Path of a complete, verified blob; -ENOENT. */
int blobs_path(const char *state_dir, enum blob_kind kind,
	       const uint8_t sha256[32], char *buf, size_t size);
/* Path under which it grows. */
int blobs_part(const char *state_dir, enum blob_kind kind,
	       const uint8_t sha256[32], char *buf, size_t size);

/* 1: that was the last chunk, hash it now. -ESPIPE: out of order. */
int blobs_append(const char *state_dir, const struct order_blob *chunk,
		 struct fault *f);
/* After the hash: the blob gets its name, and its place if k3s wants one. */
int blobs_accept(const char *state_dir, const char *root,
		 const struct order_blob *chunk, struct fault *f);
