#include "spec/placeholder.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* '-' stands for '-', '_', a blank, or nothing. */
static const char *const words[] = {
	"TBD", "TODO", "FIXME", "PLACEHOLDER", "REPLACE-ME", "CHANGE-ME",
	"FILL-ME", "SET-ME", "BLOCKED", "NOT-A-DEVICE",
};

/* Length of the match of `word` at `s`, 0 for none. */
static size_t match(const char *s, const char *word)
{
	const char *start = s;

	for (; *word; word++) {
		if (*word == '-') {
			if (*s && strchr("-_ ", *s))
				s++;
		} else if (toupper((unsigned char)*s) == *word) {
			s++;
		} else {
			return 0;
		}
	}
	return (size_t)(s - start);
}

static bool has_lower(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (islower((unsigned char)s[i]))
			return true;
	return false;
}

/* Whether a neighbour makes the match part of a longer word. */
static bool glued(const char *s, size_t n, char neighbour)
{
	if (!isalpha((unsigned char)neighbour))
		return false;
	return has_lower(s, n) || !islower((unsigned char)neighbour);
}

static bool has_word(const char *text, const char *word)
{
	const char *s;

	for (s = text; *s; s++) {
		size_t n = match(s, word);

		if (n && !glued(s, n, s == text ? '\0' : s[-1]) &&
		    !glued(s, n, s[n]))
			return true;
	}
	return false;
}

/* "<node ip>", "<...>", but neither "<= 6" nor "a < b". */
static bool has_angle(const char *text)
{
	const char *open = strchr(text, '<');

	for (; open; open = strchr(open + 1, '<'))
		if (open[1] && !strchr("= <", open[1]) &&
		    strchr(open + 1, '>'))
			return true;
	return false;
}

bool spec_is_placeholder(const char *text)
{
	size_t i;

	if (text[strspn(text, " \t\n")] == '\0')
		return true;
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (has_word(text, words[i]))
			return true;
	return strcasestr(text, "xxxx") || has_angle(text);
}

bool spec_is_template(const char *text)
{
	return strstr(text, "${") || strstr(text, "{{");
}
