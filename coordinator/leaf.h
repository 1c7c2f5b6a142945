/*
 * leaf.h - a node's certificate as an order: TrustUpdate.
 *
 * Owns nothing. Used when a node enrols and when it renews.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"

struct signer;

/*
 * Issues a leaf for the request and encodes the order that carries it.
 * `now` in seconds since the epoch. *ret_payload is owned by the caller
 * (free); `ret_digest` is SHA-256 of the certificate.
 */
int leaf_order(const struct signer *signer, const void *csr, size_t csr_size,
	       const uint8_t node_id[16], const char *name, int64_t now,
	       uint8_t ret_digest[32], uint8_t **ret_payload,
	       size_t *ret_size, struct fault *f);
