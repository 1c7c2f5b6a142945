#include "agent/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void json_init(struct json *j)
{
	*j = (struct json){ 0 };
}

static void put(struct json *j, const char *data, size_t n)
{
	size_t room = j->room ? j->room : 4096;
	char *text;

	if (j->error)
		return;
	while (room < j->n + n + 1)
		room *= 2;
	if (room > JSON_SIZE_MAX) {
		j->error = -E2BIG;
		return;
	}
	if (room != j->room) {
		text = realloc(j->text, room);
		if (!text) {
			j->error = -ENOMEM;
			return;
		}
		j->text = text;
		j->room = room;
	}
	memcpy(j->text + j->n, data, n);
	j->n += n;
	j->text[j->n] = '\0';
}

static void put_text(struct json *j, const char *text)
{
	char escape[8];

	put(j, "\"", 1);
	while (*text) {
		size_t n = 0;

		while ((unsigned char)text[n] >= 0x20 && text[n] != '"' &&
		       text[n] != '\\')
			n++;
		put(j, text, n);
		text += n;
		if (!*text)
			break;
		(void)snprintf(escape, sizeof(escape),
			       *text == '"' || *text == '\\' ? "\\%c" :
							       "\\u%04x",
			       (unsigned char)*text);
		put(j, escape, strlen(escape));
		text++;
	}
	put(j, "\"", 1);
}

static void begin(struct json *j, const char *key)
{
	if (j->comma)
		put(j, ",", 1);
	j->comma = true;
	if (!key)
		return;
	put_text(j, key);
	put(j, ":", 1);
}

void json_open(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	put(j, &bracket, 1);
	j->comma = false;
}

void json_close(struct json *j, char bracket)
{
	put(j, &bracket, 1);
	j->comma = true;
}

void json_text(struct json *j, const char *key, const char *value)
{
	begin(j, key);
	put_text(j, value);
}

void json_number(struct json *j, const char *key, uint64_t value)
{
	char buf[24];
	int n = snprintf(buf, sizeof(buf), "%" PRIu64, value);

	begin(j, key);
	put(j, buf, n);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin(j, key);
	put(j, value ? "true" : "false", value ? 4 : 5);
}

int json_done(struct json *j, char **ret_text, size_t *ret_size)
{
	int r;

	put(j, "\n", 1);
	r = j->error;
	if (r < 0) {
		free(j->text);
		json_init(j);
		return r;
	}
	*ret_text = j->text;
	*ret_size = j->n;
	json_init(j);
	return 0;
}
