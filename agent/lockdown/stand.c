#include "agent/lockdown/stand.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lockdown/tables.h"
#include "agent/nl/nft.h"
#include "agent/nl/rtnl.h"
#include "agent/res/killswitch_tables.h"
#include "agent/res/routing_want.h"
#include "common/log.h"

struct stand {
	const struct policy *policy;
	struct nl_sock *nft, *route;
	struct nft_view *view;		/* NULL: not readable */
	struct rtnl_links links;
	bool probed;
	int first;			/* the first failure */
};

static void failed(struct stand *s, int r)
{
	if (s->first == 0)
		s->first = r;
}

/* ---- nftables ---- */

static int commit(struct stand *s, struct nft_table *t, uint32_t flags,
		  struct fault *f)
{
	struct nft_batch b;
	int r;

	/* Absent, orphan or plain: made, deleted and made as it shall be. */
	nft_batch_init(&b);
	t->flags = flags;
	nft_batch_add_table(&b, t->family, t->name, flags);
	nft_batch_delete_table(&b, t->family, t->name);
	nft_batch_fill_table(&b, t);
	r = nft_batch_commit(&b, s->nft, f);
	nft_batch_done(&b);
	return r;
}

/* 1: nothing had to be done. -EPERM: another process owns the table. */
static int put_table(struct stand *s, struct nft_table *t, struct fault *f)
{
	char text[NFT_MODEL_TEXT_MAX] = "";
	const struct nft_table *have = NULL;
	struct fault first = FAULT_INIT;
	int r;

	if (s->view)
		have = nft_tables_find(&s->view->tables, t->family, t->name);
	if (have && nft_table_same(have, t, text))
		return 1;
	r = commit(s, t, NFT_TABLE_OWNED, &first);
	/* A kernel without owners, or a plain table: plain then (S1). */
	if (r == -EOPNOTSUPP)
		return commit(s, t, 0, f);
	if (r < 0)
		(void)fault_set(f, r, first.object, "%s", first.text);
	return r;
}

/* Says once what exactly the kernel does not take. */
static void name_refused(struct stand *s)
{
	const char *name;
	unsigned int i;

	for (i = 0; !s->probed; i++) {
		struct fault f = FAULT_INIT;
		struct nft_table t;
		struct nft_batch b;

		if (tables_probe(i, &t, &name) < 0)
			break;
		nft_batch_init(&b);
		nft_batch_fill_table(&b, &t);
		nft_batch_delete_table(&b, t.family, t.name);
		if (nft_batch_commit(&b, s->nft, &f) < 0)
			log_error("the kernel refuses the nftables "
				  "expression %s: %s", name, f.text);
		nft_batch_done(&b);
		nft_table_done(&t);
	}
	s->probed = true;
}

static int try_form(struct stand *s, const char *device,
		    enum tables_form form, size_t *ret_left, struct fault *f)
{
	struct nft_table t;
	int r = tables_make(&s->policy->d->egress, device, form, &t, ret_left);

	if (r < 0)
		return fault_errno(f, r, device ? device : "inet", "build");
	r = put_table(s, &t, f);
	nft_table_done(&t);
	return r;
}

static void tell(const char *device, enum tables_form form, int r, size_t left)
{
	const char *where = device ? device : "inet";

	if (form == TABLES_FULL)
		log_info("%s: %s", where,
			 r > 0 ? "closed already" : "closed");
	else
		log_warning("%s: closed in the %s form: a class may not even "
			    "use its tunnel or reach local prefixes", where,
			    tables_form_name(form));
	if (left)
		log_error("%s: no room for %zu prefixes, which stay open "
			  "there", where, left);
}

static void close_at(struct stand *s, const char *device)
{
	const char *where = device ? device : "inet";
	unsigned int form;
	int r = 0;

	for (form = TABLES_FULL; form < TABLES_FORMS; form++) {
		struct fault f = FAULT_INIT;
		size_t left = 0;

		r = try_form(s, device, (enum tables_form)form, &left, &f);
		if (r >= 0) {
			tell(device, (enum tables_form)form, r, left);
			if (form != TABLES_FULL || left)
				failed(s, -EOPNOTSUPP);
			return;
		}
		if (r == -EPERM) {	/* it stands, as the agent has it */
			log_info("%s: a running agent owns it", where);
			return;
		}
		log_error("%s: the %s form is refused: %s", where,
			  tables_form_name((enum tables_form)form), f.text);
		name_refused(s);
	}
	failed(s, r);
}

