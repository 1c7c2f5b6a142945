/* The kill-switch against a real kernel: what leaves, what is repaired. */
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
#include <linux/netlink.h>

#include "agent/armed.h"
#include "agent/nl/nft.h"
#include "agent/res/killswitch.h"
#include "agent/res/killswitch_tables.h"
#include "world.h"

#define INET "table inet garboard"
#define EGRESS "table netdev garboard_egress_up0"
#define OUT "198.51.100.1"
#define OUT6 "2001:db8:ffff::1"

struct fixture {
	struct run run;
	struct desired *want;
};

static int setup(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	world_make();
	x->want = sample_desired(true);
	run_open(&x->run, &resource_killswitch, false);
	*state = x;
	return 0;
}

static int setup_resident(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	world_make();
	x->want = sample_desired(true);
	run_open(&x->run, &resource_killswitch, true);
	run_watch(&x->run, x->want);
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *x = *state;

	run_close(&x->run);
	x->want = desired_free(x->want);
	free(x);
	world_done();
	return 0;
}

static void nothing_wanted_nothing_done(void **state)
{
	struct fixture *x = *state;
	struct desired *none = desired_new();
	char *text;

	assert_int_equal(run_plan(&x->run, none, NULL, NULL), 0);
	run_converge(&x->run, none);
	text = sh_text("nft list ruleset");
	assert_string_equal(text, "");
	free(text);
	(void)desired_free(none);
}

static void converges_and_second_run_changes_nothing(void **state)
{
	struct fixture *x = *state;
	char *a, *b;

	assert_int_equal(run_plan(&x->run, x->want, NULL, NULL), 3);
	run_converge(&x->run, x->want);
	run_reopen(&x->run);
	a = sh_text("nft -a list ruleset");
	assert_int_equal(run_plan(&x->run, x->want, NULL, NULL), 0);
	run_converge(&x->run, x->want);
	b = sh_text("nft -a list ruleset");
	assert_string_equal(a, b);
	assert_non_null(strstr(a, "policy accept"));
	free(a);
	free(b);
}

/* A positive control first: without the block each of these leaves. */
static void nothing_of_the_class_leaves(void **state)
{
	struct fixture *x = *state;
	enum path p;

	for (p = 0; p < PATH_MAX; p++) {
		const char *v4 = p == PATH_FORWARD ? "10.44.0.6" : "10.44.0.5";
		const char *v6 = p == PATH_FORWARD ? "fd44::6" : "fd44::5";

		if (!leaves(p, v4, OUT, 1000) || !leaves(p, v6, OUT6, 1000))
			fail_msg("control: path %d does not leave", p);
	}
	assert_true(leaves_marked(0x2001, OUT, 1000));
	run_converge(&x->run, x->want);
	for (p = 0; p < PATH_MAX; p++) {
		const char *v4 = p == PATH_FORWARD ? "10.44.0.6" : "10.44.0.5";
		const char *v6 = p == PATH_FORWARD ? "fd44::6" : "fd44::5";

		if (leaves(p, v4, OUT, 1000) || leaves(p, v6, OUT6, 1000))
			fail_msg("path %d leaves", p);
	}
	assert_false(leaves_marked(0x2001, OUT, 1000));
	assert_true(leaves_marked(0x1001, OUT, 1000));
	assert_true(leaves(PATH_OUTPUT, "", OUT, 1000));
	assert_true(leaves(PATH_OUTPUT, "", OUT6, 1000));
}

static void ks08_local_range_never_implies_dns(void **state)
{
	static const int dns[] = { 53, 853 };
	struct fixture *x = *state;
	size_t i;

	run_converge(&x->run, x->want);
	assert_true(leaves(PATH_OUTPUT, "10.44.0.5", "192.0.2.53", 1000));
	assert_true(leaves(PATH_FORWARD, "10.44.0.6", "192.0.2.53", 1000));
	for (i = 0; i < 2; i++) {
		assert_false(leaves(PATH_OUTPUT, "10.44.0.5", "192.0.2.53",
				    dns[i]));
		assert_false(leaves(PATH_RAW, "10.44.0.5", "192.0.2.53",
				    dns[i]));
		assert_true(leaves(PATH_OUTPUT, "", "192.0.2.53", dns[i]));
	}
}

