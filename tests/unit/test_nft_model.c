/* nl/nft_*: rules and sets out and back, comparison, foreign content. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>

#include "agent/nl/nft_batch.h"
#include "agent/nl/nft_msg.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static struct ip_prefix prefix(const char *text)
{
	struct ip_prefix p;

	assert_int_equal(ip_prefix_parse(text, &p), 0);
	return p;
}

static void add_prefix(struct nft_set *s, const char *text)
{
	struct ip_prefix p = prefix(text);

	assert_int_equal(nft_set_add(s, &p), 0);
}

static void fill_rule(struct nft_rule *r)
{
	static const uint32_t mask = 0x3f00, mark = 0x2000;
	static const char device[16] = "wg0";

	nft_rule_meta(r, NFT_META_MARK);
	nft_rule_mask(r, &mask, sizeof(mask));
	nft_rule_cmp(r, NFT_CMP_EQ, &mark, sizeof(mark));
	nft_rule_meta(r, NFT_META_OIFNAME);
	nft_rule_cmp(r, NFT_CMP_NEQ, device, sizeof(device));
	nft_rule_payload(r, NFT_PAYLOAD_NETWORK_HEADER, 12, 4);
	nft_rule_lookup(r, "src4_vpn");
	nft_rule_counter(r);
	nft_rule_verdict(r, NFT_JUMP, "class_vpn");
}

static void sample(struct nft_table *t)
{
	struct nft_chain *c;
	struct nft_rule *r;
	struct nft_set *s;

	*t = (struct nft_table){ .family = NFPROTO_INET, .name = "garboard" };
	s = nft_table_set(t, "src4_vpn", AF_INET);
	add_prefix(s, "10.44.0.0/20");
	add_prefix(s, "192.0.2.7");
	nft_set_seal(s);
	s = nft_table_set(t, "src6_vpn", AF_INET6);
	add_prefix(s, "fd44::/64");
	add_prefix(s, "ff00::/8");	/* up to the last address there is */
	nft_set_seal(s);
	c = nft_table_chain(t, "output");
	c->base = true;
	c->hook = NF_INET_LOCAL_OUT;
	c->policy = NF_ACCEPT;
	(void)strcpy(c->type, "filter");
	(void)nft_table_chain(t, "class_vpn");
	c = nft_table_find_chain(t, "output");
	fill_rule(nft_chain_rule(c));
	r = nft_chain_rule(nft_table_find_chain(t, "class_vpn"));
	nft_rule_verdict(r, NF_DROP, NULL);
	t->use = (uint32_t)(t->n_chains + t->n_sets);
}

/* Decodes every message of a batch, as if the kernel had listed it. */
static void decode_batch(const struct nft_batch *b, struct nft_table *t)
{
	struct nft_bounds bounds = { 0 };
	const struct nlmsghdr *nlh = (const void *)b->buf;
	int left = (int)b->size;
	struct nft_set *s;

	*t = (struct nft_table){ .family = NFPROTO_INET, .name = "garboard" };
	for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		switch (nlh->nlmsg_type & 0xff) {
		case NFT_MSG_NEWCHAIN:
			assert_int_equal(nft_chain_decode(nlh, t), 0);
			break;
		case NFT_MSG_NEWRULE:
			assert_int_equal(nft_rule_decode(nlh, t), 0);
			break;
		case NFT_MSG_NEWSET:
			assert_int_equal(nft_set_decode(nlh, t), 0);
			break;
		case NFT_MSG_NEWSETELEM:
			assert_int_equal(nft_bounds_decode(nlh, &bounds), 0);
			s = &t->sets[t->n_sets - 1];
			assert_int_equal(nft_bounds_join(&bounds, s), 0);
			bounds.n = 0;
			break;
		}
	}
	t->use = (uint32_t)(t->n_chains + t->n_sets);
	free(bounds.v);
}

