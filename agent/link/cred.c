#include "agent/link/cred.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"
#include "proto/frame.h"

static int join(const char *dir, const char *name, char path[PATH_MAX],
		struct fault *f)
{
	if (snprintf(path, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
		return fault_set(f, -ENAMETOOLONG, dir, "path is too long");
	return 0;
}

static int load_text(const char *dir, const char *name, char **ret_text,
		     struct fault *f)
{
	char path[PATH_MAX];
	size_t size = 0;
	int r = join(dir, name, path, f);

	return r < 0 ? r : file_read(path, PKI_PEM_MAX, ret_text, &size, f);
}

static int store_text(const char *dir, const char *name, const char *text,
		      struct fault *f)
{
	char path[PATH_MAX];
	int r = join(dir, name, path, f);

	return r < 0 ? r : file_write(path, 0600, text, strlen(text), f);
}

/* Is this certificate of our key and for a node of our cluster? */
static int judge(const struct cred *c, const char *pem,
		 struct pki_identity *ret_identity, struct fault *f)
{
	_cleanup_free_ uint8_t *csr = NULL;
	uint8_t digest[KEY_SHA256_SIZE];
	struct pki_identity id;
	size_t size = 0;
	int r;

	r = pki_read_pem(pem, &id, f);
	if (r == 0)
		r = pki_make_csr(c->key, &csr, &size, f);
	if (r == 0)
		r = pki_check_csr(csr, size, digest, f);
	if (r < 0)
		return r;
	if (id.kind != PKI_NODE ||
	    memcmp(id.cluster_id, c->bundle.cluster_id, 16) != 0)
		return fault_set(f, -EINVAL, "certificate",
				 "is not of a node of this cluster");
	if (memcmp(digest, id.key_sha256, sizeof(digest)) != 0)
		return fault_set(f, -EINVAL, "certificate",
				 "is not of this node's TLS key");
	*ret_identity = id;
	return 0;
}

static int make_context(struct cred *c, const char *ca, const char *cert,
			struct tls_ctx **ret_tls, struct fault *f)
{
	struct tls_config config = {
		.ca_pem = ca,
		.cert_pem = cert,
		.key = cert ? c->key : NULL,
	};

	memcpy(config.cluster_id, c->bundle.cluster_id, 16);
	return tls_ctx_new(&config, ret_tls, f);
}

static int load_bundle(struct cred *c, const char *dir, struct fault *f)
{
	char path[PATH_MAX];
	int r = join(dir, "bundle", path, f);

	if (r == 0)
		r = bundle_read(path, &c->bundle, f);
	if (r == -ENOENT)
		return fault_set(f, r, path, "there is no bundle");
	/* The token is the agent's business: not even kept here. */
	explicit_bzero(c->bundle.token, sizeof(c->bundle.token));
	return r;
}

static int load_ca(struct cred *c, const char *bundle_dir, struct fault *f)
{
	int r = load_text(c->state_dir, "ca.pem", &c->ca_pem, f);

	if (r == -ENOENT)
		r = load_text(bundle_dir, "ca.pem", &c->ca_pem, f);
	if (r == -ENOENT)
		return fault_set(f, r, bundle_dir, "has no ca.pem");
	return r;
}

static int load_certificate(struct cred *c, struct fault *f)
{
	_cleanup_free_ char *pem = NULL;
	struct fault why = FAULT_INIT;
	int r = load_text(c->state_dir, "tls.crt", &pem, f);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (judge(c, pem, &c->identity, &why) < 0)
		log_warning("tls.crt is put aside: it %s", why.text);
	else
		c->cert_pem = take_ptr(pem);
	return 0;
}

int cred_load(struct cred *c, const char *bundle_dir, const char *state_dir,
	      struct fault *f)
{
	char path[PATH_MAX];
	int r;

	c->state_dir = state_dir;
	r = load_bundle(c, bundle_dir, f);
	if (r == 0)
		r = load_ca(c, bundle_dir, f);
	if (r == 0)
		r = join(state_dir, "tls.key", path, f);
	if (r == 0)
		r = key_load_or_make(path, KEY_P256, &c->key, f);
	if (r >= 0)
		r = load_certificate(c, f);
	if (r < 0)
		return r;
	return make_context(c, c->ca_pem, c->cert_pem, &c->tls, f);
}

void cred_done(struct cred *c)
{
	bundle_done(&c->bundle);
	c->key = key_free(c->key);
	c->tls = tls_ctx_free(c->tls);
	free(c->ca_pem);
	free(c->cert_pem);
	c->ca_pem = c->cert_pem = NULL;
}

/* Appends one more certificate in PEM form. */
static int add_pem(char **text, const uint8_t *der, size_t size,
		   struct fault *f)
{
	_cleanup_free_ char *pem = NULL;
	size_t have = *text ? strlen(*text) : 0;
	char *more;
	int r = pki_der_to_pem(der, size, &pem, f);

	if (r < 0)
		return r;
	if (have + strlen(pem) > PKI_PEM_MAX)
		return -E2BIG;
	more = realloc(*text, have + strlen(pem) + 1);
	if (!more)
		return -ENOMEM;
	memcpy(more + have, pem, strlen(pem) + 1);
	*text = more;
	return 0;
}

static int unpack(const uint8_t *body, size_t size, char **ret_cert,
		  char **ret_ca, struct fault *f)
{
	const uint8_t *item = NULL;
	size_t at = 0, n = 0;
	int r;

	r = frame_unpack_next(body, size, &at, &item, &n);
	if (r != 1)
		return fault_set(f, -EBADMSG, "certificate", "is missing");
	r = add_pem(ret_cert, item, n, f);
	while (r == 0) {
		r = frame_unpack_next(body, size, &at, &item, &n);
		if (r != 1)
			return r;
		r = add_pem(ret_ca, item, n, f);
	}
	return r;
}

int cred_accept(struct cred *c, const uint8_t *body, size_t size,
		struct fault *f)
{
	_cleanup_free_ char *cert = NULL, *ca = NULL;
	struct pki_identity id;
	struct tls_ctx *tls = NULL;
	int r;

	r = unpack(body, size, &cert, &ca, f);
	if (r == 0)
		r = judge(c, cert, &id, f);
	if (r == 0)
		r = make_context(c, ca ? ca : c->ca_pem, cert, &tls, f);
	if (r < 0)
		return r;
	if (ca)
		r = store_text(c->state_dir, "ca.pem", ca, f);
	if (r == 0)
		r = store_text(c->state_dir, "tls.crt", cert, f);
	if (r < 0) {
		(void)tls_ctx_free(tls);
		return r;
	}
	(void)tls_ctx_free(c->tls);
	c->tls = tls;
	c->identity = id;
	free(c->cert_pem);
	c->cert_pem = take_ptr(cert);
	if (ca) {
		free(c->ca_pem);
		c->ca_pem = take_ptr(ca);
	}
	return 0;
}

bool cred_wants_renewal(const struct cred *c, int64_t now)
{
	return !c->cert_pem || now >= pki_renew_at(&c->identity);
}

int cred_csr(const struct cred *c, uint8_t **ret_der, size_t *ret_size,
	     struct fault *f)
{
	return pki_make_csr(c->key, ret_der, ret_size, f);
}
