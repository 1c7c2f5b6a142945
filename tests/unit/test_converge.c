/* converge and the verdict, on fake resources. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/converge.h"
#include "agent/verdict.h"
#include "common/log.h"

/* Keys a and b; "right" is desired of both. c is ours and to be removed. */
static struct world {
	const char *a, *b;
	bool c;
	bool b_refuses, unreadable;
	unsigned int observed, applied, watched;
} w;

static int fake_open(const struct resource_host *h, void **ret, struct fault *f)
{
	(void)h;
	(void)f;
	*ret = &w;
	return 0;
}

static int fake_observe(void *state, const struct desired *want, void **ret,
			struct fault *f)
{
	(void)state;
	(void)want;
	w.observed++;
	if (w.unreadable)
		return fault_set(f, -EIO, "fake", "cannot be read");
	*ret = malloc(1);
	return 0;
}

static int judge(const char *key, const char *have, struct item_list *items,
		 struct change_list *changes)
{
	bool ok = strcmp(have, "right") == 0;
	int r = item_list_add(items, key, ok ? ITEM_IN_SYNC : ITEM_DRIFTED,
			      have, "right", "");

	return r < 0 || ok ? r : change_list_add(changes, CHANGE_SET, key,
						 have, "right");
}

static int fake_plan(const struct desired *want, const void *seen,
		     struct item_list *items, struct change_list *changes,
		     struct fault *f)
{
	int r = judge("a", w.a, items, changes);

	(void)want;
	(void)seen;
	(void)f;
	if (r == 0)
		r = judge("b", w.b, items, changes);
	if (r == 0 && w.c)
		r = change_list_add(changes, CHANGE_REMOVE, "c", "there", "");
	return r;
}

static int fake_apply(void *state, const struct desired *want,
		      const void *seen, const struct change_list *changes,
		      struct item_list *items, struct fault *f)
{
	struct item *b = item_list_find(items, "b");

	(void)state;
	(void)want;
	(void)seen;
	assert_true(changes->n > 0);
	w.applied++;
	w.a = "right";
	w.c = false;
	if (!w.b_refuses) {
		w.b = "right";
		return 0;
	}
	b->state = ITEM_BLOCKED;
	free(b->reason);
	b->reason = strdup("read-only");
	return fault_set(f, -EROFS, "b", "read-only");
}

static int fake_watch(void *state, const struct desired *want,
		      resource_look_again again, void *userdata,
		      struct fault *f)
{
	(void)state;
	(void)want;
	(void)again;
	(void)userdata;
	(void)f;
	w.watched++;
	return 0;
}

static void *fake_free(void *state)
{
	(void)state;
	return NULL;
}

static const struct resource fake = {
	.id = RESOURCE_SYSCTL, .open = fake_open, .observe = fake_observe,
	.plan = fake_plan, .apply = fake_apply, .watch = fake_watch,
	.seen_free = free, .free = fake_free,
};
static const struct resource *const registry[RESOURCE_MAX] = {
	[RESOURCE_SYSCTL] = &fake,
};

static int look(bool check, struct converge_result *ret)
{
	struct converge_params p = { .check = check,
				     .only = UINT32_MAX,
				     .root = "",
				     .state_dir = "/nonexistent",
				     .registry = registry };
	struct desired *d = desired_new();
	struct fault f = FAULT_INIT;

	d->modes[RESOURCE_SYSCTL] = MODE_ENFORCE;
	return converge_look(&p, d, ret, &f);
}

static struct converge_result go(bool check, enum mode mode)
{
	struct converge_params p = { .check = check,
				     .only = UINT32_MAX,
				     .deadline = 5 * USEC_PER_SEC,
				     .root = "",
				     .state_dir = "/nonexistent",
				     .registry = registry };
	struct desired *d = desired_new();
	struct converge_result r = { 0 };
	struct fault f = FAULT_INIT;

	d->modes[RESOURCE_SYSCTL] = mode;
	assert_int_equal(converge(&p, d, &r, &f), 0);
	return r;
}

