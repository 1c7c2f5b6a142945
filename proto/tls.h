/*
 * tls.h - TLS 1.3 channels for an event loop, by OpenSSL.
 *
 * TLS 1.3 only, P-256 and X25519, certificates of the cluster's own CA, no
 * session tickets, buffers given back while idle. Both ends are judged by
 * the URI in the certificate (pki.h), never by address or name:
 * garboard://<cluster>/coordinator and garboard://<cluster>/<node id>.
 *
 * The process must ignore SIGPIPE. A connection never blocks. -EAGAIN means:
 * wait for tls_wants() on the fd, then call the same function again. A
 * failure's text names the cause; when a certificate is out of its validity
 * both times are given (TL-04).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"
#include "proto/keys.h"
#include "proto/pki.h"

struct tls_ctx;
struct tls_conn;

struct tls_config {
	bool server;
	uint8_t cluster_id[16];
	const char *ca_pem;		/* text of one or more certificates */
	const char *cert_pem;		/* NULL: a client before enrolment */
	const struct key *key;		/* P-256; goes with cert_pem */
	bool peer_optional;		/* server: allow clients without one */
	bool accept_expired;		/* server: allow expired, and say so */
};

/* The context keeps its own references; nothing of `config` is kept. */
int tls_ctx_new(const struct tls_config *config, struct tls_ctx **ret_ctx,
		struct fault *f);
/* Connections keep what they need of it: free it at any time. */
struct tls_ctx *tls_ctx_free(struct tls_ctx *ctx);

/* Takes `fd` (non-blocking) on success; on failure the caller still owns it. */
int tls_client_new(const struct tls_ctx *ctx, int fd,
		   struct tls_conn **ret_conn, struct fault *f);
int tls_server_new(const struct tls_ctx *ctx, int fd,
		   struct tls_conn **ret_conn, struct fault *f);
/* Closes the fd without a close_notify (use tls_shutdown() first). */
struct tls_conn *tls_free(struct tls_conn *conn);

/*
 * 0: done, and the peer is who it should be. -EAGAIN. Otherwise
 * -EKEYREJECTED: the certificate was refused; -ETIME: only because of its
 * validity (a clock is off); -EPROTO, -ECONNRESET: else.
 */
int tls_handshake(struct tls_conn *conn, struct fault *f);

/* 0 and *ret_n > 0; 0 and *ret_n == 0: the peer ended its direction. */
int tls_read(struct tls_conn *conn, void *buf, size_t size, size_t *ret_n,
	     struct fault *f);
/* May write less than asked. Retry with the same bytes after -EAGAIN. */
int tls_write(struct tls_conn *conn, const void *buf, size_t size,
	      size_t *ret_n, struct fault *f);
/* Ends our direction; reading may go on (half-close). */
int tls_shutdown(struct tls_conn *conn, struct fault *f);

/* EPOLLIN or EPOLLOUT, after a call returned -EAGAIN. */
uint32_t tls_wants(const struct tls_conn *conn);
/* Decrypted bytes wait inside: read again without polling. */
bool tls_pending(const struct tls_conn *conn);
int tls_fd(const struct tls_conn *conn);

/* The peer's certificate; kind PKI_NONE for a client without one. */
const struct pki_identity *tls_peer(const struct tls_conn *conn);
/* True when accept_expired let an expired certificate in: renew only. */
bool tls_peer_expired(const struct tls_conn *conn);
