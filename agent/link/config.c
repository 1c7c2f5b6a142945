#include "agent/link/config.h"

#include <errno.h>
#include <stdlib.h>

#include "common/parse.h"

#define MS_MAX 3600000

static int read_ms(const char *name, usec standard, usec *ret, struct fault *f)
{
	const char *text = getenv(name);
	uint64_t ms = 0;

	if (!text) {
		*ret = standard;
		return 0;
	}
	if (parse_u64(text, MS_MAX, &ms) < 0 || ms == 0)
		return fault_set(f, -EINVAL, name,
				 "is not a number of milliseconds from 1 to %d",
				 MS_MAX);
	*ret = ms * USEC_PER_MSEC;
	return 0;
}

static const char *read_path(const char *name, const char *standard)
{
	const char *text = getenv(name);

	return text && *text ? text : standard;
}

int link_config_read(struct link_config *ret_config, struct fault *f)
{
	struct link_config c = { 0 };
	const char *bundle;
	int r;

	/* systemd hands the bundle over as credentials (see the unit). */
	bundle = read_path("CREDENTIALS_DIRECTORY", "/etc/garboard/bundle");
	c.bundle_dir = read_path("GARBOARD_BUNDLE", bundle);
	c.socket = read_path("GARBOARD_LINK_SOCKET", "/run/garboard/link.sock");
	c.state_dir = read_path("GARBOARD_LINK_STATE",
				"/var/lib/garboard-link");
	r = read_ms("GARBOARD_LINK_BACKOFF_BASE_MS", 500 * USEC_PER_MSEC,
		    &c.backoff_base, f);
	if (r == 0)
		r = read_ms("GARBOARD_LINK_BACKOFF_CAP_MS", 60 * USEC_PER_SEC,
			    &c.backoff_cap, f);
	if (r == 0)
		r = read_ms("GARBOARD_LINK_BACKOFF_RECENT_MS",
			    8 * USEC_PER_SEC, &c.backoff_recent, f);
	if (r == 0)
		r = read_ms("GARBOARD_LINK_PING_MS", 30 * USEC_PER_SEC,
			    &c.ping, f);
	if (r == 0)
		r = read_ms("GARBOARD_LINK_DIAL_MS", 15 * USEC_PER_SEC,
			    &c.dial, f);
	if (r < 0)
		return r;
	*ret_config = c;
	return 0;
}
