/*
 * timezone.h - the timezone resource: /etc/localtime, and /etc/timezone
 * where it exists (A01..A03, TZ-01).
 *
 * Set through timedate1, or by ourselves when that is not there. Never
 * steps the clock, never touches NTP. After a change cron alone is
 * restarted, and only if it runs; everything else keeps its old zone until
 * its own restart. Needs in units/: AF_UNIX (D-Bus); ReadWritePaths=/etc
 * for the two files themselves (a rename in /etc); no capability.
 */
#pragma once

#include "agent/res/resource.h"
#include "common/clock.h"

#define TIMEZONE_SET_USEC (20 * USEC_PER_SEC)

extern const struct resource resource_timezone;
