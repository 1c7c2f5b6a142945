/*
 * json.h - writes one JSON document into a bounded buffer.
 *
 * Strings are escaped and bounded; the first failure (no room, no memory)
 * sticks and is returned by json_done(). Nesting is the caller's business:
 * every open needs its close.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_SIZE_MAX (4UL * 1024 * 1024)

struct json {
	char *text;
	size_t n, room;
	bool comma;		/* the next value is not the first */
	int error;
};

void json_init(struct json *j);
/* `key` NULL inside arrays and at the top. */
void json_open(struct json *j, const char *key, char bracket); /* { or [ */
void json_close(struct json *j, char bracket);			/* } or ] */
void json_text(struct json *j, const char *key, const char *value);
void json_number(struct json *j, const char *key, uint64_t value);
void json_bool(struct json *j, const char *key, bool value);

/* Hands the text over (heap); `j` is empty afterwards. -E2BIG, -ENOMEM. */
int json_done(struct json *j, char **ret_text, size_t *ret_size);
