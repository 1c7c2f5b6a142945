#include "agent/nl/nft.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define READ_ATTEMPTS 5
#define REQUEST_MAX 512

void nft_tables_done(struct nft_tables *t)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		nft_table_done(&t->v[i]);
	free(t->v);
	*t = (struct nft_tables){ 0 };
}

struct nft_table *nft_tables_find(const struct nft_tables *t, uint8_t family,
				  const char *name)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->v[i].family == family &&
		    strcmp(t->v[i].name, name) == 0)
			return &t->v[i];
	return NULL;
}

struct nft_view *nft_view_ref(struct nft_view *v)
{
	v->refs++;
	return v;
}

struct nft_view *nft_view_unref(struct nft_view *v)
{
	if (v && --v->refs == 0) {
		nft_tables_done(&v->tables);
		free(v);
	}
	return NULL;
}

/* One reading of the ruleset, of which all parts must be of one age. */
struct reading {
	struct nl_sock *sock;
	bool (*ours)(const struct nft_table *head);
	struct nft_tables tables;
	struct nft_table *table;	/* whose rules, sets are listed */
	struct nft_bounds bounds;
	struct nft_gen gen;		/* when it began */
	bool torn;
	struct fault *fault;
};

static void check_age(struct reading *rd, const struct nlmsghdr *nlh)
{
	if (nft_msg_generation(nlh) != (rd->gen.id & 0xffff))
		rd->torn = true;
}

static int on_table(const struct nlmsghdr *nlh, void *userdata)
{
	struct reading *rd = userdata;
	struct nft_table head, *v;
	int r;

	check_age(rd, nlh);
	r = nft_table_decode(nlh, &head);
	if (r < 0 || !rd->ours(&head))
		return r;
	if (rd->tables.n >= NFT_TABLES_MAX)
		return -E2BIG;
	v = reallocarray(rd->tables.v, rd->tables.n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	rd->tables.v = v;
	v[rd->tables.n++] = head;
	return 0;
}

static int on_chain(const struct nlmsghdr *nlh, void *userdata)
{
	struct reading *rd = userdata;
	size_t i;
	int r = 0;

	check_age(rd, nlh);
	for (i = 0; i < rd->tables.n && r == 0; i++)
		r = nft_chain_decode(nlh, &rd->tables.v[i]);
	return r;
}

static int on_rule(const struct nlmsghdr *nlh, void *userdata)
{
	struct reading *rd = userdata;

	check_age(rd, nlh);
	return nft_rule_decode(nlh, rd->table);
}

static int on_set(const struct nlmsghdr *nlh, void *userdata)
{
	struct reading *rd = userdata;

	check_age(rd, nlh);
	return nft_set_decode(nlh, rd->table);
}

static int on_elems(const struct nlmsghdr *nlh, void *userdata)
{
	struct reading *rd = userdata;

	check_age(rd, nlh);
	return nft_bounds_decode(nlh, &rd->bounds);
}

/*
 * A dump of one kind. Nothing is collected twice: an interrupted one marks
 * the reading torn, and all of it begins again.
 */
static void torn(void *userdata)
{
	struct reading *rd = userdata;

	rd->torn = true;
}

static int dump(struct reading *rd, uint16_t type, uint8_t family,
		const char *table, const char *set, nl_handler handler)
{
	alignas(struct nlmsghdr) unsigned char buf[REQUEST_MAX];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *h;

	nlh->nlmsg_type = (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type);
	h = mnl_nlmsg_put_extra_header(nlh, sizeof(*h));
	h->nfgen_family = family;
	h->version = NFNETLINK_V0;
	/* Table is attribute 1 and set attribute 2 in all of these. */
	if (table)
		mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_TABLE, table);
	if (set)
		mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_SET, set);
	return nl_sock_dump(rd->sock, nlh, handler, torn, rd, rd->fault);
}

static int read_set(struct reading *rd, struct nft_set *s)
{
	int r;

	rd->bounds.n = 0;
	rd->bounds.odd = false;
	if (s->odd || !s->name[0] || !s->family)
		return 0;
	r = dump(rd, NFT_MSG_GETSETELEM, rd->table->family, rd->table->name,
		 s->name, on_elems);
	return r < 0 ? r : nft_bounds_join(&rd->bounds, s);
}

