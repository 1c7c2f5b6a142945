#include "proto/pki.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "common/cleanup.h"
#include "common/parse.h"
#include "proto/pki_read.h"

#define SERIAL_BYTES 16
#define SCHEME "garboard://"

DEFINE_CLEANUP(x509, X509, X509_free)
DEFINE_CLEANUP(req, X509_REQ, X509_REQ_free)
DEFINE_CLEANUP(bio, BIO, BIO_free)
DEFINE_CLEANUP(bn, BIGNUM, BN_free)
DEFINE_CLEANUP(ext, X509_EXTENSION, X509_EXTENSION_free)
DEFINE_CLEANUP(pubkey, EVP_PKEY, EVP_PKEY_free)

static int give_pem(X509 *cert, char **ret_pem, struct fault *f)
{
	CLEANUP(cleanup_bio) BIO *bio = BIO_new(BIO_s_mem());
	char *data = NULL, *copy;
	long n;

	if (!bio || PEM_write_bio_X509(bio, cert) != 1)
		return fault_set(f, -EIO, "certificate", "cannot be encoded");
	n = BIO_get_mem_data(bio, &data);
	copy = n > 0 ? strndup(data, (size_t)n) : NULL;
	if (!copy)
		return -ENOMEM;
	*ret_pem = copy;
	return 0;
}

static int give_der(unsigned char *der, int n, uint8_t **ret_der,
		    size_t *ret_size)
{
	uint8_t *copy = n > 0 ? malloc((size_t)n) : NULL;

	if (copy) {
		memcpy(copy, der, (size_t)n);
		*ret_der = copy;
		*ret_size = (size_t)n;
	}
	OPENSSL_free(der);
	return copy ? 0 : -ENOMEM;
}

static int random_serial(X509 *cert)
{
	CLEANUP(cleanup_bn) BIGNUM *bn = NULL;
	uint8_t bytes[SERIAL_BYTES];

	if (key_random(bytes, sizeof(bytes)) < 0)
		return -EIO;
	bytes[0] &= 0x7f;	/* positive */
	bytes[0] |= 0x40;	/* of one length, never zero */
	bn = BN_bin2bn(bytes, sizeof(bytes), NULL);
	return bn && BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(cert)) ?
		       0 : -ENOMEM;
}

static int add_ext(X509 *cert, X509 *issuer, int nid, const char *value)
{
	CLEANUP(cleanup_ext) X509_EXTENSION *ext = NULL;
	X509V3_CTX ctx;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	return ext && X509_add_ext(cert, ext, -1) == 1 ? 0 : -EIO;
}

/* Everything but issuer, extensions and signature. */
static int begin(const char *name, int64_t now, int64_t life, EVP_PKEY *key,
		 X509 **ret_cert)
{
	CLEANUP(cleanup_x509) X509 *cert = X509_new();
	X509_NAME *subject = cert ? X509_get_subject_name(cert) : NULL;
	const unsigned char *text = (const unsigned char *)name;

	if (!subject || X509_set_version(cert, X509_VERSION_3) != 1 ||
	    random_serial(cert) < 0 ||
	    !ASN1_TIME_set(X509_getm_notBefore(cert), now - PKI_BACKDATE) ||
	    !ASN1_TIME_set(X509_getm_notAfter(cert), now + life) ||
	    X509_set_pubkey(cert, key) != 1 ||
	    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, -1,
				       -1, 0) != 1)
		return -EIO;
	*ret_cert = take_ptr(cert);
	return 0;
}

int pki_make_ca(const struct key *ca_key, const char *name,
		const uint8_t cluster_id[16], int64_t now, char **ret_pem,
		struct fault *f)
{
	CLEANUP(cleanup_x509) X509 *cert = NULL;
	EVP_PKEY *key = key_evp(ca_key);
	char common[64], id[33];
	int r;

