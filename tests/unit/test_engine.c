/* The engine on fake resources: no kernel, no clock, no loop. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/engine.h"
#include "agent/rate.h"
#include "common/log.h"

#define SEC USEC_PER_SEC
#define START (1000 * SEC)

/* One value on the fake node; the desired one is always "right". */
struct fake {
	const char *value;	/* what the node has */
	int apply_returns;
	bool apply_helps;
	bool blocks;		/* apply marks the key blocked */
	int observe_returns;
	int open_returns;
	unsigned int opened, observed, applied, watched;
	const char *writer;
	resource_look_again again;
	void *userdata;
};

static struct fake fakes[2];
static char order[64];

static int fake_open(struct fake *f, void **ret_state, struct fault *fault)
{
	if (f->open_returns < 0)
		return fault_set(fault, f->open_returns, "fake", "no");
	f->opened++;
	*ret_state = f;
	return 0;
}

static int open0(const struct resource_host *h, void **ret, struct fault *f)
{
	(void)h;
	return fake_open(&fakes[0], ret, f);
}

static int open1(const struct resource_host *h, void **ret, struct fault *f)
{
	(void)h;
	return fake_open(&fakes[1], ret, f);
}

static int fake_observe(void *state, const struct desired *want,
			void **ret_seen, struct fault *fault)
{
	struct fake *f = state;
	size_t n = strlen(order);

	(void)want;
	f->observed++;
	if (n + 1 < sizeof(order))
		order[n] = f == &fakes[0] ? '0' : '1';
	if (f->observe_returns < 0)
		return fault_set(fault, f->observe_returns, "fake", "unread");
	*ret_seen = strdup(f->value);
	return *ret_seen ? 0 : -ENOMEM;
}

static int fake_plan(const struct desired *want, const void *seen,
		     struct item_list *items, struct change_list *changes,
		     struct fault *fault)
{
	bool ok = strcmp(seen, "right") == 0;
	int r;

	if (strcmp(seen, "away") == 0)
		return item_list_add(items, "key", ITEM_PENDING, "", "right",
				     "not here yet");

	(void)want;
	(void)fault;
	r = item_list_add(items, "key", ok ? ITEM_IN_SYNC : ITEM_DRIFTED, seen,
			  "right", ok ? "" : "differs");
	if (r < 0 || ok)
		return r;
	return change_list_add(changes, CHANGE_SET, "key", seen, "right");
}

static int fake_apply(void *state, const struct desired *want,
		      const void *seen, const struct change_list *changes,
		      struct item_list *items, struct fault *fault)
{
	struct fake *f = state;

	(void)want;
	(void)seen;
	assert_int_equal(changes->n, 1);
	f->applied++;
	if (f->blocks) {
		struct item *it = item_list_find(items, "key");

		it->state = ITEM_BLOCKED;
		free(it->reason);
		it->reason = strdup("read-only");
	}
	if (f->apply_returns < 0)
		return fault_set(fault, f->apply_returns, "key", "refused");
	if (f->apply_helps)
		f->value = "right";
	return f->apply_returns;
}

static int fake_watch(void *state, const struct desired *want,
		      resource_look_again again, void *userdata,
		      struct fault *fault)
{
	struct fake *f = state;

	(void)want;
	(void)fault;
	f->watched++;
	f->again = again;
	f->userdata = userdata;
	return 0;
}

static void *fake_free(void *state)
{
	((struct fake *)state)->opened--;
	return NULL;
}

static const char *fake_writer(void *state)
{
	return ((struct fake *)state)->writer;
}

static const struct resource res0 = {
	.id = RESOURCE_KILLSWITCH, .open = open0, .observe = fake_observe,
	.plan = fake_plan, .apply = fake_apply, .watch = fake_watch,
	.seen_free = free, .free = fake_free, .writer = fake_writer,
};
static const struct resource res1 = {
	.id = RESOURCE_SYSCTL, .open = open1, .observe = fake_observe,
	.plan = fake_plan, .apply = fake_apply, .watch = fake_watch,
	.seen_free = free, .free = fake_free, .writer = fake_writer,
};
static const struct resource *const registry[RESOURCE_MAX] = {
	[RESOURCE_KILLSWITCH] = &res0,
	[RESOURCE_SYSCTL] = &res1,
};
static const struct resource_host host = { .root = "", .state_dir = "/x" };

static struct engine *make(struct engine_params p)
{
	struct engine *e = NULL;