static int read_sets(struct reading *rd, struct nft_table *t)
{
	size_t i;
	int r = dump(rd, NFT_MSG_GETSET, t->family, t->name, NULL, on_set);

	for (i = 0; i < t->n_sets && r == 0; i++)
		r = read_set(rd, &t->sets[i]);
	return r;
}

static int read_table(struct reading *rd, struct nft_table *t)
{
	int r;

	rd->table = t;
	r = dump(rd, NFT_MSG_GETRULE, t->family, t->name, NULL, on_rule);
	return r < 0 ? r : read_sets(rd, t);
}

static int on_gen(const struct nlmsghdr *nlh, void *userdata)
{
	struct reading *rd = userdata;

	if ((nlh->nlmsg_type & 0xff) != NFT_MSG_NEWGEN)
		return 0;
	return nft_gen_decode(nlh, &rd->gen);
}

static int read_generation(struct reading *rd)
{
	alignas(struct nlmsghdr) unsigned char buf[REQUEST_MAX];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *h;

	nlh->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETGEN;
	h = mnl_nlmsg_put_extra_header(nlh, sizeof(*h));
	h->version = NFNETLINK_V0;
	rd->gen = (struct nft_gen){ 0 };
	return nl_sock_request(rd->sock, nlh, on_gen, rd, rd->fault);
}

static bool has_family(const struct reading *rd, uint8_t family)
{
	size_t i;

	for (i = 0; i < rd->tables.n; i++)
		if (rd->tables.v[i].family == family)
			return true;
	return false;
}

/* Tables and chains: all that changes without a new generation. */
static int read_heads(struct reading *rd)
{
	static const uint8_t families[] = { NFPROTO_INET, NFPROTO_NETDEV };
	size_t i;
	int r = read_generation(rd);

	if (r == 0)
		r = dump(rd, NFT_MSG_GETTABLE, NFPROTO_UNSPEC, NULL, NULL,
			 on_table);
	for (i = 0; i < sizeof(families) && r == 0; i++)
		if (has_family(rd, families[i]))
			r = dump(rd, NFT_MSG_GETCHAIN, families[i], NULL,
				 NULL, on_chain);
	return r;
}

static int read_all(struct reading *rd)
{
	size_t i;
	int r = read_heads(rd);

	for (i = 0; i < rd->tables.n && r == 0; i++)
		r = read_table(rd, &rd->tables.v[i]);
	return r;
}

static int make_view(struct reading *rd, struct nft_view **ret_view)
{
	struct nft_view *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	v->refs = 1;
	v->generation = rd->gen.id;
	v->tables = rd->tables;
	rd->tables = (struct nft_tables){ 0 };
	*ret_view = v;
	return 0;
}

int nft_read(struct nl_sock *s, bool (*ours)(const struct nft_table *head),
	     struct nft_view **ret_view, struct fault *f)
{
	struct reading rd = { .sock = s, .ours = ours };
	struct fault own = FAULT_INIT;
	int attempt, r = -EAGAIN;

	rd.fault = &own;
	for (attempt = 0; attempt < READ_ATTEMPTS; attempt++) {
		fault_clear(&own);
		nft_tables_done(&rd.tables);
		rd.torn = false;
		r = read_all(&rd);
		/* What is listed may have gone meanwhile: -ENOENT. */
		if (r == -ENOENT)
			rd.torn = true;
		else if (r < 0 && r != -EAGAIN)
			break;
		if (!rd.torn && r == 0)
			break;
		r = -EAGAIN;
	}
	free(rd.bounds.v);
	if (r == 0)
		r = make_view(&rd, ret_view);
	nft_tables_done(&rd.tables);
	if (r == -EAGAIN)
		return fault_set(f, r, "nftables",
				 "listing: it keeps changing");
	return r < 0 ? fault_set(f, r, "nftables", "listing: %s", own.text) :
		       0;
}

static bool same_chain(const struct nft_chain *a, const struct nft_chain *b)
{
	return strcmp(a->name, b->name) == 0 && a->base == b->base &&
	       strcmp(a->type, b->type) == 0 && a->hook == b->hook &&
	       a->priority == b->priority && a->policy == b->policy &&
	       strcmp(a->device, b->device) == 0 && a->odd == b->odd;
}

