#include "agent/state_fields.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/parse.h"

#define HEX_MAX 512

void fields_put(struct fields *out, const char *key, const char *value)
{
	size_t room = sizeof(out->text) - out->n;
	int n;

	if (out->error)
		return;
	if (strchr(value, '\n')) {
		out->error = -EINVAL;
		return;
	}
	n = snprintf(out->text + out->n, room, "%s %s\n", key, value);
	if (n < 0 || (size_t)n >= room)
		out->error = -E2BIG;
	else
		out->n += n;
}

void fields_put_u64(struct fields *out, const char *key, uint64_t value)
{
	char buf[32];

	(void)snprintf(buf, sizeof(buf), "%" PRIu64, value);
	fields_put(out, key, buf);
}

void fields_put_hex(struct fields *out, const char *key, const uint8_t *bytes,
		    size_t size)
{
	char buf[HEX_MAX + 1];

	if (2 * size > HEX_MAX) {
		out->error = -E2BIG;
		return;
	}
	format_hex(bytes, size, buf);
	fields_put(out, key, buf);
}

int fields_get(const char *text, const char *key, size_t nth, char *buf,
	       size_t size)
{
	size_t len = strlen(key);

	while (*text) {
		size_t line = strcspn(text, "\n");

		if (line > len && text[len] == ' ' &&
		    memcmp(text, key, len) == 0 && nth-- == 0) {
			line -= len + 1;
			if (line >= size)
				return -E2BIG;
			memcpy(buf, text + len + 1, line);
			buf[line] = '\0';
			return 0;
		}
		text += line;
		if (*text)
			text++;
	}
	return -ENOENT;
}

int fields_get_u64(const char *text, const char *key, uint64_t *ret_value)
{
	char buf[32];
	int r = fields_get(text, key, 0, buf, sizeof(buf));

	return r < 0 ? r : parse_u64(buf, UINT64_MAX, ret_value);
}

int fields_get_hex(const char *text, const char *key, uint8_t *ret_bytes,
		   size_t size)
{
	char buf[HEX_MAX + 1];
	int r = fields_get(text, key, 0, buf, sizeof(buf));

	return r < 0 ? r : parse_hex(buf, ret_bytes, size);
}
