/*
 * Whom the client of the Kubernetes API believes: the cluster's own CA, for
 * the address that was dialled, and nobody else (B77, A68).
 *
 * The server is a child on a Unix socket. The system's own authorities are
 * a scratch directory mounted over /etc/ssl/certs in a namespace of ours.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "coordinator/kube.h"

#define SYSTEM_CERTS "/etc/ssl/certs"
#define ADDRESS "192.0.2.7"

struct authority {
	EVP_PKEY *key;
	X509 *cert;
	char *pem;
};

static char scratch[] = "/tmp/garboard-test-XXXXXX";
static struct authority ours, foreign;

static void extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *ext;
	X509V3_CTX ctx;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert_non_null(ext);
	assert_int_equal(X509_add_ext(cert, ext, -1), 1);
	X509_EXTENSION_free(ext);
}

static X509 *make(const char *name, EVP_PKEY *key, X509 *issuer,
		  EVP_PKEY *issuer_key, int nid, const char *value)
{
	X509 *cert = X509_new();
	X509_NAME *subject = X509_get_subject_name(cert);

	assert_int_equal(X509_set_version(cert, X509_VERSION_3), 1);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	assert_int_equal(X509_set_pubkey(cert, key), 1);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
				   (const unsigned char *)name, -1, -1, 0);
	issuer = issuer ? issuer : cert;
	X509_set_issuer_name(cert, X509_get_subject_name(issuer));
	extend(cert, issuer, nid, value);
	assert_true(X509_sign(cert, issuer_key, EVP_sha256()) > 0);
	return cert;
}

static char *to_pem(X509 *cert)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *data = NULL, *text;
	long n;

	assert_int_equal(PEM_write_bio_X509(bio, cert), 1);
	n = BIO_get_mem_data(bio, &data);
	text = strndup(data, (size_t)n);
	BIO_free(bio);
	return text;
}

static void make_authority(struct authority *a, const char *name)
{
	a->key = EVP_EC_gen("P-256");
	a->cert = make(name, a->key, NULL, a->key, NID_basic_constraints,
		       "critical,CA:TRUE");
	a->pem = to_pem(a->cert);
}

static void free_authority(struct authority *a)
{
	EVP_PKEY_free(a->key);
	X509_free(a->cert);
	free(a->pem);
}

/* One connection: the handshake, and an answer to whoever believes it. */
static void serve(int listen_fd, const struct authority *ca, const char *san)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
				     "Connection: close\r\n\r\n{}";
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = make("server", key, ca->cert, ca->key,
			  NID_subject_alt_name, san);
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	char buf[4096];
	SSL *ssl;

	SSL_CTX_use_certificate(ctx, cert);
	SSL_CTX_use_PrivateKey(ctx, key);
	ssl = SSL_new(ctx);
	SSL_set_fd(ssl, accept(listen_fd, NULL, NULL));
	if (SSL_accept(ssl) == 1 && SSL_read(ssl, buf, sizeof(buf)) > 0) {
		(void)SSL_write(ssl, answer, sizeof(answer) - 1);
		(void)SSL_shutdown(ssl);
	}
	_exit(0);
}

static int ask(const struct authority *ca, const char *san)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct kube_target target = { .port = 6443, .ca_pem = ours.pem,
				      .timeout = 10 * USEC_PER_SEC };
	struct fault f = FAULT_INIT;
	struct kube *k = NULL;
	json_t *object = NULL;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;
	pid_t pid;

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/sock", scratch);
	(void)unlink(sa.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 1), 0);
	pid = fork();
	if (pid == 0)
		serve(fd, ca, san);
	assert_true(pid > 0);
	target.socket_path = sa.sun_path;
	assert_int_equal(ip_addr_parse(ADDRESS, &target.address), 0);
	assert_int_equal(kube_open(&target, &k, &f), 0);
	r = kube_get(k, "/version", &object, &f);
	json_decref(object);
	(void)kube_free(k);
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)close(fd);
	(void)unlink(sa.sun_path);
	return r;
}

static void only_the_dialled_address(void **state)
{
	(void)state;
	assert_int_equal(ask(&ours, "IP:" ADDRESS), 0);
	assert_int_equal(ask(&ours, "IP:192.0.2.8"), -EKEYREJECTED);
	assert_int_equal(ask(&ours, "DNS:" ADDRESS), -EKEYREJECTED);
	assert_int_equal(ask(&foreign, "IP:" ADDRESS), -EKEYREJECTED);
}

/* A public authority has no say about the cluster, wherever it is kept. */
static void not_the_systems_authorities(void **state)
{
	char path[128];
	FILE *out;

	(void)state;
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    access(SYSTEM_CERTS, F_OK) < 0)
		skip();
	(void)snprintf(path, sizeof(path), "%s/%08lx.0", scratch,
		       X509_subject_name_hash(foreign.cert));
	out = fopen(path, "we");
	assert_non_null(out);
	assert_true(fputs(foreign.pem, out) >= 0);
	assert_int_equal(fclose(out), 0);
	if (mount(scratch, SYSTEM_CERTS, NULL, MS_BIND, NULL) < 0)
		skip();
	assert_int_equal(ask(&foreign, "IP:" ADDRESS), -EKEYREJECTED);
	assert_int_equal(ask(&ours, "IP:" ADDRESS), 0);
	assert_int_equal(umount(SYSTEM_CERTS), 0);
	assert_int_equal(unlink(path), 0);
}

static int setup(void **state)
{
	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	make_authority(&ours, "cluster");
	make_authority(&foreign, "public");
	return mkdtemp(scratch) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free_authority(&ours);
	free_authority(&foreign);
	return rmdir(scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_dialled_address),
		cmocka_unit_test(not_the_systems_authorities),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
