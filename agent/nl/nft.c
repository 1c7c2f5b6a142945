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

/* One reading of the ruleset, of which all parts must be of one age. */
struct reading {
	struct nl_sock *sock;
	bool (*ours)(const struct nft_table *head);
	struct nft_tables tables;
	struct nft_table *table;	/* whose rules, sets are listed */
	struct nft_bounds bounds;
	bool aged;			/* `generation` is known */
	uint16_t generation;
	bool torn;
	struct fault *fault;
};

static void check_age(struct reading *rd, const struct nlmsghdr *nlh)
{
	uint16_t generation = nft_msg_generation(nlh);

	if (rd->aged && generation != rd->generation)
		rd->torn = true;
	rd->aged = true;
	rd->generation = generation;
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

static int read_table(struct reading *rd, struct nft_table *t)
{
	size_t i;
	int r;

	rd->table = t;
	r = dump(rd, NFT_MSG_GETRULE, t->family, t->name, NULL, on_rule);
	if (r == 0)
		r = dump(rd, NFT_MSG_GETSET, t->family, t->name, NULL,
			 on_set);
	for (i = 0; i < t->n_sets && r == 0; i++)
		r = read_set(rd, &t->sets[i]);
	return r;
}

static bool has_family(const struct reading *rd, uint8_t family)
{
	size_t i;

	for (i = 0; i < rd->tables.n; i++)
		if (rd->tables.v[i].family == family)
			return true;
	return false;
}

static int read_all(struct reading *rd)
{
	static const uint8_t families[] = { NFPROTO_INET, NFPROTO_NETDEV };
	size_t i;
	int r;

	r = dump(rd, NFT_MSG_GETTABLE, NFPROTO_UNSPEC, NULL, NULL, on_table);
	for (i = 0; i < sizeof(families) && r == 0; i++)
		if (has_family(rd, families[i]))
			r = dump(rd, NFT_MSG_GETCHAIN, families[i], NULL,
				 NULL, on_chain);
	for (i = 0; i < rd->tables.n && r == 0; i++)
		r = read_table(rd, &rd->tables.v[i]);
	return r;
}

int nft_read(struct nl_sock *s, bool (*ours)(const struct nft_table *head),
	     struct nft_tables *tables, struct fault *f)
{
	struct reading rd = { .sock = s, .ours = ours };
	struct fault own = FAULT_INIT;
	int attempt, r = -EAGAIN;

	rd.fault = &own;
	for (attempt = 0; attempt < READ_ATTEMPTS; attempt++) {
		fault_clear(&own);
		nft_tables_done(&rd.tables);
		rd.aged = rd.torn = false;
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
	if (r < 0) {
		nft_tables_done(&rd.tables);
		return fault_set(f, r, "nftables", "listing: %s",
				 r == -EAGAIN ? "it keeps changing" : own.text);
	}
	nft_tables_done(tables);
	*tables = rd.tables;
	return 0;
}