	log_set_level(LOG_LEVEL_ERROR);
	memset(order, 0, sizeof(order));
	memset(fakes, 0, sizeof(fakes));
	fakes[0] = fakes[1] = (struct fake){ .value = "wrong",
					     .apply_helps = true };
	assert_int_equal(engine_new(&host, registry, &p, &e), 0);
	return e;
}

static void want(struct engine *e, enum mode mode)
{
	struct desired *d = desired_new();
	size_t i;

	assert_non_null(d);
	for (i = 0; i < RESOURCE_MAX; i++)
		d->modes[i] = mode;
	d->generation = 7;
	engine_set_desired(e, d);
}

static void nothing_without_desired(void **state)
{
	struct engine *e = make(engine_params_default());

	(void)state;
	assert_int_equal(engine_pass(e, START), ENGINE_NEVER);
	assert_int_equal(fakes[0].opened, 0);
	engine_free(e);
}

static void converges_in_order(void **state)
{
	struct engine *e = make(engine_params_default());
	struct engine_report r;
	usec next;

	(void)state;
	want(e, MODE_ENFORCE);
	next = engine_pass(e, START);
	/* Look, apply, look again; the first resource before the second. */
	assert_string_equal(order, "0011");
	assert_int_equal(fakes[0].applied, 1);
	assert_int_equal(fakes[0].watched, 1);
	assert_true(engine_settled(e));
	assert_int_equal(next, START + 60 * SEC);
	engine_report(e, START + SEC, &r);
	assert_true(r.settled);
	assert_int_equal(r.generation, 7);
	assert_true(r.v[RESOURCE_SYSCTL].looked);
	assert_false(r.v[RESOURCE_ROUTING].present);
	assert_int_equal(r.v[RESOURCE_SYSCTL].proof_age, SEC);
	assert_int_equal(r.v[RESOURCE_SYSCTL].repairs, 0);
	assert_int_equal(r.v[RESOURCE_SYSCTL].done->n, 1);
	assert_int_equal(r.v[RESOURCE_SYSCTL].items->v[0].state, ITEM_IN_SYNC);
	/* Nothing is due before the periodic look, and that changes nothing. */
	(void)engine_pass(e, START + 30 * SEC);
	assert_string_equal(order, "0011");
	(void)engine_pass(e, next);
	assert_string_equal(order, "001101");
	assert_int_equal(fakes[0].applied, 1);
	engine_free(e);
	assert_int_equal(fakes[0].opened, 0);
}

static void mode_observe_changes_nothing(void **state)
{
	struct engine *e = make(engine_params_default());
	struct engine_report r;

	(void)state;
	want(e, MODE_OBSERVE);
	(void)engine_pass(e, START);
	(void)engine_pass(e, START + 60 * SEC);
	assert_int_equal(fakes[0].applied, 0);
	assert_int_equal(fakes[0].observed, 2);
	engine_report(e, START, &r);
	assert_int_equal(r.v[0].plan->n, 1);
	assert_int_equal(r.v[0].items->v[0].state, ITEM_DRIFTED);
	engine_free(e);
}

static void mode_off_does_not_look(void **state)
{
	struct engine *e = make(engine_params_default());

	(void)state;
	want(e, MODE_ENFORCE);
	(void)engine_pass(e, START);
	want(e, MODE_OFF);
	assert_int_equal(engine_pass(e, START), ENGINE_NEVER);
	assert_int_equal(fakes[0].observed, 2);
	/* The resource is not even closed: what stands goes on standing. */
	assert_int_equal(fakes[0].opened, 1);
	assert_string_equal(fakes[0].value, "right");
	engine_free(e);
}

static void check_plans_and_stops(void **state)
{
	struct engine_params p = engine_params_default();
	struct engine *e;
	struct engine_report r;

	(void)state;
	p.check = true;
	e = make(p);
	want(e, MODE_ENFORCE);
	(void)engine_pass(e, START);
	assert_true(engine_settled(e));
	assert_int_equal(fakes[0].applied + fakes[1].applied, 0);
	assert_int_equal(fakes[0].watched, 0);
	engine_report(e, START, &r);
	assert_string_equal(r.v[0].plan->v[0].have, "wrong");
	engine_free(e);
}

static void only_some(void **state)
{
	struct engine *e = make(engine_params_default());

	(void)state;
	engine_only(e, 1U << RESOURCE_SYSCTL);
	want(e, MODE_ENFORCE);
	(void)engine_pass(e, START);
	assert_string_equal(order, "11");
	assert_true(engine_settled(e));
	engine_free(e);
}

