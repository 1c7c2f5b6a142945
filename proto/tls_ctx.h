/*
 * tls_ctx.h - what a context and its connections share. Inside proto/tls*.c
 * only.
 */
#pragma once

#include <openssl/ssl.h>

#include "proto/tls.h"

struct tls_conn {
	SSL *ssl;
	int fd;
	bool server;
	bool accept_expired;
	uint8_t cluster_id[16];
	uint32_t wants;
	struct pki_identity peer;
	bool expired;
	struct fault refused;	/* why the peer's certificate was refused */
};

struct tls_ctx {
	SSL_CTX *ssl;
	bool server;
	bool accept_expired;
	uint8_t cluster_id[16];
};

/* OpenSSL's verification callback; writes into the connection. */
int tls_verify(int ok, X509_STORE_CTX *store);
