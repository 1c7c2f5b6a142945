/* The pure half of explain.h: from what was seen to what is said. */
#include "agent/explain/explain.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/res/killswitch_tables.h"
#include "agent/res/routing_plan.h"

#define DNS_PORT 53
#define DNS_TLS_PORT 853

struct work {
	const struct explain_world *w;
	const struct packet *p;
	struct explanation *x;
	const struct desired_egress *policy;
	struct routing_want want;
	struct rtnl_rules want_rules, open_rules;
	struct rtnl_routes want_routes, open_routes;
	struct fib_result have, wanted, open;
	const struct desired_class *class;
	const struct desired_tunnel *tunnel;	/* the class's here, or NULL */
	struct packet_out out;		/* the kernel's; name "" for none */
	struct packet_out open_out;	/* where it would leave without us */
	bool allowed;			/* the policy lets it past the tunnel */
	bool own;			/* a packet of the tunnel itself */
	char by[EXPLAIN_TEXT_MAX];	/* who dropped it; "" for nobody */
};

const char *explain_verdict_name(enum explain_verdict v)
{
	static const char *const names[] = {
		[EXPLAIN_INTERNET] = "internet",
		[EXPLAIN_TUNNEL] = "tunnel",
		[EXPLAIN_ALLOWED] = "allowed",
		[EXPLAIN_HERE] = "here",
		[EXPLAIN_DROPPED] = "dropped",
		[EXPLAIN_UNREACHABLE] = "unreachable",
		[EXPLAIN_LEAKS] = "LEAKS",
		[EXPLAIN_UNKNOWN] = "unknown",
	};

	return (unsigned int)v < EXPLAIN_VERDICT_MAX ? names[v] : "unknown";
}

