#include "proto/keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/parse.h"

#define KEY_FILE_MAX 4096
#define CONTEXT_MAX 64

struct key {
	EVP_PKEY *pkey;
	enum key_type type;
	uint8_t raw[KEY_PUBLIC_SIZE];	/* not of P-256 */
};

DEFINE_CLEANUP(key, struct key, key_free)
DEFINE_CLEANUP(bio, BIO, BIO_free)
DEFINE_CLEANUP(mdctx, EVP_MD_CTX, EVP_MD_CTX_free)
DEFINE_CLEANUP(pkey, EVP_PKEY, EVP_PKEY_free)

void key_init(void)
{
	(void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG |
					  OPENSSL_INIT_NO_ATEXIT, NULL);
}

static int pkey_id(enum key_type type)
{
	switch (type) {
	case KEY_ED25519:
		return EVP_PKEY_ED25519;
	case KEY_X25519:
		return EVP_PKEY_X25519;
	case KEY_P256:
	case KEY_TYPE_MAX:
		break;
	}
	return EVP_PKEY_EC;
}

/* EC is a family: only the one curve is ours. */
static bool is_p256(const EVP_PKEY *pkey)
{
	char group[32] = "";

	return EVP_PKEY_get_group_name(pkey, group, sizeof(group), NULL) == 1 &&
	       (strcmp(group, "prime256v1") == 0 || strcmp(group, "P-256") == 0);
}

/* Takes `pkey` on success. */
static int wrap(EVP_PKEY *pkey, enum key_type type, const char *object,
		struct key **ret_key, struct fault *f)
{
	struct key *key;
	size_t n = KEY_PUBLIC_SIZE;

	if (EVP_PKEY_get_base_id(pkey) != pkey_id(type) ||
	    (type == KEY_P256 && !is_p256(pkey)))
		return fault_set(f, -EINVAL, object, "is another kind of key");
	key = calloc(1, sizeof(*key));
	if (!key)
		return -ENOMEM;
	if (type != KEY_P256 &&
	    (EVP_PKEY_get_raw_public_key(pkey, key->raw, &n) != 1 ||
	     n != KEY_PUBLIC_SIZE)) {
		free(key);
		return fault_set(f, -EINVAL, object, "has no public half");
	}
	key->type = type;
	key->pkey = pkey;
	*ret_key = key;
	return 0;
}

int key_generate(enum key_type type, struct key **ret_key, struct fault *f)
{
	CLEANUP(cleanup_pkey) EVP_PKEY *pkey = NULL;
	int r;

	switch (type) {
	case KEY_ED25519:
		pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
		break;
	case KEY_X25519:
		pkey = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
		break;
	case KEY_P256:
	case KEY_TYPE_MAX:
		pkey = EVP_EC_gen("P-256");
		break;
	}
	if (!pkey)
		return fault_set(f, -EIO, "key", "cannot be generated");
	r = wrap(pkey, type, "key", ret_key, f);
	if (r == 0)
		(void)take_ptr(pkey);
	return r;
}

static int check_mode(const char *path, struct fault *f)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOENT ? -ENOENT :
					 fault_errno(f, -errno, path,
						     "cannot be examined");
	if (st.st_mode & 077)
		return fault_set(f, -EPERM, path,
				 "is a private key that others may read; "
				 "chmod 600 it, or replace it if they did");
	return 0;
}

/* No prompt: an encrypted file is refused, not asked about. */
static int no_password(char *buf, int size, int rwflag, void *u)
{
	(void)buf;
	(void)size;
	(void)rwflag;
	(void)u;
	return -1;
}

int key_load(const char *path, enum key_type type, struct key **ret_key,
	     struct fault *f)
{
	CLEANUP(cleanup_pkey) EVP_PKEY *pkey = NULL;
	CLEANUP(cleanup_bio) BIO *bio = NULL;
	char *data = NULL;
	size_t size = 0;
	int r;

	r = check_mode(path, f);
	if (r == 0)
		r = file_read(path, KEY_FILE_MAX, &data, &size, f);
	if (r < 0)
		return r;
	bio = BIO_new_mem_buf(data, (int)size);
	if (bio)
		pkey = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
	key_wipe(data, size);
	free(data);
	if (!pkey)
		return fault_set(f, -EBADMSG, path,
				 "is not a private key in PEM form");
	r = wrap(pkey, type, path, ret_key, f);
	if (r == 0)
		(void)take_ptr(pkey);
	return r;
}

int key_save(const struct key *key, const char *path, struct fault *f)
{
	/* Secure memory functions of a BIO wipe what they release. */
	CLEANUP(cleanup_bio) BIO *bio = BIO_new(BIO_s_secmem());
	char *data = NULL;
	long size;

	if (!bio || PEM_write_bio_PKCS8PrivateKey(bio, key->pkey, NULL, NULL, 0,
						  NULL, NULL) != 1)
		return fault_set(f, -EIO, path, "key cannot be encoded");
	size = BIO_get_mem_data(bio, &data);
	if (size <= 0)
		return fault_set(f, -EIO, path, "key cannot be encoded");
	return file_write(path, 0600, data, (size_t)size, f);
}

