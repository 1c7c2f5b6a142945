#include "agent/res/routing.h"

#include <errno.h>
#include <limits.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "agent/nl/nl_notify.h"
#include "agent/res/routing_plan.h"
#include "common/cleanup.h"
#include "agent/rootpath.h"
#include "agent/wake.h"
#include "common/file.h"

#define WRITER_MAX 64
#define TASK_NAME_MAX 32	/* of "/proc/N/comm", too */
/* Files and processes are not looked at anew for every lost rule. */
#define NETWORKD_FRESH (2 * USEC_PER_SEC)

struct routing {
	const char *root, *state_dir;
	sd_event *event;
	struct nl_sock *sock;
	struct kept armed, record;	/* their texts */
	bool ipv6;		/* seen: it cannot be unloaded */
	struct nl_notify *events;
	sd_event_source *source;
	resource_look_again look_again;
	void *userdata;
	bool moved;
	char writer[WRITER_MAX];	/* "": of the last, nothing is known */
	bool nameless;		/* and by whom is still to be thought of */

	struct routing_networkd networkd;
	usec networkd_seen;	/* 0: not, or not any more */
	struct wake *wake;	/* of networkd's files */
	bool rules_moved;
	bool due;		/* something was, since the last look */
	bool only_rules;	/* that is all since the last look */
	struct routing_seen *last;	/* complete, without a fault */

	/* Which events matter, from the last look. */
	struct {
		char name[IF_NAMESIZE];
		int index;
		uint32_t table;
	} tunnels[DESIRED_TUNNELS_MAX * 2];
	size_t n_tunnels;
};

static int routing_open(const struct resource_host *host, void **ret_state,
			struct fault *f)
{
	struct routing *t = calloc(1, sizeof(*t));

	if (!t)
		return fault_errno(f, -ENOMEM, "routing", "open");
	t->root = host->root;
	t->state_dir = host->state_dir;
	t->event = host->event;
	*ret_state = t;
	return 0;
}

static void seen_free(void *seen);

static void *routing_free(void *state)
{
	struct routing *t = state;

	if (!t)
		return NULL;
	seen_free(t->last);
	t->source = sd_event_source_disable_unref(t->source);
	(void)nl_notify_free(t->events);
	t->wake = wake_free(t->wake);
	(void)nl_sock_free(t->sock);
	kept_done(&t->armed);
	kept_done(&t->record);
	free(t);
	return NULL;
}

static int open_socket(struct routing *t, struct fault *f)
{
	return t->sock ? 0 : nl_sock_open(NETLINK_ROUTE, &t->sock, f);
}

/* ---- observe ---- */

static void seen_free(void *seen)
{
	struct routing_seen *s = seen;
	size_t i;

	if (!s || --s->refs)
		return;
	armed_done(&s->armed);
	for (i = 0; i < s->n_tunnels; i++)
		free(s->tunnels[i].addrs.v);
	free(s->ours.v);
	free(s->tables.v);
	free(s->main.v);
	free(s->rules.v);
	free(s);
}

static int see_tunnel(struct routing *t, const struct desired_tunnel *d,
		      struct routing_seen *s)
{
	struct routing_tunnel *seen;
	int r;

