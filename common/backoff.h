/*
 * backoff.h - full-jitter exponential back-off as a pure value.
 *
 * The delay before attempt n is uniform in [0, min(cap, base * 2^n)], the
 * form that spreads a whole fleet (TL-06). No clock and no random source
 * is read here: the caller passes 64 random bits.
 */
#pragma once

#include <stdint.h>

#include "common/clock.h"

struct backoff {
	usec base;
	usec cap;
	unsigned int attempt;
};

/* Delay until the next attempt; counts the attempt. */
usec backoff_next(struct backoff *b, uint64_t random_bits);

void backoff_reset(struct backoff *b);