static void round_trip(void **state)
{
	char text[NFT_MODEL_TEXT_MAX];
	struct nft_table t, back;
	struct nft_batch b;

	(void)state;
	sample(&t);
	nft_batch_init(&b);
	nft_batch_fill_table(&b, &t);
	assert_int_equal(b.err, 0);
	decode_batch(&b, &back);
	if (!nft_table_same(&back, &t, text))
		fail_msg("%s", text);
	nft_table_done(&back);
	nft_table_done(&t);
	nft_batch_done(&b);
}

static void every_property_counts(void **state)
{
	struct nft_rule a = { .n = 0 };
	size_t i;

	(void)state;
	fill_rule(&a);
	assert_true(nft_rule_equal(&a, &a));
	for (i = 0; i < a.n; i++) {
		struct nft_rule b = a;

		switch (b.v[i].op) {
		case NFT_OP_META:
			b.v[i].key++;
			break;
		case NFT_OP_PAYLOAD:
			b.v[i].offset += 4;
			assert_false(nft_rule_equal(&a, &b));
			b = a;
			b.v[i].len--;
			assert_false(nft_rule_equal(&a, &b));
			b = a;
			b.v[i].key++;
			break;
		case NFT_OP_BITWISE:
			b.v[i].data[1] ^= 1;
			break;
		case NFT_OP_CMP:
			b.v[i].data[0] ^= 1;
			assert_false(nft_rule_equal(&a, &b));
			b = a;
			b.v[i].len--;
			assert_false(nft_rule_equal(&a, &b));
			b = a;
			b.v[i].key ^= 1;
			break;
		case NFT_OP_LOOKUP:
			b.v[i].flags = NFT_LOOKUP_F_INV;
			assert_false(nft_rule_equal(&a, &b));
			b = a;
			b.v[i].name[0] = 'x';
			break;
		case NFT_OP_VERDICT:
			b.v[i].verdict = NFT_GOTO;
			assert_false(nft_rule_equal(&a, &b));
			b = a;
			b.v[i].name[0] = 'x';
			break;
		case NFT_OP_COUNTER:
		case NFT_OP_OTHER:
		case NFT_OP_MAX:
			b.v[i].op = NFT_OP_OTHER;
			break;
		}
		assert_false(nft_rule_equal(&a, &b));
		b = a;
		b.n = i;
		assert_false(nft_rule_equal(&a, &b));
	}
}

/* A rule that does not fit is never a shorter rule. */
static void full_rule_is_foreign(void **state)
{
	struct nft_rule a = { .n = 0 };
	int i;

	(void)state;
	for (i = 0; i < NFT_MODEL_EXPRS_MAX + 1; i++)
		nft_rule_counter(&a);
	assert_int_equal(a.n, NFT_MODEL_EXPRS_MAX);
	assert_int_equal(a.v[a.n - 1].op, NFT_OP_OTHER);
	assert_false(nft_rule_equal(&a, &a));
}

static void sets_are_joined(void **state)
{
	static const struct {
		const char *in[4];
		size_t n;
		uint8_t to;	/* last byte of the first range's end */
	} t[] = {
		{ { "10.0.0.0/25", "10.0.0.128/25" }, 1, 255 },
		{ { "10.0.0.0/24", "10.0.0.16/28" }, 1, 255 },
		{ { "10.0.0.8", "10.0.0.0/29" }, 1, 8 },
		{ { "10.0.0.0/29", "10.0.0.16/29" }, 2, 7 },
		{ { "0.0.0.0/0", "255.255.255.255", "10.0.0.1" }, 1, 255 },
		{ { "10.0.0.1", "10.0.0.1", "fd00::/8" }, 1, 1 },
	};
	size_t i, j;

	(void)state;
	for (i = 0; i < N(t); i++) {
		struct nft_set s = { .family = AF_INET };

		for (j = 0; j < N(t[i].in) && t[i].in[j]; j++)
			add_prefix(&s, t[i].in[j]);
		nft_set_seal(&s);
		assert_int_equal(s.n, t[i].n);
		assert_int_equal(s.v[0].to[3], t[i].to);
		free(s.v);
	}
}