/* Through its tunnel the class may go; resolvers only the listed ones. */
static void tunnel_passes_and_falls_closed(void **state)
{
	struct fixture *x = *state;

	run_converge(&x->run, x->want);
	world_tunnel();
	sh("ip route replace default dev wg0");
	sh("nft add table inet probe; nft add chain inet probe out "
	   "'{ type filter hook postrouting priority 300; }';"
	   "nft add rule inet probe out oifname wg0 udp dport 1000 counter;"
	   "nft add rule inet probe out oifname wg0 udp dport 53 counter");
	send_from("10.44.0.5", OUT, 1000);
	send_from("10.44.0.5", "10.64.0.1", 53);
	send_from("10.44.0.5", "9.9.9.9", 53);
	sh("nft list chain inet probe out | grep -q 'dport 1000 counter "
	   "packets [1-9]'");
	sh("nft list chain inet probe out | grep -q 'dport 53 counter packets "
	   "1 '");
	sh("ip link del wg0; ip route replace default via 192.0.2.254");
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
}

/* A worker that is no gateway has no tunnel, whatever it is called. */
static void no_gateway_no_tunnel(void **state)
{
	struct fixture *x = *state;

	x->want->egress.classes[0].gateway = false;
	run_converge(&x->run, x->want);
	assert_int_equal(sh_status("nft list ruleset | grep -q wg0"), 1);
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
}

static const char foreign[] =
	"nft -f - <<'N'\n"
	"add table ip nat\n"
	"add chain ip nat post { type nat hook postrouting priority 100; }\n"
	"add rule ip nat post oifname up9 masquerade\n"
	"add table ip filter\n"
	"add counter ip filter c { packets 5 bytes 6; }\n"
	"add chain ip filter in { type filter hook input priority 0; }\n"
	"add rule ip filter in counter name c\n"
	"add table ip garboard\n"
	"add chain ip garboard x\n"
	"add rule ip garboard x counter packets 7 bytes 8 drop\n"
	"add table bridge other\n"
	"add set bridge other s { type ether_addr; }\n"
	"N";
#define LIST_FOREIGN "for t in 'ip nat' 'ip filter' 'ip garboard' " \
	"'bridge other'; do nft -a list table $t; done"

static void ks15_foreign_tables_stay_identical(void **state)
{
	struct fixture *x = *state;
	struct fault f = FAULT_INIT;
	char *a, *b;

	sh("%s", foreign);
	a = sh_text(LIST_FOREIGN);
	run_converge(&x->run, x->want);
	x->want->egress.classes[0].mark = 0x2100;
	run_converge(&x->run, x->want);
	assert_int_equal(armed_disarm(x->run.dir, "vpn", &f), 0);
	run_converge(&x->run, x->want);
	b = sh_text(LIST_FOREIGN);
	assert_string_equal(a, b);
	assert_int_equal(sh_status("nft list table inet garboard 2>/dev/null"),
			 1);
	free(a);
	free(b);
}

static void ks14_flush_ruleset_comes_back(void **state)
{
	struct fixture *x = *state;

	run_converge(&x->run, x->want);
	while (sd_event_run(x->run.event, 0) > 0)
		;
	assert_int_equal(sh_status("nft flush ruleset"), 0);
	/* Owned tables are passed over; plain ones go, and that is told. */
	if (run_plan(&x->run, x->want, NULL, NULL))
		assert_true(run_wait(&x->run));
	run_converge(&x->run, x->want);
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
}

static void ks14_owner_refuses_others(void **state)
{
	struct fixture *x = *state;
	struct nft_view *v = NULL;
	struct nl_sock *s = NULL;
	bool owned;

	run_converge(&x->run, x->want);
	assert_int_equal(nl_sock_open(NETLINK_NETFILTER, &s, NULL), 0);
	assert_int_equal(nft_read(s, killswitch_is_ours, &v, NULL), 0);
	owned = v->tables.n == 2 &&
		(v->tables.v[0].flags & NFT_TABLE_F_OWNER);
	(void)nft_view_unref(v);
	(void)nl_sock_free(s);
	if (!owned) {
		print_message("# the kernel has no owner|persist: plain\n");
		return;
	}
	assert_int_not_equal(sh_status("nft delete table inet garboard "
				       "2>/dev/null"), 0);
	assert_int_equal(sh_status("nft flush ruleset"), 0);
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
	assert_int_equal(run_plan(&x->run, x->want, NULL, NULL), 0);
}

