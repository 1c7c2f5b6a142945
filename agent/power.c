#include "agent/power.h"

#include <errno.h>
#include <time.h>

#include "agent/bus/systemd1.h"

#define REBOOT_DELAY USEC_PER_SEC
#define REBOOT_CALL_USEC (60 * USEC_PER_SEC)

static void on_done(void *userdata, int r, const char *text)
{
	/* A failure shows as a node that goes on; the coordinator sees it. */
	(void)userdata;
	(void)r;
	(void)text;
}

static int on_time(sd_event_source *s, uint64_t due, void *userdata)
{
	const struct resource_host *host = userdata;
	struct systemd1_job *job;

	(void)due;
	(void)s;
	(void)systemd1_call(host->bus, SYSTEMD1_START, "reboot.target",
			    REBOOT_CALL_USEC, on_done, NULL, &job, NULL);
	return 0;
}

int power_reboot_soon(const struct resource_host *host, struct fault *f)
{
	int r;

	if (!bus_is_up(host->bus))
		return fault_set(f, -ENOTCONN, "reboot",
				 "there is no D-Bus to ask systemd by");
	/* A floating source: the loop owns it. */
	r = sd_event_add_time_relative(host->event, NULL, CLOCK_BOOTTIME,
				       REBOOT_DELAY, 0, on_time,
				       (void *)host);
	return r < 0 ? fault_errno(f, r, "reboot", "cannot be scheduled") : 0;
}
