#include "agent/res/routing_plan.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include "common/put.h"

struct plan {
	const struct routing_seen *seen;
	struct routing_steps steps;
	struct item_list *items;
	struct change_list *changes;
};

static void format_record(const struct routing_record *r, char *text,
			  size_t size)
{
	char buf[IP_TEXT_MAX], *at = put_text(text, text + size, "");
	size_t i;

	for (i = 0; i < r->n; i++) {
		at = put_text(at, text + size, i ? " " : "");
		at = put_text(at, text + size, r->v[i].tunnel);
		at = put_text(at, text + size, "=");
		at = put_text(at, text + size,
			      ip_addr_format(&r->v[i].addr, buf));
	}
}

/* The keys that are not "no", and who says so; "no" when all are. */
static void format_networkd(const struct routing_networkd *n, char *text,
			    size_t size)
{
	char *at = put_text(text, text + size, "");
	const char *end = text + size, *gap = "";
	size_t i;

	for (i = 0; i < NETWORKD_KEY_MAX; i++) {
		if (n->keys[i].off)
			continue;
		at = put_text(at, end, gap);
		at = put_text(at, end, routing_networkd_key_name(i));
		at = put_text(at, end, *n->keys[i].where ? "=yes in " :
				       "=yes by default");
		at = put_text(at, end, n->keys[i].where);
		gap = ", ";
	}
	if (!*gap)
		(void)put_text(at, end, "foreign objects are left alone");
}

/* What the step is about has and shall have, as text. */
static void step_texts(const struct plan *p, const struct routing_step *s,
		       char *have, char *want, size_t size)
{
	char text[RTNL_TEXT_MAX];

	if (s->kind == ROUTING_RECORD) {
		if (p->seen->record.previous)
			(void)put_text(have, have + size,
				       "damaged, the copy before it counts");
		else
			format_record(&p->seen->record, have, size);
		format_record(&p->steps.record, want, size);
		return;
	}
	if (s->kind == ROUTING_NETWORKD) {
		format_networkd(&p->seen->networkd, have, size);
		(void)put_text(want, want + size,
			       "foreign objects are left alone");
		return;
	}
	(void)put_text(have, have + size,
		       s->in_sync || s->op == CHANGE_REMOVE ? "there" : "");
	(void)put_text(want, want + size,
		       s->op == CHANGE_REMOVE ? "" : "there");
	if (s->replaces)
		(void)put_text(have, have + size,
			       rtnl_route_format(&s->old, NULL, text));
}

static int report_step(struct plan *p, const struct routing_step *s)
{
	char have[CHANGE_TEXT_MAX], want[CHANGE_TEXT_MAX];
	enum item_state state = ITEM_DRIFTED;
	int r;

	step_texts(p, s, have, want, sizeof(have));
	if (s->in_sync)
		state = ITEM_IN_SYNC;
	else if (s->op == CHANGE_ADD)
		state = ITEM_ABSENT;
	r = item_list_add(p->items, s->key, state, have, want, "");
	if (r < 0 || s->in_sync)
		return r;
	return change_list_add(p->changes, s->op, s->key, have, want);
}

/* Whether traffic of the table could leave by another way than its own. */
static bool leads_past(const struct plan *p, const struct rtnl_route *route)
{
	const struct desired_egress *e = &p->steps.next.d->egress;
	const struct routing_tunnel *t;
	size_t i;

	if (route->protocol == RTNL_PROTO_GARBOARD ||
	    route->type != RTN_UNICAST)
		return false;
	for (i = 0; i < e->n_tunnels; i++) {
		if (e->tunnels[i].table != route->table)
			continue;
		t = routing_seen_tunnel(p->seen, e->tunnels[i].name);
		return !t || !t->link.index || route->oif != t->link.index;
	}
	return false;
}

