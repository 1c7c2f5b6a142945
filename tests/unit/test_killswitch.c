/* res/killswitch: which devices, which tables, and the plan. */
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

#include "agent/res/killswitch_plan.h"
#include "agent/res/killswitch_tables.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const char vpn[] =
	"garboard-armed-1\nlocal 10.0.0.0/8\nclass vpn\n"
	"tunnel wg0 0 51820 18200\ngateway\nmark 0x2000 0x3f00\n"
	"pods 10.44.0.0/20\ndns 10.64.0.1\nend\n";
static const char two_uplinks[] =
	"garboard-armed-1\nuplink eth0\nuplink eth1\nclass vpn\n"
	"pods 10.44.0.0/20\nend\n";
static const char nothing[] = "garboard-armed-1\nend\n";

/* The record's text is also the shortest way to write an egress down. */
static void parse(const char *text, struct armed *a)
{
	assert_int_equal(armed_parse(text, a, NULL), 0);
}

static void uplinks_by_hardware_and_what_stands_on_it(void **state)
{
	struct rtnl_link v[] = {
		{ .index = 1, .name = "lo" },
		{ .index = 2, .name = "eth0", .hardware = true, .master = 5 },
		{ .index = 3, .name = "eth1", .hardware = true },
		{ .index = 4, .name = "veth0", .kind = "veth", .master = 6 },
		{ .index = 5, .name = "bond0", .kind = "bond" },
		{ .index = 6, .name = "cni0", .kind = "bridge" },
		{ .index = 7, .name = "bond0.5", .kind = "vlan", .lower = 5 },
		{ .index = 8, .name = "v6", .kind = "vlan", .lower = 7 },
		{ .index = 9, .name = "wg0", .kind = "wireguard",
		  .hardware = true },
		{ .index = 10, .name = "mv0", .kind = "macvlan", .lower = 3 },
	};
	static const char *const expected[] = { "bond0", "bond0.5", "eth0",
						"eth1", "v6" };
	struct rtnl_links links = { v, N(v) };
	struct strlist names = STRLIST_INIT;
	struct armed a = ARMED_INIT;
	size_t i;

	(void)state;
	parse(vpn, &a);
	assert_int_equal(killswitch_uplinks(&a.d->egress, &links, &names), 0);
	assert_int_equal(names.n, N(expected));
	for (i = 0; i < names.n; i++)
		assert_string_equal(names.v[i], expected[i]);
	strlist_done(&names);
	armed_done(&a);

	parse(two_uplinks, &a);
	assert_int_equal(killswitch_uplinks(&a.d->egress, &links, &names), 0);
	assert_int_equal(names.n, 2);
	strlist_done(&names);
	armed_done(&a);
}

/* A23, A24: policy accept, and no drop outside the chain of a class. */
static void every_drop_is_scoped(void **state)
{
	struct armed a = ARMED_INIT;
	struct nft_table t = { 0 };
	size_t i, j, k, drops = 0;
	int device;

	(void)state;
	parse(vpn, &a);
	for (device = 0; device < 2; device++) {
		assert_int_equal(killswitch_table(&a.d->egress,
						  device ? "eth0" : NULL,
						  &t), 0);
		assert_true(killswitch_is_ours(&t));
		for (i = 0; i < t.n_chains; i++) {
			const struct nft_chain *c = &t.chains[i];

			if (c->base)
				assert_int_equal(c->policy, NF_ACCEPT);
			assert_int_equal(c->base,
					 strncmp(c->name, "class_", 6) != 0);
			for (j = 0; j < c->n_rules; j++)
				for (k = 0; k < c->rules[j].n; k++) {
					const struct nft_expr *e =
						&c->rules[j].v[k];

					assert_int_not_equal(e->op,
							     NFT_OP_OTHER);
					if (e->op != NFT_OP_VERDICT ||
					    e->verdict != NF_DROP)
						continue;
					assert_false(c->base);
					drops++;
				}
		}
		nft_table_done(&t);
	}
	assert_int_equal(drops, 10);
	armed_done(&a);
}

static void empty_class_matches_nobody(void **state)
{
	struct armed a = ARMED_INIT;
	struct nft_table t = { 0 };
	size_t i;

	(void)state;
	parse("garboard-armed-1\nclass vpn\nend\n", &a);
	assert_int_equal(killswitch_table(&a.d->egress, NULL, &t), 0);
	for (i = 0; i < t.n_chains; i++)
		assert_int_equal(t.chains[i].n_rules, 0);
	nft_table_done(&t);
	armed_done(&a);
}

/* ---- the plan ---- */

/* What the kernel has, in words: '-' nothing, '=' right, '!' wrong. */
struct scene {
	const char *name;
	const char *want;
	const char *record;	/* NULL: none; "": damaged */
	char inet, eth0;
	bool eth0_present;
	bool owned_by_nobody;	/* a resident looks at its orphans */
	const char *changes;	/* "op key\n"... */
	const char *blocked;	/* key of an item that must be blocked */
};

