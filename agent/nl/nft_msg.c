#include "agent/nl/nft_msg.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "agent/nl/nft_expr.h"

static const struct nfgenmsg *header(const struct nlmsghdr *nlh)
{
	if (nlh->nlmsg_len < NLMSG_HDRLEN ||
	    mnl_nlmsg_get_payload_len(nlh) < sizeof(struct nfgenmsg))
		return NULL;
	return mnl_nlmsg_get_payload(nlh);
}

uint16_t nft_msg_generation(const struct nlmsghdr *nlh)
{
	const struct nfgenmsg *h = header(nlh);

	return h ? ntohs(h->res_id) : 0;
}

static const struct nlattr *find(const struct nlmsghdr *nlh, uint16_t type)
{
	const struct nlattr *a;

	mnl_attr_for_each(a, nlh, sizeof(struct nfgenmsg))
		if (mnl_attr_get_type(a) == type)
			return a;
	return NULL;
}

const char *nft_msg_table(const struct nlmsghdr *nlh)
{
	const struct nlattr *a;

	/* Attribute 1 is the table in every kind but the generation's. */
	if (!header(nlh) || (nlh->nlmsg_type & 0xff) == NFT_MSG_NEWGEN)
		return NULL;
	a = find(nlh, NFTA_TABLE_NAME);
	if (!a || mnl_attr_validate(a, MNL_TYPE_NUL_STRING) < 0)
		return NULL;
	return mnl_attr_get_str(a);
}

int nft_table_decode(const struct nlmsghdr *nlh, struct nft_table *ret_head)
{
	const struct nfgenmsg *h = header(nlh);
	struct nft_table t = { 0 };
	bool named = false;
	const struct nlattr *a;

	if (!h)
		return -EBADMSG;
	t.family = h->nfgen_family;
	mnl_attr_for_each(a, nlh, sizeof(*h)) {
		switch (mnl_attr_get_type(a)) {
		case NFTA_TABLE_NAME:
			named = nft_get_name(a, t.name, sizeof(t.name));
			break;
		case NFTA_TABLE_FLAGS:
			t.flags = nft_get_u32(a);
			break;
		case NFTA_TABLE_USE:
			t.use = nft_get_u32(a);
			break;
		case NFTA_TABLE_OWNER:
			t.owner = nft_get_u32(a);
			break;
		}
	}
	/* A name that does not fit cannot be one of ours. */
	if (!named)
		t.name[0] = '\0';
	*ret_head = t;
	return 0;
}

static void hook_devices(const struct nlattr *nest, struct nft_chain *c,
			 size_t *n)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, nest) {
		(*n)++;
		if (mnl_attr_get_type(a) != NFTA_DEVICE_NAME ||
		    !nft_get_name(a, c->device, sizeof(c->device)))
			c->odd = true;
	}
}

static void chain_hook(const struct nlattr *nest, struct nft_chain *c)
{
	const struct nlattr *a;
	size_t devices = 0;

	c->base = true;
	mnl_attr_for_each_nested(a, nest) {
		switch (mnl_attr_get_type(a)) {
		case NFTA_HOOK_HOOKNUM:
			c->hook = nft_get_u32(a);
			break;
		case NFTA_HOOK_PRIORITY:
			c->priority = (int32_t)nft_get_u32(a);
			break;
		case NFTA_HOOK_DEV:
			if (!nft_get_name(a, c->device, sizeof(c->device)))
				c->odd = true;
			break;
		case NFTA_HOOK_DEVS:
			hook_devices(a, c, &devices);
			break;
		}
	}
	if (devices > 1)
		c->odd = true;
}

static bool about(const struct nlmsghdr *nlh, const struct nft_table *t)
{
	const char *name = nft_msg_table(nlh);

	return name && strcmp(name, t->name) == 0 &&
	       header(nlh)->nfgen_family == t->family;
}