static void differences_are_named(void **state)
{
	char text[NFT_MODEL_TEXT_MAX];
	struct nft_table a, b;

	(void)state;
	sample(&a);
	sample(&b);
	assert_true(nft_table_same(&a, &b, text));
	a.flags = NFT_TABLE_F_DORMANT;
	assert_false(nft_table_same(&a, &b, text));
	assert_non_null(strstr(text, "dormant"));
	a.flags = NFT_TABLE_OWNED;
	assert_true(nft_table_same(&a, &b, text));
	a.use++;
	assert_false(nft_table_same(&a, &b, text));
	a.use--;
	a.chains[0].odd = true;
	assert_false(nft_table_same(&a, &b, text));
	a.chains[0].odd = false;
	a.chains[0].base = false;
	assert_false(nft_table_same(&a, &b, text));
	assert_non_null(strstr(text, "not hooked"));
	a.chains[0].base = true;
	/* A chain whose device went is there, and sees nothing. */
	(void)strcpy(b.chains[0].device, "eth0");
	assert_false(nft_table_same(&a, &b, text));
	assert_non_null(strstr(text, "hooked on \"\""));
	nft_table_done(&a);
	nft_table_done(&b);
}

static void bounds_that_do_not_pair_are_odd(void **state)
{
	static const struct nft_bound odd[][2] = {
		{ { .key = { 10 }, .end = true }, { .key = { 11 } } },
		{ { .key = { 10 } }, { .key = { 11 } } },
	};
	size_t i;

	(void)state;
	for (i = 0; i < N(odd); i++) {
		struct nft_bounds b = { .n = 2 };
		struct nft_set s = { .family = AF_INET };

		b.v = malloc(sizeof(odd[i]));
		(void)memcpy(b.v, odd[i], sizeof(odd[i]));
		assert_int_equal(nft_bounds_join(&b, &s), 0);
		assert_true(s.odd);
		free(b.v);
		free(s.v);
	}
}

/* Cut anywhere, a message is refused or marked, never read beyond. */
static void truncated(void **state)
{
	struct nft_table t, back;
	struct nft_batch b;
	const struct nlmsghdr *nlh;
	int left;

	(void)state;
	sample(&t);
	nft_batch_init(&b);
	nft_batch_fill_table(&b, &t);
	nlh = (const void *)b.buf;
	left = (int)b.size;
	for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		uint32_t n;

		for (n = 0; n < nlh->nlmsg_len; n++) {
			struct nlmsghdr *cut = malloc(nlh->nlmsg_len);
			struct nft_bounds bounds = { 0 };
			struct nft_gen gen;

			(void)memcpy(cut, nlh, nlh->nlmsg_len);
			cut->nlmsg_len = n;
			sample(&back);
			(void)nft_chain_decode(cut, &back);
			(void)nft_rule_decode(cut, &back);
			(void)nft_set_decode(cut, &back);
			(void)nft_bounds_decode(cut, &bounds);
			(void)nft_gen_decode(cut, &gen);
			nft_table_done(&back);
			free(bounds.v);
			free(cut);
		}
	}
	nft_table_done(&t);
	nft_batch_done(&b);
}

static void foreign_rule_cannot_be_made(void **state)
{
	struct nft_table t;
	struct nft_batch b;

	(void)state;
	sample(&t);
	nft_rule_other(nft_chain_rule(&t.chains[0]), "masq");
	nft_batch_init(&b);
	nft_batch_fill_table(&b, &t);
	assert_int_equal(b.err, -EINVAL);
	assert_int_equal(nft_batch_commit(&b, NULL, NULL), -EINVAL);
	nft_batch_done(&b);
	nft_table_done(&t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(every_property_counts),
		cmocka_unit_test(full_rule_is_foreign),
		cmocka_unit_test(sets_are_joined),
		cmocka_unit_test(differences_are_named),
		cmocka_unit_test(bounds_that_do_not_pair_are_odd),
		cmocka_unit_test(truncated),
		cmocka_unit_test(foreign_rule_cannot_be_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
