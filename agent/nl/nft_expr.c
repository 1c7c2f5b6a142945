#include "agent/nl/nft_expr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <string.h>

uint32_t nft_get_u32(const struct nlattr *a)
{
	if (mnl_attr_get_payload_len(a) < sizeof(uint32_t))
		return 0;
	return ntohl(mnl_attr_get_u32(a));
}

bool nft_get_name(const struct nlattr *a, char *buf, size_t size)
{
	size_t len = mnl_attr_get_payload_len(a);
	const char *text = mnl_attr_get_payload(a);

	len = strnlen(text, len);
	if (len >= size)
		return false;
	(void)memcpy(buf, text, len);
	(void)memset(buf + len, 0, size - len);
	return true;
}

bool nft_get_value(const struct nlattr *nest, uint8_t *buf, uint32_t size,
		   uint32_t *ret_len)
{
	const struct nlattr *a;
	bool found = false;
	uint32_t len;

	mnl_attr_for_each_nested(a, nest) {
		len = mnl_attr_get_payload_len(a);
		if (mnl_attr_get_type(a) != NFTA_DATA_VALUE || len > size)
			return false;
		(void)memcpy(buf, mnl_attr_get_payload(a), len);
		*ret_len = len;
		found = true;
	}
	return found;
}

static bool is_reg1(const struct nlattr *a)
{
	return nft_get_u32(a) == NFT_REG_1;
}

/*
 * Each decoder fills `e` from one attribute and returns false for one that
 * the model has no place for.
 */
static bool meta_attr(const struct nlattr *a, struct nft_expr *e)
{
	switch (mnl_attr_get_type(a)) {
	case NFTA_META_DREG:
		return is_reg1(a);
	case NFTA_META_KEY:
		e->key = nft_get_u32(a);
		return true;
	}
	return false;
}

static bool payload_attr(const struct nlattr *a, struct nft_expr *e)
{
	switch (mnl_attr_get_type(a)) {
	case NFTA_PAYLOAD_DREG:
		return is_reg1(a);
	case NFTA_PAYLOAD_BASE:
		e->key = nft_get_u32(a);
		return true;
	case NFTA_PAYLOAD_OFFSET:
		e->offset = nft_get_u32(a);
		return true;
	case NFTA_PAYLOAD_LEN:
		e->len = nft_get_u32(a);
		return true;
	}
	return false;
}

static bool bitwise_attr(const struct nlattr *a, struct nft_expr *e)
{
	static const uint8_t zero[sizeof(e->data)];
	uint8_t xor[sizeof(e->data)];
	uint32_t len;

	switch (mnl_attr_get_type(a)) {
	case NFTA_BITWISE_SREG:
	case NFTA_BITWISE_DREG:
		return is_reg1(a);
	case NFTA_BITWISE_LEN:
		e->len = nft_get_u32(a);
		return e->len <= sizeof(e->data);
	case NFTA_BITWISE_MASK:
		return nft_get_value(a, e->data, sizeof(e->data), &len);
	case NFTA_BITWISE_XOR:
		return nft_get_value(a, xor, sizeof(xor), &len) &&
		       memcmp(xor, zero, len) == 0;
	case NFTA_BITWISE_OP:
		return nft_get_u32(a) == NFT_BITWISE_BOOL;
	}
	return false;
}

static bool cmp_attr(const struct nlattr *a, struct nft_expr *e)
{
	switch (mnl_attr_get_type(a)) {
	case NFTA_CMP_SREG:
		return is_reg1(a);
	case NFTA_CMP_OP:
		e->key = nft_get_u32(a);
		return true;
	case NFTA_CMP_DATA:
		return nft_get_value(a, e->data, sizeof(e->data), &e->len);
	}
	return false;
}

static bool lookup_attr(const struct nlattr *a, struct nft_expr *e)
{
	switch (mnl_attr_get_type(a)) {
	case NFTA_LOOKUP_SET:
		return nft_get_name(a, e->name, sizeof(e->name));
	case NFTA_LOOKUP_SREG:
		return is_reg1(a);
	case NFTA_LOOKUP_FLAGS:
		e->flags = nft_get_u32(a);
		return true;
	}
	return false;
}

static bool verdict_data(const struct nlattr *nest, struct nft_expr *e)
{
	const struct nlattr *verdict, *a;

	mnl_attr_for_each_nested(verdict, nest) {
		if (mnl_attr_get_type(verdict) != NFTA_DATA_VERDICT)
			return false;
		mnl_attr_for_each_nested(a, verdict) {
			if (mnl_attr_get_type(a) == NFTA_VERDICT_CODE)
				e->verdict = (int32_t)nft_get_u32(a);
			else if (mnl_attr_get_type(a) != NFTA_VERDICT_CHAIN ||
				 !nft_get_name(a, e->name, sizeof(e->name)))
				return false;
		}
	}
	return true;
}

static bool verdict_attr(const struct nlattr *a, struct nft_expr *e)
{
	switch (mnl_attr_get_type(a)) {
	case NFTA_IMMEDIATE_DREG:
		return nft_get_u32(a) == NFT_REG_VERDICT;
	case NFTA_IMMEDIATE_DATA:
		return verdict_data(a, e);
	}
	return false;
}

static bool counter_attr(const struct nlattr *a, struct nft_expr *e)
{
	(void)a;
	(void)e;
	return true;	/* packets and bytes */
}