static void drift_is_repaired_on_event(void **state)
{
	struct engine *e = make(engine_params_default());
	struct engine_report r;
	size_t i;

	(void)state;
	want(e, MODE_ENFORCE);
	(void)engine_pass(e, START);
	for (i = 1; i <= 3; i++) {
		fakes[1].value = "foreign";
		/* A burst of events is one look. */
		fakes[1].again(fakes[1].userdata);
		fakes[1].again(fakes[1].userdata);
		(void)engine_pass(e, START + i);
		assert_string_equal(fakes[1].value, "right");
	}
	assert_int_equal(fakes[1].observed, 2 + 3 * 2);
	assert_int_equal(fakes[0].observed, 2);
	engine_report(e, START + 3, &r);
	assert_int_equal(r.v[RESOURCE_SYSCTL].repairs, 3);
	assert_false(r.v[RESOURCE_SYSCTL].contended);
	engine_free(e);
}

static void ks14_repeat_offender_is_contended(void **state)
{
	struct engine *e = make(engine_params_default());
	struct engine_report r;
	usec now = START;
	size_t i;

	(void)state;
	want(e, MODE_ENFORCE);
	(void)engine_pass(e, now);
	fakes[0].writer = "nft[4711]";
	/* Undone every 10 ms for 100 s. */
	for (i = 0; i < 10000; i++) {
		now += 10 * USEC_PER_MSEC;
		fakes[0].value = "flushed";
		fakes[0].again(fakes[0].userdata);
		(void)engine_pass(e, now);
	}
	engine_report(e, now, &r);
	assert_true(r.v[0].contended);
	assert_string_equal(r.v[0].writer, "nft[4711]");
	assert_in_range(r.v[0].repairs, 21, 32);
	/* It gives up: the repair comes within the cap, then it is quiet. */
	now += 30 * SEC;
	(void)engine_pass(e, now);
	assert_string_equal(fakes[0].value, "right");
	now += 60 * SEC;
	(void)engine_pass(e, now);
	engine_report(e, now, &r);
	assert_false(r.v[0].contended);
	engine_free(e);
}

static void in_flight_is_waited_for(void **state)
{
	struct engine *e = make(engine_params_default());
	usec next;

	(void)state;
	want(e, MODE_ENFORCE);
	fakes[0].apply_returns = 1;
	fakes[0].apply_helps = false;
	(void)engine_pass(e, START);
	assert_int_equal(fakes[0].applied, 1);
	assert_false(engine_settled(e));
	/* An event that is not the end of it starts nothing again. */
	fakes[0].again(fakes[0].userdata);
	(void)engine_pass(e, START + SEC);
	assert_int_equal(fakes[0].applied, 1);
	assert_false(engine_settled(e));
	/* The second resource did not wait for the first. */
	assert_string_equal(fakes[1].value, "right");
	fakes[0].value = "right";
	fakes[0].again(fakes[0].userdata);
	next = engine_pass(e, START + 2 * SEC);
	assert_true(engine_settled(e));
	assert_true(next > START + 2 * SEC);
	engine_free(e);
}

static void in_flight_has_a_deadline(void **state)
{
	struct engine *e = make(engine_params_default());
	struct engine_report r;

	(void)state;
	want(e, MODE_ENFORCE);
	engine_only(e, 1);
	fakes[0].apply_returns = 1;
	fakes[0].apply_helps = false;
	assert_int_equal(engine_pass(e, START), START + 60 * SEC);
	(void)engine_pass(e, START + 60 * SEC);
	assert_int_equal(fakes[0].applied, 2);
	engine_report(e, START + 60 * SEC, &r);
	assert_int_equal(r.v[0].fault->err, -ETIMEDOUT);
	engine_free(e);
}

/* A name was made; its daemon need not wait for the name's deadline. */
static void is01_a_step_that_ended_frees_the_next(void **state)
{
	struct engine *e = make(engine_params_default());

	(void)state;
	want(e, MODE_ENFORCE);
	engine_only(e, 1);
	fakes[0].apply_returns = 1;
	fakes[0].apply_helps = false;
	(void)engine_pass(e, START);
	assert_int_equal(fakes[0].applied, 1);
	fakes[0].value = "half";
	fakes[0].again(fakes[0].userdata);
	(void)engine_pass(e, START + SEC);
	assert_int_equal(fakes[0].applied, 2);
	engine_free(e);
}