	if (s->n_tunnels >= DESIRED_TUNNELS_MAX * 2 ||
	    strlen(d->name) >= sizeof(seen->name))
		return fault_set(&s->net_fault, -E2BIG, d->name,
				 "too many tunnels, or too long a name");
	seen = &s->tunnels[s->n_tunnels++];
	(void)memcpy(seen->name, d->name, strlen(d->name) + 1);
	r = rtnl_link_get(t->sock, d->name, &seen->link, &s->net_fault);
	if (r == -ENODEV)
		seen->link.index = 0;
	else if (r < 0)
		return r;
	/* A wire of that name leads past the tunnel, not into it. */
	seen->impostor = seen->link.index && !seen->link.bare;
	if (seen->impostor)
		seen->link.index = 0;
	if (seen->link.index) {
		struct rtnl_route_filter filter = {
			.table = RT_TABLE_MAIN,
			.oif = seen->link.index,
		};

		r = rtnl_addr_dump(t->sock, seen->link.index, &seen->addrs,
				   &s->net_fault);
		/* Gone in between: an event tells of it as well. */
		if (r == -ENODEV) {
			fault_clear(&s->net_fault);
			seen->link.index = 0;
			seen->addrs.n = 0;
			r = 0;
		} else if (r == 0) {
			r = rtnl_route_dump(t->sock, &filter, &s->main,
					    &s->net_fault);
		}
	}
	if (r == 0 || r == -ENODEV)
		r = rtnl_route_dump(t->sock,
				    &(struct rtnl_route_filter){
					    .table = d->table },
				    &s->tables, &s->net_fault);
	return r;
}

static int see_net(struct routing *t, const struct desired_egress *egress,
		   struct routing_seen *s)
{
	static const struct rtnl_route_filter ours = {
		.protocol = RTNL_PROTO_GARBOARD,
	};
	size_t i;
	int r = open_socket(t, &s->net_fault);

	for (i = 0; i < egress->n_tunnels && r == 0; i++)
		r = see_tunnel(t, &egress->tunnels[i], s);
	if (r == 0)
		r = rtnl_route_dump(t->sock, &ours, &s->ours, &s->net_fault);
	if (r == 0)
		r = rtnl_rule_dump(t->sock, &s->rules, &s->net_fault);
	/* With ipv6.disable=1 there is nothing to close (KS-03). */
	if (!t->ipv6)
		t->ipv6 = access("/proc/net/if_inet6", F_OK) == 0;
	s->ipv6 = t->ipv6;
	return r;
}

static void see_networkd(struct routing *t, struct routing_seen *s)
{
	usec now = clock_boottime();

	if (!t->networkd_seen || now - t->networkd_seen > NETWORKD_FRESH) {
		routing_networkd_see(t->root, &t->networkd);
		t->networkd_seen = now;
	}
	s->networkd = t->networkd;
	if (t->nameless && t->networkd.pid &&
	    (!routing_networkd_opted_out(&t->networkd) ||
	     routing_networkd_is_late(&t->networkd)))
		(void)snprintf(t->writer, sizeof(t->writer),
			       "perhaps systemd-networkd[%d]",
			       t->networkd.pid);
	t->nameless = false;
}

static void note_tunnels(struct routing *t, const struct routing_seen *s,
			 const struct desired_egress *egress)
{
	size_t i;

	t->n_tunnels = 0;
	for (i = 0; i < s->n_tunnels; i++) {
		(void)memcpy(t->tunnels[i].name, s->tunnels[i].name,
			     sizeof(t->tunnels[i].name));
		t->tunnels[i].index = s->tunnels[i].link.index;
		t->tunnels[i].table = egress->tunnels[i].table;
		t->n_tunnels++;
	}
}

/* For glances: what has faults is not gone by. */
static void remember(struct routing *t, struct routing_seen *s)
{
	seen_free(t->last);
	t->last = NULL;
	t->due = t->only_rules = false;
	if (s->armed_fault.err || s->record_fault.err || s->net_fault.err)
		return;
	s->refs++;
	t->last = s;
}

static int routing_observe(void *state, const struct desired *want,
			   void **ret_seen, struct fault *f)
{
	struct routing *t = state;
	struct routing_seen *s = calloc(1, sizeof(*s));
	struct armed next = ARMED_INIT, none = ARMED_INIT;
	int r;

	none.d = desired_new();
	if (!s || !none.d) {
		free(s);
		armed_done(&none);
		return fault_errno(f, -ENOMEM, "routing", "observe");
	}
	s->refs = 1;
	(void)armed_load_kept(&t->armed, t->state_dir, &s->armed,
			      &s->armed_fault);
	(void)routing_record_load_kept(&t->record, t->state_dir, &s->record,
				       &s->record_fault);
	r = armed_merge(&want->egress, s->armed.d ? &s->armed : &none, &next);
	if (r < 0) {
		seen_free(s);
		armed_done(&none);
		return fault_errno(f, r, "routing", "observe");
	}
	(void)see_net(t, &next.d->egress, s);
	see_networkd(t, s);
	note_tunnels(t, s, &next.d->egress);
	armed_done(&next);
	armed_done(&none);
	remember(t, s);
	*ret_seen = s;
	return 0;
}

