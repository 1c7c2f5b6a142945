/*
 * nft_expr.h - the expressions of a rule: attributes to values (strict) and
 * values to libnftnl's form. Part of nft_msg.h and nft_batch.h.
 */
#pragma once

#include <linux/netlink.h>

#include "agent/nl/nft_model.h"

struct nftnl_rule;

/* NFTA_RULE_EXPRESSIONS; what is not modelled becomes NFT_OP_OTHER. */
void nft_exprs_decode(const struct nlattr *nest, struct nft_rule *r);

/* -ENOMEM; -EINVAL for NFT_OP_OTHER, which cannot be made. */
int nft_exprs_encode(const struct nft_rule *r, struct nftnl_rule *nr);

/* Big-endian number; 0 when it is too short. */
uint32_t nft_get_u32(const struct nlattr *a);
/* False, and nothing useful in `buf`, when it does not fit. */
bool nft_get_name(const struct nlattr *a, char *buf, size_t size);
/* The bytes of a nested NFTA_DATA_VALUE. */
bool nft_get_value(const struct nlattr *nest, uint8_t *buf, uint32_t size,
		   uint32_t *ret_len);