static void failing_apply_backs_off_and_says_why(void **state)
{
	struct engine *e = make(engine_params_default());
	struct engine_report r;
	usec now = START, next;
	size_t i;

	(void)state;
	want(e, MODE_ENFORCE);
	engine_only(e, 1);
	fakes[0].apply_returns = -EROFS;
	fakes[0].blocks = true;
	for (i = 0; i < 100; i++) {
		next = engine_pass(e, now);
		assert_in_range(next - now, 1, 30 * SEC);
		now = next;
	}
	assert_int_equal(fakes[0].applied, 100);
	assert_int_equal(next, engine_pass(e, next - 1));
	/* The reason survives a look that applies nothing. */
	fakes[0].again(fakes[0].userdata);
	(void)engine_pass(e, now - SEC);
	engine_report(e, now, &r);
	assert_int_equal(r.v[0].fault->err, -EROFS);
	assert_int_equal(r.v[0].items->v[0].state, ITEM_BLOCKED);
	assert_string_equal(r.v[0].items->v[0].reason, "read-only");
	fakes[0].apply_returns = 0;
	fakes[0].blocks = false;
	(void)engine_pass(e, now);
	engine_report(e, now, &r);
	assert_int_equal(r.v[0].fault->err, 0);
	assert_int_equal(r.v[0].items->v[0].state, ITEM_IN_SYNC);
	engine_free(e);
}

/* However long it was away and often looked for: it is acted on at once. */
static void rt03_what_was_awaited_is_not_delayed(void **state)
{
	struct engine *e = make(engine_params_default());
	usec now = START;
	int i;

	(void)state;
	want(e, MODE_ENFORCE);
	engine_only(e, 1);
	(void)engine_pass(e, now);
	assert_string_equal(fakes[0].value, "right");
	fakes[0].value = "away";
	for (i = 0; i < 20; i++) {
		(void)engine_pass(e, now);
		now += SEC / 100;
		fakes[0].again(fakes[0].userdata);
	}
	fakes[0].value = "here";
	fakes[0].again(fakes[0].userdata);
	(void)engine_pass(e, now);
	assert_string_equal(fakes[0].value, "right");
	(void)engine_free(e);
}

/* Backing off is for what did not help, not for a node that moves on. */
static void another_plan_does_not_wait(void **state)
{
	static const char *const moves[] = { "a", "b", "c", "d", "e" };
	struct engine *e = make(engine_params_default());
	size_t i;

	(void)state;
	fakes[0].apply_helps = false;
	want(e, MODE_ENFORCE);
	engine_only(e, 1);
	for (i = 0; i < 5; i++) {
		fakes[0].value = moves[i];
		if (i)
			fakes[0].again(fakes[0].userdata);
		(void)engine_pass(e, START + i);
		assert_int_equal(fakes[0].applied, i + 1);
	}
	/* The same once more has to wait. */
	fakes[0].again(fakes[0].userdata);
	(void)engine_pass(e, START + i);
	assert_int_equal(fakes[0].applied, i);
	(void)engine_free(e);
}

static void unreadable_is_never_repaired(void **state)
{
	struct engine *e = make(engine_params_default());
	struct engine_report r;

	(void)state;
	want(e, MODE_ENFORCE);
	fakes[0].observe_returns = -EIO;
	(void)engine_pass(e, START);
	assert_int_equal(fakes[0].applied, 0);
	engine_report(e, START, &r);
	assert_false(r.v[0].looked);
	assert_false(r.settled);
	assert_int_equal(r.v[0].fault->err, -EIO);
	/* The others are not held up. */
	assert_string_equal(fakes[1].value, "right");
	fakes[0].observe_returns = 0;
	(void)engine_pass(e, START + SEC);
	assert_string_equal(fakes[0].value, "right");
	engine_free(e);
}

static void open_is_tried_again(void **state)
{
	struct engine *e = make(engine_params_default());

	(void)state;
	want(e, MODE_ENFORCE);
	fakes[0].open_returns = -EAGAIN;
	assert_int_equal(engine_pass(e, START),
			 START + 100 * USEC_PER_MSEC);
	fakes[0].open_returns = 0;
	(void)engine_pass(e, START + SEC);
	assert_string_equal(fakes[0].value, "right");
	engine_free(e);
}