static void clash(struct explanation *x, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void clash(struct explanation *x, const char *fmt, ...)
{
	va_list ap;

	if (x->n_clashes >= EXPLAIN_CLASHES_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(x->clashes[x->n_clashes++], EXPLAIN_TEXT_MAX, fmt,
			ap);
	va_end(ap);
}

static void note(struct explanation *x, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void note(struct explanation *x, const char *fmt, ...)
{
	va_list ap;

	if (x->n_notes >= EXPLAIN_NOTES_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(x->notes[x->n_notes++], EXPLAIN_TEXT_MAX, fmt, ap);
	va_end(ap);
}

/* ---- which class ---- */

static const struct ip_prefix *holding(const struct prefix_list *list,
				       const struct ip_addr *a)
{
	size_t i;

	for (i = 0; a->family && i < list->n; i++)
		if (list->v[i].addr.family == a->family &&
		    ip_prefix_contains(&list->v[i], a))
			return &list->v[i];
	return NULL;
}

static bool of_class(const struct desired_class *c, const struct packet *p,
		     char *why)
{
	const struct ip_prefix *in = holding(&c->pods, &p->src);
	char text[IP_TEXT_MAX];

	if (in) {
		(void)snprintf(why, EXPLAIN_TEXT_MAX, "from its pods %s",
			       ip_prefix_format(in, text));
		return true;
	}
	in = holding(&c->sources, &p->src);
	if (in) {
		(void)snprintf(why, EXPLAIN_TEXT_MAX, "from its source %s",
			       ip_prefix_format(in, text));
		return true;
	}
	if (!c->mask || (p->mark & c->mask) != c->mark)
		return false;
	(void)snprintf(why, EXPLAIN_TEXT_MAX, "by its mark 0x%x/0x%x",
		       c->mark, c->mask);
	return true;
}

static void find_class(struct work *k)
{
	char why[EXPLAIN_TEXT_MAX];
	size_t i;

	for (i = 0; i < k->policy->n_classes; i++) {
		const struct desired_class *c = &k->policy->classes[i];

		if (!of_class(c, k->p, why))
			continue;
		if (k->class) {
			note(k->x, "it is of class %s too, %s", c->name, why);
			continue;
		}
		k->class = c;
		(void)snprintf(k->x->class_name, sizeof(k->x->class_name),
			       "%s", c->name);
		(void)memcpy(k->x->class_why, why, sizeof(why));
		if (c->gateway && c->tunnel < k->policy->n_tunnels)
			k->tunnel = &k->policy->tunnels[c->tunnel];
	}
}

static bool is_own(const struct work *k)
{
	size_t i;

	for (i = 0; k->tunnel && i < k->tunnel->n_endpoints; i++) {
		const struct ip_endpoint *e = &k->tunnel->endpoints[i];

		if (ip_addr_cmp(&e->addr, &k->p->dst) == 0 &&
		    e->port == k->p->dport &&
		    k->p->proto == (e->proto == IP_PROTO_TCP ? IPPROTO_TCP :
							       IPPROTO_UDP))
			return true;
	}
	return false;
}

static bool is_resolver(const struct desired_class *c,
			const struct ip_addr *a)
{
	size_t i;

	for (i = 0; i < c->n_dns; i++)
		if (ip_addr_cmp(&c->dns[i], a) == 0)
			return true;
	return false;
}

/* A tunnel's own address is steered whether or not a class names it. */
static void find_special(struct work *k)
{
	const struct routing_record *known = &k->w->routing->record;
	bool dns = k->p->dport == DNS_PORT || k->p->dport == DNS_TLS_PORT;
	const struct ip_prefix *local = holding(&k->policy->local,
						&k->p->dst);
	char *text = k->x->special, ip[IP_TEXT_MAX];
	size_t i;

	k->own = is_own(k);
	for (i = 0; !k->class && k->p->src.family && i < known->n; i++)
		if (ip_addr_cmp(&known->v[i].addr, &k->p->src) == 0)
			(void)snprintf(text, EXPLAIN_TEXT_MAX, "from the last "
				       "known address of tunnel %s",
				       known->v[i].tunnel);
	if (k->own)
		(void)snprintf(text, EXPLAIN_TEXT_MAX, "to an endpoint of "
			       "tunnel %s: the tunnel's own packet if %s",
			       k->tunnel->name,
			       k->tunnel->kind == TUNNEL_WIREGUARD ?
				       "the kernel sends it" :
				       "a socket of root sends it");
	else if (k->class && is_resolver(k->class, &k->p->dst))
		(void)snprintf(text, EXPLAIN_TEXT_MAX, "to a resolver of the "
			       "class, which is for the tunnel only");
	else if (k->class && dns)
		(void)snprintf(text, EXPLAIN_TEXT_MAX, "DNS of the class to "
			       "another than its resolvers");
	else if (k->class && local)
		(void)snprintf(text, EXPLAIN_TEXT_MAX, "to the local prefix "
			       "%s", ip_prefix_format(local, ip));
}

/* ---- which way ---- */

static const struct rtnl_link *link_by(const struct explain_world *w,
				       int index)
{
	size_t i;

	for (i = 0; i < w->killswitch->links.n; i++)
		if (w->killswitch->links.v[i].index == index)
			return &w->killswitch->links.v[i];
	return NULL;
}

static void set_out(const struct work *k, int oif, struct packet_out *out)
{
	const struct rtnl_link *l = link_by(k->w, oif);

	*out = (struct packet_out){ 0 };
	if (!l)
		return;
	(void)memcpy(out->name, l->name, sizeof(out->name));
	out->bare = l->bare;
}

static int run_ways(struct work *k)
{
	static const struct routing_want none;
	struct routing_record addresses;
	const struct routing_seen *seen = k->w->routing;
	int r = routing_next_record(seen, k->policy, &addresses);

	if (r == 0)
		r = routing_want(k->policy, seen, &addresses, &k->want);
	if (r == 0)
		r = fib_as_wanted(&seen->rules, &k->w->routes, &k->want.rules,
				  &k->want.routes, &k->want_rules,
				  &k->want_routes);
	if (r == 0)
		r = fib_as_wanted(&seen->rules, &k->w->routes, &none.rules,
				  &none.routes, &k->open_rules,
				  &k->open_routes);
	if (r < 0)
		return r;
	fib_run(&seen->rules, &k->w->routes, k->p, &k->have);
	fib_run(&k->want_rules, &k->want_routes, k->p, &k->wanted);
	fib_run(&k->open_rules, &k->open_routes, k->p, &k->open);
	if (!k->w->routes_known)
		k->have.end = k->wanted.end = k->open.end = FIB_UNSURE;
	if (k->w->answer.refused == 0 && !k->w->answer_fault.err &&
	    k->w->answer.route.type != RTN_LOCAL)
		set_out(k, k->w->answer.route.oif, &k->out);
	if (k->open.end == FIB_ROUTE && k->open.route->type != RTN_LOCAL)
		set_out(k, k->open.route->oif, &k->open_out);
	return 0;
}

static const char *way_text(const struct work *k, const struct fib_result *v,
			    char buf[EXPLAIN_TEXT_MAX])
{
	char route[RTNL_TEXT_MAX];
	const struct rtnl_link *l;

	switch (v->end) {
	case FIB_ROUTE:
	case FIB_REFUSED:
		l = link_by(k->w, v->route->oif);
		(void)snprintf(buf, EXPLAIN_TEXT_MAX, "%s, table %u",
			       rtnl_route_format(v->route, l ? l->name : NULL,
						 route),
			       v->route->table);
		return buf;
	case FIB_NOTHING:
		return "no route at all";
	case FIB_UNSURE:
		break;
	}
	return "not known: a rule before it has properties that are not "
	       "evaluated here";
}

static bool same_way(const struct fib_result *a, const struct fib_result *b)
{
	if (a->end == FIB_UNSURE || b->end == FIB_UNSURE)
		return true;	/* said elsewhere */
	if (a->end != b->end)
		return false;
	return !a->route || (a->route->table == b->route->table &&
			     a->route->type == b->route->type &&
			     a->route->oif == b->route->oif &&
			     a->route->dst.len == b->route->dst.len);
}

/* What the kernel says beside what its own rules, as listed, come to. */
static bool kernel_agrees(const struct work *k)
{
	const struct rtnl_answer *a = &k->w->answer;

	switch (k->have.end) {
	case FIB_UNSURE:
		return true;
	case FIB_NOTHING:
		return a->refused != 0;
	case FIB_REFUSED:
		return a->refused != 0;
	case FIB_ROUTE:
		break;
	}
	/* What comes in is also looked at for where it comes from. */
	if (a->refused)
		return k->p->in[0] &&
		       (a->refused == -EXDEV || !k->w->forwards ||
			(a->refused == -EINVAL &&
			 k->p->dst.family == AF_INET));
	return a->route.table == k->have.route->table &&
	       a->route.dst.len == k->have.route->dst.len &&
	       (!k->have.route->oif || !a->route.oif ||
		a->route.oif == k->have.route->oif);
}

static const char *refusal(const struct work *k)
{
	switch (k->w->answer.refused) {
	case -EHOSTUNREACH:
		return k->w->forwards ? "unreachable" :
					"unreachable: the input device does "
					"not forward";
	case -ENETUNREACH:
		return "no route";
	case -EACCES:
		return "prohibited";
	case -EXDEV:
		return "refused by the reverse path filter of the input "
		       "device";
	case -EINVAL:
		return "refused: a blackhole, or an impossible source";
	}
	return "refused";
}

/* A rule of somebody else, before the first of ours that is for it. */
static void find_thief(struct work *k)
{
	const struct fib_result *v = &k->have;
	char text[RTNL_TEXT_MAX];
	size_t i;

	if (v->end != FIB_ROUTE || v->route->type == RTN_LOCAL ||
	    v->rule->protocol == RTNL_PROTO_GARBOARD)
		return;
	for (i = 0; i < k->want.rules.n; i++)
		if (fib_rule_matches(&k->want.rules.v[i], k->p) &&
		    v->rule->priority < k->want.rules.v[i].priority) {
			clash(k->x, "routing: rule %s is not ours and takes "
			      "it before ours at %u",
			      rtnl_rule_format(v->rule, text),
			      k->want.rules.v[i].priority);
			return;
		}
}

static void tell_ways(struct work *k)
{
	const struct rtnl_answer *a = &k->w->answer;
	struct explanation *x = k->x;
	char have[EXPLAIN_TEXT_MAX], want[EXPLAIN_TEXT_MAX];
	char rule[RTNL_TEXT_MAX];
	struct fib_result told = { .end = FIB_ROUTE, .route = &a->route };

	if (k->have.rule) {
		(void)snprintf(x->rule, sizeof(x->rule), "%s%s",
			       rtnl_rule_format(k->have.rule, rule),
			       k->have.rule->protocol == RTNL_PROTO_GARBOARD ?
				       " (ours)" : "");
		x->priority = k->have.rule->priority;
	}
	if (k->have.route)
		x->table = k->have.route->table;
	else if (!a->refused)
		x->table = a->route.table;
	(void)snprintf(x->route, sizeof(x->route), "%.500s",
		       way_text(k, &k->have, have));
	(void)snprintf(x->open_way, sizeof(x->open_way), "%.500s",
		       way_text(k, &k->open, want));
	if (k->w->answer_fault.err)
		(void)snprintf(x->kernel, sizeof(x->kernel),
			       "cannot be asked: %.400s",
			       k->w->answer_fault.text);
	else if (a->refused)
		(void)snprintf(x->kernel, sizeof(x->kernel), "%s",
			       refusal(k));
	else
		(void)snprintf(x->kernel, sizeof(x->kernel), "%.500s",
			       way_text(k, &told, want));
	if (!k->w->answer_fault.err && !kernel_agrees(k))
		clash(x, "the kernel takes \"%.200s\", but its rules and "
		      "routes as listed come to \"%.200s\"", x->kernel, have);
	if (!same_way(&k->have, &k->wanted))
		clash(x, "routing: the kernel has \"%.200s\", the policy "
		      "wants \"%.200s\"", way_text(k, &k->have, have),
		      way_text(k, &k->wanted, want));
	find_thief(k);
	if (k->have.end == FIB_UNSURE)
		note(x, "the way is the kernel's word alone: a rule or table "
		     "cannot be evaluated here");
}

/* ---- the layers ---- */

static void set_layer_state(const struct work *k, const char *key,
			    struct explain_layer *l)
{
	const struct item_list *items = &k->w->killswitch_items;
	const struct item *it = item_list_find((struct item_list *)items,
					       key);

	l->wanted = it != NULL;
	l->stands = it && it->state == ITEM_IN_SYNC;
	if (!it)
		(void)snprintf(l->text, sizeof(l->text), "not wanted here");
	else if (l->stands)
		(void)snprintf(l->text, sizeof(l->text), "stands");
	else
		(void)snprintf(l->text, sizeof(l->text), "%s%s%.200s",
			       item_state_name(it->state),
			       *it->have || *it->reason ? ": " : "",
			       *it->reason ? it->reason : it->have);
}

static void append(char *text, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void append(char *text, const char *fmt, ...)
{
	size_t n = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text + n, EXPLAIN_TEXT_MAX - n, fmt, ap);
	va_end(ap);
}

static const char *does(const struct filter_result *v)
{
	switch (v->verdict) {
	case FILTER_PASS:
		return "passes";
	case FILTER_DROP:
		return "drops";
	case FILTER_UNSURE:
		break;
	}
	return "may do anything with";
}

static void tell_filter(struct explain_layer *l, const struct filter_result *v,
			const char *device)
{
	append(l->text, "; %s it on %s", does(v), device);
	if (v->rule)
		append(l->text, " (%.40s, rule %zu)", v->chain, v->number);
	else if (v->verdict == FILTER_PASS)
		append(l->text, " (no rule is for it)");
}

/* One table, one way out: as it stands, and as it should. */
static int try_filter(struct work *k, const char *device,
		      const struct packet_out *out, bool real,
		      struct explain_layer *l)
{
	const struct nft_view *view = k->w->killswitch->view;
	struct nft_table want = { 0 };
	struct filter_result have, wanted = { .verdict = FILTER_PASS };
	const struct nft_table *t;
	int r;

	r = killswitch_table(k->policy, device, &want);
	if (r < 0)
		return r;
	t = view ? nft_tables_find(&view->tables, want.family, want.name) :
		   NULL;
	filter_run(t, k->p, out, &have);
	if (l->wanted)
		filter_run(&want, k->p, out, &wanted);
	if (view)
		tell_filter(l, &have, out->name);
	if (view && have.verdict != wanted.verdict)
		clash(k->x, "%s: the kernel's table %s it on %s, the policy's "
		      "%s it", l->name, does(&have), out->name,
		      does(&wanted));
	if (real && have.verdict == FILTER_DROP && !k->by[0])
		(void)snprintf(k->by, sizeof(k->by),
			       "%s (%s, rule %zu of %.40s)", l->name,
			       have.base ? have.base : "", have.number,
			       have.chain ? have.chain : "");
	if (!device && real)
		k->allowed = wanted.verdict == FILTER_PASS;
	nft_table_done(&want);
	return 0;
}

static struct explain_layer *new_layer(struct work *k, const char *kind,
				       const char *device)
{
	struct explain_layer *l = &k->x->layers[k->x->n_layers++];

	(void)snprintf(l->name, sizeof(l->name), "%s%s%.15s", kind,
		       device ? " " : "", device ? device : "");
	return l;
}

static void routing_layer(struct work *k)
{
	struct explain_layer *l = new_layer(k, "routing", NULL);
	const struct item_list *items = &k->w->routing_items;
	char text[EXPLAIN_TEXT_MAX];
	size_t i, bad = 0;

	l->wanted = k->want.rules.n != 0;
	for (i = 0; i < items->n; i++)
		if (routing_key_steers(items->v[i].key) &&
		    items->v[i].state != ITEM_IN_SYNC && bad++ == 0)
			append(l->text, "%s: %.200s",
			       item_state_name(items->v[i].state),
			       items->v[i].key);
	l->stands = l->wanted && bad == 0;
	if (bad > 1)
		append(l->text, " and %zu more", bad - 1);
	if (bad == 0)
		append(l->text, l->wanted ? "stands" : "not wanted here");
	append(l->text, "; leads to %.200s", way_text(k, &k->have, text));
}

static int device_layer(struct work *k, const struct packet_out *out,
			bool real)
{
	char key[KILLSWITCH_KEY_MAX], name[64];
	struct explain_layer *l;

	if (!out->name[0] || strcmp(out->name, "lo") == 0)
		return 0;
	(void)snprintf(name, sizeof(name), KILLSWITCH_EGRESS_PREFIX "%s",
		       out->name);
	/* No table is ever for a tunnel. */
	if (out->bare && !item_list_find((struct item_list *)
						 &k->w->killswitch_items,
					 killswitch_key(NFPROTO_NETDEV, name,
							key)))
		return 0;
	l = new_layer(k, "netdev", out->name);
	set_layer_state(k, killswitch_key(NFPROTO_NETDEV, name, key), l);
	return l->wanted ? try_filter(k, out->name, out, real, l) : 0;
}

static int run_layers(struct work *k)
{
	bool other = strcmp(k->out.name, k->open_out.name) != 0;
	char key[KILLSWITCH_KEY_MAX];
	struct explain_layer *l;
	int r = 0;

	routing_layer(k);
	l = new_layer(k, "inet", NULL);
	set_layer_state(k, killswitch_key(NFPROTO_INET, KILLSWITCH_TABLE,
					  key), l);
	if (k->out.name[0])
		r = try_filter(k, NULL, &k->out, true, l);
	if (r == 0 && other && k->open_out.name[0])
		r = try_filter(k, NULL, &k->open_out, false, l);
	if (r == 0)
		r = device_layer(k, &k->out, true);
	if (r == 0 && other)
		r = device_layer(k, &k->open_out, false);
	return r;
}

/* ---- the verdict ---- */

static void say(struct work *k, enum explain_verdict v, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void say(struct work *k, enum explain_verdict v, const char *fmt, ...)
{
	va_list ap;

	k->x->verdict = v;
	va_start(ap, fmt);
	(void)vsnprintf(k->x->verdict_text, EXPLAIN_TEXT_MAX, fmt, ap);
	va_end(ap);
}

static bool into_a_tunnel(const struct work *k)
{
	size_t i;

	for (i = 0; i < k->policy->n_tunnels; i++)
		if (strcmp(k->policy->tunnels[i].name, k->out.name) == 0)
			return k->out.bare;
	return false;
}

static void conclude_way_out(struct work *k)
{
	const char *name = k->x->class_name, *device = k->out.name;

	if (k->by[0])
		say(k, EXPLAIN_DROPPED, "dropped by %s%s%s", k->by,
		    name[0] ? ", class " : "", name);
	else if (k->tunnel && strcmp(device, k->tunnel->name) == 0 &&
		 k->out.bare)
		say(k, EXPLAIN_TUNNEL, "leaves by tunnel %s, class %s",
		    device, name);
	else if (!k->class && into_a_tunnel(k))
		say(k, EXPLAIN_TUNNEL, "leaves by tunnel %s, no class",
		    device);
	else if (!k->class)
		say(k, EXPLAIN_INTERNET, "internet: no class; leaves by %s, "
		    "table %u", device, k->x->table);
	else if (k->allowed)
		say(k, EXPLAIN_ALLOWED, "leaves by %s, table %u, as class %s "
		    "may: %s", device, k->x->table, name,
		    k->own		? "the tunnel's own packet" :
		    k->x->special[0] ? k->x->special :
					  "link scope, neighbours or DHCP");
	else
		say(k, EXPLAIN_LEAKS, "LEAKS: leaves by %s, table %u, past "
		    "the tunnel of class %s", device, k->x->table, name);
}

static void conclude(struct work *k)
{
	const struct rtnl_answer *a = &k->w->answer;
	const char *name = k->x->class_name;

	if (k->w->unsure)
		note(k->x, "the armed record cannot be read: other classes "
		     "may be closed too");
	if (!k->w->killswitch->view && k->policy->n_classes)
		note(k->x, "nftables cannot be read: %s",
		     k->w->killswitch->tables_fault.text);
	if (k->w->answer_fault.err)
		say(k, EXPLAIN_UNKNOWN, "unknown: the kernel cannot be asked: "
		    "%.300s", k->w->answer_fault.text);
	else if (a->refused)
		say(k, EXPLAIN_UNREACHABLE, "unreachable: %s%s%s", refusal(k),
		    name[0] ? ", class " : ", no class", name);
	else if (a->route.type == RTN_LOCAL)
		say(k, EXPLAIN_HERE, "for this node itself%s%s",
		    name[0] ? ", class " : ", no class", name);
	else if (!k->out.name[0])
		say(k, EXPLAIN_UNKNOWN, "unknown: the route names no single "
		    "device");
	else
		conclude_way_out(k);
	if (k->x->verdict == EXPLAIN_LEAKS)
		clash(k->x, "%s", k->x->verdict_text);
}

int explain_conclude(const struct explain_world *w, const struct packet *p,
		     struct explanation *ret)
{
	struct explanation x = { 0 };
	struct work k = { .w = w, .p = p, .x = &x,
			  .policy = &w->policy.d->egress };
	int r;

	find_class(&k);
	find_special(&k);
	if (w->chosen_src)
		note(&x, "the source is the one the kernel chooses");
	if (w->guessed_in)
		note(&x, "the source is not this node's: taken to come in by "
		     "%s, which leads back to it (--in)", p->in);
	r = run_ways(&k);
	if (r == 0) {
		tell_ways(&k);
		r = run_layers(&k);
	}
	if (r == 0) {
		conclude(&k);
		*ret = x;
	}
	routing_want_done(&k.want);
	free(k.want_rules.v);
	free(k.want_routes.v);
	free(k.open_rules.v);
	free(k.open_routes.v);
	return r;
}