static int report_foreign(struct plan *p)
{
	char key[ROUTING_KEY_MAX], text[RTNL_TEXT_MAX];
	size_t i;
	int r = 0;

	for (i = 0; i < p->seen->tables.n && r == 0; i++) {
		const struct rtnl_route *route = &p->seen->tables.v[i];

		if (!leads_past(p, route))
			continue;
		(void)snprintf(key, sizeof(key), "foreign route table %u: %s",
			       route->table,
			       rtnl_route_format(route, NULL, text));
		r = item_list_add(p->items, key, ITEM_BLOCKED, "there", "",
				  "another program's route in a tunnel's table "
				  "leads past the tunnel: remove it");
	}
	return r;
}

/*
 * A foreign rule that is asked before ours, for the same source. One with a
 * mark, a device or a destination is somebody's narrower business.
 */
static bool comes_before(const struct rtnl_rule *foreign,
			 const struct rtnl_rule *ours)
{
	if (foreign->protocol == RTNL_PROTO_GARBOARD ||
	    foreign->family != ours->family ||
	    foreign->priority > ours->priority || foreign->extra ||
	    foreign->table == RT_TABLE_LOCAL ||
	    foreign->table == ours->table || foreign->mask ||
	    foreign->iif[0] || foreign->dst.len || !ours->src.len)
		return false;
	return foreign->src.len == 0 ||
	       ip_prefix_overlaps(&foreign->src, &ours->src);
}

static int report_rule_before(struct plan *p, const struct rtnl_rule *foreign)
{
	char key[ROUTING_KEY_MAX], text[RTNL_TEXT_MAX];
	size_t i;

	for (i = 0; i < p->steps.n; i++)
		if (p->steps.v[i].kind == ROUTING_RULE &&
		    p->steps.v[i].op != CHANGE_REMOVE &&
		    p->steps.v[i].rule.protocol == RTNL_PROTO_GARBOARD &&
		    comes_before(foreign, &p->steps.v[i].rule))
			break;
	if (i == p->steps.n)
		return 0;
	(void)snprintf(key, sizeof(key), "foreign rule %s",
		       rtnl_rule_format(foreign, text));
	return item_list_add(p->items, key, ITEM_BLOCKED, "there", "",
			     "another program's rule comes before ours and "
			     "leads past the tunnel: remove it, or give the "
			     "tunnel a lower rulePriority");
}

static int report_rules_before(struct plan *p)
{
	size_t i;
	int r = 0;

	for (i = 0; i < p->seen->rules.n && r == 0; i++)
		r = report_rule_before(p, &p->seen->rules.v[i]);
	return r;
}

/* 0.0.0.0/0, or the halves of it that some clients set instead (A21). */
static int report_main(struct plan *p)
{
	char key[ROUTING_KEY_MAX], text[RTNL_TEXT_MAX];
	size_t i;
	int r = 0;

	for (i = 0; i < p->seen->main.n && r == 0; i++) {
		const struct rtnl_route *route = &p->seen->main.v[i];

		if (route->dst.len > 1 || route->type != RTN_UNICAST)
			continue;
		(void)snprintf(key, sizeof(key), "main table: %s",
			       rtnl_route_format(route, NULL, text));
		r = item_list_add(p->items, key, ITEM_BLOCKED, "there", "",
				  "the tunnel became the node's default route: "
				  "ignore pushed routes (route-noexec, "
				  "Table=off)");
	}
	return r;
}

static int report_tunnel(struct plan *p, const struct desired_tunnel *t)
{
	const struct routing_tunnel *seen =
		routing_seen_tunnel(p->seen, t->name);
	char key[ROUTING_KEY_MAX];
	size_t i;

	(void)snprintf(key, sizeof(key), "tunnel %.15s", t->name);
	for (i = 0; i < p->steps.record.n; i++)
		if (strcmp(p->steps.record.v[i].tunnel, t->name) == 0)
			break;
	if (i == p->steps.record.n)
		return item_list_add(p->items, key, ITEM_PENDING, "", "up",
				     "its address was never seen, so nothing "
				     "is steered yet");
	if (seen && seen->impostor)
		return item_list_add(p->items, key, ITEM_BLOCKED, "another",
				     "up", "a device that is no tunnel has "
				     "its name: nothing is sent there");
	if (!seen || !seen->link.index)
		return item_list_add(p->items, key, ITEM_PENDING, "away", "up",
				     "there is no such device: its traffic is "
				     "unreachable");
	if (!(seen->link.flags & IFF_UP))
		return item_list_add(p->items, key, ITEM_PENDING, "down",
				     "up", "its traffic is unreachable");
	return item_list_add(p->items, key, ITEM_IN_SYNC, "up", "up", "");
}