static bool same_head(const struct nft_table *a, const struct nft_table *b)
{
	size_t i;

	if (a->family != b->family || strcmp(a->name, b->name) != 0 ||
	    a->flags != b->flags || a->owner != b->owner || a->use != b->use ||
	    a->n_chains != b->n_chains)
		return false;
	for (i = 0; i < a->n_chains; i++)
		if (!same_chain(&a->chains[i], &b->chains[i]))
			return false;
	return true;
}

static bool same_heads(const struct reading *rd, const struct nft_view *last)
{
	size_t i;

	if (rd->torn || rd->gen.id != last->generation ||
	    rd->tables.n != last->tables.n)
		return false;
	for (i = 0; i < rd->tables.n; i++)
		if (!same_head(&rd->tables.v[i], &last->tables.v[i]))
			return false;
	return true;
}

int nft_look(struct nl_sock *s, bool (*ours)(const struct nft_table *head),
	     struct nft_view *last, struct nft_view **ret_view,
	     struct fault *f)
{
	struct fault own = FAULT_INIT;
	struct reading rd = { .sock = s, .ours = ours, .fault = &own };
	bool same;

	if (!last)
		return nft_read(s, ours, ret_view, f);
	same = read_heads(&rd) == 0 && same_heads(&rd, last);
	nft_tables_done(&rd.tables);
	if (!same)
		return nft_read(s, ours, ret_view, f);
	*ret_view = nft_view_ref(last);
	return 0;
}

/* ---- one table ---- */

static bool any(const struct nft_table *head)
{
	(void)head;
	return true;
}

/* The first message says of which generation all others must be. */
static int on_head(const struct nlmsghdr *nlh, void *userdata)
{
	struct reading *rd = userdata;

	if ((nlh->nlmsg_type & 0xff) != NFT_MSG_NEWTABLE)
		return 0;
	rd->gen.id = nft_msg_generation(nlh);
	return on_table(nlh, userdata);
}

static int read_head(struct reading *rd, uint8_t family, const char *name)
{
	alignas(struct nlmsghdr) unsigned char buf[REQUEST_MAX];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *h;

	nlh->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETTABLE;
	h = mnl_nlmsg_put_extra_header(nlh, sizeof(*h));
	h->nfgen_family = family;
	h->version = NFNETLINK_V0;
	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, name);
	return nl_sock_request(rd->sock, nlh, on_head, rd, rd->fault);
}

/* Whether all chains of `old` are there, with the rules they had. */
static bool same_rules(const struct nft_table *t, const struct nft_table *old)
{
	size_t i, j;

	for (i = 0; i < old->n_chains; i++) {
		const struct nft_chain *x = &old->chains[i];
		const struct nft_chain *y = nft_table_find_chain(t, x->name);

		if (!y || x->n_rules != y->n_rules)
			return false;
		for (j = 0; j < x->n_rules; j++)
			if (!nft_rule_equal(&x->rules[j], &y->rules[j]))
				return false;
	}
	return true;
}

/* Sets are not needed to tell it from `old` where rules tell it. */
static int read_again(struct reading *rd, const struct nft_table *old)
{
	struct nft_table *t;
	int r = read_head(rd, old->family, old->name);

	if (r < 0 || rd->tables.n != 1)
		return r < 0 ? r : -EBADMSG;
	t = rd->table = &rd->tables.v[0];
	r = dump(rd, NFT_MSG_GETCHAIN, t->family, NULL, NULL, on_chain);
	if (r == 0)
		r = dump(rd, NFT_MSG_GETRULE, t->family, t->name, NULL,
			 on_rule);
	if (r < 0 || !same_rules(t, old))
		return r;
	return read_sets(rd, t);
}

int nft_glance(struct nl_sock *s, struct nft_view *view, uint8_t family,
	       const char *name)
{
	struct nft_table *old = nft_tables_find(&view->tables, family, name);
	struct fault own = FAULT_INIT;
	struct reading rd = { .sock = s, .ours = any, .fault = &own };
	int r = old ? read_again(&rd, old) : -EAGAIN;

	view->generation = 0;
	free(rd.bounds.v);
	if (r == -ENOENT && rd.tables.n == 0) {
		nft_table_done(old);
		*old = view->tables.v[--view->tables.n];
		return 0;
	}
	if (r == 0 && rd.torn)
		r = -EAGAIN;
	if (r < 0) {
		nft_tables_done(&rd.tables);
		return r;
	}
	nft_table_done(old);
	*old = rd.tables.v[0];
	free(rd.tables.v);
	return 0;
}
