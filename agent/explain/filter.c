#include "agent/explain/filter.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <net/if_arp.h>
#include <string.h>

#define DEPTH_MAX 16		/* of jumps, the kernel's limit */
#define REGISTER 16

struct run {
	const struct nft_table *t;
	const struct packet *p;
	const struct packet_out *out;
	bool netdev;
	uint8_t network[PACKET_NETWORK_MAX];
	uint8_t transport[PACKET_TRANSPORT_MAX];
	size_t n_network, n_transport;
	uint8_t reg[REGISTER];
	struct filter_result *result;
};

/* What one expression, and so one rule, comes to. */
enum step {
	STEP_ON,		/* it matches: the next expression */
	STEP_BREAK,		/* it does not: the next rule */
	STEP_UNKNOWN,
	STEP_VERDICT,
};

static void load(struct run *x, const void *data, size_t size)
{
	(void)memset(x->reg, 0, sizeof(x->reg));
	(void)memcpy(x->reg, data, size);
}

static enum step load_name(struct run *x, const char *name)
{
	if (!name[0])
		return STEP_BREAK;
	load(x, name, strnlen(name, IF_NAMESIZE));
	return STEP_ON;
}

/* netdev egress has no input device, whatever the packet came by. */
static enum step meta(struct run *x, uint32_t key)
{
	bool v6 = x->p->dst.family == AF_INET6;
	uint16_t u16;
	uint32_t u32;
	uint8_t u8;

	switch (key) {
	case NFT_META_NFPROTO:
		u8 = x->netdev ? NFPROTO_NETDEV :
		     v6	       ? NFPROTO_IPV6 :
				 NFPROTO_IPV4;
		load(x, &u8, sizeof(u8));
		return STEP_ON;
	case NFT_META_PROTOCOL:
		u16 = htons(v6 ? ETH_P_IPV6 : ETH_P_IP);
		load(x, &u16, sizeof(u16));
		return STEP_ON;
	case NFT_META_L4PROTO:
		load(x, &x->p->proto, sizeof(x->p->proto));
		return STEP_ON;
	case NFT_META_MARK:
		load(x, &x->p->mark, sizeof(x->p->mark));
		return STEP_ON;
	case NFT_META_SKUID:
		if (!x->p->socket)
			return STEP_BREAK;
		load(x, &x->p->uid, sizeof(x->p->uid));
		return STEP_ON;
	case NFT_META_IIF:
		u32 = x->netdev ? 0 : (uint32_t)x->p->in_index;
		load(x, &u32, sizeof(u32));
		return STEP_ON;
	case NFT_META_IIFNAME:
		return load_name(x, x->netdev ? "" : x->p->in);
	case NFT_META_OIFNAME:
		return load_name(x, x->out->name);
	case NFT_META_OIFTYPE:
		u16 = x->out->bare ? ARPHRD_NONE : ARPHRD_ETHER;
		load(x, &u16, sizeof(u16));
		return STEP_ON;
	}
	return STEP_UNKNOWN;
}

static enum step payload(struct run *x, const struct nft_expr *e)
{
	uint16_t type = htons(x->p->dst.family == AF_INET6 ? ETH_P_IPV6 :
							     ETH_P_IP);
	const uint8_t *from = NULL;
	size_t n = 0;

	switch (e->key) {
	case NFT_PAYLOAD_LL_HEADER:
		if (e->offset != offsetof(struct ethhdr, h_proto) ||
		    e->len != sizeof(type))
			return STEP_UNKNOWN;
		if (x->out->bare)
			return STEP_BREAK;
		load(x, &type, sizeof(type));
		return STEP_ON;
	case NFT_PAYLOAD_NETWORK_HEADER:
		from = x->network;
		n = x->n_network;
		break;
	case NFT_PAYLOAD_TRANSPORT_HEADER:
		from = x->transport;
		n = x->n_transport;
		break;
	}
	if (!from || e->len > REGISTER)
		return STEP_UNKNOWN;
	if (e->offset > n || e->len > n - e->offset)
		return STEP_BREAK;
	load(x, from + e->offset, e->len);
	return STEP_ON;
}

static enum step compare(const struct run *x, const struct nft_expr *e)
{
	int c = memcmp(x->reg, e->data, e->len);
	bool holds = false;

	switch (e->key) {
	case NFT_CMP_EQ:
		holds = c == 0;
		break;
	case NFT_CMP_NEQ:
		holds = c != 0;
		break;
	case NFT_CMP_LT:
		holds = c < 0;
		break;
	case NFT_CMP_LTE:
		holds = c <= 0;
		break;
	case NFT_CMP_GT:
		holds = c > 0;
		break;
	case NFT_CMP_GTE:
		holds = c >= 0;
		break;
	default:
		return STEP_UNKNOWN;
	}
	return holds ? STEP_ON : STEP_BREAK;
}

static enum step lookup(const struct run *x, const struct nft_expr *e)
{
	const struct nft_set *s = nft_table_find_set(x->t, e->name);
	size_t size, i;
	bool found = false;