static const struct scene scenes[] = {
	{ "nothing at all", nothing, NULL, '-', '-', true, false, "", NULL },
	{ "first", vpn, NULL, '-', '-', true, false,
	  "add armed record\nadd table inet garboard\n"
	  "add table netdev garboard_egress_eth0\n", NULL },
	{ "in sync", vpn, vpn, '=', '=', true, false, "", NULL },
	{ "rule flipped", vpn, vpn, '!', '=', true, false,
	  "set table inet garboard\n", NULL },
	{ "egress flipped", vpn, vpn, '=', '!', true, false,
	  "set table netdev garboard_egress_eth0\n", NULL },
	{ "device away keeps its table", vpn, vpn, '=', '=', false, false,
	  "", NULL },
	{ "orphans are adopted", vpn, vpn, '=', '=', true, true,
	  "set owner of table inet garboard\n"
	  "set owner of table netdev garboard_egress_eth0\n", NULL },
	{ "a wrong orphan is replaced, not adopted", vpn, vpn, '!', '=',
	  true, true, "set table inet garboard\n"
	  "set owner of table netdev garboard_egress_eth0\n", NULL },
	{ "section missing", nothing, vpn, '=', '=', true, false, "",
	  "class vpn" },
	{ "section missing, flushed", nothing, vpn, '-', '-', true, false,
	  "add table inet garboard\nadd table netdev garboard_egress_eth0\n",
	  "class vpn" },
	{ "record lost", nothing, NULL, '=', '=', true, false, "",
	  "table inet garboard" },
	{ "record damaged", nothing, "", '=', '=', true, false, "",
	  "table inet garboard" },
	{ "record damaged, wanted", vpn, "", '-', '-', true, false,
	  "add table inet garboard\nadd table netdev garboard_egress_eth0\n",
	  NULL },
	{ "record damaged, different", vpn, "", '!', '=', true, false, "",
	  "table inet garboard" },
	{ "disarmed", vpn, "garboard-armed-1\ndisarmed vpn\nend\n", '=', '=',
	  true, false,
	  "set armed record\nremove table inet garboard\n"
	  "remove table netdev garboard_egress_eth0\n", "class vpn" },
};

static void add_table(struct killswitch_seen *s, const char *egress,
		      const char *device, char how, bool nobody)
{
	struct nft_tables *tables = &s->view->tables;
	struct armed a = ARMED_INIT;
	struct nft_table *t;

	if (how == '-')
		return;
	parse(egress, &a);
	tables->v = reallocarray(tables->v, tables->n + 1, sizeof(*t));
	t = &tables->v[tables->n++];
	assert_int_equal(killswitch_table(&a.d->egress, device, t), 0);
	t->use = (uint32_t)(t->n_chains + t->n_sets);
	t->flags = nobody ? NFT_TABLE_PERSIST : NFT_TABLE_OWNED;
	t->owner = nobody ? 0 : s->portid;
	if (how == '!')
		t->chains[t->n_chains - 1].n_rules--;
	armed_done(&a);
}

static void play(const struct scene *sc)
{
	struct killswitch_seen s = { .own = true, .portid = 77 };
	struct rtnl_link link = { .index = 2, .name = "eth0",
				  .hardware = true };
	struct item_list items = ITEM_LIST_INIT;
	struct change_list changes = CHANGE_LIST_INIT;
	struct armed want = ARMED_INIT;
	char text[1024] = "";
	struct item *it;
	size_t used = 0, i;

	parse(sc->want, &want);
	if (sc->record && sc->record[0])
		parse(sc->record, &s.record);
	else
		s.record.d = desired_new();
	if (sc->record && !sc->record[0])
		(void)fault_set(&s.record_fault, -EBADMSG, "record", "bad");
	s.links = (struct rtnl_links){ &link, sc->eth0_present };
	s.view = calloc(1, sizeof(*s.view));
	s.view->refs = 1;
	add_table(&s, vpn, NULL, sc->inet, sc->owned_by_nobody);
	add_table(&s, vpn, "eth0", sc->eth0, sc->owned_by_nobody);
	assert_int_equal(killswitch_plan(want.d, &s, &items, &changes, NULL),
			 0);
	for (i = 0; i < changes.n; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s %s\n",
					 change_op_name(changes.v[i].op),
					 changes.v[i].key);
	if (strcmp(text, sc->changes) != 0)
		fail_msg("%s: planned\n%s", sc->name, text);
	it = sc->blocked ? item_list_find(&items, sc->blocked) : NULL;
	if (sc->blocked && (!it || it->state != ITEM_BLOCKED))
		fail_msg("%s: %s is not blocked", sc->name, sc->blocked);
	item_list_done(&items);
	change_list_done(&changes);
	s.view = nft_view_unref(s.view);
	armed_done(&s.record);
	armed_done(&want);
}

static void plans(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < N(scenes); i++)
		play(&scenes[i]);
}

static void unreadable_is_never_absent(void **state)
{
	struct killswitch_seen s = { .portid = 77 };
	struct item_list items = ITEM_LIST_INIT;
	struct change_list changes = CHANGE_LIST_INIT;
	struct armed want = ARMED_INIT;

	(void)state;
	parse(vpn, &want);
	parse(vpn, &s.record);
	(void)fault_set(&s.tables_fault, -EAGAIN, "nftables", "unstable");
	assert_int_equal(killswitch_plan(want.d, &s, &items, &changes, NULL),
			 0);
	assert_int_equal(changes.n, 0);
	assert_int_equal(item_list_worst(&items), ITEM_UNOBSERVABLE);
	item_list_done(&items);
	armed_done(&s.record);
	armed_done(&want);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(uplinks_by_hardware_and_what_stands_on_it),
		cmocka_unit_test(every_drop_is_scoped),
		cmocka_unit_test(empty_class_matches_nobody),
		cmocka_unit_test(plans),
		cmocka_unit_test(unreadable_is_never_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