int key_load_or_make(const char *path, enum key_type type,
		     struct key **ret_key, struct fault *f)
{
	CLEANUP(cleanup_key) struct key *key = NULL;
	int r = key_load(path, type, ret_key, f);

	if (r != -ENOENT)
		return r;
	r = key_generate(type, &key, f);
	if (r == 0)
		r = key_save(key, path, f);
	if (r < 0)
		return r;
	*ret_key = take_ptr(key);
	return 1;
}

struct key *key_free(struct key *key)
{
	if (key)
		EVP_PKEY_free(key->pkey);
	free(key);
	return NULL;
}

void key_public(const struct key *key, uint8_t ret_public[KEY_PUBLIC_SIZE])
{
	memcpy(ret_public, key->raw, KEY_PUBLIC_SIZE);
}

struct evp_pkey_st *key_evp(const struct key *key)
{
	return key->pkey;
}

void key_id(const uint8_t public_key[KEY_PUBLIC_SIZE],
	    uint8_t ret_id[KEY_ID_SIZE])
{
	uint8_t digest[KEY_SHA256_SIZE] = { 0 };

	(void)key_sha256(public_key, KEY_PUBLIC_SIZE, digest);
	memcpy(ret_id, digest, KEY_ID_SIZE);
}

void key_fingerprint(const uint8_t public_key[KEY_PUBLIC_SIZE],
		     char ret_text[KEY_FINGERPRINT_TEXT])
{
	uint8_t id[KEY_ID_SIZE];

	key_id(public_key, id);
	format_hex(id, sizeof(id), ret_text);
}

/* Ed25519 hashes in two passes, so libcrypto takes it in one piece only. */
static uint8_t *join(const char *context, const void *data, size_t size,
		     size_t *ret_size)
{
	size_t n = strlen(context) + 1;
	uint8_t *bytes = n <= CONTEXT_MAX ? malloc(n + size) : NULL;

	if (!bytes)
		return NULL;
	memcpy(bytes, context, n);
	if (size)
		memcpy(bytes + n, data, size);
	*ret_size = n + size;
	return bytes;
}

int key_sign(const struct key *key, const char *context, const void *data,
	     size_t size, uint8_t ret_signature[KEY_SIGNATURE_SIZE],
	     struct fault *f)
{
	CLEANUP(cleanup_mdctx) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	_cleanup_free_ uint8_t *all = NULL;
	uint8_t sig[KEY_SIGNATURE_SIZE];
	size_t n = sizeof(sig), total = 0;

	all = join(context, data, size, &total);
	if (!ctx || !all)
		return -ENOMEM;
	if (EVP_DigestSignInit(ctx, NULL, NULL, NULL, key->pkey) != 1 ||
	    EVP_DigestSign(ctx, sig, &n, all, total) != 1 || n != sizeof(sig))
		return fault_set(f, -EIO, context, "cannot be signed");
	memcpy(ret_signature, sig, sizeof(sig));
	return 0;
}

bool key_verify(const uint8_t public_key[KEY_PUBLIC_SIZE],
		const char *context, const void *data, size_t size,
		const uint8_t signature[KEY_SIGNATURE_SIZE])
{
	CLEANUP(cleanup_mdctx) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	CLEANUP(cleanup_pkey) EVP_PKEY *pkey = EVP_PKEY_new_raw_public_key(
		EVP_PKEY_ED25519, NULL, public_key, KEY_PUBLIC_SIZE);
	_cleanup_free_ uint8_t *all = NULL;
	size_t total = 0;

	all = join(context, data, size, &total);
	if (!ctx || !pkey || !all)
		return false;
	return EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
	       EVP_DigestVerify(ctx, signature, KEY_SIGNATURE_SIZE, all,
				total) == 1;
}

int key_sha256(const void *data, size_t size,
	       uint8_t ret_digest[KEY_SHA256_SIZE])
{
	uint8_t digest[KEY_SHA256_SIZE];

	if (EVP_Q_digest(NULL, "SHA256", NULL, size ? data : "", size, digest,
			 NULL) != 1)
		return -EIO;
	memcpy(ret_digest, digest, sizeof(digest));
	return 0;
}

int key_random(void *buf, size_t size)
{
	uint8_t *p = buf;

	while (size > 0) {
		ssize_t n = getrandom(p, size, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

bool key_equal(const void *a, const void *b, size_t size)
{
	return CRYPTO_memcmp(a, b, size) == 0;
}

void key_wipe(void *buf, size_t size)
{
	OPENSSL_cleanse(buf, size);
}
