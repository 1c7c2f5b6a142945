/* proto/tls and proto/pki: who may talk to whom, and what is said if not. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/pki.h"
#include "proto/tls.h"

#define DAY INT64_C(86400)

struct world {
	struct key *ca_key, *other_ca_key, *coord_key, *node_key;
	char *ca, *other_ca, *coord;
	uint8_t cluster[16], foreign[16], node[16];
	int64_t now;
};

static struct world w;

/* A node's certificate by whichever CA, cluster and time. */
static char *leaf(const struct key *ca_key, const char *ca,
		  const uint8_t *cluster, int64_t when)
{
	uint8_t *csr = NULL, *der = NULL;
	size_t csr_size = 0, der_size = 0;
	char *pem = NULL;

	assert_int_equal(pki_make_csr(w.node_key, &csr, &csr_size, NULL), 0);
	assert_int_equal(pki_issue_leaf(ca_key, ca, csr, csr_size, cluster,
					w.node, when, &der, &der_size, NULL),
			 0);
	assert_int_equal(pki_der_to_pem(der, der_size, &pem, NULL), 0);
	free(csr);
	free(der);
	return pem;
}

static int make_world(void **state)
{
	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	memset(w.cluster, 0xc1, 16);
	memset(w.foreign, 0xc2, 16);
	memset(w.node, 0x0e, 16);
	w.now = (int64_t)time(NULL);
	assert_int_equal(key_generate(KEY_P256, &w.ca_key, NULL), 0);
	assert_int_equal(key_generate(KEY_P256, &w.other_ca_key, NULL), 0);
	assert_int_equal(key_generate(KEY_P256, &w.coord_key, NULL), 0);
	assert_int_equal(key_generate(KEY_P256, &w.node_key, NULL), 0);
	assert_int_equal(pki_make_ca(w.ca_key, "prod", w.cluster, w.now, &w.ca,
				     NULL), 0);
	assert_int_equal(pki_make_ca(w.other_ca_key, "prod", w.cluster, w.now,
				     &w.other_ca, NULL), 0);
	assert_int_equal(pki_make_coordinator(w.ca_key, w.ca, w.coord_key,
					      w.cluster, w.now, &w.coord, NULL),
			 0);
	return 0;
}

static int free_world(void **state)
{
	(void)state;
	key_free(w.ca_key);
	key_free(w.other_ca_key);
	key_free(w.coord_key);
	key_free(w.node_key);
	free(w.ca);
	free(w.other_ca);
	free(w.coord);
	return 0;
}

struct pair {
	struct tls_ctx *cctx, *sctx;
	struct tls_conn *client, *server;
	struct fault cf, sf;
	int cr, sr;
};

static struct tls_config client_config(const char *cert)
{
	struct tls_config c = { .ca_pem = w.ca, .cert_pem = cert,
				.key = cert ? w.node_key : NULL };

	memcpy(c.cluster_id, w.cluster, 16);
	return c;
}

static struct tls_config server_config(void)
{
	struct tls_config c = { .server = true, .ca_pem = w.ca,
				.cert_pem = w.coord, .key = w.coord_key };

	memcpy(c.cluster_id, w.cluster, 16);
	return c;
}

/* Both ends by turns; after a failure the other end gets to read of it. */
static void shake(struct pair *p, const struct tls_config *client,
		  const struct tls_config *server)
{
	int fds[2], i;

	memset(p, 0, sizeof(*p));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
				    fds), 0);
	assert_int_equal(tls_ctx_new(client, &p->cctx, NULL), 0);
	assert_int_equal(tls_ctx_new(server, &p->sctx, NULL), 0);
	assert_int_equal(tls_client_new(p->cctx, fds[0], &p->client, NULL), 0);
	assert_int_equal(tls_server_new(p->sctx, fds[1], &p->server, NULL), 0);
	p->cr = p->sr = -EAGAIN;
	for (i = 0; i < 50; i++) {
		if (p->cr == -EAGAIN)
			p->cr = tls_handshake(p->client, &p->cf);
		if (p->sr == -EAGAIN)
			p->sr = tls_handshake(p->server, &p->sf);
	}
}

static void part(struct pair *p)
{
	tls_free(p->client);
	tls_free(p->server);
	tls_ctx_free(p->cctx);
	tls_ctx_free(p->sctx);
}

/* With TLS 1.3 the client learns of a refusal only when it reads. */
static int client_learns(struct pair *p)
{
	char buf[8];
	size_t n;

	if (p->cr != 0)
		return p->cr;
	return tls_read(p->client, buf, sizeof(buf), &n, &p->cf);
}

