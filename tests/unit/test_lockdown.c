/*
 * lockdown: the file survives nothing silently, and what is left of it is
 * closed: every truncation, every flipped byte, the union, the built-in form.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/lockdown/policy.h"
#include "agent/lockdown/tables.h"
#include "agent/lockdown_file.h"
#include "agent/res/killswitch_tables.h"
#include "common/file.h"

static const char confirmed[] =
	"garboard-armed-1\nlocal 10.0.0.0/8\nlocal fd00::/8\nuplink eth0\n"
	"class vpn\ntunnel wg0 0 51820 18200\ngateway\nmark 0x2000 0x3f00\n"
	"pods 10.44.0.0/20\nsource 192.0.2.7/32\ndns 10.64.0.1\nend\n";
static const char trial[] =
	"garboard-armed-1\nlocal 10.1.0.0/16\nlocal 172.16.0.0/12\n"
	"class vpn\ntunnel wg0 0 51821 18300\ngateway\nmark 0x1000 0x3f00\n"
	"pods 10.46.0.0/20\nclass other\nsource 192.0.2.9/32\nend\n";
static const char previous[] =
	"garboard-armed-1\nlocal 10.0.0.0/8\nuplink eth1\n"
	"class vpn\npods 10.48.0.0/20\nend\n";

static const char *const policies[LOCKDOWN_POLICIES] = {
	confirmed, trial, previous,
};

static void make_file(struct lockdown_file *file)
{
	struct ip_addr addr;
	size_t i;

	*file = (struct lockdown_file){ .has_addresses = true };
	for (i = 0; i < LOCKDOWN_POLICIES; i++)
		assert_int_equal(armed_parse(policies[i], &file->policy[i],
					     NULL), 0);
	assert_int_equal(ip_addr_parse("10.64.0.5", &addr), 0);
	assert_int_equal(routing_record_add(&file->addresses, "wg0", &addr),
			 0);
}

static char *make_text(void)
{
	struct lockdown_file file;
	char *text;

	make_file(&file);
	assert_int_equal(lockdown_file_format(&file, &text), 0);
	lockdown_file_done(&file);
	return text;
}

/* Whatever is given out is as it was written; returns how many are. */
static unsigned int sound_parts(const struct lockdown_file *file)
{
	unsigned int n = 0;
	char buf[IP_TEXT_MAX];
	size_t i;

	for (i = 0; i < LOCKDOWN_POLICIES; i++) {
		char *text;

		if (!file->policy[i].d)
			continue;
		assert_int_equal(armed_format(&file->policy[i], &text), 0);
		assert_string_equal(text, policies[i]);
		free(text);
		n++;
	}
	if (file->has_addresses) {
		assert_int_equal(file->addresses.n, 1);
		assert_string_equal(ip_addr_format(&file->addresses.v[0].addr,
						   buf), "10.64.0.5");
		n++;
	}
	return n;
}

static void round_trip(void **state)
{
	char *text = make_text();
	struct lockdown_file file;

	(void)state;
	assert_int_equal(lockdown_file_parse(text, strlen(text), &file, NULL),
			 0);
	assert_int_equal(sound_parts(&file), LOCKDOWN_PARTS);
	lockdown_file_done(&file);
	free(text);
}

static void ks01_every_truncation_is_seen(void **state)
{
	char *text = make_text();
	size_t size = strlen(text), n;
	unsigned int parts, last = 0;

	(void)state;
	for (n = 0; n < size; n++) {
		struct lockdown_file file;
		struct fault f = FAULT_INIT;

		assert_int_equal(lockdown_file_parse(text, n, &file, &f), 1);
		assert_int_not_equal(f.err, 0);
		parts = sound_parts(&file);
		assert_true(parts == last || parts == last + 1);
		last = parts;
		lockdown_file_done(&file);
	}
	assert_int_equal(last, LOCKDOWN_PARTS);
	free(text);
}

static void ks01_every_flipped_byte_is_seen(void **state)
{
	static const unsigned char flips[] = { 0x01, 0x10, 0x80, 0xff };
	char *text = make_text();
	size_t size = strlen(text), n, k;

	(void)state;
	for (n = 0; n < size; n++)
		for (k = 0; k < sizeof(flips); k++) {
			struct lockdown_file file;
			struct fault f = FAULT_INIT;

			text[n] = (char)(text[n] ^ flips[k]);
			assert_int_equal(lockdown_file_parse(text, size, &file,
							     &f), 1);
			/* The line end between two parts takes both. */
			assert_true(sound_parts(&file) >= LOCKDOWN_PARTS - 2);
			lockdown_file_done(&file);
			text[n] = (char)(text[n] ^ flips[k]);
		}
	free(text);
}

/* ---- what is closed ---- */

