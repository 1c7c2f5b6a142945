/*
 * rate.h - how often a resource may be repaired, as a pure value.
 *
 * A few repairs are immediate: drift is rare and every moment of it counts.
 * When somebody keeps undoing them the gaps grow, doubling from `spacing`
 * to `cap`, and the resource is contended, until `quiet` has passed without
 * a repair (KS-14: no busy loop against a repeat offender). No clock is
 * read here; `now` is monotonic.
 */
#pragma once

#include <stdbool.h>

#include "common/clock.h"

struct rate_limits {
	unsigned int burst;	/* repairs that need not wait */
	usec spacing;		/* first gap after them */
	usec cap;		/* longest gap */
	usec quiet;		/* without repairs: all is forgotten */
};

struct rate {
	unsigned int taken;	/* repairs of this episode */
	usec last;		/* the latest of them */
};

/* How long the next repair has to wait; 0: not at all. */
usec rate_wait(const struct rate *r, const struct rate_limits *limits,
	       usec now);

/* Counts a repair made at `now`. */
void rate_take(struct rate *r, const struct rate_limits *limits, usec now);

/* Forgets the episode when it is over; true when it was contended. */
bool rate_settle(struct rate *r, const struct rate_limits *limits, usec now);

bool rate_contended(const struct rate *r, const struct rate_limits *limits);

/* min(cap, base * 2^attempt), without overflow. */
usec rate_doubled(usec base, usec cap, unsigned int attempt);