	if (!s || s->odd)
		return STEP_UNKNOWN;
	size = s->family == AF_INET6 ? 16 : 4;
	for (i = 0; i < s->n && !found; i++)
		found = memcmp(x->reg, s->v[i].from, size) >= 0 &&
			memcmp(x->reg, s->v[i].to, size) <= 0;
	return found != ((e->flags & NFT_LOOKUP_F_INV) != 0) ? STEP_ON :
							       STEP_BREAK;
}

static enum step express(struct run *x, const struct nft_expr *e)
{
	size_t i;

	switch (e->op) {
	case NFT_OP_META:
		return meta(x, e->key);
	case NFT_OP_PAYLOAD:
		return payload(x, e);
	case NFT_OP_BITWISE:
		for (i = 0; i < e->len; i++)
			x->reg[i] &= e->data[i];
		return STEP_ON;
	case NFT_OP_CMP:
		return compare(x, e);
	case NFT_OP_LOOKUP:
		return lookup(x, e);
	case NFT_OP_COUNTER:
		return STEP_ON;
	case NFT_OP_VERDICT:
		return STEP_VERDICT;
	case NFT_OP_OTHER:
	case NFT_OP_MAX:
		break;
	}
	return STEP_UNKNOWN;
}

static enum step run_rule(struct run *x, const struct nft_rule *r,
			  const struct nft_expr **ret_verdict)
{
	enum step s = STEP_ON;
	size_t i;

	for (i = 0; i < r->n && s == STEP_ON; i++) {
		*ret_verdict = &r->v[i];
		s = express(x, &r->v[i]);
	}
	return s;
}

enum end {
	END_CHAIN,		/* it ran out, or returned */
	END_ACCEPT,		/* this hook is done */
	END_STOP,		/* dropped or unsure: all is done */
};

static enum end stop(struct run *x, enum filter_verdict v,
		     const struct nft_chain *c, size_t i)
{
	x->result->verdict = v;
	x->result->chain = c->name;
	x->result->rule = &c->rules[i];
	x->result->number = i + 1;
	return v == FILTER_PASS ? END_ACCEPT : END_STOP;
}

/* Where a packet of a class was let through: what is told about a pass. */
static void note_pass(struct run *x, const struct nft_chain *c, size_t i)
{
	if (!x->result->rule)
		(void)stop(x, FILTER_PASS, c, i);
}

static enum end run_chain(struct run *x, const struct nft_chain *c,
			  unsigned int depth)
{
	const struct nft_expr *v = NULL;
	const struct nft_chain *to;
	enum end end;
	size_t i;

	for (i = 0; i < c->n_rules; i++) {
		enum step s = run_rule(x, &c->rules[i], &v);

		if (s == STEP_UNKNOWN)
			return stop(x, FILTER_UNSURE, c, i);
		if (s != STEP_VERDICT)
			continue;
		switch (v->verdict) {
		case NF_DROP:
			return stop(x, FILTER_DROP, c, i);
		case NF_ACCEPT:
			return stop(x, FILTER_PASS, c, i);
		case NFT_RETURN:
			note_pass(x, c, i);
			return END_CHAIN;
		case NFT_JUMP:
		case NFT_GOTO:
			to = nft_table_find_chain(x->t, v->name);
			if (!to || depth >= DEPTH_MAX)
				return stop(x, FILTER_UNSURE, c, i);
			end = run_chain(x, to, depth + 1);
			if (end != END_CHAIN || v->verdict == NFT_GOTO)
				return end;
			break;
		case NFT_CONTINUE:
			break;
		default:
			return stop(x, FILTER_UNSURE, c, i);
		}
	}
	return END_CHAIN;
}

static void run_base(struct run *x, const struct nft_chain *c)
{
	if (x->result->verdict != FILTER_PASS)
		return;
	if (run_chain(x, c, 0) == END_CHAIN && c->policy == NF_DROP) {
		x->result->verdict = FILTER_DROP;
		x->result->rule = NULL;
		x->result->chain = c->name;
	}
	if (x->result->verdict != FILTER_PASS)
		x->result->base = c->name;
}

static void run_hook(struct run *x, uint32_t hook)
{
	size_t i;

	for (i = 0; i < x->t->n_chains; i++) {
		const struct nft_chain *c = &x->t->chains[i];

		if (!c->base || c->hook != hook)
			continue;
		/* A chain without its device is silent (FACTS S3). */
		if (x->netdev && strcmp(c->device, x->out->name) != 0)
			continue;
		run_base(x, c);
	}
}

void filter_run(const struct nft_table *t, const struct packet *p,
		const struct packet_out *out, struct filter_result *ret)
{
	struct run x = { .t = t, .p = p, .out = out, .result = ret };

	*ret = (struct filter_result){ .verdict = FILTER_PASS };
	if (!t || (t->flags & NFT_TABLE_F_DORMANT))
		return;
	x.netdev = t->family == NFPROTO_NETDEV;
	x.n_network = packet_network(p, x.network);
	x.n_transport = packet_transport(p, x.transport);
	if (x.netdev) {
		run_hook(&x, NF_NETDEV_EGRESS);
		return;
	}
	run_hook(&x, p->in[0] ? NF_INET_FORWARD : NF_INET_LOCAL_OUT);
	run_hook(&x, NF_INET_POST_ROUTING);
}
