/*
 * keys.h - private keys, signatures and digests by libcrypto.
 *
 * A key is opaque and never leaves its owner but through key_save(), which
 * writes PKCS#8 PEM with mode 0600 by temporary name and rename. Public
 * halves are raw bytes (Ed25519 and X25519: 32). A key id is the first 8
 * bytes, a fingerprint the first 16 hex digits, of the SHA-256 of the
 * public half. No key bytes are ever put into a fault.
 *
 * Errors: negative errno with a fault. -ENOENT is without a fault.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"

#define KEY_PUBLIC_SIZE 32
#define KEY_ID_SIZE 8
#define KEY_SIGNATURE_SIZE 64
#define KEY_SHA256_SIZE 32
#define KEY_FINGERPRINT_TEXT 17		/* 16 digits and NUL */

enum key_type {
	KEY_ED25519,		/* trust root, order key, report key */
	KEY_X25519,		/* sealing */
	KEY_P256,		/* TLS */
	KEY_TYPE_MAX,
};

struct key;
struct evp_pkey_st;		/* libcrypto's EVP_PKEY */

/*
 * Call first in main: libcrypto then reads no openssl.cnf (memory, and no
 * provider that a stray file names).
 */
void key_init(void);

int key_generate(enum key_type type, struct key **ret_key, struct fault *f);

/*
 * Loads a private key of exactly that type. A file that others than its
 * owner may read or write is refused with -EPERM. -ENOENT when absent.
 */
int key_load(const char *path, enum key_type type, struct key **ret_key,
	     struct fault *f);
int key_save(const struct key *key, const char *path, struct fault *f);
/* Loads it, or makes and saves it where there is none. 1: it was made. */
int key_load_or_make(const char *path, enum key_type type,
		     struct key **ret_key, struct fault *f);

struct key *key_free(struct key *key);	/* returns NULL; accepts NULL */

/* The raw public half of an Ed25519 or X25519 key. */
void key_public(const struct key *key, uint8_t ret_public[KEY_PUBLIC_SIZE]);

/* Borrowed; for proto/ alone (pki, seal, tls). */
struct evp_pkey_st *key_evp(const struct key *key);

void key_id(const uint8_t public_key[KEY_PUBLIC_SIZE],
	    uint8_t ret_id[KEY_ID_SIZE]);
void key_fingerprint(const uint8_t public_key[KEY_PUBLIC_SIZE],
		     char ret_text[KEY_FINGERPRINT_TEXT]);

/* Ed25519 over context text, its NUL, then the data: one use, one context. */
int key_sign(const struct key *key, const char *context, const void *data,
	     size_t size, uint8_t ret_signature[KEY_SIGNATURE_SIZE],
	     struct fault *f);
bool key_verify(const uint8_t public_key[KEY_PUBLIC_SIZE],
		const char *context, const void *data, size_t size,
		const uint8_t signature[KEY_SIGNATURE_SIZE]);

/* Whole buffer at once. Fails only when libcrypto is broken or out of memory. */
int key_sha256(const void *data, size_t size,
	       uint8_t ret_digest[KEY_SHA256_SIZE]);
/* From the kernel, never short. */
int key_random(void *buf, size_t size);
/* Constant time; for tokens and digests. */
bool key_equal(const void *a, const void *b, size_t size);
/* Overwrites, so that the compiler keeps it. */
void key_wipe(void *buf, size_t size);
