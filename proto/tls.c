#include "proto/tls.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "common/cleanup.h"
#include "proto/tls_ctx.h"

DEFINE_CLEANUP(conn, struct tls_conn, tls_free)

static int conn_new(const struct tls_ctx *ctx, int fd,
		    struct tls_conn **ret_conn, struct fault *f)
{
	CLEANUP(cleanup_conn) struct tls_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return -ENOMEM;
	conn->fd = -1;		/* the caller's until all is well */
	conn->server = ctx->server;
	conn->accept_expired = ctx->accept_expired;
	memcpy(conn->cluster_id, ctx->cluster_id, sizeof(conn->cluster_id));
	conn->ssl = SSL_new(ctx->ssl);
	if (!conn->ssl || SSL_set_fd(conn->ssl, fd) != 1)
		return fault_set(f, -ENOMEM, "TLS", "cannot be set up");
	SSL_set_app_data(conn->ssl, conn);
	if (ctx->server)
		SSL_set_accept_state(conn->ssl);
	else
		SSL_set_connect_state(conn->ssl);
	conn->wants = ctx->server ? EPOLLIN : EPOLLOUT;
	conn->fd = fd;
	*ret_conn = take_ptr(conn);
	return 0;
}

int tls_client_new(const struct tls_ctx *ctx, int fd,
		   struct tls_conn **ret_conn, struct fault *f)
{
	if (ctx->server)
		return fault_set(f, -EINVAL, "TLS", "is a server's context");
	return conn_new(ctx, fd, ret_conn, f);
}

int tls_server_new(const struct tls_ctx *ctx, int fd,
		   struct tls_conn **ret_conn, struct fault *f)
{
	if (!ctx->server)
		return fault_set(f, -EINVAL, "TLS", "is a client's context");
	return conn_new(ctx, fd, ret_conn, f);
}

struct tls_conn *tls_free(struct tls_conn *conn)
{
	if (!conn)
		return NULL;
	SSL_free(conn->ssl);
	if (conn->fd >= 0)
		(void)close(conn->fd);
	free(conn);
	return NULL;
}

/* An alert is the peer's word about us: say so. */
static int protocol_error(struct tls_conn *conn, struct fault *f)
{
	unsigned long e = ERR_peek_error();
	int reason = ERR_GET_REASON(e);
	const char *text = ERR_reason_error_string(e);

	if (conn->refused.err)
		return fault_set(f, conn->refused.err, conn->refused.object,
				 "%s", conn->refused.text);
	if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
		return fault_set(f, -ECONNRESET, "TLS",
				 "the peer closed without saying so");
	if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
		return fault_set(f, -EKEYREJECTED, "TLS",
				 "the peer showed no certificate");
	if (reason == SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED)
		return fault_set(f, -ETIME, "TLS",
				 "the peer says that our certificate has "
				 "expired: by its clock, which may be wrong");
	if (reason >= SSL_AD_REASON_OFFSET)
		return fault_set(f, -EKEYREJECTED, "TLS",
				 "the peer refused us: %s",
				 text ? text : "no reason given");
	return fault_set(f, -EPROTO, "TLS", "%s",
			 text ? text : "the peer does not speak it");
}

/* What the last call of OpenSSL meant. `err` is errno as it left it. */
static int outcome(struct tls_conn *conn, int ret, int err, struct fault *f)
{
	switch (SSL_get_error(conn->ssl, ret)) {
	case SSL_ERROR_WANT_READ:
		conn->wants = EPOLLIN;
		return -EAGAIN;
	case SSL_ERROR_WANT_WRITE:
		conn->wants = EPOLLOUT;
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return -ESHUTDOWN;
	case SSL_ERROR_SYSCALL:
		if (conn->refused.err)
			return protocol_error(conn, f);
		return fault_errno(f, err ? -err : -ECONNRESET, "TLS",
				   "the connection broke");
	default:
		return protocol_error(conn, f);
	}
}

int tls_handshake(struct tls_conn *conn, struct fault *f)
{
	int ret;

	ERR_clear_error();
	errno = 0;
	ret = SSL_do_handshake(conn->ssl);
	if (ret == 1)
		return 0;
	ret = outcome(conn, ret, errno, f);
	return ret == -ESHUTDOWN ? -ECONNRESET : ret;
}

int tls_read(struct tls_conn *conn, void *buf, size_t size, size_t *ret_n,
	     struct fault *f)
{
	size_t n = 0;
	int ret;

	ERR_clear_error();
	errno = 0;
	ret = SSL_read_ex(conn->ssl, buf, size, &n);
	if (ret != 1) {
		ret = outcome(conn, ret, errno, f);
		if (ret != -ESHUTDOWN)
			return ret;
		n = 0;
	}
	*ret_n = n;
	return 0;
}

int tls_write(struct tls_conn *conn, const void *buf, size_t size,
	      size_t *ret_n, struct fault *f)
{
	size_t n = 0;
	int ret;

	ERR_clear_error();
	errno = 0;
	ret = SSL_write_ex(conn->ssl, buf, size, &n);
	if (ret != 1) {
		ret = outcome(conn, ret, errno, f);
		return ret == -ESHUTDOWN ? -EPIPE : ret;
	}
	*ret_n = n;
	return 0;
}

int tls_shutdown(struct tls_conn *conn, struct fault *f)
{
	int ret;

	ERR_clear_error();
	errno = 0;
	ret = SSL_shutdown(conn->ssl);
	if (ret >= 0)
		return 0;
	ret = outcome(conn, ret, errno, f);
	return ret == -ESHUTDOWN ? 0 : ret;
}

uint32_t tls_wants(const struct tls_conn *conn)
{
	return conn->wants;
}

bool tls_pending(const struct tls_conn *conn)
{
	return SSL_pending(conn->ssl) > 0;
}

int tls_fd(const struct tls_conn *conn)
{
	return conn->fd;
}

const struct pki_identity *tls_peer(const struct tls_conn *conn)
{
	return &conn->peer;
}

bool tls_peer_expired(const struct tls_conn *conn)
{
	return conn->expired;
}
