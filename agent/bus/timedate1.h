/*
 * timedate1.h - setting the time zone through systemd-timedated.
 *
 * SetTimezone only; never the clock, never NTP (A03). The service is
 * started by D-Bus; when it is not installed the call ends with -ENOENT,
 * and the caller may do the work itself.
 */
#pragma once

#include "agent/bus/bus.h"

struct timedate1_call;

/* As systemd1_call(): `done` once, by the deadline; the handle dies there. */
int timedate1_set_timezone(struct bus *b, const char *zone, usec deadline,
			   bus_done done, void *userdata,
			   struct timedate1_call **ret_call, struct fault *f);
struct timedate1_call *timedate1_cancel(struct timedate1_call *c);
