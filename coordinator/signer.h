/*
 * signer.h - the only user of the operator's keys.
 *
 * Owns the files of STATE that hold them (each 0600, STATE 0700): the trust
 * root, the cluster CA, the coordinator's TLS identity, the order key with
 * the trust root's statement, the seal key. Nothing else opens them; what
 * comes out is signatures, certificates, a TLS context and plain texts of
 * secrets sealed to us, so that this module can become its own process. It
 * decides nothing and keeps no counters (store.h does).
 *
 * trust-root.key may be moved away after init: only a new epoch of orders
 * needs it (-ENOKEY then, and nothing else fails).
 *
 * Errors: -EPERM keys others can read, -ENOENT not initialised, -EBADMSG
 * files that do not belong together, -EEXIST already initialised. Faults
 * never hold key material.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"
#include "proto/seal.h"
#include "proto/statement.h"

struct signer;
struct tls_ctx;

/*
 * Makes every key for a new cluster in `state`, which exists, and the
 * statement of epoch 1. `now` in seconds since the epoch. Files appear only
 * after all keys could be made; the statement is written last.
 */
int signer_init(const char *state, const char *cluster, int64_t now,
		uint8_t ret_cluster_id[16], struct fault *f);

int signer_open(const char *state, struct signer **ret_signer,
		struct fault *f);
struct signer *signer_free(struct signer *s);	/* wipes; returns NULL */
static inline void signer_freep(struct signer **s)
{
	(void)signer_free(*s);
}

/* Public parts, borrowed from the signer. */
const uint8_t *signer_cluster_id(const struct signer *s);	/* 16 */
const uint8_t *signer_trust_root(const struct signer *s);	/* 32 */
const uint8_t *signer_seal_key(const struct signer *s);		/* 32 */
const uint8_t *signer_statement(const struct signer *s);	/* STATEMENT_SIZE */
uint64_t signer_epoch(const struct signer *s);
const char *signer_ca_pem(const struct signer *s);

/* One order envelope, as one heap block. `binding` is 16 bytes. */
int signer_order(const struct signer *s, const uint8_t node_id[16],
		 uint64_t epoch, uint64_t sequence, const uint8_t *binding,
		 const void *payload, size_t size, uint8_t **ret_bytes,
		 size_t *ret_size, struct fault *f);

/* A node's leaf for its CSR; -ETIME while our own clock is before the CA. */
int signer_issue(const struct signer *s, const void *csr, size_t csr_size,
		 const uint8_t node_id[16], int64_t now, uint8_t **ret_der,
		 size_t *ret_size, struct fault *f);

/* The server's TLS context: mutual, optional before enrolment. */
int signer_tls(const struct signer *s, struct tls_ctx **ret_ctx,
	       struct fault *f);

/* Secrets to and from our own seal key; as seal_to() and seal_open(). */
int signer_seal(const struct signer *s, const char *context, const void *plain,
		size_t size, struct sealed *ret_sealed, struct fault *f);
int signer_unseal(const struct signer *s, const char *context,
		  const struct sealed *sealed, uint8_t **ret_plain,
		  size_t *ret_size, struct fault *f);

/* A new order key and its statement, by the trust root. -ENOKEY. */
int signer_new_epoch(struct signer *s, uint64_t epoch, struct fault *f);