	format_hex(cluster_id, 16, id);
	/* The name is for people; the limit is that of a common name. */
	(void)snprintf(common, sizeof(common), "Garboard %.40s %.12s", name,
		       id);
	r = begin(common, now, PKI_CA_LIFE, key, &cert);
	if (r < 0 ||
	    X509_set_issuer_name(cert, X509_get_subject_name(cert)) != 1 ||
	    add_ext(cert, cert, NID_basic_constraints,
		    "critical,CA:TRUE,pathlen:0") < 0 ||
	    add_ext(cert, cert, NID_key_usage, "critical,keyCertSign") < 0 ||
	    add_ext(cert, cert, NID_subject_key_identifier, "hash") < 0 ||
	    X509_sign(cert, key, EVP_sha256()) == 0)
		return fault_set(f, -EIO, "CA certificate", "cannot be made");
	return give_pem(cert, ret_pem, f);
}

static int parse_pem(const char *pem, X509 **ret_cert, struct fault *f)
{
	CLEANUP(cleanup_bio) BIO *bio = NULL;
	size_t n = strlen(pem);
	X509 *cert;

	if (n > PKI_PEM_MAX)
		return fault_set(f, -E2BIG, "certificate", "is too large");
	bio = BIO_new_mem_buf(pem, (int)n);
	cert = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
	if (!cert)
		return fault_set(f, -EBADMSG, "certificate",
				 "is not in PEM form");
	*ret_cert = cert;
	return 0;
}

/* A leaf with one URI; the CA must be the one of that key. */
static int issue(const struct key *ca_key, const char *ca_pem, EVP_PKEY *key,
		 const char *uri, const char *usage, int64_t now,
		 X509 **ret_cert, struct fault *f)
{
	CLEANUP(cleanup_x509) X509 *ca = NULL;
	CLEANUP(cleanup_x509) X509 *cert = NULL;
	char san[PKI_URI_MAX + 8];
	int r;

	r = parse_pem(ca_pem, &ca, f);
	if (r < 0)
		return r;
	if (X509_check_private_key(ca, key_evp(ca_key)) != 1)
		return fault_set(f, -EINVAL, "CA certificate",
				 "does not belong to the CA key");
	(void)snprintf(san, sizeof(san), "URI:%s", uri);
	r = begin("garboard", now, PKI_LEAF_LIFE, key, &cert);
	if (r < 0 ||
	    X509_set_issuer_name(cert, X509_get_subject_name(ca)) != 1 ||
	    add_ext(cert, ca, NID_basic_constraints, "critical,CA:FALSE") < 0 ||
	    add_ext(cert, ca, NID_key_usage, "critical,digitalSignature") < 0 ||
	    add_ext(cert, ca, NID_ext_key_usage, usage) < 0 ||
	    add_ext(cert, ca, NID_subject_alt_name, san) < 0 ||
	    add_ext(cert, ca, NID_authority_key_identifier, "keyid") < 0 ||
	    X509_sign(cert, key_evp(ca_key), EVP_sha256()) == 0)
		return fault_set(f, -EIO, "certificate", "cannot be issued");
	*ret_cert = take_ptr(cert);
	return 0;
}

int pki_make_coordinator(const struct key *ca_key, const char *ca_pem,
			 const struct key *key, const uint8_t cluster_id[16],
			 int64_t now, char **ret_pem, struct fault *f)
{
	CLEANUP(cleanup_x509) X509 *cert = NULL;
	char uri[PKI_URI_MAX], cluster[33];
	int r;

	format_hex(cluster_id, 16, cluster);
	(void)snprintf(uri, sizeof(uri), SCHEME "%s/coordinator", cluster);
	r = issue(ca_key, ca_pem, key_evp(key), uri, "serverAuth", now, &cert,
		  f);
	return r < 0 ? r : give_pem(cert, ret_pem, f);
}

int pki_make_csr(const struct key *key, uint8_t **ret_der, size_t *ret_size,
		 struct fault *f)
{
	CLEANUP(cleanup_req) X509_REQ *req = X509_REQ_new();
	unsigned char *der = NULL;
	int n;

	if (!req || X509_REQ_set_version(req, X509_REQ_VERSION_1) != 1 ||
	    X509_REQ_set_pubkey(req, key_evp(key)) != 1 ||
	    X509_REQ_sign(req, key_evp(key), EVP_sha256()) == 0)
		return fault_set(f, -EIO, "certificate request",
				 "cannot be made");
	n = i2d_X509_REQ(req, &der);
	if (n <= 0)
		return -ENOMEM;
	return give_der(der, n, ret_der, ret_size);
}

