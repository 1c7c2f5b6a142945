#include "coordinator/json_bytes.h"

#include <errno.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

json_t *json_bytes(const void *data, size_t size)
{
	_cleanup_free_ unsigned char *text = NULL;
	int n;

	if (size > INT_MAX / 2)
		return NULL;
	text = malloc(4 * ((size + 2) / 3) + 1);
	if (!text)
		return NULL;
	n = EVP_EncodeBlock(text, size ? data : text, (int)size);
	return json_stringn((char *)text, (size_t)n);
}

/* EVP_DecodeBlock counts the padding as bytes. */
static size_t padding(const char *text, size_t n)
{
	if (n >= 2 && text[n - 2] == '=')
		return 2;
	return n >= 1 && text[n - 1] == '=' ? 1 : 0;
}

int json_get_bytes(const json_t *object, const char *key, size_t limit,
		   uint8_t **ret_data, size_t *ret_size)
{
	const json_t *member = json_object_get(object, key);
	const char *text = json_string_value(member);
	size_t n = json_string_length(member);
	uint8_t *data;
	int decoded;

	if (!text)
		return -ENOENT;
	if (n > INT_MAX / 2 || n / 4 * 3 > limit + 2)
		return -E2BIG;
	data = malloc(n / 4 * 3 + 1);
	if (!data)
		return -ENOMEM;
	decoded = n % 4 ? -1 :
			  EVP_DecodeBlock(data, (const unsigned char *)text,
					  (int)n);
	if (decoded < 0 || (size_t)decoded - padding(text, n) > limit) {
		free(data);
		return decoded < 0 ? -EBADMSG : -E2BIG;
	}
	*ret_size = (size_t)decoded - padding(text, n);
	data[*ret_size] = '\0';
	*ret_data = data;
	return 0;
}

int json_get_exact(const json_t *object, const char *key, uint8_t *buf,
		   size_t size)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t n = 0;
	int r;

	r = json_get_bytes(object, key, size, &data, &n);
	if (r < 0)
		return r;
	if (n != size)
		return -EBADMSG;
	memcpy(buf, data, size);
	return 0;
}
