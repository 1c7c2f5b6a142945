/*
 * json_bytes.h - byte strings as base64 in JSON, for the control protocol.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* A new string; NULL: no memory. */
json_t *json_bytes(const void *data, size_t size);

/*
 * The member `key` of `object`, decoded; at most `limit` bytes. *ret_data is
 * owned by the caller (free) and NUL-terminated beyond *ret_size. -ENOENT
 * no such member, -EBADMSG not base64, -E2BIG.
 */
int json_get_bytes(const json_t *object, const char *key, size_t limit,
		   uint8_t **ret_data, size_t *ret_size);
/* Exactly `size` bytes into `buf`. */
int json_get_exact(const json_t *object, const char *key, uint8_t *buf,
		   size_t size);
