#include "agent/nl/nft_batch.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/nl/nft_expr.h"

/*
 * libnftnl writes without looking at the room left, so every message gets
 * more than any of ours can need: a set message holds at most ELEMS bounds
 * of at most 48 bytes, below the 64 KiB of one attribute.
 */
#define MESSAGE_ROOM 65536u
#define ELEMS 1024
#define BUFFER_STEP (4 * MESSAGE_ROOM)

/* Data types as nft(8) numbers them, for its listing only. */
#define TYPE_IPV4_ADDR 7
#define TYPE_IPV6_ADDR 8

void nft_batch_init(struct nft_batch *b)
{
	*b = (struct nft_batch){ 0 };
}

void nft_batch_done(struct nft_batch *b)
{
	free(b->buf);
	nft_batch_init(b);
}

/* Room for one message, or NULL with b->err set. */
static void *message_room(struct nft_batch *b)
{
	unsigned char *bigger;

	if (b->err < 0)
		return NULL;
	if (b->size + MESSAGE_ROOM > b->room) {
		if (b->room + BUFFER_STEP > NFT_BATCH_SIZE_MAX) {
			b->err = -E2BIG;
			return NULL;
		}
		bigger = realloc(b->buf, b->room + BUFFER_STEP);
		if (!bigger) {
			b->err = -ENOMEM;
			return NULL;
		}
		b->buf = bigger;
		b->room += BUFFER_STEP;
	}
	return b->buf + b->size;
}

static void message_end(struct nft_batch *b, const struct nlmsghdr *nlh)
{
	b->last = b->size;
	b->size += nlh->nlmsg_len;
	b->n++;
}

/* The sequence number is the position, until the commit adds its base. */
static struct nlmsghdr *message(struct nft_batch *b, uint16_t type,
				uint8_t family, uint16_t flags)
{
	void *at;

	if (b->n == 0 && b->err == 0) {
		at = message_room(b);
		if (!at)
			return NULL;
		message_end(b, nftnl_batch_begin(at, 0));
	}
	at = message_room(b);
	return at ? nftnl_nlmsg_build_hdr(at, type, family, flags, b->n) :
		    NULL;
}

static void table_message(struct nft_batch *b, uint16_t type, uint16_t flags,
			  uint8_t family, const char *name,
			  const uint32_t *table_flags)
{
	struct nlmsghdr *nlh = message(b, type, family, flags);
	struct nftnl_table *t;

	if (!nlh)
		return;
	t = nftnl_table_alloc();
	if (!t || nftnl_table_set_str(t, NFTNL_TABLE_NAME, name) < 0) {
		b->err = -ENOMEM;
	} else {
		if (table_flags)
			nftnl_table_set_u32(t, NFTNL_TABLE_FLAGS,
					    *table_flags);
		nftnl_table_nlmsg_build_payload(nlh, t);
		message_end(b, nlh);
	}
	if (t)
		nftnl_table_free(t);
}

void nft_batch_add_table(struct nft_batch *b, uint8_t family,
			 const char *name, uint32_t flags)
{
	table_message(b, NFT_MSG_NEWTABLE, NLM_F_CREATE, family, name,
		      &flags);
}

void nft_batch_delete_table(struct nft_batch *b, uint8_t family,
			    const char *name)
{
	table_message(b, NFT_MSG_DELTABLE, 0, family, name, NULL);
}

static int chain_fill(struct nftnl_chain *nc, const struct nft_table *t,
		      const struct nft_chain *c)
{
	if (nftnl_chain_set_str(nc, NFTNL_CHAIN_TABLE, t->name) < 0 ||
	    nftnl_chain_set_str(nc, NFTNL_CHAIN_NAME, c->name) < 0)
		return -ENOMEM;
	if (!c->base)
		return 0;
	if (nftnl_chain_set_str(nc, NFTNL_CHAIN_TYPE, c->type) < 0 ||
	    (c->device[0] &&
	     nftnl_chain_set_str(nc, NFTNL_CHAIN_DEV, c->device) < 0))
		return -ENOMEM;
	nftnl_chain_set_u32(nc, NFTNL_CHAIN_HOOKNUM, c->hook);
	nftnl_chain_set_s32(nc, NFTNL_CHAIN_PRIO, c->priority);
	nftnl_chain_set_u32(nc, NFTNL_CHAIN_POLICY, c->policy);
	return 0;
}