static int parse_csr(const void *der, size_t size, X509_REQ **ret_req,
		     struct fault *f)
{
	CLEANUP(cleanup_req) X509_REQ *req = NULL;
	CLEANUP(cleanup_pubkey) EVP_PKEY *key = NULL;
	const unsigned char *at = der;
	char group[32] = "";

	if (size == 0 || size > PKI_DER_MAX)
		return fault_set(f, -EBADMSG, "certificate request",
				 "has an impossible size");
	req = d2i_X509_REQ(NULL, &at, (long)size);
	if (!req || at != (const unsigned char *)der + size)
		return fault_set(f, -EBADMSG, "certificate request",
				 "is malformed");
	key = X509_REQ_get_pubkey(req);
	if (!key || EVP_PKEY_get_base_id(key) != EVP_PKEY_EC ||
	    EVP_PKEY_get_group_name(key, group, sizeof(group), NULL) != 1 ||
	    strcmp(group, "prime256v1") != 0)
		return fault_set(f, -EBADMSG, "certificate request",
				 "is not for a P-256 key");
	if (X509_REQ_verify(req, key) != 1)
		return fault_set(f, -EBADMSG, "certificate request",
				 "is not signed by its own key");
	*ret_req = take_ptr(req);
	return 0;
}

int pki_check_csr(const void *der, size_t size,
		  uint8_t ret_key_sha256[KEY_SHA256_SIZE], struct fault *f)
{
	CLEANUP(cleanup_req) X509_REQ *req = NULL;
	unsigned char *spki = NULL;
	int n, r;

	r = parse_csr(der, size, &req, f);
	if (r < 0)
		return r;
	n = i2d_X509_PUBKEY(X509_REQ_get_X509_PUBKEY(req), &spki);
	if (n <= 0)
		return -ENOMEM;
	r = key_sha256(spki, (size_t)n, ret_key_sha256);
	OPENSSL_free(spki);
	return r;
}

int pki_issue_leaf(const struct key *ca_key, const char *ca_pem,
		   const void *csr, size_t csr_size,
		   const uint8_t cluster_id[16], const uint8_t node_id[16],
		   int64_t now, uint8_t **ret_der, size_t *ret_size,
		   struct fault *f)
{
	CLEANUP(cleanup_req) X509_REQ *req = NULL;
	CLEANUP(cleanup_pubkey) EVP_PKEY *key = NULL;
	CLEANUP(cleanup_x509) X509 *cert = NULL;
	char uri[PKI_URI_MAX], cluster[33], node[33];
	unsigned char *der = NULL;
	int n, r;

	r = parse_csr(csr, csr_size, &req, f);
	if (r < 0)
		return r;
	key = X509_REQ_get_pubkey(req);
	format_hex(cluster_id, 16, cluster);
	format_hex(node_id, 16, node);
	(void)snprintf(uri, sizeof(uri), SCHEME "%s/%s", cluster, node);
	r = issue(ca_key, ca_pem, key, uri, "clientAuth", now, &cert, f);
	if (r < 0)
		return r;
	n = i2d_X509(cert, &der);
	if (n <= 0)
		return -ENOMEM;
	return give_der(der, n, ret_der, ret_size);
}

int pki_pem_to_der(const char *pem, uint8_t **ret_der, size_t *ret_size,
		   struct fault *f)
{
	CLEANUP(cleanup_x509) X509 *cert = NULL;
	unsigned char *der = NULL;
	int n, r;

	r = parse_pem(pem, &cert, f);
	if (r < 0)
		return r;
	n = i2d_X509(cert, &der);
	if (n <= 0)
		return -ENOMEM;
	return give_der(der, n, ret_der, ret_size);
}

int pki_der_to_pem(const void *der, size_t size, char **ret_pem,
		   struct fault *f)
{
	CLEANUP(cleanup_x509) X509 *cert = NULL;
	int r = pki_parse_der(der, size, &cert, f);

	return r < 0 ? r : give_pem(cert, ret_pem, f);
}

int pki_read_pem(const char *pem, struct pki_identity *ret_identity,
		 struct fault *f)
{
	CLEANUP(cleanup_x509) X509 *cert = NULL;
	int r = parse_pem(pem, &cert, f);

	return r < 0 ? r : pki_read_x509(cert, ret_identity, f);
}
