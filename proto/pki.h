/*
 * pki.h - the cluster's own X.509: CA, coordinator, node leaves.
 *
 * ECDSA P-256 with SHA-256, random serials, PEM text or DER bytes. An
 * identity is one URI in the subject alternative name and nothing else:
 * garboard://<cluster id hex>/coordinator or .../<node id hex>. Times are
 * seconds since the epoch and passed in; notBefore is an hour earlier, so
 * that small skew does no harm (TL-04). Texts and bytes returned are on the
 * heap. Keys come from keys.h; nothing here opens a file.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"
#include "proto/keys.h"

#define PKI_DER_MAX 8192
#define PKI_PEM_MAX 65536
#define PKI_URI_MAX 96
#define PKI_BACKDATE 3600			/* seconds */
#define PKI_LEAF_LIFE (365L * 86400)
#define PKI_CA_LIFE (20L * 365 * 86400)

enum pki_kind {
	PKI_NONE,
	PKI_COORDINATOR,
	PKI_NODE,
	PKI_KIND_MAX,
};

struct pki_identity {
	enum pki_kind kind;
	uint8_t cluster_id[16];
	uint8_t node_id[16];		/* zero for a coordinator */
	int64_t not_before, not_after;	/* seconds since the epoch */
	uint8_t key_sha256[KEY_SHA256_SIZE];	/* of the public key (SPKI) */
};

/* Self-signed; `name` is for people (the cluster's name). */
int pki_make_ca(const struct key *ca_key, const char *name,
		const uint8_t cluster_id[16], int64_t now, char **ret_pem,
		struct fault *f);

/* The coordinator's certificate, server and client use. */
int pki_make_coordinator(const struct key *ca_key, const char *ca_pem,
			 const struct key *key, const uint8_t cluster_id[16],
			 int64_t now, char **ret_pem, struct fault *f);

/* PKCS#10, signed by `key`; carries no name, which the issuer decides. */
int pki_make_csr(const struct key *key, uint8_t **ret_der, size_t *ret_size,
		 struct fault *f);

/*
 * -EBADMSG unless it is a P-256 request with a valid self-signature of at
 * most PKI_DER_MAX bytes. *ret_key_sha256 tells which key it is for.
 */
int pki_check_csr(const void *der, size_t size,
		  uint8_t ret_key_sha256[KEY_SHA256_SIZE], struct fault *f);

/* A leaf for a year; checks the CSR as above. DER. */
int pki_issue_leaf(const struct key *ca_key, const char *ca_pem,
		   const void *csr, size_t csr_size,
		   const uint8_t cluster_id[16], const uint8_t node_id[16],
		   int64_t now, uint8_t **ret_der, size_t *ret_size,
		   struct fault *f);

/* -EBADMSG malformed, -EINVAL when the SAN is not one URI of ours. */
int pki_read_der(const void *der, size_t size,
		 struct pki_identity *ret_identity, struct fault *f);
int pki_read_pem(const char *pem, struct pki_identity *ret_identity,
		 struct fault *f);

/* The first certificate of a PEM text, and back. */
int pki_pem_to_der(const char *pem, uint8_t **ret_der, size_t *ret_size,
		   struct fault *f);
int pki_der_to_pem(const void *der, size_t size, char **ret_pem,
		   struct fault *f);

/* When two thirds of the life are over, in seconds since the epoch. */
int64_t pki_renew_at(const struct pki_identity *identity);

struct x509_st;
/* For tls.c: as pki_read_der() on libcrypto's own object. */
int pki_read_x509(const struct x509_st *cert,
		  struct pki_identity *ret_identity, struct fault *f);