/* Each tampering is told by an event, named, and undone. */
static void ks14_tampering_is_seen_and_undone(void **state)
{
	static const char *const how[] = {
		"nft flush ruleset",
		"nft delete table inet garboard",
		"nft delete table netdev garboard_egress_up0",
		"nft flush chain inet garboard output",
		"nft delete chain netdev garboard_egress_up0 egress",
		"nft insert rule inet garboard class_vpn accept",
		"nft add chain inet garboard mine",
		"nft 'add chain inet garboard output { policy drop; }'",
		"nft 'add set inet garboard s { type mark; }'",
	};
	struct fixture *x = *state, resident = { 0 };
	size_t i;

	/* Tables of a one-shot stay plain orphans, open to anybody. */
	run_open(&resident.run, &resource_killswitch, true);
	run_watch(&resident.run, x->want);
	for (i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		run_converge(&x->run, x->want);
		run_reopen(&x->run);	/* lets go of the tables */
		while (sd_event_run(resident.run.event, 0) > 0)
			;
		sh("%s", how[i]);
		if (!run_wait(&resident.run))
			fail_msg("no event after: %s", how[i]);
		assert_non_null(strstr(resource_killswitch.writer(
				resident.run.state), "nft["));
		if (run_plan(&x->run, x->want, NULL, NULL) == 0)
			fail_msg("not seen: %s", how[i]);
		run_converge(&x->run, x->want);
		assert_false(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
	}
	run_close(&resident.run);
}

static void own_commits_are_not_events(void **state)
{
	struct fixture *x = *state;

	run_converge(&x->run, x->want);
	while (sd_event_run(x->run.event, 0) > 0)
		;
	assert_int_equal(x->run.looks, 0);
	sh("nft add table ip somebody");
	while (sd_event_run(x->run.event, 20000) > 0)
		;
	assert_int_equal(x->run.looks, 0);
}

/* A link that goes and returns is guarded again before it can send. */
static void link_comes_back_guarded(void **state)
{
	struct fixture *x = *state;

	run_converge(&x->run, x->want);
	while (sd_event_run(x->run.event, 0) > 0)
		;
	sh("ip link del up0");
	assert_true(run_wait(&x->run));
	assert_int_equal(run_item(&x->run, x->want, EGRESS), ITEM_PENDING);
	assert_int_equal(run_plan(&x->run, x->want, NULL, NULL), 0);
	while (sd_event_run(x->run.event, 0) > 0)
		;
	world_replug();
	assert_true(run_wait(&x->run));
	run_converge(&x->run, x->want);
	assert_int_equal(run_item(&x->run, x->want, EGRESS), ITEM_IN_SYNC);
	sh("nft list chain netdev garboard_egress_up0 egress | "
	   "grep -q 'device \"*up0'");
	assert_false(leaves(PATH_RAW, "10.44.0.5", OUT, 1000));
}

/* A damaged record: the copy before it is enforced, told, and written anew. */
static void record_before_a_damaged_one_counts(void **state)
{
	struct fixture *x = *state;
	struct desired *none = desired_new();

	run_converge(&x->run, x->want);
	run_reopen(&x->run);
	sh("cp %s/ours/killswitch %s/ours/killswitch.old", x->run.dir,
	   x->run.dir);
	sh("echo rubbish > %s/ours/killswitch", x->run.dir);
	assert_int_equal(run_plan(&x->run, none, NULL, NULL), 1);
	assert_int_equal(run_item(&x->run, none, "armed record"),
			 ITEM_DRIFTED);
	assert_int_equal(run_item(&x->run, none, INET), ITEM_IN_SYNC);
	sh("nft flush ruleset");
	run_converge(&x->run, none);
	assert_int_equal(run_item(&x->run, none, "armed record"),
			 ITEM_IN_SYNC);
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
	sh("cmp %s/ours/killswitch %s/ours/killswitch.old", x->run.dir,
	   x->run.dir);
	(void)desired_free(none);
}

static void armed_class_is_never_silently_removed(void **state)
{
	struct fixture *x = *state;
	struct desired *none = desired_new();
	struct fault f = FAULT_INIT;

	run_converge(&x->run, x->want);
	run_reopen(&x->run);
	assert_int_equal(run_plan(&x->run, none, NULL, NULL), 0);
	assert_int_equal(run_item(&x->run, none, "class vpn"), ITEM_BLOCKED);
	assert_int_equal(run_item(&x->run, none, INET), ITEM_IN_SYNC);
	sh("nft flush ruleset");
	run_converge(&x->run, none);
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));

	/* Nor when the record itself is lost or damaged. */
	sh("rm %s/ours/killswitch", x->run.dir);
	assert_int_equal(run_plan(&x->run, none, NULL, NULL), 0);
	assert_int_equal(run_item(&x->run, none, INET), ITEM_BLOCKED);
	sh("rm -f %s/ours/killswitch.old", x->run.dir);
	sh("echo rubbish > %s/ours/killswitch", x->run.dir);
	assert_int_equal(run_plan(&x->run, none, NULL, NULL), 0);
	assert_int_equal(run_item(&x->run, none, "armed record"),
			 ITEM_UNOBSERVABLE);
	sh("rm %s/ours/killswitch", x->run.dir);

	run_converge(&x->run, x->want);
	assert_int_equal(armed_disarm(x->run.dir, "nosuch", &f), -ENOENT);
	fault_clear(&f);
	assert_int_equal(armed_disarm(x->run.dir, "vpn", &f), 0);
	run_converge(&x->run, none);
	assert_true(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
	assert_int_equal(run_item(&x->run, x->want, "class vpn"),
			 ITEM_BLOCKED);
	assert_int_equal(armed_arm(x->run.dir, "vpn", &f), 0);
	run_converge(&x->run, x->want);
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
	(void)desired_free(none);
}

