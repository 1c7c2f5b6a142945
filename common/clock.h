/*
 * clock.h - microseconds. Pure code takes `now` as an argument (H26); only
 * event loops and main read a clock. CLOCK_BOOTTIME counts suspend, which
 * leases and deadlines need; wall time is for people only.
 */
#pragma once

#include <stdint.h>

typedef uint64_t usec;

#define USEC_PER_MSEC UINT64_C(1000)
#define USEC_PER_SEC UINT64_C(1000000)

usec clock_boottime(void);
usec clock_realtime(void);
