/* sequencer.c with stages made of air: order, stop, dry run, no change. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/plan_digest.h"
#include "coordinator/progress.h"
#include "coordinator/sequencer.h"

/* One world for all fakes: what each stage still has to change. */
static int todo[3], applied[3], observed[3], fail_apply[3], stuck[3];
static char journal[64];

static int see(int i, void **ret_seen)
{
	observed[i]++;
	*ret_seen = &todo[i];
	return 0;
}

static int plan(const struct spec *spec, const void *seen,
		struct change_list *changes, struct fault *f)
{
	(void)spec;
	(void)f;
	return *(const int *)seen ?
		       change_list_add(changes, CHANGE_SET, "k", "a", "b") :
		       0;
}

static int act(int i, struct fault *f)
{
	size_t n = strlen(journal);

	journal[n] = (char)('a' + i);
	applied[i]++;
	if (fail_apply[i])
		return fault_set(f, -EIO, "stage", "cause %d", i);
	if (!stuck[i])
		todo[i] = 0;
	return 0;
}

#define FAKE(i)                                                               \
	static int observe_##i(const struct step_env *e, void **s,            \
			       struct fault *f)                               \
	{                                                                     \
		(void)e;                                                      \
		(void)f;                                                      \
		return see(i, s);                                             \
	}                                                                     \
	static int apply_##i(const struct step_env *e, const void *s,         \
			     const struct change_list *c, struct fault *f)    \
	{                                                                     \
		(void)e;                                                      \
		(void)s;                                                      \
		(void)c;                                                      \
		return act(i, f);                                             \
	}
FAKE(0)
FAKE(1)
FAKE(2)

static void keep(void *seen)
{
	(void)seen;
}

#define STEP(i, n_)                                                           \
	{ .id = i, .name = n_, .observe = observe_##i, .plan = plan,          \
	  .apply = apply_##i, .seen_free = keep }
static const struct step steps[3] = { STEP(0, "one"), STEP(1, "two"),
				      STEP(2, "three") };
static const struct step *const registry[3] = { &steps[0], &steps[1],
						&steps[2] };

static int run(struct sequence_options o, struct sequence_result *r,
	       struct fault *f)
{
	FILE *null = fopen("/dev/null", "w");
	struct progress *p = progress_new(null, PROGRESS_PLAIN);
	struct step_env env = { .progress = p };
	int rc;

	memset(journal, 0, sizeof(journal));
	fault_clear(f);
	rc = sequence_run(registry, 3, &env, &o, r, f);
	(void)progress_free(p);
	(void)fclose(null);
	return rc;
}

static int reset(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		todo[i] = 1;
		applied[i] = observed[i] = fail_apply[i] = stuck[i] = 0;
	}
	return 0;
}

static void a64_one_order_then_no_change(void **state)
{
	struct sequence_result r;
	struct fault f = FAULT_INIT;

	(void)state;
	assert_int_equal(run((struct sequence_options){ 0 }, &r, &f), 0);
	assert_string_equal(journal, "abc");
	assert_int_equal(r.outcome, SEQUENCE_CHANGED);
	assert_int_equal(r.changes, 3);
	assert_int_equal(run((struct sequence_options){ 0 }, &r, &f), 0);
	assert_string_equal(journal, "");
	assert_int_equal(r.outcome, SEQUENCE_HOLDS);
	assert_int_equal(r.changes, 0);
}

static void a65_stops_with_its_own_cause(void **state)
{
	struct sequence_result r;
	struct fault f = FAULT_INIT;

	(void)state;
	fail_apply[1] = 1;
	assert_int_equal(run((struct sequence_options){ 0 }, &r, &f), -EIO);
	assert_string_equal(journal, "ab");
	assert_int_equal(observed[2], 0);
	assert_string_equal(r.failed, "two");
	assert_string_equal(f.text, "cause 1");
	/* Run again: the first holds, the second is done, the third too. */
	fail_apply[1] = 0;
	assert_int_equal(run((struct sequence_options){ 0 }, &r, &f), 0);
	assert_string_equal(journal, "bc");
}

static void b60_applied_is_not_done(void **state)
{
	struct sequence_result r;
	struct fault f = FAULT_INIT;

	(void)state;
	stuck[0] = 1;
	assert_int_equal(run((struct sequence_options){ 0 }, &r, &f),
			 -EREMOTEIO);
	assert_string_equal(r.failed, "one");
	assert_int_equal(applied[1], 0);
}