static void add_chain(struct nft_batch *b, const struct nft_table *t,
		      const struct nft_chain *c)
{
	struct nlmsghdr *nlh = message(b, NFT_MSG_NEWCHAIN, t->family,
				       NLM_F_CREATE);
	struct nftnl_chain *nc;

	if (!nlh)
		return;
	nc = nftnl_chain_alloc();
	b->err = nc ? chain_fill(nc, t, c) : -ENOMEM;
	if (b->err == 0) {
		nftnl_chain_nlmsg_build_payload(nlh, nc);
		message_end(b, nlh);
	}
	if (nc)
		nftnl_chain_free(nc);
}

static int rule_fill(struct nftnl_rule *nr, const struct nft_table *t,
		     const struct nft_chain *c, const struct nft_rule *r)
{
	if (nftnl_rule_set_str(nr, NFTNL_RULE_TABLE, t->name) < 0 ||
	    nftnl_rule_set_str(nr, NFTNL_RULE_CHAIN, c->name) < 0)
		return -ENOMEM;
	return nft_exprs_encode(r, nr);
}

static void add_rule(struct nft_batch *b, const struct nft_table *t,
		     const struct nft_chain *c, const struct nft_rule *r)
{
	struct nlmsghdr *nlh = message(b, NFT_MSG_NEWRULE, t->family,
				       NLM_F_CREATE | NLM_F_APPEND);
	struct nftnl_rule *nr;

	if (!nlh)
		return;
	nr = nftnl_rule_alloc();
	b->err = nr ? rule_fill(nr, t, c, r) : -ENOMEM;
	if (b->err == 0) {
		nftnl_rule_nlmsg_build_payload(nlh, nr);
		message_end(b, nlh);
	}
	if (nr)
		nftnl_rule_free(nr);
}

static struct nftnl_set *new_set(const struct nft_table *t,
				 const struct nft_set *s, uint32_t id)
{
	struct nftnl_set *ns = nftnl_set_alloc();

	if (!ns)
		return NULL;
	if (nftnl_set_set_str(ns, NFTNL_SET_TABLE, t->name) < 0 ||
	    nftnl_set_set_str(ns, NFTNL_SET_NAME, s->name) < 0) {
		nftnl_set_free(ns);
		return NULL;
	}
	nftnl_set_set_u32(ns, NFTNL_SET_ID, id);
	return ns;
}

static void add_set(struct nft_batch *b, const struct nft_table *t,
		    const struct nft_set *s, uint32_t id)
{
	struct nlmsghdr *nlh = message(b, NFT_MSG_NEWSET, t->family,
				       NLM_F_CREATE);
	bool v6 = s->family == AF_INET6;
	struct nftnl_set *ns;

	if (!nlh)
		return;
	ns = new_set(t, s, id);
	if (!ns) {
		b->err = -ENOMEM;
		return;
	}
	nftnl_set_set_u32(ns, NFTNL_SET_FAMILY, t->family);
	nftnl_set_set_u32(ns, NFTNL_SET_KEY_TYPE,
			  v6 ? TYPE_IPV6_ADDR : TYPE_IPV4_ADDR);
	nftnl_set_set_u32(ns, NFTNL_SET_KEY_LEN, v6 ? 16 : 4);
	nftnl_set_set_u32(ns, NFTNL_SET_FLAGS,
			  NFT_SET_INTERVAL | NFT_SET_CONSTANT);
	nftnl_set_nlmsg_build_payload(nlh, ns);
	message_end(b, nlh);
	nftnl_set_free(ns);
}