/* Of rules that moved, and nothing else: the rules. */
static int routing_glance(void *state, const struct desired *want,
			  void **ret_seen)
{
	struct routing *t = state;
	struct routing_seen *s = t->last;
	bool only_rules = t->only_rules;

	(void)want;
	t->only_rules = false;
	if (!only_rules || !s || s->refs != 1 ||
	    !stamps_fresh(&t->armed.stamps) ||
	    !stamps_fresh(&t->record.stamps))
		return 0;
	if (rtnl_rule_dump(t->sock, &s->rules, NULL) < 0) {
		seen_free(s);
		t->last = NULL;
		return 0;
	}
	s->refs++;
	*ret_seen = s;
	return 1;
}

/* ---- apply ---- */

static int apply_route(struct routing *t, const struct routing_step *s,
		       struct fault *f)
{
	int r;

	if (s->op == CHANGE_REMOVE) {
		r = rtnl_route_delete(t->sock, &s->route, f);
		return r == -ESRCH ? 0 : r;	/* gone by itself */
	}
	if (s->replaces) {
		r = rtnl_route_delete(t->sock, &s->old, f);
		if (r < 0 && r != -ESRCH)
			return r;
		fault_clear(f);
	}
	r = rtnl_route_add(t->sock, &s->route, f);
	if (r == -EEXIST) {
		fault_clear(f);
		return fault_set(f, r, s->key, "another program's route is in "
				 "its place: remove it");
	}
	return r;
}

static int apply_rule(struct routing *t, const struct routing_step *s,
		      struct fault *f)
{
	int r;

	if (s->op == CHANGE_REMOVE) {
		r = rtnl_rule_delete(t->sock, &s->rule, f);
		return r == -ENOENT ? 0 : r;
	}
	return rtnl_rule_add(t->sock, &s->rule, f);
}

static int apply_step(struct routing *t, const struct routing_steps *steps,
		      const struct routing_step *s, struct fault *f)
{
	switch (s->kind) {
	case ROUTING_ROUTE:
		return apply_route(t, s, f);
	case ROUTING_RULE:
		return apply_rule(t, s, f);
	case ROUTING_RECORD:
		return routing_record_save(t->state_dir, &steps->record, f);
	case ROUTING_NETWORKD:
		t->networkd_seen = 0;
		return routing_networkd_write(t->root, f);
	}
	return -EINVAL;
}

