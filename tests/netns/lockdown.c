/* What garboard-lockdown closes in a real kernel, and who takes it over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/netlink.h>

#include "agent/armed.h"
#include "agent/lockdown/policy.h"
#include "agent/lockdown/stand.h"
#include "agent/lockdown/tables.h"
#include "agent/lockdown_file.h"
#include "agent/lockdown_keep.h"
#include "agent/nl/nft.h"
#include "agent/res/killswitch.h"
#include "agent/res/routing.h"
#include "common/log.h"
#include "world.h"

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
	run_open(&x->run, &resource_killswitch, true);
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

/* What a boot does; the source of the policy. */
static enum policy_source boot(const struct fixture *x)
{
	enum policy_source source;
	struct policy p;

	assert_int_equal(policy_read(x->run.dir, &p), 0);
	source = p.source;
	assert_int_equal(stand(&p), 0);
	policy_done(&p);
	return source;
}

/* By any path before `end`, or with the mark. */
static bool class_leaves(enum path end)
{
	enum path p;

	for (p = 0; p < end; p++) {
		const char *v4 = p == PATH_FORWARD ? "10.44.0.6" : "10.44.0.5";
		const char *v6 = p == PATH_FORWARD ? "fd44::6" : "fd44::5";

		if (leaves(p, v4, OUT, 1000) || leaves(p, v6, OUT6, 1000))
			return true;
	}
	return leaves_marked(0x2001, OUT, 1000);
}

static void assert_internet(void)
{
	assert_true(leaves(PATH_OUTPUT, "", OUT, 1000));
	assert_true(leaves(PATH_OUTPUT, "", OUT6, 1000));
	assert_true(leaves_marked(0x4001, OUT, 1000));
}

/* Without what tells the owner; counters tell whether it was made anew. */
static char *ruleset(void)
{
	return sh_text("nft -a list ruleset | "
		       "sed '/^\tflags/d;s/^\\(table [a-z]* [a-z0-9_]*\\).*/\\1/'");
}

static void ks01_closed_before_there_is_an_agent(void **state)
{
	struct fixture *x = *state;
	char *before, *after;

	assert_true(class_leaves(PATH_MAX));
	assert_int_equal(boot(x), POLICY_NONE);
	assert_true(class_leaves(PATH_MAX));
	assert_int_equal(lockdown_keep(x->run.dir, x->want, NULL), 1);
	assert_int_equal(boot(x), POLICY_WHOLE);
	assert_false(class_leaves(PATH_MAX));
	assert_internet();
	/* The agent takes over what is there: nothing is made anew. */
	before = ruleset();
	assert_int_equal(sh_status("nft list ruleset | grep -Eq "
				   "'counter packets [1-9]'"), 0);
	run_converge(&x->run, x->want);
	after = ruleset();
	assert_string_equal(before, after);
	assert_false(class_leaves(PATH_MAX));
	free(before);
	free(after);
}