/* 2,000 prefixes, apply twice: in force, and seen to be (KS-16). */
static void ks16_many_prefixes(void **state)
{
	struct fixture *x = *state;
	char text[64];
	int i;

	for (i = 0; i < 2000; i++) {
		struct ip_prefix p;

		(void)snprintf(text, sizeof(text), "100.%d.%d.0/25",
			       64 + i / 256, i % 256);
		p = sample_prefix(text);
		assert_int_equal(prefix_list_add(&x->want->egress.local, &p),
				 0);
	}
	run_converge(&x->run, x->want);
	run_converge(&x->run, x->want);
	assert_true(leaves(PATH_OUTPUT, "10.44.0.5", "100.64.3.1", 1000));
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", "100.64.3.129", 1000));
}

/* ---- every property of every rule ---- */

static int commit(struct nl_sock *s, const struct nft_table *t)
{
	struct nft_batch b;
	int r;

	nft_batch_init(&b);
	nft_batch_add_table(&b, t->family, t->name, 0);
	nft_batch_delete_table(&b, t->family, t->name);
	nft_batch_fill_table(&b, t);
	r = nft_batch_commit(&b, s, NULL);
	nft_batch_done(&b);
	return r;
}

/* Changes property `n` of the expression; false when it has no more. */
static bool perturb(struct nft_expr *e, int n)
{
	switch (e->op) {
	case NFT_OP_META:
		e->key = e->key == NFT_META_L4PROTO ? NFT_META_NFPROTO :
						      NFT_META_L4PROTO;
		return n == 0;
	case NFT_OP_PAYLOAD:
		if (n == 0)
			e->offset ^= 4;
		else if (n == 1)
			e->len = e->len == 1 ? 2 : e->len - 1;
		else
			e->key ^= 3;
		return n < 3;
	case NFT_OP_BITWISE:
		e->data[0] ^= 1;
		return n == 0;
	case NFT_OP_CMP:
		if (n == 0)
			e->data[0] ^= 1;
		else if (n == 1)
			e->data[e->len - 1] ^= 0x80;
		else
			e->key = e->key == NFT_CMP_EQ ? NFT_CMP_NEQ :
							NFT_CMP_EQ;
		return n < 3;
	case NFT_OP_LOOKUP:
		e->flags ^= NFT_LOOKUP_F_INV;
		return n == 0;
	case NFT_OP_VERDICT:
		e->verdict = e->verdict == NF_ACCEPT ? NF_DROP : NF_ACCEPT;
		e->name[0] = '\0';
		return n == 0;
	case NFT_OP_COUNTER:
	case NFT_OP_OTHER:
	case NFT_OP_MAX:
		break;
	}
	return false;
}