static void mark_failed(struct item_list *items, const char *key, int err,
			const struct fault *why)
{
	struct item *it = item_list_find(items, key);
	char *reason = strdup(why->text);

	if (!it || !reason) {
		free(reason);
		return;
	}
	free(it->reason);
	it->reason = reason;
	/* The device moves under us, or the answer was lost: look again. */
	it->state = err == -ENODEV || err == -ENETDOWN ||
				    err == -ENETUNREACH || err == -ENOBUFS ||
				    err == -ETIMEDOUT ?
			    ITEM_PENDING : ITEM_BLOCKED;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys of the changes, sorted: there may be thousands. NULL: -ENOMEM. */
static const char **sorted_keys(const struct change_list *changes)
{
	const char **keys = calloc(changes->n + 1, sizeof(*keys));
	size_t i;

	for (i = 0; keys && i < changes->n; i++)
		keys[i] = changes->v[i].key;
	if (keys)
		qsort(keys, changes->n, sizeof(*keys), by_text);
	return keys;
}

static int routing_apply(void *state, const struct desired *want,
			 const void *seen, const struct change_list *changes,
			 struct item_list *items, struct fault *f)
{
	_cleanup_free_ const char **keys = sorted_keys(changes);
	struct routing *t = state;
	struct routing_steps steps;
	int first = 0, r;
	size_t i;

	r = open_socket(t, f);
	if (r < 0)
		return r;
	r = keys ? routing_steps(want, seen, &steps) : -ENOMEM;
	if (r < 0)
		return fault_errno(f, r, "routing", "apply");
	for (i = 0; i < steps.n; i++) {
		struct routing_step *s = &steps.v[i];
		const char *key = s->key;
		struct fault own = FAULT_INIT;

		if (s->in_sync ||
		    !bsearch(&key, keys, changes->n, sizeof(*keys), by_text))
			continue;
		r = apply_step(t, &steps, s, &own);
		if (r == 0)
			continue;
		mark_failed(items, s->key, r, &own);
		(void)fault_set(f, r, s->key, "%s", own.text);
		if (first == 0)
			first = r;
	}
	routing_steps_done(&steps);
	return first;
}

/* ---- watch ---- */

static bool is_tunnel_index(const struct routing *t, int index)
{
	size_t i;

	for (i = 0; i < t->n_tunnels; i++)
		if (index && t->tunnels[i].index == index)
			return true;
	return false;
}

static bool link_matters(const struct routing *t, const struct nlmsghdr *nlh)
{
	struct rtnl_link l;
	size_t i;

	if (rtnl_link_decode(nlh, &l) < 0)
		return true;
	for (i = 0; i < t->n_tunnels; i++)
		if (strcmp(t->tunnels[i].name, l.name) == 0)
			return true;
	return is_tunnel_index(t, l.index);
}

/* Pods make and drop routes all day: only what is near ours matters. */
static bool route_matters(const struct routing *t, const struct nlmsghdr *nlh)
{
	struct rtnl_route r;
	size_t i;

	if (rtnl_route_decode(nlh, &r) < 0)
		return true;
	if (r.protocol == RTNL_PROTO_GARBOARD)
		return true;
	for (i = 0; i < t->n_tunnels; i++)
		if (t->tunnels[i].table == r.table)
			return true;
	return r.table == RT_TABLE_MAIN && r.dst.len <= 1 &&
	       is_tunnel_index(t, r.oif);
}

/*
 * A socket's port is its process's id, if it is the first of that process; the
 * kernel says no more. networkd's was made by the first process, and port 1
 * may also be that of a container: then there is only its settings to go by.
 */
static void note_writer(struct routing *t, uint32_t port)
{
	char path[TASK_NAME_MAX], name[TASK_NAME_MAX];

	if (port == 0)	/* the kernel itself */
		return;
	t->nameless = port == 1 || port > INT_MAX;
	if (t->nameless) {
		t->writer[0] = '\0';
		t->networkd_seen = 0;
		return;
	}
	(void)snprintf(path, sizeof(path), "/proc/%u/comm", port);
	if (file_line(path, name, sizeof(name), NULL) < 0)
		(void)snprintf(name, sizeof(name), "process");
	fault_sanitize(name);
	(void)snprintf(t->writer, sizeof(t->writer), "%s[%u]", name, port);
}

/* Who took away something of ours, or a lookup of the kernel's own. */
static void note_deletion(struct routing *t, const struct nlmsghdr *nlh)
{
	struct rtnl_route route;
	struct rtnl_rule rule;

	if (nlh->nlmsg_type == RTM_DELRULE &&
	    rtnl_rule_decode(nlh, &rule) == 0 &&
	    (rule.protocol == RTNL_PROTO_GARBOARD ||
	     rule.protocol == RTPROT_KERNEL))
		note_writer(t, nlh->nlmsg_pid);
	if (nlh->nlmsg_type == RTM_DELROUTE &&
	    rtnl_route_decode(nlh, &route) == 0 &&
	    route.protocol == RTNL_PROTO_GARBOARD)
		note_writer(t, nlh->nlmsg_pid);
}

static int on_message(const struct nlmsghdr *nlh, void *userdata)
{
	struct routing *t = userdata;
	struct rtnl_addr a;

	if (nlh->nlmsg_pid == nl_sock_portid(t->sock))
		return 0;
	switch (nlh->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		t->moved |= link_matters(t, nlh);
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		t->moved |= rtnl_addr_decode(nlh, &a) < 0 ||
			    is_tunnel_index(t, a.index);
		break;
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		t->moved |= route_matters(t, nlh);
		break;
	default:	/* rules are few, and each can undo ours */
		t->rules_moved = true;
		break;
	}
	note_deletion(t, nlh);
	return 0;
}

static int on_events(sd_event_source *source, int fd, uint32_t revents,
		     void *userdata)
{
	struct routing *t = userdata;
	bool lost;

	(void)source;
	(void)fd;
	(void)revents;
	lost = nl_notify_drain(t->events, on_message, t) != 0;
	if (!t->moved && !t->rules_moved && !lost)
		return 0;
	/* Whatever else moved before that look was made needs all of it. */
	t->only_rules = !t->moved && !lost && (t->only_rules || !t->due);
	t->due = true;
	t->moved = t->rules_moved = false;
	t->look_again(t->userdata);
	return 0;
}

static void on_wake(void *userdata)
{
	struct routing *t = userdata;

	t->networkd_seen = 0;
	t->look_again(t->userdata);
}

/* Where networkd's settings are written; of an absent one, its directory. */
static int watch_networkd(struct routing *t, struct fault *f)
{
	static const char *const paths[] = {
		"/etc/systemd", "/etc/systemd/networkd.conf.d",
		"/run/systemd/networkd.conf.d",
		"/usr/lib/systemd/networkd.conf.d",
	};
	char path[PATH_MAX];
	size_t i;
	int r = 0;

	if (!t->wake)
		r = wake_new(t->event, on_wake, t, &t->wake, f);
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]) && r == 0; i++) {
		r = rootpath(t->root, path, "%s", paths[i]);
		if (r == 0)
			r = wake_path(t->wake, path, WAKE_DIR_MASK, f);
	}
	return r;
}