static bool is_there(const struct rtnl_links *links, const char *name)
{
	size_t i;

	for (i = 0; i < links->n; i++)
		if (strcmp(links->v[i].name, name) == 0)
			return true;
	return false;
}

/* Named uplinks, and the hardware ones where a policy leaves it to us. */
static int find_uplinks(struct stand *s, struct strlist *ret_names)
{
	struct desired_egress *e = &s->policy->d->egress;
	struct strlist named = e->uplinks, names = STRLIST_INIT;
	size_t i;
	int r = 0;

	if (s->policy->automatic) {
		e->uplinks = STRLIST_INIT;
		r = killswitch_uplinks(e, &s->links, &names);
		e->uplinks = named;
	}
	for (i = 0; i < named.n && r == 0; i++)
		if (!strlist_has(&names, named.v[i]))
			r = strlist_add(&names, named.v[i]);
	if (r < 0)
		strlist_done(&names);
	else
		*ret_names = names;
	return r;
}

static void close_uplinks(struct stand *s)
{
	struct strlist names = STRLIST_INIT;
	struct fault f = FAULT_INIT;
	size_t i;
	int r = rtnl_link_dump(s->route, &s->links, &f);

	if (r < 0)
		log_error("the devices cannot be listed: %s", f.text);
	else
		r = find_uplinks(s, &names);
	if (r < 0)
		failed(s, r);
	for (i = 0; i < names.n; i++) {
		if (is_there(&s->links, names.v[i]))
			close_at(s, names.v[i]);
		else
			log_notice("%s: not there yet: the agent closes it "
				   "when it comes", names.v[i]);
	}
	strlist_done(&names);
}

static void close_tables(struct stand *s)
{
	struct fault f = FAULT_INIT;
	int r = nl_sock_open(NETLINK_NETFILTER, &s->nft, &f);

	if (r < 0) {
		log_error("nftables: %s", f.text);
		failed(s, r);
		return;
	}
	/* What is there already is left alone, its counters with it. */
	(void)nft_read(s->nft, killswitch_is_ours, &s->view, &f);
	close_at(s, NULL);
	if (s->route)
		close_uplinks(s);
}

/* ---- routing ---- */

static void put_routes(struct stand *s, const struct routing_want *w)
{
	size_t i, bad = 0;
	int r;

	/* The last resort of a table before anything leads there (RT-03). */
	for (i = 0; i < w->routes.n; i++) {
		struct fault f = FAULT_INIT;

		r = rtnl_route_add(s->route, &w->routes.v[i], &f);
		if (r == 0 || r == -EEXIST)
			continue;
		if (bad++ == 0)
			log_error("table %u: %s", w->routes.v[i].table,
				  f.text);
		failed(s, r);
	}
	for (i = 0; i < w->rules.n; i++) {
		struct fault f = FAULT_INIT;

		r = rtnl_rule_add(s->route, &w->rules.v[i], &f);
		if (r == 0 || r == -EEXIST)
			continue;
		if (bad++ == 0)
			log_error("rule %u: %s", w->rules.v[i].priority,
				  f.text);
		failed(s, r);
	}
	log_info("routing: %zu rules, %zu routes%s", w->rules.n, w->routes.n,
		 bad ? ", not all of them" : "");
}

static void steer(struct stand *s)
{
	struct routing_seen *seen = calloc(1, sizeof(*seen));
	struct routing_want want = { 0 };
	int r = -ENOMEM;

	if (seen) {
		/* No IPv6 is no reason to leave out IPv4 (KS-03). */
		seen->ipv6 = access("/proc/net/if_inet6", F_OK) == 0;
		r = routing_want(&s->policy->d->egress, seen,
				 &s->policy->addresses, &want);
	}
	free(seen);
	if (r < 0) {
		log_error("routing: what is wanted cannot be told (%d)", r);
		failed(s, r);
		return;
	}
	if (want.rules.n || want.routes.n)
		put_routes(s, &want);
	routing_want_done(&want);
}

int stand(const struct policy *p)
{
	struct stand s = { .policy = p };
	struct fault f = FAULT_INIT;
	int r = nl_sock_open(NETLINK_ROUTE, &s.route, &f);

	if (r < 0) {
		log_error("routing: %s", f.text);
		failed(&s, r);
	}
	close_tables(&s);
	if (s.route)
		steer(&s);
	s.view = nft_view_unref(s.view);
	free(s.links.v);
	(void)nl_sock_free(s.nft);
	(void)nl_sock_free(s.route);
	return s.first;
}
