#include "agent/lockdown/tables.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <stdio.h>
#include <string.h>

#include "agent/res/killswitch_tables.h"

#define IP4_SADDR 12
#define IP6_SADDR 8

static const int families[] = { AF_INET, AF_INET6 };

const char *tables_form_name(enum tables_form form)
{
	static const char *const names[TABLES_FORMS] = {
		"full", "reduced", "minimal",
	};

	return form < TABLES_FORMS ? names[form] : "unknown";
}

/* ---- rules ---- */

struct build {
	struct nft_table *t;
	bool sets;
	size_t left;
	int err;
};

static struct nft_rule *rule(struct build *b, const char *chain)
{
	struct nft_chain *c = nft_table_find_chain(b->t, chain);
	struct nft_rule *r = c && b->err == 0 ? nft_chain_rule(c) : NULL;

	if (!r && b->err == 0 && c && c->n_rules >= NFT_MODEL_RULES_MAX)
		b->left++;
	else if (!r && b->err == 0)
		b->err = -ENOMEM;
	return r;
}

static void match_source(const struct build *b, struct nft_rule *r, int af)
{
	uint16_t ether = htons(af == AF_INET6 ? ETH_P_IPV6 : ETH_P_IP);
	uint8_t proto = af == AF_INET6 ? NFPROTO_IPV6 : NFPROTO_IPV4;

	if (b->t->family == NFPROTO_NETDEV) {
		nft_rule_meta(r, NFT_META_PROTOCOL);
		nft_rule_cmp(r, NFT_CMP_EQ, &ether, sizeof(ether));
	} else {
		nft_rule_meta(r, NFT_META_NFPROTO);
		nft_rule_cmp(r, NFT_CMP_EQ, &proto, sizeof(proto));
	}
	nft_rule_payload(r, NFT_PAYLOAD_NETWORK_HEADER,
			 af == AF_INET6 ? IP6_SADDR : IP4_SADDR,
			 af == AF_INET6 ? 16 : 4);
}

static void drop_prefix(struct build *b, const char *chain,
			const struct ip_prefix *p)
{
	uint32_t size = p->addr.family == AF_INET6 ? 16 : 4, i;
	struct nft_rule *r = rule(b, chain);
	uint8_t mask[16] = { 0 };

	if (!r)
		return;
	for (i = 0; i < p->len; i++)
		mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
	match_source(b, r, p->addr.family);
	nft_rule_mask(r, mask, size);
	nft_rule_cmp(r, NFT_CMP_EQ, p->addr.bytes, size);
	nft_rule_verdict(r, NF_DROP, NULL);
}

static void drop_set(struct build *b, const char *chain, int af,
		     const char *set)
{
	struct nft_rule *r = rule(b, chain);

	if (!r)
		return;
	match_source(b, r, af);
	nft_rule_lookup(r, set);
	nft_rule_verdict(r, NF_DROP, NULL);
}

static void drop_mark(struct build *b, const char *chain,
		      const struct desired_class *c)
{
	struct nft_rule *r = c->mask ? rule(b, chain) : NULL;

	if (!r)
		return;
	nft_rule_meta(r, NFT_META_MARK);
	nft_rule_mask(r, &c->mask, sizeof(c->mask));
	nft_rule_cmp(r, NFT_CMP_EQ, &c->mark, sizeof(c->mark));
	nft_rule_verdict(r, NF_DROP, NULL);
}

static void pass_loopback(struct build *b, const char *chain)
{
	static const char lo[IF_NAMESIZE] = "lo";
	struct nft_rule *r = rule(b, chain);

	if (!r)
		return;
	nft_rule_meta(r, NFT_META_OIFNAME);
	nft_rule_cmp(r, NFT_CMP_EQ, lo, sizeof(lo));
	nft_rule_verdict(r, NF_ACCEPT, NULL);
}

/* ---- sets ---- */

static void fill(struct build *b, struct nft_set *s,
		 const struct prefix_list *list)
{
	size_t i;

	for (i = 0; i < list->n && b->err == 0; i++)
		b->err = nft_set_add(s, &list->v[i]);
}

static const char *set_name(int af)
{
	return af == AF_INET6 ? "src6" : "src4";
}

/* One set a family: every class loses the same here. */
static void source_set(struct build *b, const struct desired_egress *e, int af)
{
	struct nft_set *s = nft_table_set(b->t, set_name(af), (uint8_t)af);
	size_t i;

	if (!s) {
		b->err = -ENOMEM;
		return;
	}
	for (i = 0; i < e->n_classes; i++) {
		fill(b, s, &e->classes[i].pods);
		fill(b, s, &e->classes[i].sources);
	}
	nft_set_seal(s);
	if (s->n == 0)
		b->t->n_sets--;
}

/* ---- chains ---- */