static const struct {
	const char *name;
	enum nft_op op;
	bool (*attr)(const struct nlattr *a, struct nft_expr *e);
} kinds[] = {
	{ "meta", NFT_OP_META, meta_attr },
	{ "payload", NFT_OP_PAYLOAD, payload_attr },
	{ "bitwise", NFT_OP_BITWISE, bitwise_attr },
	{ "cmp", NFT_OP_CMP, cmp_attr },
	{ "lookup", NFT_OP_LOOKUP, lookup_attr },
	{ "immediate", NFT_OP_VERDICT, verdict_attr },
	{ "counter", NFT_OP_COUNTER, counter_attr },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
_Static_assert(KINDS == NFT_OP_OTHER, "every operation has a decoder");

static void expr_decode(const struct nlattr *nest, struct nft_rule *r)
{
	char name[NFT_MODEL_NAME_MAX] = "";
	const struct nlattr *data = NULL, *a;
	struct nft_expr e = { 0 };
	bool known = true;
	size_t i;

	mnl_attr_for_each_nested(a, nest) {
		if (mnl_attr_get_type(a) == NFTA_EXPR_NAME)
			known = nft_get_name(a, name, sizeof(name));
		else if (mnl_attr_get_type(a) == NFTA_EXPR_DATA)
			data = a;
	}
	for (i = 0; i < KINDS; i++)
		if (strcmp(kinds[i].name, name) == 0)
			break;
	if (i == KINDS || !known || !data ||
	    r->n >= NFT_MODEL_EXPRS_MAX) {
		nft_rule_other(r, name);
		return;
	}
	e.op = kinds[i].op;
	mnl_attr_for_each_nested(a, data)
		known = kinds[i].attr(a, &e) && known;
	if (known)
		r->v[r->n++] = e;
	else
		nft_rule_other(r, name);
}

void nft_exprs_decode(const struct nlattr *nest, struct nft_rule *r)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, nest)
		expr_decode(a, r);
}

static void encode_load(struct nftnl_expr *ne, const struct nft_expr *e)
{
	if (e->op == NFT_OP_META) {
		nftnl_expr_set_u32(ne, NFTNL_EXPR_META_KEY, e->key);
		nftnl_expr_set_u32(ne, NFTNL_EXPR_META_DREG, NFT_REG_1);
		return;
	}
	nftnl_expr_set_u32(ne, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
	nftnl_expr_set_u32(ne, NFTNL_EXPR_PAYLOAD_BASE, e->key);
	nftnl_expr_set_u32(ne, NFTNL_EXPR_PAYLOAD_OFFSET, e->offset);
	nftnl_expr_set_u32(ne, NFTNL_EXPR_PAYLOAD_LEN, e->len);
}

static int encode_bitwise(struct nftnl_expr *ne, const struct nft_expr *e)
{
	static const uint8_t zero[sizeof(e->data)];

	nftnl_expr_set_u32(ne, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
	nftnl_expr_set_u32(ne, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
	nftnl_expr_set_u32(ne, NFTNL_EXPR_BITWISE_OP, NFT_BITWISE_BOOL);
	nftnl_expr_set_u32(ne, NFTNL_EXPR_BITWISE_LEN, e->len);
	if (nftnl_expr_set(ne, NFTNL_EXPR_BITWISE_MASK, e->data, e->len) < 0 ||
	    nftnl_expr_set(ne, NFTNL_EXPR_BITWISE_XOR, zero, e->len) < 0)
		return -ENOMEM;
	return 0;
}

static int encode_expr(struct nftnl_expr *ne, const struct nft_expr *e)
{
	switch (e->op) {
	case NFT_OP_META:
	case NFT_OP_PAYLOAD:
		encode_load(ne, e);
		return 0;
	case NFT_OP_BITWISE:
		return encode_bitwise(ne, e);
	case NFT_OP_CMP:
		nftnl_expr_set_u32(ne, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
		nftnl_expr_set_u32(ne, NFTNL_EXPR_CMP_OP, e->key);
		return nftnl_expr_set(ne, NFTNL_EXPR_CMP_DATA, e->data,
				      e->len) < 0 ? -ENOMEM : 0;
	case NFT_OP_LOOKUP:
		nftnl_expr_set_u32(ne, NFTNL_EXPR_LOOKUP_SREG, NFT_REG_1);
		if (e->flags)
			nftnl_expr_set_u32(ne, NFTNL_EXPR_LOOKUP_FLAGS,
					   e->flags);
		return nftnl_expr_set_str(ne, NFTNL_EXPR_LOOKUP_SET,
					  e->name) < 0 ? -ENOMEM : 0;
	case NFT_OP_VERDICT:
		nftnl_expr_set_u32(ne, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
		nftnl_expr_set_u32(ne, NFTNL_EXPR_IMM_VERDICT,
				   (uint32_t)e->verdict);
		if (e->name[0])
			return nftnl_expr_set_str(ne, NFTNL_EXPR_IMM_CHAIN,
						  e->name) < 0 ? -ENOMEM : 0;
		return 0;
	case NFT_OP_COUNTER:
		return 0;
	case NFT_OP_OTHER:
	case NFT_OP_MAX:
		break;
	}
	return -EINVAL;
}

int nft_exprs_encode(const struct nft_rule *r, struct nftnl_rule *nr)
{
	size_t i;
	int err;

	for (i = 0; i < r->n; i++) {
		const struct nft_expr *e = &r->v[i];
		struct nftnl_expr *ne;

		if (e->op >= NFT_OP_OTHER)
			return -EINVAL;
		ne = nftnl_expr_alloc(kinds[e->op].name);
		if (!ne)
			return -ENOMEM;
		err = encode_expr(ne, e);
		if (err < 0) {
			nftnl_expr_free(ne);
			return err;
		}
		nftnl_rule_add_expr(nr, ne);
	}
	return 0;
}
