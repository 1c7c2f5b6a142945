#include "agent/res/iscsid_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NO_BUS "D-Bus is not there yet"

struct plan {
	const struct desired *want;
	const struct iscsid_seen *seen;
	struct item_list *items;
	struct change_list *changes;
};

static int item(struct plan *p, const char *key, enum item_state state,
		const char *have, const char *want, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

static int item(struct plan *p, const char *key, enum item_state state,
		const char *have, const char *want, const char *fmt, ...)
{
	char reason[CHANGE_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	return item_list_add(p->items, key, state, have, want, reason);
}

static int plan_package(struct plan *p)
{
	if (p->seen->installed)
		return item(p, "package", ITEM_IN_SYNC, "open-iscsi",
			    "open-iscsi", "%s", "");
	return item(p, "package", ITEM_BLOCKED, "", "open-iscsi",
		    "open-iscsi is not installed: apt-get install open-iscsi");
}

static bool wants_tcp(const struct desired *want)
{
	return strlist_has(&want->modules, "iscsi_tcp") ||
	       strlist_has(&want->modules, "iscsi-tcp");
}

/* IS-03: the module's own resource loads it; here it is named as cause. */
static int plan_tcp(struct plan *p)
{
	if (p->seen->has_tcp)
		return item(p, "iscsi_tcp", ITEM_IN_SYNC, "loaded", "loaded",
			    "%s", "");
	if (*p->seen->tcp_obstacle)
		return item(p, "iscsi_tcp", ITEM_BLOCKED, "", "loaded", "%s",
			    p->seen->tcp_obstacle);
	if (wants_tcp(p->want))
		return item(p, "iscsi_tcp", ITEM_PENDING, "", "loaded",
			    "the modules resource has to load it first");
	return item(p, "iscsi_tcp", ITEM_BLOCKED, "", "loaded",
		    "module iscsi_tcp is neither loaded nor in the spec: add "
		    "it to baseline.modules");
}

/* IS-01: a node with live sessions is never renamed. */
static int plan_fresh_name(struct plan *p)
{
	bool absent = p->seen->name_state == ISCSID_NAME_ABSENT;
	const char *have = p->seen->name;
	int r;

	if (!p->seen->installed)
		return item(p, "initiatorname", ITEM_PENDING, have,
			    "a name of its own", "comes with open-iscsi");
	if (p->seen->sessions != 0)
		return item(p, "initiatorname", ITEM_BLOCKED, have,
			    "a name of its own",
			    "%s has no name, but sessions are live: log them "
			    "out first (iscsiadm -m session)",
			    ISCSID_NAME_FILE);
	r = item(p, "initiatorname", absent ? ITEM_ABSENT : ITEM_DRIFTED, have,
		 "a name of its own", "%s", "");
	return r < 0 ? r : change_list_add(p->changes,
					   absent ? CHANGE_ADD : CHANGE_SET,
					   "initiatorname", have,
					   "a name of its own");
}

static int plan_name(struct plan *p)
{
	const struct iscsid_seen *s = p->seen;

	switch (s->name_state) {
	case ISCSID_NAME_VALID:
		return item(p, "initiatorname", ITEM_IN_SYNC, s->name,
			    "a name of its own", "%s", "");
	case ISCSID_NAME_INVALID:
		return item(p, "initiatorname", ITEM_BLOCKED, s->name,
			    "a name of its own",
			    "is no name that targets accept (iqn., eui., "
			    "naa.); correct %s, or remove it to get a fresh "
			    "one", ISCSID_NAME_FILE);
	case ISCSID_NAME_UNREADABLE:
		return item(p, "initiatorname", ITEM_UNOBSERVABLE, "",
			    "a name of its own", "%s cannot be read: %s",
			    ISCSID_NAME_FILE, strerror(-s->name_err));
	case ISCSID_NAME_ABSENT:
	case ISCSID_NAME_PLACEHOLDER:
		break;
	}
	return plan_fresh_name(p);
}

static bool is_active(const struct iscsid_seen *s, enum iscsid_unit u)
{
	return s->unit_known[u] && strcmp(s->unit[u].active_state,
					  "active") == 0;
}

static bool is_state(const struct iscsid_seen *s, enum iscsid_unit u,
		     const char *load_state)
{
	return s->unit_known[u] && strcmp(s->unit[u].load_state,
					  load_state) == 0;
}

/* What has to be there before iscsid may be started, or NULL. */
static const char *missing_before(const struct iscsid_seen *s)
{
	if (!s->installed)
		return "waits for open-iscsi";
	if (s->name_state != ISCSID_NAME_VALID)
		return "waits for the initiator name";
	if (!s->has_tcp)
		return "waits for module iscsi_tcp, which has to come first";
	return NULL;
}

static int plan_daemon(struct plan *p)
{
	static const char want[] = "service active or socket listening";
	const struct iscsid_seen *s = p->seen;
	const char *missing = missing_before(s);
	char have[128];
	int r;

	if (missing)
		return item(p, "iscsid", ITEM_PENDING, "", want, "%s",
			    missing);
	if (!s->unit_known[ISCSID_SERVICE] || !s->unit_known[ISCSID_SOCKET])
		return item(p, "iscsid", ITEM_PENDING, "", want, NO_BUS);
	(void)snprintf(have, sizeof(have), "service %s, socket %s",
		       s->unit[ISCSID_SERVICE].active_state,
		       s->unit[ISCSID_SOCKET].active_state);
	/* Until it has ended it stays planned, and nothing is settled. */
	if (s->working) {
		r = item(p, "iscsid", ITEM_PENDING, have, want,
			 "it is being started");
		return r < 0 ? r : change_list_add(p->changes, CHANGE_SET,
						   "iscsid", have, want);
	}
	if (is_active(s, ISCSID_SERVICE) || is_active(s, ISCSID_SOCKET))
		return item(p, "iscsid", ITEM_IN_SYNC, have, want, "%s", "");
	if (is_state(s, ISCSID_SOCKET, "masked") ||
	    is_state(s, ISCSID_SERVICE, "masked"))
		return item(p, "iscsid", ITEM_BLOCKED, have, want,
			    "masked: systemctl unmask iscsid.socket "
			    "iscsid.service");
	if (is_state(s, ISCSID_SOCKET, "not-found"))
		return item(p, "iscsid", ITEM_BLOCKED, have, want,
			    "there is no iscsid.socket: reinstall open-iscsi");
	if (*s->failed)
		return item(p, "iscsid", ITEM_BLOCKED, have, want, "%s",
			    s->failed);
	r = item(p, "iscsid", ITEM_DRIFTED, have, want, "%s", "");
	return r < 0 ? r : change_list_add(p->changes, CHANGE_SET, "iscsid",
					   have, want);
}

static bool is_enabled(const struct iscsid_seen *s, enum iscsid_unit u)
{
	return strncmp(s->unit[u].unit_file_state, "enabled", 7) == 0;
}

/* A10: usable after a boot, too. */
static int plan_enabled(struct plan *p)
{
	static const char key[] = "iscsid (enabled)";
	const struct iscsid_seen *s = p->seen;
	const char *have;
	int r;

	if (!s->installed)
		return item(p, key, ITEM_PENDING, "", "enabled",
			    "waits for open-iscsi");
	if (!s->unit_known[ISCSID_SERVICE] || !s->unit_known[ISCSID_SOCKET])
		return item(p, key, ITEM_PENDING, "", "enabled", NO_BUS);
	have = s->unit[ISCSID_SOCKET].unit_file_state;
	if (is_enabled(s, ISCSID_SOCKET) || is_enabled(s, ISCSID_SERVICE))
		return item(p, key, ITEM_IN_SYNC, "enabled", "enabled", "%s",
			    "");
	if (is_state(s, ISCSID_SOCKET, "masked") ||
	    is_state(s, ISCSID_SOCKET, "not-found"))
		return item(p, key, ITEM_BLOCKED, have, "enabled",
			    "iscsid.socket cannot be enabled as it is");
	r = item(p, key, ITEM_DRIFTED, have, "enabled", "%s", "");
	return r < 0 ? r : change_list_add(p->changes, CHANGE_SET, key, have,
					   "enabled");
}

/* IS-04: reported, never stopped: there may be real multipath devices. */
static int plan_multipath(struct plan *p)
{
	const struct iscsid_seen *s = p->seen;

	if (!s->unit_known[MULTIPATHD_SERVICE] ||
	    !s->unit_known[MULTIPATHD_SOCKET])
		return item(p, "multipathd", ITEM_PENDING, "", "out of the "
			    "way", NO_BUS);
	if (!is_active(s, MULTIPATHD_SERVICE) &&
	    !is_active(s, MULTIPATHD_SOCKET))
		return item(p, "multipathd", ITEM_IN_SYNC, "not active",
			    "out of the way", "%s", "");
	if (s->multipath_tamed)
		return item(p, "multipathd", ITEM_IN_SYNC,
			    "active, sd devices deny-listed", "out of the way",
			    "%s", "");
	return item(p, "multipathd", ITEM_BLOCKED, "active", "out of the way",
		    "multipathd claims the devices of Longhorn: without real "
		    "multipath, systemctl disable --now multipathd.service "
		    "multipathd.socket; with it, blacklist its devnode "
		    "\"^sd[a-z0-9]+\" in /etc/multipath.conf with exceptions "
		    "for your own");
}

int iscsid_plan(const struct desired *want, const void *seen,
		struct item_list *items, struct change_list *changes,
		struct fault *f)
{
	static int (*const parts[])(struct plan *p) = {
		plan_package, plan_tcp, plan_name, plan_daemon, plan_enabled,
		plan_multipath,
	};
	struct plan p = { want, seen, items, changes };
	size_t i;
	int r = 0;

	if (!want->iscsid)
		return 0;
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]) && r == 0; i++)
		r = parts[i](&p);
	return r < 0 ? fault_errno(f, r, "iscsid", "cannot be planned") : 0;
}
