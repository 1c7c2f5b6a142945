#include "proto/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/core_names.h>
#include <openssl/params.h>

#include "common/cleanup.h"

#define LABEL "garboard seal v1"
#define CIPHER_KEY_SIZE 32
#define NONCE_SIZE 12

DEFINE_CLEANUP(pkey, EVP_PKEY, EVP_PKEY_free)
DEFINE_CLEANUP(pctx, EVP_PKEY_CTX, EVP_PKEY_CTX_free)
DEFINE_CLEANUP(cctx, EVP_CIPHER_CTX, EVP_CIPHER_CTX_free)
DEFINE_CLEANUP(kdf, EVP_KDF, EVP_KDF_free)
DEFINE_CLEANUP(kctx, EVP_KDF_CTX, EVP_KDF_CTX_free)
DEFINE_CLEANUP(key, struct key, key_free)

/* Label NUL context NUL ephemeral receiver. */
static int make_info(const char *context, const uint8_t *ephemeral,
		     const uint8_t *receiver, uint8_t *info, size_t *ret_size)
{
	size_t n = strlen(context) + 1;

	if (n > SEAL_CONTEXT_MAX)
		return -E2BIG;
	memcpy(info, LABEL, sizeof(LABEL));
	info += sizeof(LABEL);
	memcpy(info, context, n);
	memcpy(info + n, ephemeral, KEY_PUBLIC_SIZE);
	memcpy(info + n + KEY_PUBLIC_SIZE, receiver, KEY_PUBLIC_SIZE);
	*ret_size = sizeof(LABEL) + n + (size_t)2 * KEY_PUBLIC_SIZE;
	return 0;
}

static int expand(uint8_t *secret, size_t secret_size, uint8_t *info,
		  size_t info_size, uint8_t ret_key[CIPHER_KEY_SIZE])
{
	CLEANUP(cleanup_kdf) EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	CLEANUP(cleanup_kctx) EVP_KDF_CTX *ctx = NULL;
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest,
						 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret,
						  secret_size),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info,
						  info_size),
		OSSL_PARAM_construct_end(),
	};

	ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	if (!ctx || EVP_KDF_derive(ctx, ret_key, CIPHER_KEY_SIZE, params) != 1)
		return -EIO;
	return 0;
}

static int derive(EVP_PKEY *own, const uint8_t *peer, const char *context,
		  const uint8_t *ephemeral, const uint8_t *receiver,
		  uint8_t ret_key[CIPHER_KEY_SIZE])
{
	CLEANUP(cleanup_pkey) EVP_PKEY *other = EVP_PKEY_new_raw_public_key(
		EVP_PKEY_X25519, NULL, peer, KEY_PUBLIC_SIZE);
	CLEANUP(cleanup_pctx) EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(own, NULL);
	uint8_t info[sizeof(LABEL) + SEAL_CONTEXT_MAX + 2 * KEY_PUBLIC_SIZE];
	uint8_t secret[KEY_PUBLIC_SIZE];
	size_t n = sizeof(secret), info_size = 0;
	int r;

	r = make_info(context, ephemeral, receiver, info, &info_size);
	if (r < 0)
		return r;
	if (!other || !ctx)
		return -EIO;
	/* A point of small order gives an all-zero secret: refused here. */
	if (EVP_PKEY_derive_init(ctx) != 1 ||
	    EVP_PKEY_derive_set_peer(ctx, other) != 1 ||
	    EVP_PKEY_derive(ctx, secret, &n) != 1 || n != sizeof(secret))
		return -EKEYREJECTED;
	r = expand(secret, n, info, info_size, ret_key);
	key_wipe(secret, sizeof(secret));
	return r;
}

/* Each key is used once, so the nonce may be constant. */
static const uint8_t nonce[NONCE_SIZE];