static void a14_check_changes_nothing_and_says_so(void **state)
{
	struct sequence_result r;
	struct fault f = FAULT_INIT;

	(void)state;
	todo[0] = 0;
	assert_int_equal(run((struct sequence_options){ .check = true }, &r,
			     &f), 0);
	assert_string_equal(journal, "");
	assert_int_equal(r.outcome, SEQUENCE_WOULD_CHANGE);
	assert_int_equal(r.changes, 1);
	assert_string_equal(r.unseen, "three");
}

static void only_one_stage(void **state)
{
	struct sequence_result r;
	struct fault f = FAULT_INIT;

	(void)state;
	assert_int_equal(run((struct sequence_options){ .only = "two" }, &r,
			     &f), 0);
	assert_string_equal(journal, "b");
	assert_int_equal(run((struct sequence_options){ .only = "flux" }, &r,
			     &f), -ENOENT);
	assert_string_equal(f.object, "flux");
}

struct looked {
	int stages, refuse;
	struct plan_digest *digest;
};

static int look(void *userdata, const char *stage,
		const struct change_list *changes, struct fault *f)
{
	struct looked *l = userdata;

	l->stages++;
	plan_digest_add(l->digest, stage, changes);
	return l->refuse == l->stages ? fault_set(f, -EPERM, stage, "no") : 0;
}

static void plan_is_seen_before_it_runs(void **state)
{
	struct looked l = { .refuse = 2,
			    .digest = plan_digest_new("id", "x", 1, NULL,
						      NULL) };
	struct sequence_options o = { .approve = look, .userdata = &l };
	struct sequence_result r;
	struct fault f = FAULT_INIT;
	char a[PLAN_DIGEST_SIZE], b[PLAN_DIGEST_SIZE];

	(void)state;
	todo[0] = todo[1] = 1;
	assert_int_equal(plan_digest_get(l.digest, a), 0);
	assert_int_equal(run(o, &r, &f), -EPERM);
	assert_string_equal(r.failed, "two");
	assert_int_equal(r.changes, 1);
	assert_string_equal(journal, "a");
	assert_int_equal(plan_digest_get(l.digest, b), 0);
	assert_string_not_equal(a, b);
	assert_int_equal(plan_digest_check(l.digest, b, &f), 0);
	assert_int_equal(plan_digest_check(l.digest, a, &f), -EPERM);
	(void)plan_digest_free(l.digest);
}

/* Every part of a plan counts, and none can pass for its neighbour. */
static void digest_tells_plans_apart(void **state)
{
	static const char *const plans[][6] = {
		{ "id", "spec", NULL, NULL, "k", "v" },
		{ "ie", "spec", NULL, NULL, "k", "v" },
		{ "id", "sped", NULL, NULL, "k", "v" },
		{ "id", "spec", "n", NULL, "k", "v" },
		{ "id", "spec", NULL, "n", "k", "v" },
		{ "id", "spec", NULL, "", "k", "v" },
		{ "id", "spec", NULL, NULL, "kv", "" },
		{ "id", "spec", NULL, NULL, "", "kv" },
		{ "id", "spec", NULL, NULL, "k", "w" },
		{ "id", "spec", NULL, NULL, "k1:v", "" },
	};
	char hex[sizeof(plans) / sizeof(*plans)][PLAN_DIGEST_SIZE];
	size_t i, j;

	(void)state;
	for (i = 0; i < sizeof(plans) / sizeof(*plans); i++) {
		const char *const *p = plans[i];
		struct change_list l = CHANGE_LIST_INIT;
		struct plan_digest *d = plan_digest_new(p[0], p[1],
							strlen(p[1]), p[2],
							p[3]);

		assert_int_equal(change_list_add(&l, CHANGE_SET, p[4], p[5],
						 "w"), 0);
		plan_digest_add(d, "stage", &l);
		assert_int_equal(plan_digest_get(d, hex[i]), 0);
		for (j = 0; j < i; j++)
			assert_string_not_equal(hex[i], hex[j]);
		change_list_done(&l);
		(void)plan_digest_free(d);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a64_one_order_then_no_change, reset),
		cmocka_unit_test_setup(a65_stops_with_its_own_cause, reset),
		cmocka_unit_test_setup(b60_applied_is_not_done, reset),
		cmocka_unit_test_setup(a14_check_changes_nothing_and_says_so,
				       reset),
		cmocka_unit_test_setup(only_one_stage, reset),
		cmocka_unit_test_setup(plan_is_seen_before_it_runs, reset),
		cmocka_unit_test(digest_tells_plans_apart),
	};

	return cmocka_run_group_tests_name("sequencer", tests, NULL, NULL);
}
