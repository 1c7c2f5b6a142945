#include "common/backoff.h"

usec backoff_next(struct backoff *b, uint64_t random_bits)
{
	usec window = b->base;
	unsigned int i;

	for (i = 0; i < b->attempt && window < b->cap; i++)
		window *= 2;
	if (window > b->cap)
		window = b->cap;
	if (b->attempt < 63)
		b->attempt++;
	/* The bias of the modulus is below 2^-20 for windows of hours. */
	return window ? random_bits % (window + 1) : 0;
}

void backoff_reset(struct backoff *b)
{
	b->attempt = 0;
}
