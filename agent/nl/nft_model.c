#include "agent/nl/nft_model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void copy_name(char *to, const char *from, size_t size)
{
	size_t n = strnlen(from, size - 1);

	(void)memcpy(to, from, n);
	(void)memset(to + n, 0, size - n);
}

void nft_table_done(struct nft_table *t)
{
	size_t i;

	for (i = 0; i < t->n_chains; i++)
		free(t->chains[i].rules);
	for (i = 0; i < t->n_sets; i++)
		free(t->sets[i].v);
	free(t->chains);
	free(t->sets);
	*t = (struct nft_table){ 0 };
}

/* `v` with room for one more behind `n`; grows at 0, 8, 16, 32, ... */
static void *room(void *v, size_t n, size_t limit, size_t size)
{
	if (n >= limit)
		return NULL;
	if (n != 0 && (n < 8 || (n & (n - 1)) != 0))
		return v;
	return reallocarray(v, n < 8 ? 8 : 2 * n, size);
}

struct nft_chain *nft_table_chain(struct nft_table *t, const char *name)
{
	struct nft_chain *v = room(t->chains, t->n_chains,
				   NFT_MODEL_CHAINS_MAX, sizeof(*v));

	if (!v)
		return NULL;
	t->chains = v;
	v += t->n_chains++;
	*v = (struct nft_chain){ 0 };
	copy_name(v->name, name, sizeof(v->name));
	return v;
}

struct nft_set *nft_table_set(struct nft_table *t, const char *name,
			      uint8_t family)
{
	struct nft_set *v = room(t->sets, t->n_sets, NFT_MODEL_SETS_MAX,
				 sizeof(*v));

	if (!v)
		return NULL;
	t->sets = v;
	v += t->n_sets++;
	*v = (struct nft_set){ .family = family };
	copy_name(v->name, name, sizeof(v->name));
	return v;
}

struct nft_rule *nft_chain_rule(struct nft_chain *c)
{
	struct nft_rule *v = room(c->rules, c->n_rules, NFT_MODEL_RULES_MAX,
				  sizeof(*v));

	if (!v)
		return NULL;
	c->rules = v;
	v += c->n_rules++;
	v->n = 0;
	v->handle = 0;
	return v;
}

struct nft_chain *nft_table_find_chain(const struct nft_table *t,
				       const char *name)
{
	size_t i;

	for (i = 0; i < t->n_chains; i++)
		if (strcmp(t->chains[i].name, name) == 0)
			return &t->chains[i];
	return NULL;
}

struct nft_set *nft_table_find_set(const struct nft_table *t,
				   const char *name)
{
	size_t i;

	for (i = 0; i < t->n_sets; i++)
		if (strcmp(t->sets[i].name, name) == 0)
			return &t->sets[i];
	return NULL;
}

/* ---- sets ---- */

static size_t set_bytes(const struct nft_set *s)
{
	return s->family == AF_INET6 ? 16 : 4;
}

int nft_set_add_range(struct nft_set *s, const struct nft_range *range)
{
	struct nft_range *v = room(s->v, s->n, NFT_MODEL_ELEMS_MAX,
				   sizeof(*v));

	if (!v)
		return s->n >= NFT_MODEL_ELEMS_MAX ? -E2BIG : -ENOMEM;
	s->v = v;
	v[s->n++] = *range;
	return 0;
}

int nft_set_add(struct nft_set *s, const struct ip_prefix *prefix)
{
	struct nft_range r = { 0 };
	unsigned int i;

	if (prefix->addr.family != s->family)
		return 0;
	(void)memcpy(r.from, prefix->addr.bytes, set_bytes(s));
	(void)memcpy(r.to, r.from, sizeof(r.to));
	/* The host part: what is left of a byte, then whole bytes. */
	for (i = prefix->len / 8u; i < set_bytes(s); i++) {
		uint8_t host = i == prefix->len / 8u ?
				       (uint8_t)(0xffu >> prefix->len % 8) :
				       0xff;

		r.from[i] &= (uint8_t)~host;
		r.to[i] |= host;
	}
	return nft_set_add_range(s, &r);
}

static int range_order(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct nft_range));
}

/* Whether `next` is at most one behind `last`. */
static bool touches(const uint8_t *last, const uint8_t *next, size_t size)
{
	uint8_t after[16];
	size_t i = size;

	if (memcmp(next, last, size) <= 0)
		return true;
	(void)memcpy(after, last, size);
	while (i-- > 0)
		if (++after[i] != 0)
			break;
	return memcmp(next, after, size) == 0;
}

