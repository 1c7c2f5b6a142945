#include "agent/rate.h"

usec rate_doubled(usec base, usec cap, unsigned int attempt)
{
	usec gap = base;

	while (attempt-- > 0 && gap < cap)
		gap *= 2;
	return gap < cap ? gap : cap;
}

bool rate_contended(const struct rate *r, const struct rate_limits *limits)
{
	return r->taken > limits->burst;
}

usec rate_wait(const struct rate *r, const struct rate_limits *limits,
	       usec now)
{
	usec gap;

	if (r->taken < limits->burst || now - r->last >= limits->quiet)
		return 0;
	gap = rate_doubled(limits->spacing, limits->cap,
			   r->taken - limits->burst);
	return now - r->last >= gap ? 0 : r->last + gap - now;
}

void rate_take(struct rate *r, const struct rate_limits *limits, usec now)
{
	(void)rate_settle(r, limits, now);
	r->taken++;
	r->last = now;
}

bool rate_settle(struct rate *r, const struct rate_limits *limits, usec now)
{
	bool contended = rate_contended(r, limits);

	if (!r->taken || now - r->last < limits->quiet)
		return false;
	*r = (struct rate){ 0 };
	return contended;
}