static void base_chain(struct build *b, const char *name, uint32_t hook,
		       const char *device)
{
	struct nft_chain *c = nft_table_chain(b->t, name);

	if (!c) {
		b->err = -ENOMEM;
		return;
	}
	c->base = true;
	c->hook = hook;
	c->policy = NF_ACCEPT;
	(void)memcpy(c->type, "filter", sizeof("filter"));
	if (device)
		(void)memcpy(c->device, device,
			     strnlen(device, sizeof(c->device) - 1));
}

static void drop_list(struct build *b, const char *chain,
		      const struct prefix_list *list)
{
	size_t i;

	for (i = 0; i < list->n && b->err == 0; i++)
		drop_prefix(b, chain, &list->v[i]);
}

static void chain_rules(struct build *b, const struct desired_egress *e,
			const char *chain)
{
	size_t i;

	if (b->t->family != NFPROTO_NETDEV)
		pass_loopback(b, chain);
	/* Marks first: they are few, and there is always room for them. */
	for (i = 0; i < e->n_classes; i++)
		drop_mark(b, chain, &e->classes[i]);
	for (i = 0; b->sets && i < 2; i++)
		if (nft_table_find_set(b->t, set_name(families[i])))
			drop_set(b, chain, families[i], set_name(families[i]));
	for (i = 0; !b->sets && i < e->n_classes; i++) {
		drop_list(b, chain, &e->classes[i].pods);
		drop_list(b, chain, &e->classes[i].sources);
	}
}

static int make_reduced(const struct desired_egress *e, const char *device,
			bool sets, struct nft_table *t, size_t *ret_left)
{
	struct build b = { .t = t, .sets = sets };
	size_t i;

	t->family = device ? NFPROTO_NETDEV : NFPROTO_INET;
	(void)snprintf(t->name, sizeof(t->name), "%s%.15s",
		       device ? KILLSWITCH_EGRESS_PREFIX : KILLSWITCH_TABLE,
		       device ? device : "");
	/* Behind routing every packet passes once more: one chain is enough. */
	if (device)
		base_chain(&b, "egress", NF_NETDEV_EGRESS, device);
	else
		base_chain(&b, "postrouting", NF_INET_POST_ROUTING, NULL);
	for (i = 0; sets && i < 2 && b.err == 0; i++)
		source_set(&b, e, families[i]);
	if (b.err == 0)
		chain_rules(&b, e, device ? "egress" : "postrouting");
	*ret_left = b.left;
	return b.err;
}

int tables_make(const struct desired_egress *egress, const char *device,
		enum tables_form form, struct nft_table *ret_table,
		size_t *ret_left)
{
	struct nft_table t = { 0 };
	size_t left = 0;
	int r;

	if (form == TABLES_FULL)
		r = killswitch_table(egress, device, &t);
	else
		r = make_reduced(egress, device, form == TABLES_SETS, &t,
				 &left);
	if (r < 0) {
		nft_table_done(&t);
		return r;
	}
	*ret_table = t;
	*ret_left = left;
	return 0;
}

/* ---- probes ---- */

static void fill_probe(unsigned int i, struct nft_rule *r)
{
	static const uint32_t zero;

	nft_rule_meta(r, NFT_META_MARK);
	if (i == 1)
		nft_rule_payload(r, NFT_PAYLOAD_NETWORK_HEADER, 0, 4);
	if (i == 2)
		nft_rule_mask(r, &zero, sizeof(zero));
	if (i == 3)
		nft_rule_cmp(r, NFT_CMP_EQ, &zero, sizeof(zero));
	if (i == 4)
		nft_rule_lookup(r, "probe");
	if (i == 5)
		nft_rule_counter(r);
	if (i == 6)
		nft_rule_verdict(r, NFT_RETURN, NULL);
}

int tables_probe(unsigned int i, struct nft_table *ret_table,
		 const char **ret_name)
{
	static const char *const names[] = { "meta", "payload", "bitwise",
					     "cmp", "lookup", "counter",
					     "immediate" };
	static const struct ip_prefix any = {
		.addr = { .family = AF_INET, .bytes = { 192, 0, 2 } },
		.len = 24,
	};
	struct nft_table t = { .family = NFPROTO_INET,
			       .name = "garboard_probe" };
	struct nft_set *s = NULL;
	struct nft_chain *c;
	struct nft_rule *r;

	if (i >= sizeof(names) / sizeof(names[0]))
		return -ENOENT;
	c = nft_table_chain(&t, "probe");
	r = c ? nft_chain_rule(c) : NULL;
	if (i == 4)
		s = nft_table_set(&t, "probe", AF_INET);
	if (!r || (i == 4 && (!s || nft_set_add(s, &any) < 0))) {
		nft_table_done(&t);
		return -ENOMEM;
	}
	fill_probe(i, r);
	*ret_table = t;
	*ret_name = names[i];
	return 0;
}