static bool closes(const struct policy *p, const char *address)
{
	const struct desired_egress *e = &p->d->egress;
	struct ip_addr a;
	size_t i;

	assert_int_equal(ip_addr_parse(address, &a), 0);
	for (i = 0; i < e->n_classes; i++)
		if (prefix_list_contains(&e->classes[i].pods, &a) ||
		    prefix_list_contains(&e->classes[i].sources, &a))
			return true;
	return false;
}

static bool closes_mark(const struct policy *p, uint32_t mark)
{
	const struct desired_egress *e = &p->d->egress;
	size_t i;

	for (i = 0; i < e->n_classes; i++)
		if (e->classes[i].mask &&
		    (mark & e->classes[i].mask) == e->classes[i].mark)
			return true;
	return false;
}

static void add_text(struct policy *p, const char *text)
{
	struct armed a = ARMED_INIT;

	assert_int_equal(armed_parse(text, &a, NULL), 0);
	assert_int_equal(policy_add(p, &a), 0);
	armed_done(&a);
}

static void union_closes_what_any_part_closes(void **state)
{
	struct policy p = { .d = desired_new() };
	const struct desired_egress *e = &p.d->egress;
	char buf[IP_TEXT_MAX];
	struct nft_table t;

	(void)state;
	add_text(&p, confirmed);
	add_text(&p, trial);
	add_text(&p, previous);
	assert_true(closes(&p, "10.44.0.1") && closes(&p, "10.46.0.1") &&
		    closes(&p, "10.48.0.1") && closes(&p, "192.0.2.7") &&
		    closes(&p, "192.0.2.9"));
	assert_true(closes_mark(&p, 0x2000) && closes_mark(&p, 0x1000));
	assert_false(closes(&p, "192.0.2.8"));
	assert_int_equal(e->n_tunnels, 2);
	/* Local is only what all of them call so. */
	assert_int_equal(e->local.n, 1);
	assert_string_equal(ip_prefix_format(&e->local.v[0], buf),
			    "10.1.0.0/16");
	assert_int_equal(e->uplinks.n, 2);
	assert_true(p.automatic);
	assert_int_equal(killswitch_table(e, NULL, &t), 0);
	nft_table_done(&t);
	policy_done(&p);
}

/* So that the agent takes the tables over as they are. */
static void same_parts_make_the_agents_own_table(void **state)
{
	struct policy p = { .d = desired_new() };
	struct armed a = ARMED_INIT;
	char text[NFT_MODEL_TEXT_MAX] = "";
	struct nft_table have, want;

	(void)state;
	add_text(&p, confirmed);
	add_text(&p, confirmed);
	assert_int_equal(armed_parse(confirmed, &a, NULL), 0);
	assert_int_equal(killswitch_table(&p.d->egress, NULL, &have), 0);
	assert_int_equal(killswitch_table(&a.d->egress, NULL, &want), 0);
	have.use = (uint32_t)(have.n_chains + have.n_sets);
	assert_true(nft_table_same(&have, &want, text));
	nft_table_done(&have);
	nft_table_done(&want);
	armed_done(&a);
	policy_done(&p);
}

static void largest_union_has_room(void **state)
{
	struct policy p = { .d = desired_new() };
	struct nft_table t;
	char text[4096];
	size_t used;
	int part, i;

	(void)state;
	for (part = 0; part < LOCKDOWN_POLICIES; part++) {
		used = (size_t)sprintf(text, "garboard-armed-1\n");
		for (i = 0; i < DESIRED_CLASSES_MAX; i++)
			used += (size_t)sprintf(
				text + used,
				"class c%d\ntunnel wg%d 0 %d %d\ngateway\n"
				"source 192.0.%d.%d/32\nsource 2001:db8::%d:%d/128\n"
				"dns 10.0.0.1\ndns fd00::1\n",
				i, i, 1000 * part + i + 300, 18200 + 10 * i,
				part, i, part, i + 1);
		(void)sprintf(text + used, "end\n");
		add_text(&p, text);
	}
	assert_int_equal(p.d->egress.n_classes, 24);
	assert_int_equal(killswitch_table(&p.d->egress, NULL, &t), 0);
	nft_table_done(&t);
	policy_done(&p);
}

/* ---- from disk ---- */

static char dir[64];

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/garboard-test-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[128];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void put(const char *name, const char *text, size_t size)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/ours", dir);
	assert_int_equal(file_mkdirs(path, 0700, NULL), 0);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(file_write(path, 0600, text, size, NULL), 0);
}

static void never_armed_closes_nothing(void **state)
{
	struct policy p;

	(void)state;
	assert_int_equal(policy_read(dir, &p), 0);
	assert_int_equal(p.source, POLICY_NONE);
	assert_int_equal(p.d->egress.n_classes, 0);
	policy_done(&p);
}