static int add_bound(struct nftnl_set *ns, const uint8_t *key, uint32_t len,
		     bool end)
{
	struct nftnl_set_elem *e = nftnl_set_elem_alloc();

	if (!e)
		return -ENOMEM;
	if (nftnl_set_elem_set(e, NFTNL_SET_ELEM_KEY, key, len) < 0) {
		nftnl_set_elem_free(e);
		return -ENOMEM;
	}
	if (end)
		nftnl_set_elem_set_u32(e, NFTNL_SET_ELEM_FLAGS,
				       NFT_SET_ELEM_INTERVAL_END);
	nftnl_set_elem_add(ns, e);
	return 0;
}

/* The address behind a range; false behind the last address there is. */
static bool behind(const uint8_t *to, uint32_t len, uint8_t *ret_key)
{
	uint32_t i = len;

	(void)memcpy(ret_key, to, len);
	while (i-- > 0)
		if (++ret_key[i] != 0)
			return true;
	return false;
}

static int fill_elems(struct nftnl_set *ns, const struct nft_set *s,
		      size_t first, size_t count)
{
	uint32_t len = s->family == AF_INET6 ? 16 : 4;
	uint8_t key[16];
	size_t i;
	int r = 0;

	for (i = first; i < first + count && r == 0; i++) {
		r = add_bound(ns, s->v[i].from, len, false);
		if (r == 0 && behind(s->v[i].to, len, key))
			r = add_bound(ns, key, len, true);
	}
	return r;
}

static void add_elems(struct nft_batch *b, const struct nft_table *t,
		      const struct nft_set *s, uint32_t id, size_t first,
		      size_t count)
{
	struct nlmsghdr *nlh = message(b, NFT_MSG_NEWSETELEM, t->family,
				       NLM_F_CREATE);
	struct nftnl_set *ns;

	if (!nlh)
		return;
	ns = new_set(t, s, id);
	b->err = ns ? fill_elems(ns, s, first, count) : -ENOMEM;
	if (b->err == 0) {
		nftnl_set_elems_nlmsg_build_payload(nlh, ns);
		message_end(b, nlh);
	}
	if (ns)
		nftnl_set_free(ns);
}

void nft_batch_fill_table(struct nft_batch *b, const struct nft_table *t)
{
	size_t i, j;

	nft_batch_add_table(b, t->family, t->name, t->flags);
	for (i = 0; i < t->n_sets; i++) {
		const struct nft_set *s = &t->sets[i];

		/* Ids tell new sets of one batch apart. */
		add_set(b, t, s, b->n);
		for (j = 0; j < s->n; j += ELEMS / 2)
			add_elems(b, t, s, b->n - 1, j,
				  s->n - j < ELEMS / 2 ? s->n - j : ELEMS / 2);
	}
	for (i = 0; i < t->n_chains; i++)
		add_chain(b, t, &t->chains[i]);
	for (i = 0; i < t->n_chains; i++)
		for (j = 0; j < t->chains[i].n_rules; j++)
			add_rule(b, t, &t->chains[i], &t->chains[i].rules[j]);
}

static void number(struct nft_batch *b, uint32_t first)
{
	size_t at = 0;

	while (at < b->size) {
		struct nlmsghdr *nlh = (void *)(b->buf + at);

		nlh->nlmsg_seq += first;
		at += nlh->nlmsg_len;
	}
}

int nft_batch_commit(struct nft_batch *b, struct nl_sock *s, struct fault *f)
{
	struct nlmsghdr *last;
	uint32_t first, n;
	void *at;

	if (b->err < 0)
		return fault_errno(f, b->err, "nftables", "build");
	if (b->n == 0)
		return 0;
	at = message_room(b);
	if (!at)
		return fault_errno(f, b->err, "nftables", "build");
	last = (void *)(b->buf + b->last);
	last->nlmsg_flags |= NLM_F_ACK;
	n = b->n;
	message_end(b, nftnl_batch_end(at, n));
	first = nl_sock_sequence(s, b->n);
	number(b, first);
	return nl_sock_batch(s, b->buf, b->size, first, first + n - 1, f);
}
