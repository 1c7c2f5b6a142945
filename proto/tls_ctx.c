#include "proto/tls_ctx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "common/cleanup.h"
#include "proto/pki_read.h"

#define CA_MAX 8		/* certificates in one bundle */
#define DEPTH_MAX 1		/* a leaf and the CA that signed it */
#define TIME_TEXT 32

DEFINE_CLEANUP(tls_ctx, struct tls_ctx, tls_ctx_free)
DEFINE_CLEANUP(bio, BIO, BIO_free)
DEFINE_CLEANUP(x509, X509, X509_free)

static const char *time_text(int64_t t, char buf[TIME_TEXT])
{
	time_t at = (time_t)t;
	struct tm tm;

	if (!gmtime_r(&at, &tm) ||
	    strftime(buf, TIME_TEXT, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		(void)snprintf(buf, TIME_TEXT, "?");
	return buf;
}

/* TL-04: both times, and what each side may have wrong. */
static void refuse_time(struct fault *f, const X509 *cert, bool early)
{
	char limit[TIME_TEXT], now[TIME_TEXT];

	(void)time_text(pki_time(early ? X509_get0_notBefore(cert) :
					 X509_get0_notAfter(cert)), limit);
	(void)time_text((int64_t)time(NULL), now);
	if (early)
		(void)fault_set(f, -ETIME, "peer's certificate",
				"is valid only from %s, and the clock here "
				"says %s: this clock is behind, or that of "
				"the issuer was ahead", limit, now);
	else
		(void)fault_set(f, -ETIME, "peer's certificate",
				"expired at %s, and the clock here says %s: "
				"renew the certificate, or correct this clock",
				limit, now);
}

/* The URI decides who the peer is, and only here. */
static int judge_identity(struct tls_conn *conn, const X509 *cert)
{
	enum pki_kind want = conn->server ? PKI_NODE : PKI_COORDINATOR;
	struct pki_identity id;
	int r;

	r = pki_read_x509(cert, &id, &conn->refused);
	if (r < 0)
		return r;
	if (memcmp(id.cluster_id, conn->cluster_id, 16) != 0)
		return fault_set(&conn->refused, -EKEYREJECTED,
				 "peer's certificate",
				 "is of another cluster");
	if (id.kind != want)
		return fault_set(&conn->refused, -EKEYREJECTED,
				 "peer's certificate", "is not of a %s",
				 conn->server ? "node" : "coordinator");
	conn->peer = id;
	return 0;
}

int tls_verify(int ok, X509_STORE_CTX *store)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(
		store, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct tls_conn *conn = SSL_get_app_data(ssl);
	X509 *cert = X509_STORE_CTX_get_current_cert(store);
	int depth = X509_STORE_CTX_get_error_depth(store);
	int err = X509_STORE_CTX_get_error(store);

	if (!ok && err == X509_V_ERR_CERT_HAS_EXPIRED && depth == 0 &&
	    conn->accept_expired) {
		conn->expired = true;
		X509_STORE_CTX_set_error(store, X509_V_OK);
		ok = 1;
	}
	if (!ok && cert && (err == X509_V_ERR_CERT_HAS_EXPIRED ||
			    err == X509_V_ERR_CERT_NOT_YET_VALID))
		refuse_time(&conn->refused, cert,
			    err == X509_V_ERR_CERT_NOT_YET_VALID);
	else if (!ok)
		(void)fault_set(&conn->refused, -EKEYREJECTED,
				"peer's certificate", "was refused: %s",
				X509_verify_cert_error_string(err));
	if (!ok || depth != 0)
		return ok;
	if (judge_identity(conn, cert) < 0) {
		X509_STORE_CTX_set_error(store,
					 X509_V_ERR_APPLICATION_VERIFICATION);
		return 0;
	}
	return 1;
}

static int add_authorities(SSL_CTX *ctx, const char *pem, struct fault *f)
{
	CLEANUP(cleanup_bio) BIO *bio = NULL;
	size_t n = strlen(pem);
	int i;

	if (n <= PKI_PEM_MAX)
		bio = BIO_new_mem_buf(pem, (int)n);
	for (i = 0; bio && i < CA_MAX; i++) {
		CLEANUP(cleanup_x509) X509 *ca =
			PEM_read_bio_X509(bio, NULL, NULL, NULL);

		if (!ca)
			break;
		if (X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca) != 1)
			return -ENOMEM;
	}
	ERR_clear_error();	/* the end of the text is an error to it */
	if (!bio || i == 0)
		return fault_set(f, -EBADMSG, "CA certificate",
				 "is not in PEM form");
	return 0;
}

static int add_own(SSL_CTX *ctx, const struct tls_config *config,
		   struct fault *f)
{
	CLEANUP(cleanup_bio) BIO *bio = NULL;
	CLEANUP(cleanup_x509) X509 *cert = NULL;
	size_t n = strlen(config->cert_pem);

	if (n <= PKI_PEM_MAX)
		bio = BIO_new_mem_buf(config->cert_pem, (int)n);
	cert = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
	if (!cert || !config->key)
		return fault_set(f, -EBADMSG, "certificate",
				 "is not in PEM form, or has no key");
	if (SSL_CTX_use_certificate(ctx, cert) != 1 ||
	    SSL_CTX_use_PrivateKey(ctx, key_evp(config->key)) != 1 ||
	    SSL_CTX_check_private_key(ctx) != 1)
		return fault_set(f, -EINVAL, "certificate",
				 "does not belong to the key");
	return 0;
}

static int set_policy(SSL_CTX *ctx, const struct tls_config *config)
{
	int mode = SSL_VERIFY_PEER;

	if (!config->peer_optional)
		mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX_set_verify(ctx, mode, tls_verify);
	SSL_CTX_set_verify_depth(ctx, DEPTH_MAX);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET |
					       SSL_OP_NO_RENEGOTIATION |
					       SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS |
					    SSL_MODE_ENABLE_PARTIAL_WRITE |
					    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_num_tickets(ctx, 0) != 1 ||
	    SSL_CTX_set1_groups_list(ctx, "P-256:X25519") != 1 ||
	    SSL_CTX_set1_sigalgs_list(ctx, "ECDSA+SHA256") != 1)
		return -EIO;
	return 0;
}

int tls_ctx_new(const struct tls_config *config, struct tls_ctx **ret_ctx,
		struct fault *f)
{
	CLEANUP(cleanup_tls_ctx) struct tls_ctx *ctx = calloc(1, sizeof(*ctx));
	int r;

	if (!ctx)
		return -ENOMEM;
	key_init();
	ctx->ssl = SSL_CTX_new(config->server ? TLS_server_method() :
						TLS_client_method());
	if (!ctx->ssl || set_policy(ctx->ssl, config) < 0)
		return fault_set(f, -EIO, "TLS", "cannot be set up");
	r = add_authorities(ctx->ssl, config->ca_pem, f);
	if (r == 0 && config->cert_pem)
		r = add_own(ctx->ssl, config, f);
	if (r < 0)
		return r;
	if (config->server && !config->cert_pem)
		return fault_set(f, -EINVAL, "TLS",
				 "a server needs a certificate");
	ctx->server = config->server;
	ctx->accept_expired = config->server && config->accept_expired;
	memcpy(ctx->cluster_id, config->cluster_id, sizeof(ctx->cluster_id));
	*ret_ctx = take_ptr(ctx);
	return 0;
}

struct tls_ctx *tls_ctx_free(struct tls_ctx *ctx)
{
	if (ctx)
		SSL_CTX_free(ctx->ssl);
	free(ctx);
	return NULL;
}
