/*
 * trial: a state that touches egress or forwarding is kept only if the
 * coordinator is heard from; and the file of garboard-lockdown follows each step.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/armed.h"
#include "agent/forwarding.h"
#include "agent/lockdown_file.h"
#include "agent/lockdown_keep.h"
#include "agent/trial.h"
#include "order_fixture.h"

static struct trial *trial;

static void with_trial(usec time)
{
	struct trial_env te = { .event = t.host.event, .state = &t.state,
				.engine = t.engine, .time = time };
	struct orders_env env = { .state = &t.state,
				  .bundle = &t.bundle,
				  .engine = t.engine,
				  .host = &t.host,
				  .k3s = t.k3s,
				  .report_key = t.report,
				  .seal_key = t.seal,
				  .send = on_send,
				  .emit = on_emit,
				  .identity_changed = on_identity };

	assert_int_equal(trial_new(&te, &trial, NULL), 0);
	env.trial = trial;
	t.orders = orders_free(t.orders);
	assert_int_equal(orders_new(&env, &t.orders), 0);
	orders_session(t.orders, t.nonce);
	give_statement(1);
}

static struct order *want(uint64_t generation, const char *source)
{
	struct order *o = order_new(ORDER_SET_DESIRED);
	struct desired_egress *e;
	struct ip_prefix p;

	o->desired = desired_new();
	free(o->desired->node);
	o->desired->node = strdup("n1");
	o->desired->generation = generation;
	if (!source)
		return o;
	e = &o->desired->egress;
	assert_int_equal(ip_prefix_parse(source, &p), 0);
	e->tunnels = calloc(1, sizeof(*e->tunnels));
	e->tunnels[0] = (struct desired_tunnel){ .name = strdup("wg0"),
						 .table = 51820,
						 .priority = 18200 };
	e->n_tunnels = 1;
	e->classes = calloc(1, sizeof(*e->classes));
	e->classes[0].name = strdup("vpn");
	assert_int_equal(prefix_list_add(&e->classes[0].sources, &p), 0);
	e->n_classes = 1;
	return o;
}

/* What the kill-switch does when it applies. */
static void apply(void)
{
	struct armed record = ARMED_INIT, next = ARMED_INIT;

	assert_int_equal(armed_load(scratch_state, &record, NULL), 0);
	assert_int_equal(armed_merge(&engine_desired(t.engine)->egress,
				     &record, &next), 0);
	assert_int_equal(armed_save(scratch_state, &next, NULL), 0);
	armed_done(&record);
	armed_done(&next);
	trial_look(trial);
}

static bool running(void)
{
	struct trial_status s;

	trial_status(trial, clock_boottime(), &s);
	return s.running;
}

static void run_until_over(void)
{
	usec until = clock_boottime() + DEADLINE;

	while (running() && clock_boottime() < until)
		(void)sd_event_run(t.host.event, USEC_PER_SEC);
	assert_false(running());
}

/* "" when the part is not there, else its first class's source. */
static const char *part(enum lockdown_part which)
{
	static char buf[IP_TEXT_MAX];
	char path[LOCKDOWN_PATH_MAX];
	struct lockdown_file file;
	const struct desired_egress *e;

	buf[0] = '\0';
	if (lockdown_file_load(lockdown_file_path(scratch_state, false, path),
			       &file, NULL) != 0)
		return "no file";
	if (file.policy[which].d) {
		e = &file.policy[which].d->egress;
		if (e->n_classes)
			(void)ip_prefix_format(&e->classes[0].sources.v[0],
					       buf);
		else
			(void)strcpy(buf, "none");
	}
	lockdown_file_done(&file);
	return buf;
}

static struct order *facts(void)
{
	return order_new(ORDER_READ_FACTS);
}

static void no_egress_no_trial(void **state)
{
	(void)state;
	with_trial(DEADLINE);
	assert_int_equal(send_order(want(1, NULL)), RESULT_DONE);
	assert_false(running());
	assert_string_equal(part(LOCKDOWN_CONFIRMED), "no file");
}

/* ---- forwarding ---- */

static struct order *with_sysctl(uint64_t generation, const char *key,
				 const char *value)
{
	struct order *o = want(generation, NULL);

	if (key)
		assert_int_equal(desired_add_sysctl(o->desired, key, value,
						    false), 0);
	return o;
}

