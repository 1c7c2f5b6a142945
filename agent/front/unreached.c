/*
 * The front looks at resources without an event loop and without D-Bus, but
 * they are the agent's own, which mention both: to watch, and to apply. It
 * does neither. These stand where libsystemd and agent/bus/ would, so that
 * neither is linked: what may be called answers as the real one does when
 * there is no loop and no bus, and the rest is never reached.
 */
#include <errno.h>
#include <systemd/sd-event.h>

#include "agent/bus/bus.h"
#include "agent/bus/systemd1.h"
#include "agent/bus/timedate1.h"

/* ---- called, with nothing ---- */

sd_event_source *sd_event_source_disable_unref(sd_event_source *s)
{
	(void)s;
	return NULL;
}

int sd_event_source_set_enabled(sd_event_source *s, int enabled)
{
	(void)s;
	(void)enabled;
	return -EOPNOTSUPP;
}

bool bus_is_up(const struct bus *b)
{
	(void)b;
	return false;
}

struct bus_listener *bus_unlisten(struct bus_listener *l)
{
	(void)l;
	return NULL;
}

struct systemd1_job *systemd1_cancel(struct systemd1_job *job)
{
	(void)job;
	return NULL;
}

struct systemd1_watch *systemd1_watch_free(struct systemd1_watch *w)
{
	(void)w;
	return NULL;
}

int systemd1_watch_get(const struct systemd1_watch *w,
		       struct systemd1_unit *ret_unit)
{
	(void)w;
	(void)ret_unit;
	return -EAGAIN;
}

struct timedate1_call *timedate1_cancel(struct timedate1_call *c)
{
	(void)c;
	return NULL;
}

/* ---- never reached: nothing is watched, nothing is applied ---- */

int sd_event_add_io(sd_event *e, sd_event_source **s, int fd, uint32_t events,
		    sd_event_io_handler_t callback, void *userdata)
{
	(void)e;
	(void)s;
	(void)fd;
	(void)events;
	(void)callback;
	(void)userdata;
	return -EOPNOTSUPP;
}

int sd_event_add_time(sd_event *e, sd_event_source **s, clockid_t clock,
		      uint64_t due, uint64_t accuracy,
		      sd_event_time_handler_t callback, void *userdata)
{
	(void)e;
	(void)s;
	(void)clock;
	(void)due;
	(void)accuracy;
	(void)callback;
	(void)userdata;
	return -EOPNOTSUPP;
}

int sd_event_add_time_relative(sd_event *e, sd_event_source **s,
			       clockid_t clock, uint64_t due,
			       uint64_t accuracy,
			       sd_event_time_handler_t callback,
			       void *userdata)
{
	return sd_event_add_time(e, s, clock, due, accuracy, callback,
				 userdata);
}

int sd_event_add_defer(sd_event *e, sd_event_source **s,
		       sd_event_handler_t callback, void *userdata)
{
	(void)e;
	(void)s;
	(void)callback;
	(void)userdata;
	return -EOPNOTSUPP;
}

int sd_event_source_set_priority(sd_event_source *s, int64_t priority)
{
	(void)s;
	(void)priority;
	return -EOPNOTSUPP;
}

int sd_event_source_set_time(sd_event_source *s, uint64_t due)
{
	(void)s;
	(void)due;
	return -EOPNOTSUPP;
}

int bus_listen(struct bus *b, bus_listener_fn fn, void *userdata,
	       struct bus_listener **ret_listener)
{
	(void)b;
	(void)fn;
	(void)userdata;
	(void)ret_listener;
	return -EOPNOTSUPP;
}

int systemd1_call(struct bus *b, enum systemd1_verb verb, const char *unit,
		  usec deadline, bus_done done, void *userdata,
		  struct systemd1_job **ret_job, struct fault *f)
{
	(void)b;
	(void)verb;
	(void)deadline;
	(void)done;
	(void)userdata;
	(void)ret_job;
	return fault_errno(f, -ENOTCONN, unit, "no D-Bus here");
}

int systemd1_watch_new(struct bus *b, const char *unit,
		       void (*changed)(void *userdata), void *userdata,
		       struct systemd1_watch **ret_watch, struct fault *f)
{
	(void)b;
	(void)changed;
	(void)userdata;
	(void)ret_watch;
	return fault_errno(f, -ENOTCONN, unit, "no D-Bus here");
}

int systemd1_unit_read(struct bus *b, const char *unit, usec timeout,
		       struct systemd1_unit *ret_unit, struct fault *f)
{
	(void)b;
	(void)timeout;
	(void)ret_unit;
	return fault_errno(f, -ENOTCONN, unit, "no D-Bus here");
}

int timedate1_set_timezone(struct bus *b, const char *zone, usec deadline,
			   bus_done done, void *userdata,
			   struct timedate1_call **ret_call, struct fault *f)
{
	(void)b;
	(void)deadline;
	(void)done;
	(void)userdata;
	(void)ret_call;
	return fault_errno(f, -ENOTCONN, zone, "no D-Bus here");
}