int nft_chain_decode(const struct nlmsghdr *nlh, struct nft_table *t)
{
	const struct nlattr *a, *name;
	struct nft_chain *c;
	char text[NFT_MODEL_NAME_MAX];

	if (!about(nlh, t))
		return 0;
	name = find(nlh, NFTA_CHAIN_NAME);
	if (!name)
		return -EBADMSG;
	if (!nft_get_name(name, text, sizeof(text)))
		text[0] = '\0';
	c = nft_table_chain(t, text);
	if (!c)
		return t->n_chains >= NFT_MODEL_CHAINS_MAX ? -E2BIG : -ENOMEM;
	mnl_attr_for_each(a, nlh, sizeof(struct nfgenmsg)) {
		switch (mnl_attr_get_type(a)) {
		case NFTA_CHAIN_HOOK:
			chain_hook(a, c);
			break;
		case NFTA_CHAIN_POLICY:
			c->policy = nft_get_u32(a);
			break;
		case NFTA_CHAIN_TYPE:
			if (!nft_get_name(a, c->type, sizeof(c->type)))
				c->odd = true;
			break;
		case NFTA_CHAIN_FLAGS:
			/* Offloaded or bound chains are not ours. */
			if (nft_get_u32(a) & ~(uint32_t)NFT_CHAIN_BASE)
				c->odd = true;
			break;
		}
	}
	return 0;
}

int nft_rule_decode(const struct nlmsghdr *nlh, struct nft_table *t)
{
	char chain[NFT_MODEL_NAME_MAX];
	const struct nlattr *a;
	struct nft_chain *c;
	struct nft_rule *r;

	if (!about(nlh, t))
		return 0;
	a = find(nlh, NFTA_RULE_CHAIN);
	if (!a)
		return -EBADMSG;
	if (!nft_get_name(a, chain, sizeof(chain)))
		return 0;	/* a foreign chain: counted by `use` */
	c = nft_table_find_chain(t, chain);
	if (!c)
		return 0;
	r = nft_chain_rule(c);
	if (!r)
		return c->n_rules >= NFT_MODEL_RULES_MAX ? -E2BIG : -ENOMEM;
	mnl_attr_for_each(a, nlh, sizeof(struct nfgenmsg)) {
		if (mnl_attr_get_type(a) == NFTA_RULE_EXPRESSIONS)
			nft_exprs_decode(a, r);
		else if (mnl_attr_get_type(a) == NFTA_RULE_HANDLE &&
			 mnl_attr_get_payload_len(a) == sizeof(uint64_t))
			r->handle = be64toh(mnl_attr_get_u64(a));
	}
	return 0;
}

/* What an interval set of ours has, and nothing else. */
static void set_attr(const struct nlattr *a, struct nft_set *s)
{
	switch (mnl_attr_get_type(a)) {
	case NFTA_SET_FLAGS:
		if (nft_get_u32(a) != (NFT_SET_INTERVAL | NFT_SET_CONSTANT))
			s->odd = true;
		break;
	case NFTA_SET_KEY_LEN:
		if (nft_get_u32(a) == 4)
			s->family = AF_INET;
		else if (nft_get_u32(a) == 16)
			s->family = AF_INET6;
		else
			s->odd = true;
		break;
	case NFTA_SET_DATA_TYPE:
	case NFTA_SET_TIMEOUT:
	case NFTA_SET_OBJ_TYPE:
	case NFTA_SET_EXPR:
	case NFTA_SET_EXPRESSIONS:
		s->odd = true;
		break;
	}
}

int nft_set_decode(const struct nlmsghdr *nlh, struct nft_table *t)
{
	char text[NFT_MODEL_NAME_MAX];
	const struct nlattr *a;
	struct nft_set *s;

	if (!about(nlh, t))
		return 0;
	a = find(nlh, NFTA_SET_NAME);
	if (!a)
		return -EBADMSG;
	if (!nft_get_name(a, text, sizeof(text)))
		text[0] = '\0';
	s = nft_table_set(t, text, 0);
	if (!s)
		return t->n_sets >= NFT_MODEL_SETS_MAX ? -E2BIG : -ENOMEM;
	mnl_attr_for_each(a, nlh, sizeof(struct nfgenmsg))
		set_attr(a, s);
	return 0;
}