static void mutual(void **state)
{
	char *cert = leaf(w.ca_key, w.ca, w.cluster, w.now);
	struct tls_config c = client_config(cert), s = server_config();
	struct pair p;
	char buf[64];
	size_t n = 0;

	(void)state;
	shake(&p, &c, &s);
	assert_int_equal(p.cr, 0);
	assert_int_equal(p.sr, 0);
	assert_int_equal(tls_peer(p.client)->kind, PKI_COORDINATOR);
	assert_int_equal(tls_peer(p.server)->kind, PKI_NODE);
	assert_memory_equal(tls_peer(p.server)->node_id, w.node, 16);
	assert_false(tls_peer_expired(p.server));
	assert_int_equal(tls_write(p.client, "ping", 4, &n, NULL), 0);
	assert_int_equal(tls_read(p.server, buf, sizeof(buf), &n, NULL), 0);
	assert_int_equal(n, 4);
	assert_int_equal(tls_read(p.server, buf, sizeof(buf), &n, NULL),
			 -EAGAIN);
	assert_int_equal(tls_wants(p.server), POLLIN);
	/* Half-close: the server still answers, then ends as well. */
	assert_int_equal(tls_shutdown(p.client, NULL), 0);
	n = 9;
	assert_int_equal(tls_read(p.server, buf, sizeof(buf), &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_int_equal(tls_write(p.server, "late", 4, &n, NULL), 0);
	assert_int_equal(tls_read(p.client, buf, sizeof(buf), &n, NULL), 0);
	assert_int_equal(n, 4);
	/* No close_notify from the server: an error, never an end. */
	p.server = tls_free(p.server);
	assert_int_equal(tls_read(p.client, buf, sizeof(buf), &n, &p.cf),
			 -ECONNRESET);
	part(&p);
	free(cert);
}

static void wrong_ca_both_ways(void **state)
{
	char *cert = leaf(w.other_ca_key, w.other_ca, w.cluster, w.now);
	struct tls_config c = client_config(cert), s = server_config();
	struct pair p;

	(void)state;
	shake(&p, &c, &s);
	assert_int_equal(p.sr, -EKEYREJECTED);
	assert_non_null(strstr(p.sf.text, "refused"));
	assert_int_equal(client_learns(&p), -EKEYREJECTED);
	assert_non_null(strstr(p.cf.text, "the peer refused us"));
	part(&p);
	c.ca_pem = w.other_ca;
	shake(&p, &c, &s);
	assert_int_equal(p.cr, -EKEYREJECTED);
	part(&p);
	free(cert);
}

static void foreign_cluster(void **state)
{
	char *cert = leaf(w.ca_key, w.ca, w.foreign, w.now);
	struct tls_config c = client_config(cert), s = server_config();
	struct pair p;

	(void)state;
	shake(&p, &c, &s);
	assert_int_equal(p.sr, -EKEYREJECTED);
	assert_non_null(strstr(p.sf.text, "another cluster"));
	part(&p);
	memcpy(c.cluster_id, w.foreign, 16);
	shake(&p, &c, &s);
	assert_int_equal(p.cr, -EKEYREJECTED);
	assert_non_null(strstr(p.cf.text, "another cluster"));
	part(&p);
	free(cert);
}

/* A node that plays coordinator with its own good certificate. */
static void node_is_no_coordinator(void **state)
{
	char *cert = leaf(w.ca_key, w.ca, w.cluster, w.now);
	struct tls_config c = client_config(cert), s = server_config();
	struct pair p;

	(void)state;
	s.cert_pem = cert;
	s.key = w.node_key;
	shake(&p, &c, &s);
	assert_int_equal(p.cr, -EKEYREJECTED);
	part(&p);
	free(cert);
}

static void tl04_expired_names_both_times(void **state)
{
	char *cert = leaf(w.ca_key, w.ca, w.cluster, w.now - 400 * DAY);
	struct tls_config c = client_config(cert), s = server_config();
	struct pair p;

	(void)state;
	shake(&p, &c, &s);
	assert_int_equal(p.sr, -ETIME);
	assert_non_null(strstr(p.sf.text, "expired at 20"));
	assert_non_null(strstr(p.sf.text, "the clock here says 20"));
	assert_int_equal(client_learns(&p), -ETIME);
	part(&p);
	/* May come in to renew, and is marked. */
	s.accept_expired = true;
	shake(&p, &c, &s);
	assert_int_equal(p.sr, 0);
	assert_true(tls_peer_expired(p.server));
	assert_memory_equal(tls_peer(p.server)->node_id, w.node, 16);
	part(&p);
	free(cert);
}

static void tl04_not_yet_valid(void **state)
{
	char *cert = leaf(w.ca_key, w.ca, w.cluster, w.now + 30 * DAY);
	struct tls_config c = client_config(cert), s = server_config();
	struct pair p;

	(void)state;
	s.accept_expired = true;	/* opens nothing for the future */
	shake(&p, &c, &s);
	assert_int_equal(p.sr, -ETIME);
	assert_non_null(strstr(p.sf.text, "valid only from 20"));
	assert_non_null(strstr(p.sf.text, "behind"));
	part(&p);
	free(cert);
	/* Small skew on issue does no harm. */
	cert = leaf(w.ca_key, w.ca, w.cluster, w.now + 180);
	c.cert_pem = cert;
	shake(&p, &c, &s);
	assert_int_equal(p.sr, 0);
	part(&p);
	free(cert);
}

static void no_client_certificate(void **state)
{
	struct tls_config c = client_config(NULL), s = server_config();
	struct pair p;

	(void)state;
	shake(&p, &c, &s);
	assert_int_equal(p.sr, -EKEYREJECTED);
	assert_non_null(strstr(p.sf.text, "no certificate"));
	part(&p);
	s.peer_optional = true;
	shake(&p, &c, &s);
	assert_int_equal(p.sr, 0);
	assert_int_equal(p.cr, 0);
	assert_int_equal(tls_peer(p.server)->kind, PKI_NONE);
	part(&p);
}

static void not_tls_at_all(void **state)
{
	struct tls_config s = server_config();
	struct tls_ctx *ctx;
	struct tls_conn *conn;
	struct fault f = FAULT_INIT;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
				    fds), 0);
	assert_int_equal(tls_ctx_new(&s, &ctx, NULL), 0);
	assert_int_equal(tls_server_new(ctx, fds[1], &conn, NULL), 0);
	assert_int_equal(write(fds[0], "GET / HTTP/1.0\r\n\r\n", 18), 18);
	assert_int_equal(tls_handshake(conn, &f), -EPROTO);
	assert_true(f.text[0]);
	assert_int_equal(close(fds[0]), 0);
	tls_free(conn);
	tls_ctx_free(ctx);
}

