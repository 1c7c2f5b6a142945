#include "agent/bus/timedate1.h"

#include <errno.h>
#include <stdlib.h>

struct timedate1_call {
	sd_bus_slot *slot;
	bus_done done;
	void *userdata;
};

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *e)
{
	struct timedate1_call *c = userdata;
	struct timedate1_call call = *c;
	const char *text;
	int r;

	(void)e;
	r = bus_reply_error(m, &text);
	timedate1_cancel(c);
	call.done(call.userdata, r, text);
	return 0;
}

int timedate1_set_timezone(struct bus *b, const char *zone, usec deadline,
			   bus_done done, void *userdata,
			   struct timedate1_call **ret_call, struct fault *f)
{
	struct timedate1_call *c;
	sd_bus_message *m = NULL;
	int r;

	if (!bus_is_up(b) || !bus_event(b))
		return fault_set(f, -ENOTCONN, "D-Bus", "is not there yet");
	c = calloc(1, sizeof(*c));
	if (!c)
		return fault_set(f, -ENOMEM, "timedate1", "out of memory");
	c->done = done;
	c->userdata = userdata;
	r = sd_bus_message_new_method_call(
		bus_connection(b), &m, "org.freedesktop.timedate1",
		"/org/freedesktop/timedate1", "org.freedesktop.timedate1",
		"SetTimezone");
	if (r >= 0)
		r = sd_bus_message_append(m, "sb", zone, 0);
	if (r >= 0)
		r = sd_bus_call_async(bus_connection(b), &c->slot, m, on_reply,
				      c, deadline);
	sd_bus_message_unref(m);
	if (r < 0) {
		timedate1_cancel(c);
		return fault_errno(f, r, "timedate1", "cannot be called");
	}
	*ret_call = c;
	return 0;
}

struct timedate1_call *timedate1_cancel(struct timedate1_call *c)
{
	if (!c)
		return NULL;
	sd_bus_slot_unref(c->slot);
	free(c);
	return NULL;
}
