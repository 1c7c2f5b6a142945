#include "agent/uncovered.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/armed.h"
#include "agent/nl/nl_notify.h"
#include "common/clock.h"

#define EVERY (60 * USEC_PER_SEC)	/* events may be lost */
#define SLACK (10 * USEC_PER_SEC)
#define SOON USEC_PER_SEC		/* gathers a burst of events */

struct uncovered {
	const struct engine *engine;
	const char *state_dir;
	engine_changed news;
	void *userdata;
	struct nl_sock *sock;
	struct nl_notify *notify;
	sd_event_source *io, *timer;
	bool soon;		/* the timer is set for a change */
	struct uncovered_paths paths;
};

/* ---- pure ---- */

static void found(struct uncovered_paths *p, const char *path, bool critical,
		  const char *device, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

static void found(struct uncovered_paths *p, const char *path, bool critical,
		  const char *device, const char *fmt, ...)
{
	struct uncovered_path *v;
	va_list ap;

	if (p->n == UNCOVERED_MAX) {
		p->more++;
		return;
	}
	v = &p->v[p->n++];
	*v = (struct uncovered_path){ .path = path, .critical = critical };
	(void)snprintf(v->device, sizeof(v->device), "%s", device);
	va_start(ap, fmt);
	(void)vsnprintf(v->text, sizeof(v->text), fmt, ap);
	va_end(ap);
}

static bool is_tunnel(const struct desired_egress *e, const char *name)
{
	size_t i;

	for (i = 0; i < e->n_tunnels; i++)
		if (strcmp(e->tunnels[i].name, name) == 0)
			return true;
	return false;
}

static bool wraps(const char *kind)
{
	static const char *const kinds[] = {
		"vxlan", "geneve", "gre",   "gretap",	 "erspan",
		"ipip",	 "sit",	   "ip6gre", "ip6gretap", "ip6erspan",
		"ip6tnl", "vti",   "vti6",  "bareudp",	 "l2tpeth",
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kind, kinds[i]) == 0)
			return true;
	return false;
}

static bool has_cilium(const struct rtnl_links *links)
{
	size_t i;

	for (i = 0; i < links->n; i++)
		if (strcmp(links->v[i].name, "cilium_host") == 0)
			return true;
	return false;
}

static const struct rtnl_link *find_link(const struct rtnl_links *links,
					 int index)
{
	size_t i;

	for (i = 0; i < links->n; i++)
		if (links->v[i].index == index)
			return &links->v[i];
	return NULL;
}

static void judge_link(const struct desired_egress *e,
		       const struct rtnl_link *l, struct uncovered_paths *p)
{
	if (l->xdp && strcmp(l->name, "lo") != 0)
		found(p, "redirect", true, l->name,
		      "an XDP program on %s may send packets past every hook; "
		      "take it off (for Cilium: loadBalancer.acceleration "
		      "disabled)", l->name);
	/* The fallback devices of a module are there and down. */
	if (wraps(l->kind) && (l->flags & IFF_UP) &&
	    strncmp(l->name, "cilium_", 7) != 0 && !is_tunnel(e, l->name))
		found(p, "encapsulated", false, l->name,
		      "%s (%s) wraps packets of the node, where the class is "
		      "not seen; remove it or keep pods off it", l->name,
		      l->kind);
}

void uncovered_judge(const struct desired_egress *e, bool armed,
		     const struct rtnl_links *links,
		     const struct tc_redirects *redirects,
		     struct uncovered_paths *ret_paths)
{
	bool cilium = has_cilium(links);
	int last = 0;
	size_t i;

	ret_paths->n = ret_paths->more = 0;
	if (e->n_classes == 0 && !armed)
		return;
	for (i = 0; i < redirects->n; i++) {
		const struct tc_redirect *t = &redirects->v[i];
		const struct rtnl_link *l = find_link(links, t->index);

		if (!l || t->index == last || strcmp(l->name, "lo") == 0 ||
		    (cilium && t->program && strncmp(t->name, "cil_", 4) == 0))
			continue;
		last = t->index;
		found(ret_paths, "redirect", true, l->name,
		      "a filter of tc on %s (%.40s) may send packets past "
		      "every hook; take it off", l->name, t->name);
	}
	for (i = 0; i < links->n; i++)
		judge_link(e, &links->v[i], ret_paths);
	for (i = 0; i < e->n_classes; i++)
		if (e->classes[i].loose_pods)
			found(ret_paths, "pods", false, "",
			      "a new pod of class %s leaves by the uplink "
			      "until Cilium has its policy; give the class "
			      "pods.pool", e->classes[i].name);
}

/* ---- reading ---- */