static void identities(void **state)
{
	char *cert = leaf(w.ca_key, w.ca, w.cluster, w.now);
	uint8_t digest[32], *csr = NULL, *der = NULL;
	size_t size = 0, csr_size, i;
	struct pki_identity id;

	(void)state;
	assert_int_equal(pki_read_pem(cert, &id, NULL), 0);
	assert_int_equal(id.kind, PKI_NODE);
	assert_int_equal(id.not_before, w.now - PKI_BACKDATE);
	assert_int_equal(id.not_after, w.now + PKI_LEAF_LIFE);
	assert_true(pki_renew_at(&id) > w.now + 200 * DAY);
	assert_int_equal(pki_make_csr(w.node_key, &csr, &size, NULL), 0);
	assert_int_equal(pki_check_csr(csr, size, digest, NULL), 0);
	assert_memory_equal(digest, id.key_sha256, 32);
	for (i = 0; i < size; i++) {
		csr[i] ^= 0x40;
		assert_true(pki_check_csr(csr, size, digest, NULL) < 0);
		csr[i] ^= 0x40;
	}
	assert_true(pki_check_csr(csr, size - 1, digest, NULL) < 0);
	csr_size = size;
	assert_int_equal(pki_pem_to_der(cert, &der, &size, NULL), 0);
	assert_int_equal(pki_read_der(der, size, &id, NULL), 0);
	for (i = 0; i < size; i++)
		assert_int_equal(pki_read_der(der, i, &id, NULL), -EBADMSG);
	assert_int_equal(pki_read_pem(w.ca, &id, NULL), -EINVAL);
	assert_int_equal(pki_read_pem("nonsense", &id, NULL), -EBADMSG);
	/* A CA key that is not the CA's signs nothing. */
	free(der);
	assert_int_equal(pki_issue_leaf(w.other_ca_key, w.ca, csr, csr_size,
					w.cluster, w.node, w.now, &der, &size,
					NULL), -EINVAL);
	free(csr);
	free(cert);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mutual),
		cmocka_unit_test(wrong_ca_both_ways),
		cmocka_unit_test(foreign_cluster),
		cmocka_unit_test(node_is_no_coordinator),
		cmocka_unit_test(tl04_expired_names_both_times),
		cmocka_unit_test(tl04_not_yet_valid),
		cmocka_unit_test(no_client_certificate),
		cmocka_unit_test(not_tls_at_all),
		cmocka_unit_test(identities),
	};

	key_init();
	return cmocka_run_group_tests_name("tls", tests, make_world,
					   free_world);
}
