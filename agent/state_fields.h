/*
 * state_fields.h - "key value" lines, the inside of small state files.
 *
 * Private to state.c. Values are single lines. A missing or malformed field
 * makes the whole file malformed: half a record is no record.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FIELDS_MAX 16384

struct fields {
	char text[FIELDS_MAX];
	size_t n;
	int error;		/* first failure of an append */
};

void fields_put(struct fields *out, const char *key, const char *value);
void fields_put_u64(struct fields *out, const char *key, uint64_t value);
void fields_put_hex(struct fields *out, const char *key, const uint8_t *bytes,
		    size_t size);

/* The nth value of `key`, copied; -ENOENT, -E2BIG. */
int fields_get(const char *text, const char *key, size_t nth, char *buf,
	       size_t size);
int fields_get_u64(const char *text, const char *key, uint64_t *ret_value);
int fields_get_hex(const char *text, const char *key, uint8_t *ret_bytes,
		   size_t size);