static int encrypt(const uint8_t *key, const void *plain, size_t size,
		   uint8_t *ret_box)
{
	CLEANUP(cleanup_cctx) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n = 0;

	if (!ctx ||
	    EVP_EncryptInit_ex(ctx, EVP_chacha20_poly1305(), NULL, key,
			       nonce) != 1 ||
	    EVP_EncryptUpdate(ctx, ret_box, &n, plain, (int)size) != 1 ||
	    EVP_EncryptFinal_ex(ctx, ret_box + n, &n) != 1 ||
	    EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, SEAL_TAG_SIZE,
				ret_box + size) != 1)
		return -EIO;
	return 0;
}

static int decrypt(const uint8_t *key, const uint8_t *box, size_t size,
		   uint8_t *ret_plain)
{
	CLEANUP(cleanup_cctx) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t tag[SEAL_TAG_SIZE];
	int n = 0;

	memcpy(tag, box + size, sizeof(tag));
	if (!ctx ||
	    EVP_DecryptInit_ex(ctx, EVP_chacha20_poly1305(), NULL, key,
			       nonce) != 1 ||
	    EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, SEAL_TAG_SIZE,
				tag) != 1 ||
	    EVP_DecryptUpdate(ctx, ret_plain, &n, box, (int)size) != 1)
		return -EIO;
	return EVP_DecryptFinal_ex(ctx, ret_plain + n, &n) == 1 ?
		       0 : -EKEYREJECTED;
}

int seal_to(const uint8_t receiver[KEY_PUBLIC_SIZE], const char *context,
	    const void *plain, size_t size, struct sealed *ret_sealed,
	    struct fault *f)
{
	CLEANUP(cleanup_key) struct key *ephemeral = NULL;
	_cleanup_free_ uint8_t *box = NULL;
	uint8_t public_key[KEY_PUBLIC_SIZE], key[CIPHER_KEY_SIZE];
	int r;

	if (size == 0 || size > SEAL_PLAIN_MAX)
		return fault_set(f, -E2BIG, "secret",
				 "of %zu bytes; 1 to %d can be sealed", size,
				 SEAL_PLAIN_MAX);
	r = key_generate(KEY_X25519, &ephemeral, f);
	if (r < 0)
		return r;
	key_public(ephemeral, public_key);
	box = malloc(size + SEAL_TAG_SIZE);
	if (!box)
		return -ENOMEM;
	r = derive(key_evp(ephemeral), receiver, context, public_key, receiver,
		   key);
	if (r == 0)
		r = encrypt(key, plain, size, box);
	key_wipe(key, sizeof(key));
	if (r < 0)
		return fault_errno(f, r, "secret", "cannot be sealed");
	memcpy(ret_sealed->ephemeral, public_key, sizeof(public_key));
	ret_sealed->box = take_ptr(box);
	ret_sealed->size = size + SEAL_TAG_SIZE;
	return 0;
}

int seal_open(const struct key *receiver, const char *context,
	      const struct sealed *sealed, uint8_t **ret_plain,
	      size_t *ret_size, struct fault *f)
{
	uint8_t public_key[KEY_PUBLIC_SIZE], key[CIPHER_KEY_SIZE];
	uint8_t *plain;
	size_t size;
	int r;

	if (!sealed->box || sealed->size <= SEAL_TAG_SIZE ||
	    sealed->size > SEAL_BOX_MAX)
		return fault_set(f, -EKEYREJECTED, "secret",
				 "has an impossible size");
	size = sealed->size - SEAL_TAG_SIZE;
	plain = malloc(size + 1);
	if (!plain)
		return -ENOMEM;
	key_public(receiver, public_key);
	r = derive(key_evp(receiver), sealed->ephemeral, context,
		   sealed->ephemeral, public_key, key);
	if (r == 0)
		r = decrypt(key, sealed->box, size, plain);
	key_wipe(key, sizeof(key));
	if (r < 0) {
		key_wipe(plain, size);
		free(plain);
		return fault_set(f, r, "secret",
				 "is not for this key and purpose");
	}
	plain[size] = '\0';
	*ret_plain = plain;
	*ret_size = size;
	return 0;
}

void sealed_done(struct sealed *sealed)
{
	free(sealed->box);
	*sealed = (struct sealed){ 0 };
}