static void expect_drift(struct fixture *x, struct nl_sock *s,
			 const struct nft_table *t, const char *what,
			 unsigned int *made)
{
	int r = commit(s, t);

	if (r < 0)	/* the kernel refuses such a rule: nothing to see */
		return;
	(*made)++;
	if (run_plan(&x->run, x->want, NULL, NULL) == 0)
		fail_msg("drift not seen: %s", what);
}

static void perturb_rules(struct fixture *x, struct nl_sock *s,
			  struct nft_table *t, struct nft_chain *c,
			  unsigned int *made)
{
	char text[NFT_MODEL_TEXT_MAX];
	size_t i, j;
	int n;

	for (i = 0; i < c->n_rules; i++) {
		for (j = 0; j < c->rules[i].n; j++) {
			struct nft_expr keep = c->rules[i].v[j];

			for (n = 0; perturb(&c->rules[i].v[j], n); n++) {
				(void)nft_rule_format(&c->rules[i], text);
				expect_drift(x, s, t, text, made);
				c->rules[i].v[j] = keep;
			}
			c->rules[i].v[j] = keep;
		}
		n = (int)c->rules[i].n;
		c->rules[i].n = 0;	/* an empty rule */
		expect_drift(x, s, t, "empty rule", made);
		c->rules[i].n = (size_t)n;
	}
}

static void perturb_chain(struct fixture *x, struct nl_sock *s,
			  struct nft_table *t, struct nft_chain *c,
			  unsigned int *made)
{
	struct nft_chain keep = *c;

	perturb_rules(x, s, t, c, made);
	if (!c->base)
		return;
	c->priority = 7;
	expect_drift(x, s, t, "priority", made);
	*c = keep;
	c->policy = NF_DROP;
	expect_drift(x, s, t, "policy", made);
	*c = keep;
	if (c->device[0]) {
		(void)snprintf(c->device, sizeof(c->device), "dum0");
		expect_drift(x, s, t, "device", made);
	} else {
		c->hook = NF_INET_LOCAL_IN;
		expect_drift(x, s, t, "hook", made);
	}
	*c = keep;
	c->n_rules--;
	expect_drift(x, s, t, "last rule gone", made);
	*c = keep;
}

/* Each end of a range by one address; of a single one, both at once. */
static void perturb_range(struct fixture *x, struct nl_sock *s,
			  struct nft_table *t, struct nft_set *set,
			  struct nft_range *v, unsigned int *made)
{
	size_t last = set->family == AF_INET6 ? 15 : 3;
	struct nft_range keep = *v;
	unsigned int before = *made;

	if (memcmp(v->from, v->to, last + 1) == 0) {
		v->from[last] = v->to[last] = keep.from[last] ^ 1;
		expect_drift(x, s, t, set->name, made);
	} else {
		v->from[last] |= 1;
		expect_drift(x, s, t, set->name, made);
		*v = keep;
		v->to[last] &= 0xfe;
		expect_drift(x, s, t, set->name, made);
		assert_int_equal(*made, before + 2);
	}
	*v = keep;
	assert_true(*made > before);
}

static void perturb_sets(struct fixture *x, struct nl_sock *s,
			 struct nft_table *t, unsigned int *made)
{
	size_t i, k;

	for (i = 0; i < t->n_sets; i++)
		for (k = 0; k < t->sets[i].n; k++)
			perturb_range(x, s, t, &t->sets[i],
				      &t->sets[i].v[k], made);
}