void nft_set_seal(struct nft_set *s)
{
	size_t size = set_bytes(s), i, n = 0;

	if (s->n == 0)
		return;
	qsort(s->v, s->n, sizeof(*s->v), range_order);
	for (i = 1; i < s->n; i++) {
		if (!touches(s->v[n].to, s->v[i].from, size))
			s->v[++n] = s->v[i];
		else if (memcmp(s->v[i].to, s->v[n].to, size) > 0)
			(void)memcpy(s->v[n].to, s->v[i].to, size);
	}
	s->n = n + 1;
}

/* ---- rules ---- */

static struct nft_expr *append(struct nft_rule *r, enum nft_op op)
{
	struct nft_expr *e;

	/* A rule cut short would match more than it says. */
	if (r->n >= NFT_MODEL_EXPRS_MAX) {
		e = &r->v[NFT_MODEL_EXPRS_MAX - 1];
		op = NFT_OP_OTHER;
	} else {
		e = &r->v[r->n++];
	}
	*e = (struct nft_expr){ .op = op };
	return e;
}

void nft_rule_meta(struct nft_rule *r, uint32_t key)
{
	append(r, NFT_OP_META)->key = key;
}

void nft_rule_payload(struct nft_rule *r, uint32_t base, uint32_t offset,
		      uint32_t len)
{
	struct nft_expr *e = append(r, NFT_OP_PAYLOAD);

	e->key = base;
	e->offset = offset;
	e->len = len;
}

static void set_data(struct nft_expr *e, const void *data, uint32_t len)
{
	if (len > sizeof(e->data)) {
		e->op = NFT_OP_OTHER;
		return;
	}
	e->len = len;
	(void)memcpy(e->data, data, len);
}

void nft_rule_mask(struct nft_rule *r, const void *mask, uint32_t len)
{
	set_data(append(r, NFT_OP_BITWISE), mask, len);
}

void nft_rule_cmp(struct nft_rule *r, uint32_t op, const void *data,
		  uint32_t len)
{
	struct nft_expr *e = append(r, NFT_OP_CMP);

	e->key = op;
	set_data(e, data, len);
}

void nft_rule_lookup(struct nft_rule *r, const char *set)
{
	struct nft_expr *e = append(r, NFT_OP_LOOKUP);

	copy_name(e->name, set, sizeof(e->name));
}

void nft_rule_verdict(struct nft_rule *r, int32_t verdict, const char *chain)
{
	struct nft_expr *e = append(r, NFT_OP_VERDICT);

	e->verdict = verdict;
	if (chain)
		copy_name(e->name, chain, sizeof(e->name));
}

void nft_rule_counter(struct nft_rule *r)
{
	(void)append(r, NFT_OP_COUNTER);
}

void nft_rule_other(struct nft_rule *r, const char *name)
{
	struct nft_expr *e = append(r, NFT_OP_OTHER);

	copy_name(e->name, name, sizeof(e->name));
}

static bool expr_equal(const struct nft_expr *a, const struct nft_expr *b)
{
	if (a->op != b->op)
		return false;
	switch (a->op) {
	case NFT_OP_META:
		return a->key == b->key;
	case NFT_OP_PAYLOAD:
		return a->key == b->key && a->offset == b->offset &&
		       a->len == b->len;
	case NFT_OP_BITWISE:
	case NFT_OP_CMP:
		return a->key == b->key && a->len == b->len &&
		       memcmp(a->data, b->data, a->len) == 0;
	case NFT_OP_LOOKUP:
		return a->flags == b->flags && strcmp(a->name, b->name) == 0;
	case NFT_OP_VERDICT:
		return a->verdict == b->verdict &&
		       strcmp(a->name, b->name) == 0;
	case NFT_OP_COUNTER:
		return true;
	case NFT_OP_OTHER:
	case NFT_OP_MAX:
		break;
	}
	return false;
}

bool nft_rule_equal(const struct nft_rule *a, const struct nft_rule *b)
{
	size_t i;

	if (a->n != b->n)
		return false;
	for (i = 0; i < a->n; i++)
		if (!expr_equal(&a->v[i], &b->v[i]))
			return false;
	return true;
}
