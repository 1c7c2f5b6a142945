/*
 * cred.h - the link's own TLS key and certificate, and the trust it has.
 *
 * Owns <state>/tls.key (made once, never replaced), <state>/tls.crt and
 * <state>/ca.pem (both written when the agent hands over a certificate).
 * The CA in <state> follows a change of the cluster's CA; the bundle's is
 * used before the first enrolment. A certificate that is not of this key
 * and cluster counts as none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"
#include "proto/bundle.h"
#include "proto/tls.h"

struct cred {
	const char *state_dir;		/* borrowed */
	struct bundle bundle;
	struct key *key;
	char *ca_pem;
	char *cert_pem;			/* NULL: not enrolled */
	struct pki_identity identity;	/* of cert_pem */
	struct tls_ctx *tls;
};

/* Loads all of it; makes the key. Faults name the file. */
int cred_load(struct cred *c, const char *bundle_dir, const char *state_dir,
	      struct fault *f);
void cred_done(struct cred *c);

/* Body of FRAME_CERTIFICATE: stored, then in use. -EINVAL: not ours. */
int cred_accept(struct cred *c, const uint8_t *body, size_t size,
		struct fault *f);

/* No certificate, or two thirds of its life are over. Seconds. */
bool cred_wants_renewal(const struct cred *c, int64_t now);
int cred_csr(const struct cred *c, uint8_t **ret_der, size_t *ret_size,
	     struct fault *f);
