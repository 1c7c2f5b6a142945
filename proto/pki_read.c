#include "proto/pki_read.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include <openssl/x509v3.h>

#include "common/cleanup.h"
#include "common/parse.h"

#define SCHEME "garboard://"

DEFINE_CLEANUP(x509, X509, X509_free)

static void free_names(GENERAL_NAMES *names)
{
	GENERAL_NAMES_free(names);
}
DEFINE_CLEANUP(names, GENERAL_NAMES, free_names)

int pki_parse_der(const void *der, size_t size, X509 **ret_cert,
		  struct fault *f)
{
	const unsigned char *at = der;
	X509 *cert = NULL;

	if (size > 0 && size <= PKI_DER_MAX)
		cert = d2i_X509(NULL, &at, (long)size);
	if (!cert || at != (const unsigned char *)der + size) {
		X509_free(cert);
		return fault_set(f, -EBADMSG, "certificate", "is malformed");
	}
	*ret_cert = cert;
	return 0;
}

int64_t pki_time(const ASN1_TIME *t)
{
	struct tm tm;

	if (ASN1_TIME_to_tm(t, &tm) != 1)
		return 0;
	return (int64_t)timegm(&tm);
}

/* garboard://<32 hex>/coordinator or garboard://<32 hex>/<32 hex> */
static int parse_uri(const char *uri, size_t n, struct pki_identity *id)
{
	const size_t scheme = sizeof(SCHEME) - 1;
	char cluster[33], rest[33];

	if (n <= scheme + 33 || n > scheme + 33 + 32 ||
	    memcmp(uri, SCHEME, scheme) != 0 || uri[scheme + 32] != '/' ||
	    memchr(uri, '\0', n))
		return -EINVAL;
	memcpy(cluster, uri + scheme, 32);
	cluster[32] = '\0';
	memcpy(rest, uri + scheme + 33, n - scheme - 33);
	rest[n - scheme - 33] = '\0';
	if (parse_hex(cluster, id->cluster_id, 16) < 0)
		return -EINVAL;
	if (strcmp(rest, "coordinator") == 0) {
		id->kind = PKI_COORDINATOR;
		return 0;
	}
	id->kind = PKI_NODE;
	return parse_hex(rest, id->node_id, 16);
}

int pki_read_x509(const struct x509_st *cert,
		  struct pki_identity *ret_identity, struct fault *f)
{
	CLEANUP(cleanup_names) GENERAL_NAMES *names =
		X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	struct pki_identity id = { .kind = PKI_NONE };
	const GENERAL_NAME *name;
	unsigned char *spki = NULL;
	int n, r;

	if (!names || sk_GENERAL_NAME_num(names) != 1)
		return fault_set(f, -EINVAL, "certificate",
				 "does not have exactly one name");
	name = sk_GENERAL_NAME_value(names, 0);
	if (name->type != GEN_URI ||
	    parse_uri((const char *)ASN1_STRING_get0_data(
			      name->d.uniformResourceIdentifier),
		      (size_t)ASN1_STRING_length(
			      name->d.uniformResourceIdentifier), &id) < 0)
		return fault_set(f, -EINVAL, "certificate",
				 "is not named garboard://CLUSTER/NODE");
	id.not_before = pki_time(X509_get0_notBefore(cert));
	id.not_after = pki_time(X509_get0_notAfter(cert));
	n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &spki);
	if (n <= 0)
		return fault_set(f, -EINVAL, "certificate", "has no key");
	r = key_sha256(spki, (size_t)n, id.key_sha256);
	OPENSSL_free(spki);
	if (r < 0)
		return r;
	*ret_identity = id;
	return 0;
}

int pki_read_der(const void *der, size_t size,
		 struct pki_identity *ret_identity, struct fault *f)
{
	CLEANUP(cleanup_x509) X509 *cert = NULL;
	int r = pki_parse_der(der, size, &cert, f);

	return r < 0 ? r : pki_read_x509(cert, ret_identity, f);
}

int64_t pki_renew_at(const struct pki_identity *identity)
{
	return identity->not_before +
	       (identity->not_after - identity->not_before) / 3 * 2;
}