static void forwarding_by_key_and_value(void **state)
{
	static const struct {
		const char *key, *value, *next_key, *next_value;
		bool changes;
	} rows[] = {
		{ NULL, NULL, NULL, NULL, false },
		{ NULL, NULL, "vm.swappiness", "10", false },
		{ NULL, NULL, "net.ipv4.ip_forward", "1", true },
		{ "net.ipv4.ip_forward", "1", NULL, NULL, true },
		{ "net.ipv4.ip_forward", "1", "net.ipv4.ip_forward", "1", false },
		{ "net.ipv4.ip_forward", "1", "net/ipv4/ip_forward", "0x1", false },
		{ "net.ipv4.ip_forward", "1", "net.ipv4.conf.all.forwarding", "1",
		  false },
		{ "net.ipv4.ip_forward", "1", "net.ipv4.ip_forward", "0", true },
		{ NULL, NULL, "net.ipv6.conf.all.forwarding", "1", true },
		{ NULL, NULL, "net.ipv6.conf.eth0.accept_ra", "0", true },
		{ NULL, NULL, "net.ipv4.conf.eth0/5.rp_filter", "1", true },
		{ NULL, NULL, "net.ipv6.conf.all.disable_ipv6", "1", true },
		{ NULL, NULL, "net.ipv4.conf.all.arp_ignore", "1", false },
		{ NULL, NULL, "net.netfilter.nf_conntrack_max", "9", false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct order *a = with_sysctl(1, rows[i].key, rows[i].value);
		struct order *b = with_sysctl(2, rows[i].next_key,
					      rows[i].next_value);

		assert_int_equal(forwarding_changes(a->desired, b->desired),
				 rows[i].changes);
		if (!rows[i].key)
			assert_int_equal(forwarding_changes(NULL, b->desired),
					 rows[i].changes);
		/* Who does not enforce changes nothing. */
		b->desired->modes[RESOURCE_SYSCTL] = MODE_OBSERVE;
		assert_false(forwarding_changes(a->desired, b->desired));
		order_free(a);
		order_free(b);
	}
}

static void ks05_forwarding_is_on_trial_too(void **state)
{
	(void)state;
	with_trial(DEADLINE);
	assert_int_equal(send_order(with_sysctl(1, "vm.swappiness", "1")),
			 RESULT_DONE);
	assert_false(running());
	(void)send_order(with_sysctl(2, "net.ipv4.ip_forward", "1"));
	assert_true(running());
	assert_string_equal(part(LOCKDOWN_TRIAL), "no file");
	trial_look(trial);
	(void)send_order(facts());
	assert_false(running());
	trial = trial_free(trial);
	with_trial(50 * USEC_PER_MSEC);
	(void)send_order(with_sysctl(3, "net.ipv6.conf.all.forwarding", "1"));
	assert_true(running());
	run_until_over();
	assert_int_equal(engine_desired(t.engine)->generation, 2);
	assert_string_equal(engine_desired(t.engine)->sysctls[0].key,
			    "net.ipv4.ip_forward");
}

/* Nothing before: then ours are to go, which takes a mode that repairs. */
static void ks05_first_forwarding_is_put_back(void **state)
{
	const struct desired *d;

	(void)state;
	with_trial(50 * USEC_PER_MSEC);
	(void)send_order(with_sysctl(1, "net.ipv6.conf.all.forwarding", "1"));
	assert_true(running());
	run_until_over();
	d = engine_desired(t.engine);
	assert_int_equal(d->n_sysctls, 0);
	assert_int_equal(d->modes[RESOURCE_SYSCTL], MODE_ENFORCE);
	assert_int_equal(d->modes[RESOURCE_TIMEZONE], MODE_OFF);
}

static void ks05_heard_from_is_kept(void **state)
{
	(void)state;
	with_trial(DEADLINE);
	assert_int_equal(send_order(want(1, "192.0.2.7")), RESULT_DONE);
	assert_true(running());
	/* On disk before anything was applied. */
	assert_string_equal(part(LOCKDOWN_TRIAL), "192.0.2.7/32");
	assert_string_equal(part(LOCKDOWN_CONFIRMED), "none");
	/* An order that came along with it proves nothing. */
	(void)send_order(facts());
	assert_true(running());
	apply();
	(void)send_order(facts());
	assert_false(running());
	assert_string_equal(part(LOCKDOWN_CONFIRMED), "192.0.2.7/32");
	assert_string_equal(part(LOCKDOWN_TRIAL), "");
	/* The next one: confirmed and trial; then the old is previous. */
	assert_int_equal(send_order(want(2, "192.0.2.8")), RESULT_DONE);
	assert_string_equal(part(LOCKDOWN_CONFIRMED), "192.0.2.7/32");
	assert_string_equal(part(LOCKDOWN_TRIAL), "192.0.2.8/32");
	apply();
	(void)send_order(facts());
	assert_string_equal(part(LOCKDOWN_CONFIRMED), "192.0.2.8/32");
	assert_string_equal(part(LOCKDOWN_PREVIOUS), "192.0.2.7/32");
}

static void ks05_silence_brings_the_previous_back(void **state)
{
	struct armed record = ARMED_INIT;

	(void)state;
	with_trial(DEADLINE);
	(void)send_order(want(1, "192.0.2.7"));
	apply();
	(void)send_order(facts());
	trial = trial_free(trial);
	with_trial(50 * USEC_PER_MSEC);
	(void)send_order(want(2, "192.0.2.8"));
	apply();
	assert_int_equal(engine_desired(t.engine)->generation, 2);
	run_until_over();
	assert_int_equal(engine_desired(t.engine)->generation, 1);
	/* Back to before, which is closed, not open. */
	assert_int_equal(armed_load(scratch_state, &record, NULL), 0);
	assert_int_equal(record.d->egress.n_classes, 1);
	assert_string_equal(part(LOCKDOWN_CONFIRMED), "192.0.2.7/32");
	assert_string_equal(part(LOCKDOWN_TRIAL), "");
	armed_done(&record);
}

/* The first arming cut the node off: then there was nothing before. */
static void ks05_only_what_the_trial_armed_is_let_go(void **state)
{
	struct armed record = ARMED_INIT;
	struct desired *d = NULL;

	(void)state;
	with_trial(50 * USEC_PER_MSEC);
	(void)send_order(want(1, "192.0.2.7"));
	apply();
	run_until_over();
	assert_int_equal(armed_load(scratch_state, &record, NULL), 0);
	assert_true(record.found);
	assert_int_equal(record.d->egress.n_classes, 0);
	armed_done(&record);
	assert_int_equal(orders_stored_desired(&t.state, &d, NULL), 1);
	assert_non_null(engine_desired(t.engine));
	assert_int_equal(engine_desired(t.engine)->egress.n_classes, 0);
}

static void disarmed_meanwhile_stays_disarmed(void **state)
{
	struct armed record = ARMED_INIT;

	(void)state;
	with_trial(DEADLINE);
	(void)send_order(want(1, "192.0.2.7"));
	apply();
	(void)send_order(facts());
	trial = trial_free(trial);
	with_trial(50 * USEC_PER_MSEC);
	(void)send_order(want(2, "192.0.2.8"));
	apply();
	assert_int_equal(armed_disarm(scratch_state, "vpn", NULL), 0);
	trial_look(trial);
	assert_string_equal(part(LOCKDOWN_CONFIRMED), "none");
	assert_string_equal(part(LOCKDOWN_TRIAL), "none");
	assert_string_equal(part(LOCKDOWN_PREVIOUS), "");
	run_until_over();
	assert_int_equal(armed_load(scratch_state, &record, NULL), 0);
	assert_int_equal(record.d->egress.n_classes, 0);
	armed_done(&record);
}

/* A power cut is no confirmation. */
static void restart_goes_on_with_the_trial(void **state)
{
	(void)state;
	with_trial(DEADLINE);
	(void)send_order(want(1, "192.0.2.7"));
	apply();
	trial = trial_free(trial);
	with_trial(50 * USEC_PER_MSEC);
	assert_true(running());
	assert_string_equal(part(LOCKDOWN_TRIAL), "192.0.2.7/32");
	run_until_over();
	assert_int_equal(engine_desired(t.engine)->egress.n_classes, 0);
}

static void lost_or_rotten_file_is_written_again(void **state)
{
	char path[LOCKDOWN_PATH_MAX];

	(void)state;
	with_trial(DEADLINE);
	(void)send_order(want(1, "192.0.2.7"));
	apply();
	(void)send_order(facts());
	assert_int_equal(lockdown_keep(scratch_state,
				       engine_desired(t.engine), NULL), 0);
	(void)lockdown_file_path(scratch_state, false, path);
	assert_int_equal(truncate(path, 40), 0);
	assert_int_equal(lockdown_keep(scratch_state,
				       engine_desired(t.engine), NULL), 1);
	assert_string_equal(part(LOCKDOWN_CONFIRMED), "192.0.2.7/32");
	assert_int_equal(unlink(path), 0);
	(void)lockdown_file_path(scratch_state, true, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(lockdown_keep(scratch_state, NULL, NULL), 1);
	assert_string_equal(part(LOCKDOWN_CONFIRMED), "192.0.2.7/32");
}

static int end_trial(void **state)
{
	trial = trial_free(trial);
	return end(state);
}

#define TRIAL(fn) cmocka_unit_test_setup_teardown(fn, begin, end_trial)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TRIAL(no_egress_no_trial),
		cmocka_unit_test(forwarding_by_key_and_value),
		TRIAL(ks05_forwarding_is_on_trial_too),
		TRIAL(ks05_first_forwarding_is_put_back),
		TRIAL(ks05_heard_from_is_kept),
		TRIAL(ks05_silence_brings_the_previous_back),
		TRIAL(ks05_only_what_the_trial_armed_is_let_go),
		TRIAL(disarmed_meanwhile_stays_disarmed),
		TRIAL(restart_goes_on_with_the_trial),
		TRIAL(lost_or_rotten_file_is_written_again),
	};

	return cmocka_run_group_tests(tests, make_keys, free_keys);
}
