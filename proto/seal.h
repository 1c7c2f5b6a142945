/*
 * seal.h - secrets for one receiver: X25519 ephemeral, HKDF-SHA256,
 * ChaCha20-Poly1305.
 *
 * info = "garboard seal v1" NUL, context text NUL, ephemeral public key,
 * receiver public key. Each key encrypts one message, so the nonce is zero.
 * The context says what the secret is and for whom (for example
 * "token <node id hex>"), and a box opens under no other context.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"
#include "proto/keys.h"

#define SEAL_PLAIN_MAX 65536
#define SEAL_TAG_SIZE 16
#define SEAL_BOX_MAX (SEAL_PLAIN_MAX + SEAL_TAG_SIZE)
#define SEAL_CONTEXT_MAX 256

/* Contexts in use: both ends must agree. "%s" is the node id in hex. */
#define SEAL_CONTEXT_TOKEN "k3s token for %s"
#define SEAL_CONTEXT_CREDENTIAL "credential from %s"

struct sealed {
	uint8_t ephemeral[KEY_PUBLIC_SIZE];
	uint8_t *box;		/* owned; NULL: absent */
	size_t size;
};

int seal_to(const uint8_t receiver[KEY_PUBLIC_SIZE], const char *context,
	    const void *plain, size_t size, struct sealed *ret_sealed,
	    struct fault *f);
/*
 * *ret_plain is NUL-terminated beyond *ret_size; wipe it (key_wipe) before
 * free. -EKEYREJECTED: another key, context or content.
 */
int seal_open(const struct key *receiver, const char *context,
	      const struct sealed *sealed, uint8_t **ret_plain,
	      size_t *ret_size, struct fault *f);
void sealed_done(struct sealed *sealed);