static int report_tunnels(struct plan *p)
{
	const struct desired_egress *e = &p->steps.next.d->egress;
	size_t i;
	int r = 0;

	for (i = 0; i < e->n_tunnels && r == 0; i++)
		if (routing_uses(e, i))
			r = report_tunnel(p, &e->tunnels[i]);
	return r;
}

/* The file is one thing, what the running networkd goes by another (RT-01). */
static int report_networkd(struct plan *p)
{
	const struct routing_networkd *n = &p->seen->networkd;
	char have[CHANGE_TEXT_MAX];

	if (!n->pid)
		return item_list_add(p->items, ROUTING_KEY_NETWORKD,
				     ITEM_IN_SYNC, "not running", "", "");
	if (!routing_networkd_opted_out(n) || routing_networkd_is_late(n))
		return item_list_add(
			p->items, ROUTING_KEY_NETWORKD, ITEM_PENDING,
			"started before its settings", "started after them",
			"until systemd-networkd is restarted it may take our "
			"rules and routes away, which are then put back: "
			"systemctl restart systemd-networkd");
	(void)snprintf(have, sizeof(have), "running[%d], started after its "
		       "settings", n->pid);
	return item_list_add(p->items, ROUTING_KEY_NETWORKD, ITEM_IN_SYNC,
			     have, "", "");
}

static int report_networkd_file(struct plan *p)
{
	const struct routing_networkd *n = &p->seen->networkd;
	struct item *it = item_list_find(p->items, ROUTING_KEY_NETWORKD_FILE);
	char have[CHANGE_TEXT_MAX];

	if (!it)
		return 0;	/* not wanted */
	if (n->unreadable) {
		item_list_mark(p->items, ROUTING_KEY_NETWORKD_FILE,
			       ITEM_UNOBSERVABLE, "%s", n->fault.text);
		return 0;
	}
	if (n->written && !routing_networkd_opted_out(n)) {
		format_networkd(n, have, sizeof(have));
		item_list_mark(p->items, ROUTING_KEY_NETWORKD_FILE,
			       ITEM_BLOCKED, "a later file has the last word: "
			       "%s; remove it there", have);
	}
	return report_networkd(p);
}

static int report_faults(struct plan *p)
{
	int r = 0;

	if (p->seen->armed_fault.err)
		r = item_list_add(p->items, "armed record",
				  ITEM_UNOBSERVABLE, "", "",
				  p->seen->armed_fault.text);
	if (r == 0 && p->seen->record_fault.err)
		r = item_list_add(p->items, ROUTING_KEY_RECORD,
				  ITEM_UNOBSERVABLE, "", "",
				  p->seen->record_fault.text);
	return r;
}

static int make_plan(struct plan *p)
{
	size_t i;
	int r = report_faults(p);

	for (i = 0; i < p->steps.n && r == 0; i++)
		r = report_step(p, &p->steps.v[i]);
	if (r == 0)
		r = report_networkd_file(p);
	if (r == 0)
		r = report_tunnels(p);
	if (r == 0)
		r = report_foreign(p);
	if (r == 0)
		r = report_rules_before(p);
	return r < 0 ? r : report_main(p);
}

int routing_plan(const struct desired *want, const void *seen,
		 struct item_list *items, struct change_list *changes,
		 struct fault *f)
{
	struct plan p = { .seen = seen, .items = items, .changes = changes };
	int r;

	if (p.seen->net_fault.err) {
		r = item_list_add(items, "routing", ITEM_UNOBSERVABLE, "", "",
				  p.seen->net_fault.text);
		return r < 0 ? fault_errno(f, r, "routing", "plan") : 0;
	}
	r = routing_steps(want, seen, &p.steps);
	if (r == 0)
		r = make_plan(&p);
	routing_steps_done(&p.steps);
	return r < 0 ? fault_errno(f, r, "routing", "plan") : 0;
}
