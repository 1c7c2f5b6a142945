#include "common/put.h"

#include <string.h>

char *put_text(char *at, const char *end, const char *text)
{
	size_t room = (size_t)(end - at) - 1, n = strnlen(text, room);

	(void)memcpy(at, text, n);
	at[n] = '\0';
	return at + n;
}

char *put_u32(char *at, const char *end, uint32_t value)
{
	char digits[11], *p = digits + sizeof(digits) - 1;

	*p = '\0';
	do
		*--p = (char)('0' + value % 10);
	while (value /= 10);
	return put_text(at, end, p);
}