static const struct converge_entry *entry(const struct converge_result *r,
					  const char *key)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		if (strcmp(r->v[i].key, key) == 0)
			return &r->v[i];
	fail_msg("no line about %s", key);
	return NULL;
}

static void nothing_to_do_is_one_look(void **state)
{
	struct converge_result r;

	(void)state;
	w = (struct world){ .a = "right", .b = "right" };
	r = go(false, MODE_ENFORCE);
	assert_int_equal(w.observed, 1);
	assert_int_equal(w.watched, 0);
	assert_int_equal(r.count[CONVERGE_OK], 2);
	assert_int_equal(r.n, 2);
	converge_result_done(&r);
}

static void a_look_suffices_when_nothing_is_to_do(void **state)
{
	struct converge_result r;

	(void)state;
	w = (struct world){ .a = "right", .b = "right" };
	assert_int_equal(look(false, &r), 0);
	assert_int_equal(r.count[CONVERGE_OK], 2);
	assert_int_equal(r.n, 2);
	converge_result_done(&r);
}

static void a_look_leaves_what_is_to_do(void **state)
{
	struct converge_result r = { .n = 77 };

	(void)state;
	w = (struct world){ .a = "wrong", .b = "right" };
	assert_int_equal(look(false, &r), 1);
	assert_int_equal(r.n, 77);
	assert_int_equal(w.applied, 0);
	/* What would be done can be said without doing it. */
	assert_int_equal(look(true, &r), 0);
	assert_int_equal(entry(&r, "a")->kind, CONVERGE_CHANGED);
	assert_int_equal(w.applied, 0);
	converge_result_done(&r);
}

static void a12_check_lists_and_changes_nothing(void **state)
{
	struct converge_result r;

	(void)state;
	w = (struct world){ .a = "wrong", .b = "right", .c = true };
	r = go(true, MODE_ENFORCE);
	assert_int_equal(w.applied, 0);
	assert_int_equal(w.watched, 0);
	assert_int_equal(entry(&r, "a")->kind, CONVERGE_CHANGED);
	assert_string_equal(entry(&r, "a")->have, "wrong");
	assert_int_equal(entry(&r, "b")->kind, CONVERGE_OK);
	assert_int_equal(entry(&r, "c")->op, CHANGE_REMOVE);
	assert_int_equal(r.count[CONVERGE_LEFT], 0);
	converge_result_done(&r);
}

static void changes_are_made_and_named(void **state)
{
	struct converge_result r;

	(void)state;
	w = (struct world){ .a = "wrong", .b = "right", .c = true };
	r = go(false, MODE_ENFORCE);
	assert_int_equal(w.applied, 1);
	assert_int_equal(entry(&r, "a")->kind, CONVERGE_CHANGED);
	assert_string_equal(entry(&r, "a")->have, "wrong");
	assert_int_equal(entry(&r, "b")->kind, CONVERGE_OK);
	assert_int_equal(entry(&r, "c")->kind, CONVERGE_CHANGED);
	assert_int_equal(r.count[CONVERGE_CHANGED], 2);
	converge_result_done(&r);
}

static void what_fails_is_left_with_its_reason(void **state)
{
	struct converge_result r;

	(void)state;
	w = (struct world){ .a = "wrong", .b = "wrong", .b_refuses = true };
	r = go(false, MODE_ENFORCE);
	assert_int_equal(entry(&r, "a")->kind, CONVERGE_CHANGED);
	assert_int_equal(entry(&r, "b")->kind, CONVERGE_LEFT);
	assert_string_equal(entry(&r, "b")->reason, "read-only");
	/* It was seen well enough: what failed is the change (exit 1, not 5). */
	assert_false(r.unobservable);
	converge_result_done(&r);
}

static void mode_observe_only_tells(void **state)
{
	struct converge_result r;
	bool check;

	(void)state;
	for (check = false;; check = true) {
		w = (struct world){ .a = "wrong", .b = "right" };
		r = go(check, MODE_OBSERVE);
		assert_int_equal(w.applied, 0);
		assert_int_equal(entry(&r, "a")->kind, CONVERGE_LEFT);
		assert_int_equal(r.count[CONVERGE_CHANGED], 0);
		converge_result_done(&r);
		if (check)
			break;
	}
}

