/*
 * nft_model.h - one nftables table as a value: chains, rules, sets.
 *
 * It models exactly the expressions our own tables use, with every property
 * of each. Whatever else a rule holds becomes NFT_OP_OTHER, and whatever
 * else a chain or set has sets `odd`: neither equals anything we would make,
 * so foreign changes show as drift (H31). Pure; no I/O.
 *
 * Registers do not appear: a load fills register 1, the next expression
 * reads it, and a rule that does otherwise is NFT_OP_OTHER.
 */
#pragma once

/* before linux/netfilter.h, whose own copy of it yields to this one */
#include <netinet/in.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ip.h"

/* Not in the headers of Debian 12; the kernel has it since 6.9. */
#define NFT_TABLE_PERSIST 0x4u
#define NFT_TABLE_OWNED (NFT_TABLE_F_OWNER | NFT_TABLE_PERSIST)

#define NFT_MODEL_NAME_MAX 80	/* ours are shorter; longer ones are odd */
#define NFT_MODEL_TYPE_MAX 16
#define NFT_MODEL_EXPRS_MAX 12
#define NFT_MODEL_RULES_MAX 1024	/* per table */
#define NFT_MODEL_CHAINS_MAX 64
#define NFT_MODEL_SETS_MAX 128
#define NFT_MODEL_ELEMS_MAX 65536	/* per set */
#define NFT_MODEL_TEXT_MAX 512

enum nft_op {
	NFT_OP_META,		/* load of a meta key */
	NFT_OP_PAYLOAD,		/* load of header bytes */
	NFT_OP_BITWISE,		/* register & mask */
	NFT_OP_CMP,
	NFT_OP_LOOKUP,		/* register in a set */
	NFT_OP_VERDICT,
	NFT_OP_COUNTER,		/* its numbers do not matter */
	NFT_OP_OTHER,
	NFT_OP_MAX,
};

struct nft_expr {
	enum nft_op op;
	uint32_t key;		/* meta key, payload base, cmp op */
	uint32_t offset;	/* payload */
	uint32_t len;		/* payload, bitwise, cmp: at most 16 */
	uint32_t flags;		/* lookup: NFT_LOOKUP_F_INV */
	int32_t verdict;
	uint8_t data[16];	/* cmp value, bitwise mask */
	char name[NFT_MODEL_NAME_MAX];	/* set, jump target, other's name */
};

struct nft_rule {
	struct nft_expr v[NFT_MODEL_EXPRS_MAX];
	size_t n;
	uint64_t handle;	/* of the kernel's; not compared */
};

struct nft_chain {
	char name[NFT_MODEL_NAME_MAX];
	bool base;
	char type[NFT_MODEL_TYPE_MAX];	/* "filter"; base chains only */
	uint32_t hook;
	int32_t priority;
	uint32_t policy;
	char device[IF_NAMESIZE];	/* netdev: "" when unhooked */
	bool odd;
	struct nft_rule *rules;
	size_t n_rules;
};

struct nft_range {
	uint8_t from[16], to[16];	/* both included; 4 bytes for IPv4 */
};

/* A constant interval set of addresses. */
struct nft_set {
	char name[NFT_MODEL_NAME_MAX];
	uint8_t family;			/* AF_INET, AF_INET6 */
	bool odd;
	struct nft_range *v;		/* sorted, disjoint, not adjacent */
	size_t n;
};

struct nft_table {
	uint8_t family;			/* NFPROTO_INET, NFPROTO_NETDEV */
	char name[NFT_MODEL_NAME_MAX];
	uint32_t flags;
	uint32_t owner;			/* port id, 0: nobody */
	uint32_t use;			/* chains, sets and objects in it */
	struct nft_chain *chains;
	size_t n_chains;
	struct nft_set *sets;
	size_t n_sets;
};

void nft_table_done(struct nft_table *t);

/* Each returns the new element, zeroed and named; NULL when out of room. */
struct nft_chain *nft_table_chain(struct nft_table *t, const char *name);
struct nft_set *nft_table_set(struct nft_table *t, const char *name,
			      uint8_t family);
struct nft_rule *nft_chain_rule(struct nft_chain *c);
struct nft_chain *nft_table_find_chain(const struct nft_table *t,
				       const char *name);
struct nft_set *nft_table_find_set(const struct nft_table *t,
				   const char *name);

/* Adds the prefixes of the set's family; call nft_set_seal() after. */
int nft_set_add(struct nft_set *s, const struct ip_prefix *prefix);
int nft_set_add_range(struct nft_set *s, const struct nft_range *range);
/* Sorts and joins what overlaps or touches. */
void nft_set_seal(struct nft_set *s);

/* Append to a rule; a full rule gets an NFT_OP_OTHER, never less. */
void nft_rule_meta(struct nft_rule *r, uint32_t key);
void nft_rule_payload(struct nft_rule *r, uint32_t base, uint32_t offset,
		      uint32_t len);
void nft_rule_mask(struct nft_rule *r, const void *mask, uint32_t len);
void nft_rule_cmp(struct nft_rule *r, uint32_t op, const void *data,
		  uint32_t len);
void nft_rule_lookup(struct nft_rule *r, const char *set);
void nft_rule_verdict(struct nft_rule *r, int32_t verdict, const char *chain);
void nft_rule_counter(struct nft_rule *r);
void nft_rule_other(struct nft_rule *r, const char *name);

bool nft_rule_equal(const struct nft_rule *a, const struct nft_rule *b);

/*
 * True when `have` filters exactly as `want`; else the first difference is
 * described in `text` (NFT_MODEL_TEXT_MAX bytes). Flags and owner are not
 * part of it, but for a dormant table, which filters nothing.
 */
bool nft_table_same(const struct nft_table *have,
		    const struct nft_table *want, char *text);

/* One line for people; returns `text` of NFT_MODEL_TEXT_MAX bytes. */
const char *nft_rule_format(const struct nft_rule *r, char *text);