static void every_property_of_every_rule(void **state)
{
	struct fixture *x = *state;
	unsigned int made = 0;
	struct nl_sock *s = NULL;
	int i;

	run_converge(&x->run, x->want);
	run_reopen(&x->run);
	assert_int_equal(nl_sock_open(NETLINK_NETFILTER, &s, NULL), 0);
	for (i = 0; i < 2; i++) {
		struct nft_table t = { 0 };
		size_t c;

		assert_int_equal(killswitch_table(&x->want->egress,
						  i ? "up0" : NULL, &t), 0);
		sh("nft delete table %s", i ? "netdev garboard_egress_up0" :
					      "inet garboard");
		/* Unperturbed it is in sync: the drift is the change's. */
		assert_int_equal(commit(s, &t), 0);
		assert_int_equal(run_plan(&x->run, x->want, NULL, NULL), 0);
		for (c = 0; c < t.n_chains; c++)
			perturb_chain(x, s, &t, &t.chains[c], &made);
		perturb_sets(x, s, &t, &made);
		t.flags = NFT_TABLE_F_DORMANT;
		expect_drift(x, s, &t, "dormant", &made);
		t.flags = 0;
		assert_int_equal(commit(s, &t), 0);
		nft_table_done(&t);
	}
	print_message("# %u perturbed tables were taken by the kernel\n",
		      made);
	assert_true(made > 200);
	(void)nl_sock_free(s);
}

/* A leftover of the worst kind: jumps, a meter, a base chain elsewhere. */
static void ks18_any_leftover_is_replaced(void **state)
{
	struct fixture *x = *state;

	sh("nft -f - <<'N'\n"
	   "add table inet garboard\n"
	   "add chain inet garboard strange\n"
	   "add chain inet garboard output "
	   "{ type nat hook output priority 5; }\n"
	   "add set inet garboard local4 { type inet_service; }\n"
	   "add set inet garboard mtr { type ipv4_addr; flags dynamic; }\n"
	   "add rule inet garboard strange update @mtr { ip saddr }\n"
	   "add rule inet garboard output tcp dport @local4 jump strange\n"
	   "N");
	assert_int_equal(run_item(&x->run, x->want, INET), ITEM_DRIFTED);
	run_converge(&x->run, x->want);
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
}

/* Nobody named an uplink, and none can be told: said, not passed over. */
static void no_uplink_is_said(void **state)
{
	struct fixture *x = *state;

	strlist_done(&x->want->egress.uplinks);
	run_converge(&x->run, x->want);
	assert_int_equal(run_item(&x->run, x->want, "uplinks"),
			 ITEM_BLOCKED);
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
}

static void kill_leaves_it_closed(void **state)
{
	struct fixture *x = *state;

	run_converge(&x->run, x->want);
	/* All sockets close, as they do when the process is killed (A28). */
	run_reopen(&x->run);
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
	assert_false(leaves(PATH_RAW, "10.44.0.5", OUT, 1000));
	/* The next life adopts what is there and keeps its counters. */
	run_watch(&x->run, x->want);
	run_converge(&x->run, x->want);
	sh("nft list table netdev garboard_egress_up0 | "
	   "grep -q 'counter packets 1 bytes'");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define R(name) cmocka_unit_test_setup_teardown(name, setup_resident, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(nothing_wanted_nothing_done),
		T(converges_and_second_run_changes_nothing),
		T(nothing_of_the_class_leaves),
		T(ks08_local_range_never_implies_dns),
		T(tunnel_passes_and_falls_closed),
		T(no_gateway_no_tunnel),
		T(ks15_foreign_tables_stay_identical),
		R(ks14_flush_ruleset_comes_back),
		R(ks14_owner_refuses_others),
		T(ks14_tampering_is_seen_and_undone),
		R(own_commits_are_not_events),
		R(link_comes_back_guarded),
		T(record_before_a_damaged_one_counts),
		T(armed_class_is_never_silently_removed),
		T(ks16_many_prefixes),
		T(every_property_of_every_rule),
		T(ks18_any_leftover_is_replaced),
		T(no_uplink_is_said),
		R(kill_leaves_it_closed),
	};

	world_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