static void unreadable_is_incomplete(void **state)
{
	struct converge_result r;

	(void)state;
	w = (struct world){ .a = "right", .b = "right", .unreadable = true };
	r = go(false, MODE_ENFORCE);
	assert_true(r.unobservable);
	assert_int_equal(w.applied, 0);
	converge_result_done(&r);
}

/* ---- the verdict ---- */

static void verdicts(void **state)
{
	static const struct {
		enum resource_id id;
		enum mode mode;
		enum item_state item;
		bool contended, session;
		usec age;
		enum verdict_code code;
		const char *says;
	} t[] = {
		{ RESOURCE_SYSCTL, MODE_ENFORCE, ITEM_IN_SYNC, false, true, 0,
		  VERDICT_OK, "1 items in sync" },
		{ RESOURCE_SYSCTL, MODE_ENFORCE, ITEM_PENDING, false, true, 0,
		  VERDICT_OK, "sysctl: k is pending" },
		{ RESOURCE_SYSCTL, MODE_ENFORCE, ITEM_BLOCKED, false, true, 0,
		  VERDICT_WARNING, "sysctl: k is blocked, why" },
		{ RESOURCE_KILLSWITCH, MODE_ENFORCE, ITEM_BLOCKED, false, true,
		  0, VERDICT_CRITICAL, "killswitch: k is blocked, why" },
		{ RESOURCE_KILLSWITCH, MODE_ENFORCE, ITEM_UNOBSERVABLE, false,
		  true, 0, VERDICT_CRITICAL, "killswitch: k is unobservable" },
		{ RESOURCE_SYSCTL, MODE_ENFORCE, ITEM_IN_SYNC, true, true, 0,
		  VERDICT_WARNING, "sysctl is contended by nft[1]" },
		{ RESOURCE_KILLSWITCH, MODE_ENFORCE, ITEM_IN_SYNC, true, true,
		  0, VERDICT_CRITICAL, "killswitch is contended" },
		{ RESOURCE_SYSCTL, MODE_ENFORCE, ITEM_IN_SYNC, false, false, 0,
		  VERDICT_WARNING, "no session" },
		{ RESOURCE_SYSCTL, MODE_ENFORCE, ITEM_IN_SYNC, false, true,
		  200 * USEC_PER_SEC, VERDICT_CRITICAL,
		  "sysctl has not been looked at for 200 s" },
		{ RESOURCE_SYSCTL, MODE_OFF, ITEM_IN_SYNC, false, true, 0,
		  VERDICT_OK, "sysctl is off" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct item_list items = ITEM_LIST_INIT;
		struct change_list none = CHANGE_LIST_INIT;
		struct fault f = FAULT_INIT;
		struct engine_report er = { .desired = true };
		struct verdict_input in = { &er, true, t[i].session, "",
					    NULL, NULL };
		struct verdict v;

		assert_int_equal(item_list_add(&items, "k", t[i].item, "", "",
					       "why"), 0);
		er.v[t[i].id] = (struct engine_resource){
			.present = true, .looked = true, .mode = t[i].mode,
			.contended = t[i].contended, .proof_age = t[i].age,
			.items = &items, .plan = &none, .done = &none,
			.writer = "nft[1]", .fault = &f,
		};
		verdict_make(&in, &v);
		assert_int_equal(v.code, t[i].code);
		assert_non_null(strstr(v.text, t[i].says));
		assert_non_null(strstr(v.perfdata, "items=1 "));
		item_list_done(&items);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_do_is_one_look),
		cmocka_unit_test(a_look_suffices_when_nothing_is_to_do),
		cmocka_unit_test(a_look_leaves_what_is_to_do),
		cmocka_unit_test(a12_check_lists_and_changes_nothing),
		cmocka_unit_test(changes_are_made_and_named),
		cmocka_unit_test(what_fails_is_left_with_its_reason),
		cmocka_unit_test(mode_observe_only_tells),
		cmocka_unit_test(unreadable_is_incomplete),
		cmocka_unit_test(verdicts),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests_name("converge", tests, NULL, NULL);
}
