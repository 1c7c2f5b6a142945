/*
 * pki_read.h - reading certificates with libcrypto's own types.
 * Inside proto/ only (pki.c, tls.c).
 */
#pragma once

#include <openssl/x509.h>

#include "proto/pki.h"

/* One certificate and nothing behind it; X509_free() releases it. */
int pki_parse_der(const void *der, size_t size, X509 **ret_cert,
		  struct fault *f);
int64_t pki_time(const ASN1_TIME *t);	/* seconds since the epoch */
