#include "agent/k3s_lines.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "common/fault.h"
#include "proto/up.h"

static const char mark[] = "[redacted]";

static bool is_token_char(char c)
{
	return isalnum((unsigned char)c) || strchr("._~+/=:-", c);
}

/* Shrinks or pads with '*': a secret shorter than the mark must not move
 * what follows beyond the buffer. */
static char *cut(char *at, size_t n)
{
	size_t m = sizeof(mark) - 1;

	if (n < m) {
		memset(at, '*', n);
		return at + n;
	}
	memcpy(at, mark, m);
	memmove(at + m, at + n, strlen(at + n) + 1);
	return at + m;
}

static void cut_all(char *line, const char *secret)
{
	char *at = line;

	while ((at = strstr(at, secret)))
		at = cut(at, strlen(secret));
}

/* K10<hash>::user:secret, whole or in part. */
static void cut_k10(char *line)
{
	char *at = line;
	size_t n;

	while ((at = strstr(at, "K10"))) {
		for (n = 3; at[n] && is_token_char(at[n]); n++)
			;
		at = n > 16 ? cut(at, n) : at + n;
	}
}

/* token=VALUE, --token VALUE, "token: VALUE"; a word after it that is not
 * long enough to be a secret is a word. */
static void cut_after_token(char *line)
{
	char *at = line;
	size_t n;

	while ((at = strstr(at, "token"))) {
		at += strlen("token");
		while (*at && strchr("=: \"'", *at))
			at++;
		for (n = 0; at[n] && is_token_char(at[n]); n++)
			;
		if (n >= 16 && strncmp(at, "http", 4) != 0 && *at != '/')
			at = cut(at, n);
	}
}

void k3s_line_clean(char *line, const char *secret)
{
	fault_sanitize(line);
	if (secret && strlen(secret) >= 8)
		cut_all(line, secret);
	cut_k10(line);
	cut_after_token(line);
}

int k3s_lines_add(struct k3s_lines *l, const char *line, const char *secret)
{
	bool fatal = k3s_line_is_cause(line);
	struct strlist *list = fatal ? &l->fatal : &l->other;
	char copy[K3S_LINE_MAX + 1];
	size_t n = strnlen(line, sizeof(copy) - 1);

	if (list->n >= (fatal ? K3S_LINES_FATAL_MAX : K3S_LINES_MAX))
		return 0;
	memcpy(copy, line, n);
	copy[n] = '\0';
	k3s_line_clean(copy, secret);
	return strlist_has(list, copy) ? 0 : strlist_add(list, copy);
}

int k3s_lines_take(struct k3s_lines *l, struct strlist *ret_lines)
{
	struct strlist lines = STRLIST_INIT;
	size_t i, others = K3S_LINES_MAX - l->fatal.n;
	int r = 0;

	for (i = 0; r == 0 && i < l->fatal.n; i++)
		r = strlist_add(&lines, l->fatal.v[i]);
	for (i = l->other.n < others ? l->other.n : others; r == 0 && i > 0;
	     i--)
		r = strlist_add(&lines, l->other.v[i - 1]);
	k3s_lines_done(l);
	if (r < 0) {
		strlist_done(&lines);
		return r;
	}
	*ret_lines = lines;
	return 0;
}

void k3s_lines_done(struct k3s_lines *l)
{
	strlist_done(&l->fatal);
	strlist_done(&l->other);
}
