#include "common/fnv.h"

#define PRIME UINT64_C(1099511628211)

uint64_t fnv_add(uint64_t sum, const void *bytes, size_t size)
{
	const unsigned char *p = bytes;
	size_t i;

	for (i = 0; i < size; i++)
		sum = (sum ^ p[i]) * PRIME;
	return sum;
}