static void ks01_damaged_file_yields_to_its_twin(void **state)
{
	char *text = make_text();
	struct policy p;

	(void)state;
	put("lockdown", text, strlen(text) / 3);
	put("lockdown.copy", text, strlen(text));
	assert_int_equal(policy_read(dir, &p), 0);
	assert_int_equal(p.source, POLICY_WHOLE);
	assert_int_not_equal(p.why.err, 0);
	assert_true(closes(&p, "10.48.0.1"));
	assert_int_equal(p.addresses.n, 1);
	policy_done(&p);
	free(text);
}

static void ks01_two_damaged_copies_give_their_sound_parts(void **state)
{
	char *text = make_text(), *at;
	struct policy p;

	(void)state;
	at = strstr(text, "10.44");
	at[0] = '7';
	put("lockdown", text, strlen(text));
	at[0] = '1';
	strstr(text, "10.46")[0] = '7';
	put("lockdown.copy", text, strlen(text));
	assert_int_equal(policy_read(dir, &p), 0);
	assert_int_equal(p.source, POLICY_PARTS);
	assert_true(closes(&p, "10.44.0.1") && closes(&p, "10.46.0.1") &&
		    closes(&p, "10.48.0.1"));
	assert_false(closes(&p, "70.44.0.1") || closes(&p, "70.46.0.1"));
	policy_done(&p);
	free(text);
}

static void ks01_record_stands_in_for_the_file(void **state)
{
	struct policy p;

	(void)state;
	put("lockdown", "", 0);
	put("ours/killswitch", confirmed, strlen(confirmed));
	assert_int_equal(policy_read(dir, &p), 0);
	assert_int_equal(p.source, POLICY_RECORD);
	assert_true(closes(&p, "10.44.0.1"));
	policy_done(&p);
}

static void ks01_built_in_form_is_the_last_resort(void **state)
{
	static const char torn[] = "0.44.0.0/20\npods 10.45.0.0/20\n"
				   "source 0.0.0.0/0\nsource 192.0.2.7";
	struct policy p;

	(void)state;
	put("lockdown", torn, strlen(torn));
	assert_int_equal(policy_read(dir, &p), 0);
	assert_int_equal(p.source, POLICY_BUILT_IN);
	assert_true(closes(&p, "10.45.0.1") && closes(&p, "192.0.2.7"));
	assert_false(closes(&p, "203.0.113.1"));	/* A24 */
	assert_true(closes_mark(&p, 0x1000) && closes_mark(&p, 0x2000) &&
		    closes_mark(&p, 0x3000));
	/* Nobody's: unmarked, or Cilium's and Kubernetes' own. */
	assert_false(closes_mark(&p, 0) || closes_mark(&p, 0x2200) ||
		     closes_mark(&p, 0x4000) || closes_mark(&p, 0x0f00));
	assert_true(p.automatic);
	policy_done(&p);
}

/* ---- forms for kernels that lack something (KS-03) ---- */

static void ks03_smaller_forms_need_less(void **state)
{
	struct policy p = { .d = desired_new() };
	unsigned int form;
	size_t i, k, left;

	(void)state;
	add_text(&p, confirmed);
	for (form = TABLES_SETS; form < TABLES_FORMS; form++) {
		const char *device = form == TABLES_SETS ? "eth0" : NULL;
		struct nft_chain *c;
		struct nft_table t;

		assert_int_equal(tables_make(&p.d->egress, device, form, &t,
					     &left), 0);
		assert_int_equal(left, 0);
		assert_int_equal(t.n_sets, form == TABLES_SETS ? 1 : 0);
		c = &t.chains[0];
		assert_int_equal(t.n_chains, 1);
		assert_true(c->n_rules >= 2);
		for (i = 0; i < c->n_rules; i++)
			for (k = 0; k < c->rules[i].n; k++)
				assert_int_not_equal(c->rules[i].v[k].op,
						     NFT_OP_COUNTER);
		nft_table_done(&t);
	}
	policy_done(&p);
}

#define DISK(fn) cmocka_unit_test_setup_teardown(fn, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(ks01_every_truncation_is_seen),
		cmocka_unit_test(ks01_every_flipped_byte_is_seen),
		cmocka_unit_test(union_closes_what_any_part_closes),
		cmocka_unit_test(same_parts_make_the_agents_own_table),
		cmocka_unit_test(largest_union_has_room),
		DISK(never_armed_closes_nothing),
		DISK(ks01_damaged_file_yields_to_its_twin),
		DISK(ks01_two_damaged_copies_give_their_sound_parts),
		DISK(ks01_record_stands_in_for_the_file),
		DISK(ks01_built_in_form_is_the_last_resort),
		cmocka_unit_test(ks03_smaller_forms_need_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