static void second_run_changes_nothing(void **state)
{
	struct fixture *x = *state;
	char *before, *after;

	assert_int_equal(lockdown_keep(x->run.dir, x->want, NULL), 1);
	assert_int_equal(boot(x), POLICY_WHOLE);
	assert_false(class_leaves(PATH_MAX));
	before = ruleset();
	assert_int_equal(boot(x), POLICY_WHOLE);
	after = ruleset();
	assert_string_equal(before, after);
	/* Nor when a running agent owns the tables, whatever they hold. */
	run_converge(&x->run, x->want);
	free(before);
	before = ruleset();
	assert_int_equal(boot(x), POLICY_WHOLE);
	free(after);
	after = ruleset();
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void write_parts(const struct fixture *x, const char *confirmed,
			const char *trial)
{
	struct lockdown_file file = { 0 };

	assert_int_equal(armed_parse(confirmed,
				     &file.policy[LOCKDOWN_CONFIRMED], NULL),
			 0);
	assert_int_equal(armed_parse(trial, &file.policy[LOCKDOWN_TRIAL],
				     NULL), 0);
	assert_int_equal(lockdown_file_save(x->run.dir, &file, NULL), 0);
	lockdown_file_done(&file);
}

static void union_of_confirmed_and_trial_is_closed(void **state)
{
	struct fixture *x = *state;

	write_parts(x, "garboard-armed-1\nlocal 198.51.100.0/24\nuplink up0\n"
		       "class vpn\nsource 10.44.0.5/32\nend\n",
		    "garboard-armed-1\nuplink up0\nclass vpn\n"
		    "mark 0x2000 0x3000\npods fd44::/64\nend\n");
	assert_int_equal(boot(x), POLICY_WHOLE);
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
	assert_false(leaves(PATH_RAW, "fd44::5", OUT6, 1000));
	assert_false(leaves(PATH_FORWARD, "fd44::6", OUT6, 1000));
	assert_false(leaves_marked(0x2001, OUT, 1000));
	/* In neither. */
	assert_true(leaves(PATH_FORWARD, "10.44.0.6", OUT, 1000));
	assert_internet();
}

static void cut(const struct fixture *x, bool twin, long size)
{
	char path[LOCKDOWN_PATH_MAX];

	assert_int_equal(truncate(lockdown_file_path(x->run.dir, twin, path),
				  size), 0);
}

static void ks01_truncated_file_is_closed_by_the_twin(void **state)
{
	struct fixture *x = *state;

	assert_int_equal(lockdown_keep(x->run.dir, x->want, NULL), 1);
	cut(x, false, 30);
	assert_int_equal(boot(x), POLICY_WHOLE);
	assert_false(class_leaves(PATH_MAX));
	assert_internet();
}

/* Only part of the text is left, and it does not check. */
static void ks01_built_in_form_closes_what_it_can_read(void **state)
{
	struct fixture *x = *state;

	assert_int_equal(lockdown_keep(x->run.dir, x->want, NULL), 1);
	sh("sed -i '/^end/d;s/^local.*/local/' %s/lockdown", x->run.dir);
	cut(x, true, 0);
	assert_int_equal(boot(x), POLICY_BUILT_IN);
	/* up0 is no hardware here, so there is no egress hook. */
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
	assert_false(leaves(PATH_BOUND, "fd44::5", OUT6, 1000));
	assert_false(leaves(PATH_FORWARD, "10.44.0.6", OUT, 1000));
	assert_false(leaves_marked(0x1001, OUT, 1000));
	assert_false(leaves_marked(0x2001, OUT, 1000));
	assert_internet();
}

/* Tunnel, table and rules as the routing itself would have them. */
static void rt03_known_address_is_steered_before_the_agent(void **state)
{
	struct fixture *x = *state;
	struct routing_record record = { .n = 0 };
	struct ip_prefix p = sample_prefix("10.99.0.7/32");
	struct run routing;
	struct change_list changes = CHANGE_LIST_INIT;
	char *text;
	size_t i;

	assert_int_equal(routing_record_add(&record, "wg0", &p.addr), 0);
	assert_int_equal(routing_record_save(x->run.dir, &record, NULL), 0);
	assert_int_equal(lockdown_keep(x->run.dir, x->want, NULL), 1);
	assert_int_equal(boot(x), POLICY_WHOLE);
	text = sh_text("ip rule; ip route show table all; "
		       "ip -6 route show table all");
	assert_non_null(strstr(text, "from 10.99.0.7 lookup"));
	assert_non_null(strstr(text, "unreachable default"));
	free(text);
	text = sh_text("ip -6 route show table all type unreachable");
	assert_non_null(strstr(text, "default"));
	free(text);
	/* Nothing of it is foreign to the routing, nothing is missing. */
	run_open(&routing, &resource_routing, false);
	assert_int_equal(armed_save(routing.dir, &(struct armed){
				 .found = true, .d = x->want }, NULL), 0);
	assert_int_equal(routing_record_save(routing.dir, &record, NULL), 0);
	(void)run_plan(&routing, x->want, NULL, &changes);
	for (i = 0; i < changes.n; i++)
		fail_msg("the routing would change %s", changes.v[i].key);
	change_list_done(&changes);
	run_close(&routing);
}

/* KS-03: what is asked of a kernel that refuses the full form. */
static void ks03_smaller_forms_close_as_well(void **state)
{
	static const char *const devices[] = { NULL, "up0" };
	struct fixture *x = *state;
	unsigned int form;
	size_t i, left;

	for (form = TABLES_SETS; form < TABLES_FORMS; form++) {
		struct nl_sock *sock;

		assert_int_equal(nl_sock_open(NETLINK_NETFILTER, &sock, NULL),
				 0);
		for (i = 0; i < 2; i++) {
			struct nft_table t;
			struct nft_batch b;

			assert_int_equal(
				tables_make(&x->want->egress, devices[i],
					    (enum tables_form)form, &t, &left),
				0);
			nft_batch_init(&b);
			nft_batch_add_table(&b, t.family, t.name, 0);
			nft_batch_delete_table(&b, t.family, t.name);
			nft_batch_fill_table(&b, &t);
			assert_int_equal(nft_batch_commit(&b, sock, NULL), 0);
			nft_batch_done(&b);
			nft_table_done(&t);
		}
		(void)nl_sock_free(sock);
		/* The smaller forms believe what a raw socket says it sends. */
		assert_false(class_leaves(PATH_RAW_ODD));
		assert_internet();
		sh("nft flush ruleset");
	}
}

static void ks03_this_kernel_refuses_nothing(void **state)
{
	const char *name;
	unsigned int i;

	(void)state;
	for (i = 0;; i++) {
		struct fault f = FAULT_INIT;
		struct nl_sock *sock;
		struct nft_table t;
		struct nft_batch b;

		if (tables_probe(i, &t, &name) < 0)
			break;
		assert_int_equal(nl_sock_open(NETLINK_NETFILTER, &sock, NULL),
				 0);
		nft_batch_init(&b);
		nft_batch_fill_table(&b, &t);
		nft_batch_delete_table(&b, t.family, t.name);
		if (nft_batch_commit(&b, sock, &f) < 0)
			fail_msg("%s: %s", name, f.text);
		nft_batch_done(&b);
		nft_table_done(&t);
		(void)nl_sock_free(sock);
	}
	assert_int_equal(i, 7);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(ks01_closed_before_there_is_an_agent),
		CASE(second_run_changes_nothing),
		CASE(union_of_confirmed_and_trial_is_closed),
		CASE(ks01_truncated_file_is_closed_by_the_twin),
		CASE(ks01_built_in_form_closes_what_it_can_read),
		CASE(rt03_known_address_is_steered_before_the_agent),
		CASE(ks03_smaller_forms_close_as_well),
		CASE(ks03_this_kernel_refuses_nothing),
	};

	world_require();
	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