static void later_resources_build_on_earlier(void **state)
{
	struct engine *e = make(engine_params_default());

	(void)state;
	want(e, MODE_ENFORCE);
	(void)engine_pass(e, START);
	fakes[0].value = "wrong";
	fakes[0].again(fakes[0].userdata);
	(void)engine_pass(e, START + SEC);
	/* 0 was repaired, so 1 looked again in the same pass. */
	assert_string_equal(order, "0011001");
	engine_free(e);
}

static unsigned int told;

static void tell(void *userdata)
{
	(void)userdata;
	told++;
}

static void change_is_told_once(void **state)
{
	struct engine *e = make(engine_params_default());

	(void)state;
	told = 0;
	engine_on_change(e, tell, NULL);
	want(e, MODE_ENFORCE);
	(void)engine_pass(e, START);
	assert_int_equal(told, 1);
	(void)engine_pass(e, START + 60 * SEC);
	(void)engine_pass(e, START + 120 * SEC);
	assert_int_equal(told, 1);
	engine_free(e);
}

static int stop_loop(sd_event_source *s, uint64_t t, void *userdata)
{
	(void)t;
	(void)userdata;
	return sd_event_exit(sd_event_source_get_event(s), 0);
}

static void the_loop_runs_it(void **state)
{
	struct engine_params p = engine_params_default();
	struct resource_host h = host;
	struct engine *e;

	(void)state;
	assert_int_equal(sd_event_new(&h.event), 0);
	p.reobserve = 20 * USEC_PER_MSEC;
	e = make(p);
	engine_free(e);
	assert_int_equal(engine_new(&h, registry, &p, &e), 0);
	assert_int_equal(engine_attach(e), 0);
	want(e, MODE_ENFORCE);
	assert_true(sd_event_add_time_relative(h.event, NULL, CLOCK_MONOTONIC,
					       200 * USEC_PER_MSEC, 0,
					       stop_loop, NULL) >= 0);
	assert_int_equal(sd_event_loop(h.event), 0);
	/* Once at once, then by the timer. */
	assert_string_equal(fakes[0].value, "right");
	assert_true(fakes[0].observed > 2);
	engine_free(e);
	sd_event_unref(h.event);
}

static void rates(void **state)
{
	const struct rate_limits l = { 2, 100, 400, 1000 };
	struct rate r = { 0 };

	(void)state;
	assert_int_equal(rate_wait(&r, &l, 5000), 0);
	rate_take(&r, &l, 5000);
	assert_int_equal(rate_wait(&r, &l, 5000), 0);
	rate_take(&r, &l, 5000);
	assert_false(rate_contended(&r, &l));
	assert_int_equal(rate_wait(&r, &l, 5010), 90);
	rate_take(&r, &l, 5100);
	assert_true(rate_contended(&r, &l));
	assert_int_equal(rate_wait(&r, &l, 5100), 200);
	rate_take(&r, &l, 5300);
	rate_take(&r, &l, 5700);
	assert_int_equal(rate_wait(&r, &l, 5700), 400);
	assert_false(rate_settle(&r, &l, 6699));
	assert_true(rate_settle(&r, &l, 6700));
	assert_int_equal(rate_wait(&r, &l, 6700), 0);
	assert_int_equal(rate_doubled(100, 1000, 400), 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_without_desired),
		cmocka_unit_test(converges_in_order),
		cmocka_unit_test(mode_observe_changes_nothing),
		cmocka_unit_test(mode_off_does_not_look),
		cmocka_unit_test(check_plans_and_stops),
		cmocka_unit_test(only_some),
		cmocka_unit_test(drift_is_repaired_on_event),
		cmocka_unit_test(ks14_repeat_offender_is_contended),
		cmocka_unit_test(in_flight_is_waited_for),
		cmocka_unit_test(in_flight_has_a_deadline),
		cmocka_unit_test(is01_a_step_that_ended_frees_the_next),
		cmocka_unit_test(failing_apply_backs_off_and_says_why),
		cmocka_unit_test(rt03_what_was_awaited_is_not_delayed),
		cmocka_unit_test(another_plan_does_not_wait),
		cmocka_unit_test(unreadable_is_never_repaired),
		cmocka_unit_test(open_is_tried_again),
		cmocka_unit_test(later_resources_build_on_earlier),
		cmocka_unit_test(change_is_told_once),
		cmocka_unit_test(the_loop_runs_it),
		cmocka_unit_test(rates),
	};

	return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
