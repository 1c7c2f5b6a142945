#include "common/clock.h"

#include <time.h>

static usec read_clock(clockid_t id)
{
	struct timespec ts;

	/* Both clocks exist on every kernel we run on; this cannot fail. */
	(void)clock_gettime(id, &ts);
	return (usec)ts.tv_sec * USEC_PER_SEC + (usec)ts.tv_nsec / 1000;
}

usec clock_boottime(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

usec clock_realtime(void)
{
	return read_clock(CLOCK_REALTIME);
}