static const char *routing_writer(void *state)
{
	const struct routing *t = state;

	return t->writer;
}

static int routing_watch(void *state, const struct desired *want,
			 resource_look_again look_again, void *userdata,
			 struct fault *f)
{
	static const unsigned int groups[] = {
		RTNLGRP_LINK,	     RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
		RTNLGRP_IPV4_ROUTE,  RTNLGRP_IPV6_ROUTE,  RTNLGRP_IPV4_RULE,
		RTNLGRP_IPV6_RULE,
	};
	struct routing *t = state;
	int r;

	(void)want;
	t->look_again = look_again;
	t->userdata = userdata;
	if (!t->event || t->source)
		return 0;
	r = watch_networkd(t, f);
	if (r == 0)
		r = open_socket(t, f);
	if (r == 0)
		r = nl_notify_open(NETLINK_ROUTE, groups,
				   sizeof(groups) / sizeof(groups[0]),
				   &t->events, f);
	if (r < 0)
		return r;
	r = sd_event_add_io(t->event, &t->source, nl_notify_fd(t->events),
			    EPOLLIN, on_events, t);
	return r < 0 ? fault_errno(f, r, "routing", "watch") : 0;
}

const struct resource resource_routing = {
	.id = RESOURCE_ROUTING,
	.open = routing_open,
	.observe = routing_observe,
	.plan = routing_plan,
	.apply = routing_apply,
	.watch = routing_watch,
	.seen_free = seen_free,
	.free = routing_free,
	.writer = routing_writer,
	.glance = routing_glance,
};
