/*
 * desired_wire.h - struct desired to protobuf bytes and back.
 *
 * Decoding is strict (H36): one value has one encoding, so unknown fields,
 * repeated scalars, embedded NULs and non-minimal encodings are refused,
 * as are unknown required features, lists above the limits of desired.h,
 * control characters, and text that is not what its field holds. Nothing
 * is guessed or dropped. Faults name the field.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"
#include "proto/desired.h"

#define DESIRED_WIRE_MAX (512 * 1024)

/* Features this build knows; NULL at the end. */
extern const char *const desired_features[];

/*
 * -E2BIG above DESIRED_WIRE_MAX. The bytes are canonical: equal values give
 * equal bytes, so their SHA-256 identifies the state.
 */
int desired_encode(const struct desired *d, uint8_t **ret_bytes,
		   size_t *ret_size, struct fault *f);
/* -EBADMSG malformed, -EINVAL invalid value, -EOPNOTSUPP feature. */
int desired_decode(const void *bytes, size_t size, struct desired **ret_desired,
		   struct fault *f);
