#include "agent/res/timezone_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ADVICE                                                                \
	"see \"timedatectl list-timezones\"; Etc/UTC is almost certainly "    \
	"wanted"

static int blocked(struct item_list *items, const struct desired *want,
		   const char *have, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int blocked(struct item_list *items, const struct desired *want,
		   const char *have, const char *fmt, ...)
{
	char reason[CHANGE_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	return item_list_add(items, TIMEZONE_LOCALTIME, ITEM_BLOCKED, have,
			     want->timezone, reason);
}

static void describe(const struct timezone_seen *s, char *buf, size_t size)
{
	switch (s->kind) {
	case TIMEZONE_ABSENT:
	case TIMEZONE_UNREADABLE:
		*buf = '\0';
		return;
	case TIMEZONE_LINK:
		(void)snprintf(buf, size, "%s%s", s->zone,
			       s->dangling ? " (dangling)" : "");
		return;
	case TIMEZONE_COPY:
		(void)snprintf(buf, size, "%s",
			       s->dangling ? "a dangling link" :
			       s->same ? "a copy of the zone" :
					 "a copy of another zone");
		return;
	}
}

/* A02: refused before anything is done, with the value and the way out. */
static int plan_guard(const struct desired *want,
		      const struct timezone_seen *s, const char *have,
		      struct item_list *items)
{
	const char *zone = want->timezone;

	if (!*zone)
		return blocked(items, want, have, "the time zone is \"\": "
			       "empty does not mean \"leave it alone\"; "
			       ADVICE);
	if (!timezone_name_is_valid(zone))
		return blocked(items, want, have, "\"%s\" is no name of a "
			       "time zone (and empty does not mean \"leave it "
			       "alone\"); " ADVICE, zone);
	if (!s->zoneinfo)
		return blocked(items, want, have, "/usr/share/zoneinfo is not "
			       "there: apt-get install tzdata");
	if (*s->canonical)
		return blocked(items, want, have, "time zone \"%s\" is not "
			       "installed on this node: its name is %s today "
			       "(or apt-get install tzdata-legacy); " ADVICE,
			       zone, s->canonical);
	return blocked(items, want, have, "time zone \"%s\" is not in "
		       "/usr/share/zoneinfo on this node; " ADVICE, zone);
}

static int plan_localtime(const struct desired *want,
			  const struct timezone_seen *s, const char *have,
			  struct item_list *items, struct change_list *changes)
{
	enum item_state state = ITEM_DRIFTED;
	int r;

	if (s->kind == TIMEZONE_UNREADABLE)
		return item_list_add(items, TIMEZONE_LOCALTIME,
				     ITEM_UNOBSERVABLE, "", want->timezone,
				     strerror(-s->err));
	if (s->same)
		return item_list_add(items, TIMEZONE_LOCALTIME, ITEM_IN_SYNC,
				     have, want->timezone, "");
	if (*s->failed && !s->setting)
		return blocked(items, want, have, "%s", s->failed);
	if (s->kind == TIMEZONE_ABSENT)
		state = ITEM_ABSENT;
	/* Until it has ended it stays planned, and nothing is settled. */
	if (s->setting)
		state = ITEM_PENDING;
	r = item_list_add(items, TIMEZONE_LOCALTIME, state, have,
			  want->timezone,
			  s->setting ? "it is being set" :
			  s->dangling ? "the zone that the link names is not "
					"there: clocks show UTC" : "");
	if (r < 0)
		return r;
	return change_list_add(changes,
			       s->kind == TIMEZONE_ABSENT ? CHANGE_ADD :
							    CHANGE_SET,
			       TIMEZONE_LOCALTIME, have, want->timezone);
}

static int plan_file(const struct desired *want,
		     const struct timezone_seen *s, struct item_list *items,
		     struct change_list *changes)
{
	int r;

	r = item_list_add(items, TIMEZONE_FILE,
			  s->file_same ? ITEM_IN_SYNC : ITEM_DRIFTED, s->file,
			  want->timezone, "");
	if (r < 0 || s->file_same)
		return r;
	return change_list_add(changes, CHANGE_SET, TIMEZONE_FILE, s->file,
			       want->timezone);
}

static int plan_cron(struct item_list *items, struct change_list *changes)
{
	int r;

	r = item_list_add(items, TIMEZONE_CRON, ITEM_PENDING, "the old zone",
			  "restarted", "it is being restarted");
	return r < 0 ? r : change_list_add(changes, CHANGE_SET, TIMEZONE_CRON,
					   "the old zone", "restarted");
}

int timezone_plan(const struct desired *want, const void *seen,
		  struct item_list *items, struct change_list *changes,
		  struct fault *f)
{
	const struct timezone_seen *s = seen;
	char have[TIMEZONE_NAME_MAX + 16];
	int r;

	describe(s, have, sizeof(have));
	if (!timezone_name_is_valid(want->timezone) || !s->exists) {
		r = plan_guard(want, s, have, items);
	} else {
		r = plan_localtime(want, s, have, items, changes);
		if (r == 0 && s->has_file)
			r = plan_file(want, s, items, changes);
		/* The new link is seen before timedated's answer comes. */
		if (r == 0 && (s->cron || (s->setting && s->same)))
			r = plan_cron(items, changes);
	}
	return r < 0 ? fault_errno(f, r, "timezone", "cannot be planned") : 0;
}
