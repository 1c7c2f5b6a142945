/* Comparison and text of the values of nft_model.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/nl/nft_model.h"

static bool differ(char *text, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static bool differ(char *text, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, NFT_MODEL_TEXT_MAX, fmt, ap);
	va_end(ap);
	return false;
}

static int append_data(char *text, size_t room, const struct nft_expr *e)
{
	size_t i, n = 0;

	for (i = 0; i < e->len && i < sizeof(e->data) && n + 3 < room; i++)
		n += (size_t)snprintf(text + n, room - n, "%02x", e->data[i]);
	return (int)n;
}

static int format_expr(char *text, size_t room, const struct nft_expr *e)
{
	char data[2 * sizeof(e->data) + 1] = "";

	(void)append_data(data, sizeof(data), e);
	switch (e->op) {
	case NFT_OP_META:
		return snprintf(text, room, " meta(%u)", e->key);
	case NFT_OP_PAYLOAD:
		return snprintf(text, room, " payload(%u+%u,%u)", e->key,
				e->offset, e->len);
	case NFT_OP_BITWISE:
		return snprintf(text, room, " &0x%s", data);
	case NFT_OP_CMP:
		return snprintf(text, room, " cmp(%u) 0x%s", e->key, data);
	case NFT_OP_LOOKUP:
		return snprintf(text, room, " %s@%s",
				e->flags ? "not " : "", e->name);
	case NFT_OP_VERDICT:
		return snprintf(text, room, " verdict(%d) %s", e->verdict,
				e->name);
	case NFT_OP_COUNTER:
		return snprintf(text, room, " counter");
	case NFT_OP_OTHER:
	case NFT_OP_MAX:
		break;
	}
	return snprintf(text, room, " foreign(%s)", e->name);
}

const char *nft_rule_format(const struct nft_rule *r, char *text)
{
	size_t used = 0, i;

	text[0] = '\0';
	for (i = 0; i < r->n && used < NFT_MODEL_TEXT_MAX; i++)
		used += (size_t)format_expr(text + used,
					    NFT_MODEL_TEXT_MAX - used,
					    &r->v[i]);
	return text[0] == ' ' ? text + 1 : text;
}

static bool same_rules(const struct nft_chain *have,
		       const struct nft_chain *want, char *text)
{
	char rule[NFT_MODEL_TEXT_MAX];
	size_t i;

	for (i = 0; i < want->n_rules && i < have->n_rules; i++)
		if (!nft_rule_equal(&have->rules[i], &want->rules[i]))
			return differ(text, "chain %s: rule %zu is \"%.300s\"",
				      want->name, i + 1,
				      nft_rule_format(&have->rules[i], rule));
	if (have->n_rules != want->n_rules)
		return differ(text, "chain %s: %zu rules instead of %zu",
			      want->name, have->n_rules, want->n_rules);
	return true;
}

static bool same_hook(const struct nft_chain *have,
		      const struct nft_chain *want, char *text)
{
	if (have->base != want->base)
		return differ(text, "chain %s: %s", want->name,
			      want->base ? "not hooked" : "hooked");
	if (!want->base)
		return true;
	/* The device in the listing, not the chain, says what is seen. */
	if (strcmp(have->device, want->device) != 0)
		return differ(text, "chain %s: hooked on \"%s\"", want->name,
			      have->device);
	if (have->hook != want->hook || have->priority != want->priority ||
	    strcmp(have->type, want->type) != 0)
		return differ(text, "chain %s: type %s hook %u priority %d",
			      want->name, have->type, have->hook,
			      have->priority);
	if (have->policy != want->policy)
		return differ(text, "chain %s: policy %u", want->name,
			      have->policy);
	return true;
}

static bool same_chain(const struct nft_chain *have,
		       const struct nft_chain *want, char *text)
{
	if (have->odd)
		return differ(text, "chain %s: has foreign properties",
			      want->name);
	return same_hook(have, want, text) && same_rules(have, want, text);
}

static bool same_set(const struct nft_set *have, const struct nft_set *want,
		     char *text)
{
	if (have->odd || have->family != want->family)
		return differ(text, "set %s: of another kind", want->name);
	if (have->n != want->n ||
	    (want->n &&
	     memcmp(have->v, want->v, want->n * sizeof(*want->v)) != 0))
		return differ(text, "set %s: other elements (%zu ranges)",
			      want->name, have->n);
	return true;
}

bool nft_table_same(const struct nft_table *have,
		    const struct nft_table *want, char *text)
{
	size_t i;

	if (have->flags & NFT_TABLE_F_DORMANT)
		return differ(text, "table is dormant");
	for (i = 0; i < want->n_chains; i++) {
		const struct nft_chain *c =
			nft_table_find_chain(have, want->chains[i].name);

		if (!c)
			return differ(text, "chain %s is missing",
				      want->chains[i].name);
		if (!same_chain(c, &want->chains[i], text))
			return false;
	}
	for (i = 0; i < want->n_sets; i++) {
		const struct nft_set *s =
			nft_table_find_set(have, want->sets[i].name);

		if (!s)
			return differ(text, "set %s is missing",
				      want->sets[i].name);
		if (!same_set(s, &want->sets[i], text))
			return false;
	}
	if (have->n_chains != want->n_chains || have->n_sets != want->n_sets ||
	    have->use != want->n_chains + want->n_sets)
		return differ(text, "foreign chains, sets or objects in it");
	return true;
}