static int bound_decode(const struct nlattr *nest, struct nft_bounds *b)
{
	struct nft_bound e = { 0 }, *v;
	const struct nlattr *a;
	uint32_t len = 0;

	mnl_attr_for_each_nested(a, nest) {
		switch (mnl_attr_get_type(a)) {
		case NFTA_SET_ELEM_KEY:
			if (!nft_get_value(a, e.key, sizeof(e.key), &len))
				b->odd = true;
			break;
		case NFTA_SET_ELEM_FLAGS:
			e.end = nft_get_u32(a) == NFT_SET_ELEM_INTERVAL_END;
			if (!e.end && nft_get_u32(a))
				b->odd = true;
			break;
		default:
			b->odd = true;
			break;
		}
	}
	if (b->n >= 2 * NFT_MODEL_ELEMS_MAX)
		return -E2BIG;
	if (b->n == 0 || (b->n >= 16 && (b->n & (b->n - 1)) == 0)) {
		v = reallocarray(b->v, b->n < 16 ? 16 : 2 * b->n, sizeof(*v));
		if (!v)
			return -ENOMEM;
		b->v = v;
	}
	b->v[b->n++] = e;
	return 0;
}

int nft_bounds_decode(const struct nlmsghdr *nlh, struct nft_bounds *b)
{
	const struct nlattr *list, *a;
	int r;

	if (!header(nlh))
		return -EBADMSG;
	list = find(nlh, NFTA_SET_ELEM_LIST_ELEMENTS);
	if (!list)
		return 0;
	mnl_attr_for_each_nested(a, list) {
		r = bound_decode(a, b);
		if (r < 0)
			return r;
	}
	return 0;
}

/* By address; where a range ends as the next begins, the end first. */
static int bound_order(const void *a, const void *b)
{
	const struct nft_bound *x = a, *y = b;
	int r = memcmp(x->key, y->key, sizeof(x->key));

	return r ? r : (int)y->end - (int)x->end;
}

static void decrement(uint8_t *key, size_t size)
{
	while (size-- > 0)
		if (key[size]-- != 0)
			break;
}

int nft_bounds_join(struct nft_bounds *b, struct nft_set *s)
{
	size_t size = s->family == AF_INET6 ? 16 : 4, i;
	int r = 0;

	s->odd = s->odd || b->odd;
	if (b->n)
		qsort(b->v, b->n, sizeof(*b->v), bound_order);
	for (i = 0; i < b->n && r == 0; i++) {
		struct nft_range range = { 0 };

		if (b->v[i].end) {	/* an end that nothing began */
			s->odd = true;
			continue;
		}
		(void)memcpy(range.from, b->v[i].key, size);
		(void)memset(range.to, 0xff, size);
		if (i + 1 < b->n && b->v[i + 1].end) {
			(void)memcpy(range.to, b->v[++i].key, size);
			decrement(range.to, size);
		} else if (i + 1 < b->n) {
			s->odd = true;
		}
		r = nft_set_add_range(s, &range);
	}
	return r;
}

int nft_gen_decode(const struct nlmsghdr *nlh, struct nft_gen *ret_gen)
{
	struct nft_gen g = { 0 };
	const struct nlattr *a;

	if (!header(nlh))
		return -EBADMSG;
	mnl_attr_for_each(a, nlh, sizeof(struct nfgenmsg)) {
		switch (mnl_attr_get_type(a)) {
		case NFTA_GEN_ID:
			g.id = nft_get_u32(a);
			break;
		case NFTA_GEN_PROC_PID:
			g.pid = nft_get_u32(a);
			break;
		case NFTA_GEN_PROC_NAME:
			if (!nft_get_name(a, g.name, sizeof(g.name)))
				g.name[0] = '\0';
			break;
		}
	}
	*ret_gen = g;
	return 0;
}