static bool armed_classes(const char *state_dir)
{
	struct armed a = ARMED_INIT;
	/* A record that cannot be read closes; so it counts. */
	bool any = armed_load(state_dir, &a, NULL) < 0 ||
		   (a.found && a.d && a.d->egress.n_classes > 0);

	armed_done(&a);
	return any;
}

static int read_all(struct uncovered *u, struct rtnl_links *links,
		    struct tc_redirects *redirects, struct fault *f)
{
	int r = u->sock ? 0 : nl_sock_open(NETLINK_ROUTE, &u->sock, f);

	if (r == 0)
		r = rtnl_link_dump(u->sock, links, f);
	if (r == 0)
		r = tc_redirect_dump(u->sock, redirects, f);
	return r;
}

static bool same(const struct uncovered_paths *a,
		 const struct uncovered_paths *b)
{
	size_t i;

	if (a->n != b->n || a->more != b->more)
		return false;
	for (i = 0; i < a->n; i++)
		if (strcmp(a->v[i].text, b->v[i].text) != 0)
			return false;
	return true;
}

static void look(struct uncovered *u)
{
	static const struct desired_egress none;
	const struct desired *d = engine_desired(u->engine);
	const struct desired_egress *e = d ? &d->egress : &none;
	struct uncovered_paths *next = calloc(1, sizeof(*next));
	struct tc_redirects *redirects = calloc(1, sizeof(*redirects));
	struct rtnl_links links = { 0 };
	struct fault f = FAULT_INIT;
	bool armed;

	if (next && redirects) {
		armed = e->n_classes > 0 || armed_classes(u->state_dir);
		if (armed && read_all(u, &links, redirects, &f) < 0)
			found(next, "unread", false, "", "links and traffic "
			      "control cannot be read: %.120s", f.text);
		else if (armed)
			uncovered_judge(e, true, &links, redirects, next);
		if (!same(next, &u->paths)) {
			u->paths = *next;
			u->news(u->userdata);
		}
	}
	free(links.v);
	free(redirects);
	free(next);
}

static void again(struct uncovered *u, usec in)
{
	u->soon = in != EVERY;
	(void)sd_event_source_set_time_accuracy(
		u->timer, u->soon ? 100 * USEC_PER_MSEC : SLACK);
	(void)sd_event_source_set_time_relative(u->timer, in);
	(void)sd_event_source_set_enabled(u->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *source, uint64_t due, void *userdata)
{
	struct uncovered *u = userdata;

	(void)source;
	(void)due;
	look(u);
	again(u, EVERY);
	return 0;
}

void uncovered_look(struct uncovered *u)
{
	if (u && !u->soon)
		again(u, SOON);
}

static int on_message(const struct nlmsghdr *nlh, void *userdata)
{
	(void)nlh;
	(void)userdata;
	return 0;
}

static int on_event(sd_event_source *source, int fd, uint32_t events,
		    void *userdata)
{
	struct uncovered *u = userdata;

	(void)source;
	(void)fd;
	(void)events;
	(void)nl_notify_drain(u->notify, on_message, NULL);
	uncovered_look(u);
	return 0;
}

int uncovered_new(sd_event *event, const struct engine *engine,
		  const char *state_dir, engine_changed news, void *userdata,
		  struct uncovered **ret_uncovered, struct fault *f)
{
	static const unsigned int groups[] = { RTNLGRP_LINK, RTNLGRP_TC };
	struct uncovered *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return -ENOMEM;
	u->engine = engine;
	u->state_dir = state_dir;
	u->news = news;
	u->userdata = userdata;
	r = nl_notify_open(NETLINK_ROUTE, groups, 2, &u->notify, f);
	if (r == 0)
		r = sd_event_add_io(event, &u->io, nl_notify_fd(u->notify),
				    EPOLLIN, on_event, u);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &u->timer,
					       CLOCK_BOOTTIME, SOON, SLACK,
					       on_timer, u);
	if (r < 0) {
		(void)uncovered_free(u);
		return f->err ? r : fault_errno(f, r, "uncovered paths",
						"are not looked for");
	}
	u->soon = true;
	*ret_uncovered = u;
	return 0;
}

struct uncovered *uncovered_free(struct uncovered *u)
{
	if (!u)
		return NULL;
	(void)sd_event_source_disable_unref(u->io);
	(void)sd_event_source_disable_unref(u->timer);
	(void)nl_notify_free(u->notify);
	(void)nl_sock_free(u->sock);
	free(u);
	return NULL;
}

const struct uncovered_paths *uncovered_get(const struct uncovered *u)
{
	static const struct uncovered_paths none;

	return u ? &u->paths : &none;
}
