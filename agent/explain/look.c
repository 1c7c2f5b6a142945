/* The reading half of explain.h. */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/explain/explain.h"
#include "agent/res/killswitch.h"
#include "agent/res/routing.h"
#include "common/file.h"

void explain_world_done(struct explain_world *w)
{
	armed_done(&w->policy);
	resource_killswitch.seen_free(w->killswitch);
	resource_routing.seen_free(w->routing);
	item_list_done(&w->killswitch_items);
	item_list_done(&w->routing_items);
	free(w->routes.v);
	*w = (struct explain_world){ 0 };
}

/* One look of a resource, as converge --check does it. */
static int look(const struct resource *res, const char *state_dir,
		const struct desired *want, void **ret_seen,
		struct item_list *items, struct fault *f)
{
	struct resource_host host = { .root = "", .state_dir = state_dir,
				      .oneshot = true };
	struct change_list changes = CHANGE_LIST_INIT;
	void *state = NULL, *seen = NULL;
	int r = res->open(&host, &state, f);

	if (r == 0)
		r = res->observe(state, want, &seen, f);
	if (r == 0)
		r = res->plan(want, seen, items, &changes, f);
	change_list_done(&changes);
	(void)res->free(state);
	if (r < 0)
		res->seen_free(seen);
	else
		*ret_seen = seen;
	return r;
}

static int see_resources(const char *state_dir, const struct desired *want,
			 struct explain_world *w, struct fault *f)
{
	void *seen = NULL;
	int r = look(&resource_killswitch, state_dir, want, &seen,
		     &w->killswitch_items, f);

	if (r < 0)
		return r;
	w->killswitch = seen;
	r = look(&resource_routing, state_dir, want, &seen, &w->routing_items,
		 f);
	if (r == 0)
		w->routing = seen;
	return r;
}

static int merge_policy(const struct desired *want, struct explain_world *w)
{
	struct armed none = ARMED_INIT;
	int r;

	w->unsure = w->killswitch->record_fault.err != 0;
	none.d = desired_new();
	if (!none.d)
		return -ENOMEM;
	r = armed_merge(&want->egress,
			w->unsure || !w->killswitch->record.d ?
				&none : &w->killswitch->record,
			&w->policy);
	armed_done(&none);
	return r;
}

/* ---- the packet ---- */

static const struct rtnl_link *link_of(const struct explain_world *w,
				       const char *name, int index)
{
	const struct rtnl_links *l = &w->killswitch->links;
	size_t i;

	for (i = 0; i < l->n; i++)
		if (name ? strcmp(l->v[i].name, name) == 0 :
			   l->v[i].index == index)
			return &l->v[i];
	return NULL;
}

static struct rtnl_question question(const struct packet *p)
{
	return (struct rtnl_question){
		.dst = p->dst,
		.src = p->src,
		.mark = p->mark,
		.iif = p->in_index,
		.uid = p->uid,
		.proto = p->proto,
		.sport = p->sport,
		.dport = p->dport,
	};
}

/*
 * A source that is not this node's can only be forwarded: it came by the
 * device that leads back to it.
 */
static int find_input(struct nl_sock *s, struct packet *p,
		      struct explain_world *w, struct fault *f)
{
	struct rtnl_question q = { .dst = p->src };
	const struct rtnl_link *l;
	struct rtnl_answer a;
	int r = rtnl_lookup(s, &q, &a, f);

	if (r < 0 || a.refused || a.route.type == RTN_LOCAL)
		return r;
	l = link_of(w, NULL, a.route.oif);
	if (!l)
		return 0;
	(void)memcpy(p->in, l->name, sizeof(p->in));
	p->in_index = l->index;
	p->socket = false;
	w->guessed_in = true;
	return 0;
}

static int choose_source(struct nl_sock *s, struct packet *p,
			 struct explain_world *w, struct fault *f)
{
	struct rtnl_question q = question(p);
	struct rtnl_answer a;
	int r = rtnl_lookup(s, &q, &a, f);

	if (r == 0 && a.src.family) {
		p->src = a.src;
		w->chosen_src = true;
	}
	return r;
}

static bool forwards(const struct packet *p)
{
	char path[96], text[8];

	(void)snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/%s/"
		       "forwarding", p->dst.family == AF_INET6 ? "ipv6" :
		       "ipv4", p->in);
	return file_line(path, text, sizeof(text), NULL) < 0 ||
	       strcmp(text, "0") != 0;
}

static int complete(struct nl_sock *s, struct packet *p,
		    struct explain_world *w, struct fault *f)
{
	const struct rtnl_link *l;

	if (p->in[0]) {
		l = link_of(w, p->in, 0);
		if (!l)
			return fault_set(f, -ENODEV, p->in,
					 "there is no such device");
		p->in_index = l->index;
		p->socket = false;
	}
	if (p->src.family && !p->in[0])
		return find_input(s, p, w, f);
	return p->src.family ? 0 : choose_source(s, p, w, f);
}

/* ---- the ways ---- */

static bool seen_table(const struct rtnl_rules *rules, size_t before,
		       const struct packet *p, uint32_t table)
{
	size_t i;

	for (i = 0; i < before; i++)
		if (rules->v[i].table == table &&
		    fib_rule_matches(&rules->v[i], p))
			return true;
	return false;
}

/* Only tables that some rule leads this packet to: others may be huge. */
static void see_routes(struct nl_sock *s, const struct packet *p,
		       struct explain_world *w)
{
	const struct rtnl_rules *rules = &w->routing->rules;
	size_t i;

	w->routes_known = w->routing->net_fault.err == 0;
	for (i = 0; i < rules->n && w->routes_known; i++) {
		struct rtnl_route_filter filter = {
			.table = rules->v[i].table,
		};

		if (!filter.table || !fib_rule_matches(&rules->v[i], p) ||
		    seen_table(rules, i, p, filter.table))
			continue;
		w->routes_known = rtnl_route_dump(s, &filter, &w->routes,
						  NULL) == 0;
	}
}

static int see_all(const char *state_dir, const struct desired *want,
		   struct packet *p, struct explain_world *w, struct fault *f)
{
	struct rtnl_question q;
	struct nl_sock *s = NULL;
	int r = see_resources(state_dir, want, w, f);

	if (r == 0)
		r = merge_policy(want, w);
	if (r == 0)
		r = nl_sock_open(NETLINK_ROUTE, &s, f);
	if (r == 0)
		r = complete(s, p, w, f);
	if (r == 0) {
		w->forwards = !p->in[0] || forwards(p);
		see_routes(s, p, w);
		q = question(p);
		(void)rtnl_lookup(s, &q, &w->answer, &w->answer_fault);
	}
	(void)nl_sock_free(s);
	return r;
}

int explain_look(const char *state_dir, const struct desired *desired,
		 struct packet *p, struct explain_world *ret_world,
		 struct fault *f)
{
	struct explain_world w = { .policy = ARMED_INIT };
	struct desired *none = NULL;
	struct packet full = *p;
	int r;

	/* A class that is not enforced is none but by the record. */
	if (!desired || desired->modes[RESOURCE_KILLSWITCH] != MODE_ENFORCE) {
		none = desired_new();
		if (!none)
			return fault_errno(f, -ENOMEM, "explain", "look");
		desired = none;
	}
	r = see_all(state_dir, desired, &full, &w, f);
	(void)desired_free(none);
	if (r < 0) {
		explain_world_done(&w);
		return f && f->err ? r : fault_errno(f, r, "explain", "look");
	}
	*p = full;
	*ret_world = w;
	return 0;
}
