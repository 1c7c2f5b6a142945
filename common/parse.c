#include "common/parse.h"

#include <errno.h>
#include <string.h>

static int digit_value(char c, unsigned int base)
{
	int v = -1;

	if (c >= '0' && c <= '9')
		v = c - '0';
	else if (c >= 'a' && c <= 'f')
		v = c - 'a' + 10;
	else if (c >= 'A' && c <= 'F')
		v = c - 'A' + 10;
	return v >= 0 && (unsigned int)v < base ? v : -1;
}

int parse_u64(const char *text, uint64_t max, uint64_t *ret_value)
{
	unsigned int base = 10;
	uint64_t value = 0;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		int d = digit_value(*text, base);

		if (d < 0)
			return -EINVAL;
		if (value > (UINT64_MAX - (uint64_t)d) / base)
			return -ERANGE;
		value = value * base + (uint64_t)d;
	}
	if (value > max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int parse_u32(const char *text, uint32_t *ret_value)
{
	uint64_t v = 0;
	int r = parse_u64(text, UINT32_MAX, &v);

	if (r == 0)
		*ret_value = (uint32_t)v;
	return r;
}

int parse_port(const char *text, uint16_t *ret_port)
{
	uint64_t v = 0;
	int r = parse_u64(text, UINT16_MAX, &v);

	if (r < 0)
		return r;
	if (v == 0)
		return -ERANGE;
	*ret_port = (uint16_t)v;
	return 0;
}

int parse_hex(const char *text, uint8_t *ret_bytes, size_t size)
{
	size_t i;

	if (strlen(text) != 2 * size)
		return -EINVAL;
	for (i = 0; i < 2 * size; i++)
		if (digit_value(text[i], 16) < 0)
			return -EINVAL;
	for (i = 0; i < size; i++)
		ret_bytes[i] = (uint8_t)(digit_value(text[2 * i], 16) * 16 +
					 digit_value(text[2 * i + 1], 16));
	return 0;
}

void format_hex(const uint8_t *bytes, size_t size, char *ret_text)
{
	static const char digits[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < size; i++) {
		ret_text[2 * i] = digits[bytes[i] >> 4];
		ret_text[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret_text[2 * size] = '\0';
}

static bool is_lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool parse_is_label(const char *text)
{
	size_t n = strlen(text), i;

	if (n == 0 || n > 63)
		return false;
	for (i = 0; i < n; i++)
		if (!is_lower_alnum(text[i]) && text[i] != '-')
			return false;
	return is_lower_alnum(text[0]) && is_lower_alnum(text[n - 1]);
}
