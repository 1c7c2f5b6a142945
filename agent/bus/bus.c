#include "agent/bus/bus.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/bus/systemd1.h"
#include "common/backoff.h"

#define LOCAL "org.freedesktop.DBus.Local"
#define LOCAL_PATH "/org/freedesktop/DBus/Local"
#define DEFAULT_ADDRESS "unix:path=/run/dbus/system_bus_socket"

struct bus_listener {
	struct bus *bus;
	bus_listener_fn fn;
	void *userdata;
	struct bus_listener *next, *prev;
};

struct bus {
	sd_event *event;
	char *address;
	sd_bus *conn;
	bool up;
	sd_event_source *retry;
	struct backoff backoff;
	struct bus_listener *listeners;
	struct bus_listener *cursor;	/* next to be told; see bus_unlisten */
	struct systemd1 *systemd1;
};

static void connect_now(struct bus *b);

static void tell(struct bus *b, bool up)
{
	struct bus_listener *l;

	b->up = up;
	for (b->cursor = b->listeners; (l = b->cursor);) {
		b->cursor = l->next;
		l->fn(l->userdata, up);
	}
}

static int on_retry(sd_event_source *source, uint64_t now, void *userdata)
{
	struct bus *b = userdata;

	(void)source;
	(void)now;
	b->retry = sd_event_source_disable_unref(b->retry);
	connect_now(b);
	return 0;
}

static void retry_later(struct bus *b)
{
	uint64_t bits = 0;

	if (!b->event || b->retry)
		return;
	/* Without random bits the delay is the shortest: harmless here. */
	(void)!getrandom(&bits, sizeof(bits), GRND_NONBLOCK);
	(void)sd_event_add_time_relative(b->event, &b->retry, CLOCK_MONOTONIC,
					 BUS_RETRY_BASE_USEC +
						 backoff_next(&b->backoff,
							      bits),
					 0, on_retry, b);
}

static int on_connected(sd_bus_message *m, void *userdata, sd_bus_error *e)
{
	struct bus *b = userdata;

	(void)m;
	(void)e;
	backoff_reset(&b->backoff);
	tell(b, true);
	return 0;
}

/* The connection itself is dropped by the retry: we are inside of it. */
static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *e)
{
	struct bus *b = userdata;

	(void)m;
	(void)e;
	if (b->up)
		tell(b, false);
	retry_later(b);
	return 0;
}

static int start(struct bus *b)
{
	int r;

	r = sd_bus_new(&b->conn);
	if (r >= 0)
		r = sd_bus_set_address(b->conn, b->address);
	if (r >= 0)
		r = sd_bus_set_bus_client(b->conn, true);
	if (r >= 0)
		r = sd_bus_set_connected_signal(b->conn, true);
	if (r >= 0)
		r = sd_bus_match_signal(b->conn, NULL, LOCAL, LOCAL_PATH,
					LOCAL, "Connected", on_connected, b);
	if (r >= 0)
		r = sd_bus_match_signal(b->conn, NULL, LOCAL, LOCAL_PATH,
					LOCAL, "Disconnected",
					on_disconnected, b);
	if (r >= 0)
		r = sd_bus_start(b->conn);
	if (r >= 0 && b->event)
		r = sd_bus_attach_event(b->conn, b->event,
					SD_EVENT_PRIORITY_NORMAL);
	return r;
}

static void connect_now(struct bus *b)
{
	b->conn = sd_bus_close_unref(b->conn);
	if (start(b) >= 0) {
		/* Without a loop nobody hears "Connected"; calls wait. */
		b->up = !b->event;
		return;
	}
	b->conn = sd_bus_close_unref(b->conn);
	retry_later(b);
}

int bus_new(sd_event *event, const char *address, struct bus **ret_bus,
	    struct fault *f)
{
	struct bus *b = calloc(1, sizeof(*b));

	if (!b)
		return fault_set(f, -ENOMEM, "D-Bus", "out of memory");
	if (!address)
		address = secure_getenv("DBUS_SYSTEM_BUS_ADDRESS");
	b->event = sd_event_ref(event);
	b->backoff.base = BUS_RETRY_BASE_USEC;
	b->backoff.cap = BUS_RETRY_CAP_USEC;
	b->address = strdup(address ? address : DEFAULT_ADDRESS);
	if (!b->address || systemd1_new(b, &b->systemd1) < 0) {
		bus_free(b);
		return fault_set(f, -ENOMEM, "D-Bus", "out of memory");
	}
	connect_now(b);
	*ret_bus = b;
	return 0;
}

struct bus *bus_free(struct bus *b)
{
	if (!b)
		return NULL;
	b->retry = sd_event_source_disable_unref(b->retry);
	b->systemd1 = systemd1_free(b->systemd1);
	assert(!b->listeners);
	b->conn = sd_bus_close_unref(b->conn);
	sd_event_unref(b->event);
	free(b->address);
	free(b);
	return NULL;
}

bool bus_is_up(const struct bus *b)
{
	return b && b->up;
}

sd_bus *bus_connection(struct bus *b)
{
	return b->up ? b->conn : NULL;
}

sd_event *bus_event(struct bus *b)
{
	return b->event;
}

struct systemd1 *bus_systemd1(struct bus *b)
{
	return b->systemd1;
}

int bus_listen(struct bus *b, bus_listener_fn fn, void *userdata,
	       struct bus_listener **ret_listener)
{
	struct bus_listener *l = calloc(1, sizeof(*l)), **tail;

	if (!l)
		return -ENOMEM;
	*l = (struct bus_listener){ .bus = b, .fn = fn, .userdata = userdata };
	/* At the end: systemd1 is told first, and its users after it. */
	for (tail = &b->listeners; *tail; tail = &(*tail)->next)
		l->prev = *tail;
	*tail = l;
	*ret_listener = l;
	return 0;
}

struct bus_listener *bus_unlisten(struct bus_listener *l)
{
	if (!l)
		return NULL;
	/* It may be the one that is to be told next. */
	if (l->bus->cursor == l)
		l->bus->cursor = l->next;
	if (l->next)
		l->next->prev = l->prev;
	if (l->prev)
		l->prev->next = l->next;
	else
		l->bus->listeners = l->next;
	free(l);
	return NULL;
}

int bus_reply_error(sd_bus_message *m, const char **ret_text)
{
	static const struct {
		const char *name;
		int err;
	} t[] = {
		{ "org.freedesktop.systemd1.NoSuchUnit", -ENOENT },
		{ "org.freedesktop.systemd1.UnitMasked", -EPERM },
		{ SD_BUS_ERROR_SERVICE_UNKNOWN, -ENOENT },
		{ SD_BUS_ERROR_NAME_HAS_NO_OWNER, -ENOENT },
		{ SD_BUS_ERROR_TIMEOUT, -ETIMEDOUT },
		{ SD_BUS_ERROR_NO_REPLY, -ENOTCONN },
		{ SD_BUS_ERROR_DISCONNECTED, -ENOTCONN },
	};
	const sd_bus_error *e = sd_bus_message_get_error(m);
	size_t i;
	int r;

	*ret_text = "";
	if (!e)
		return 0;
	*ret_text = e->message ? e->message : e->name;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		if (sd_bus_error_has_name(e, t[i].name))
			return t[i].err;
	r = sd_bus_error_get_errno(e);
	return r > 0 ? -r : -EIO;
}
