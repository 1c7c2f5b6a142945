/* The engine and a resource that can look in a hurry: no kernel, no clock. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/engine.h"
#include "common/log.h"

#define SEC USEC_PER_SEC
#define START (1000 * SEC)

/* One value on the fake node; the desired one is always "right". */
static struct fake {
	const char *value;	/* what the node has */
	const char *glance;	/* what a glance sees; NULL: refused */
	bool helps;
	unsigned int observed, applied, glanced;
	resource_look_again again;
	void *userdata;
} fake;

static int fake_open(const struct resource_host *h, void **ret_state,
		     struct fault *f)
{
	(void)h;
	(void)f;
	*ret_state = &fake;
	return 0;
}

static int fake_observe(void *state, const struct desired *want,
			void **ret_seen, struct fault *f)
{
	(void)state;
	(void)want;
	(void)f;
	fake.observed++;
	*ret_seen = strdup(fake.value);
	return *ret_seen ? 0 : -ENOMEM;
}

static int fake_glance(void *state, const struct desired *want,
		       void **ret_seen)
{
	(void)state;
	(void)want;
	fake.glanced++;
	if (!fake.glance)
		return 0;
	*ret_seen = strdup(fake.glance);
	return *ret_seen ? 1 : -ENOMEM;
}

static int fake_plan(const struct desired *want, const void *seen,
		     struct item_list *items, struct change_list *changes,
		     struct fault *f)
{
	bool ok = strcmp(seen, "right") == 0;
	int r = item_list_add(items, "key", ok ? ITEM_IN_SYNC : ITEM_DRIFTED,
			      seen, "right", "");

	(void)want;
	(void)f;
	if (r < 0 || ok)
		return r;
	return change_list_add(changes, CHANGE_SET, "key", seen, "right");
}

static int fake_apply(void *state, const struct desired *want,
		      const void *seen, const struct change_list *changes,
		      struct item_list *items, struct fault *f)
{
	(void)state;
	(void)want;
	(void)seen;
	(void)items;
	(void)f;
	assert_int_equal(changes->n, 1);
	fake.applied++;
	if (fake.helps)
		fake.value = "right";
	return 0;
}

static int fake_watch(void *state, const struct desired *want,
		      resource_look_again again, void *userdata,
		      struct fault *f)
{
	(void)state;
	(void)want;
	(void)f;
	fake.again = again;
	fake.userdata = userdata;
	return 0;
}

static void *fake_free(void *state)
{
	(void)state;
	return NULL;
}

static const struct resource quick = {
	.id = RESOURCE_KILLSWITCH, .open = fake_open,
	.observe = fake_observe, .plan = fake_plan, .apply = fake_apply,
	.watch = fake_watch, .seen_free = free, .free = fake_free,
	.glance = fake_glance,
};
static const struct resource *const registry[RESOURCE_MAX] = {
	[RESOURCE_KILLSWITCH] = &quick,
};

static void want(struct engine *e, enum mode mode)
{
	struct desired *d = desired_new();

	assert_non_null(d);
	d->modes[RESOURCE_KILLSWITCH] = mode;
	engine_set_desired(e, d);
}

/* One that has converged, in two looks. */
static struct engine *make(const struct engine_params *p)
{
	static const struct resource_host host = { .root = "",
						   .state_dir = "/x" };
	struct engine *e = NULL;

	log_set_level(LOG_LEVEL_ERROR);
	fake = (struct fake){ .value = "wrong", .glance = "wrong",
			      .helps = true };
	assert_int_equal(engine_new(&host, registry, p, &e), 0);
	want(e, MODE_ENFORCE);
	(void)engine_pass(e, START);
	/* No glance before all was seen once. */
	assert_int_equal(fake.glanced, 0);
	assert_int_equal(fake.observed, 2);
	return e;
}

static void event(struct engine *e, const char *value, const char *glance,
		  usec now)
{
	fake.value = value;
	fake.glance = glance;
	fake.observed = fake.applied = 0;
	fake.again(fake.userdata);
	(void)engine_pass(e, now);
}

static void repaired_at_a_glance_and_looked_at_after(void **state)
{
	struct engine_params p = engine_params_default();
	struct engine *e = make(&p);
	struct engine_report r;

	(void)state;
	event(e, "foreign", "foreign", START + 1);
	assert_string_equal(fake.value, "right");
	assert_int_equal(fake.applied, 1);
	assert_int_equal(fake.observed, 1);
	/* It sees nothing wrong, and that is not believed. */
	event(e, "foreign", "right", START + 2);
	assert_string_equal(fake.value, "right");
	assert_int_equal(fake.observed, 2);
	/* It sees what is not so: all is looked at after it as well. */
	event(e, "right", "foreign", START + 3);
	assert_int_equal(fake.observed, 1);
	event(e, "foreign", NULL, START + 4);
	assert_string_equal(fake.value, "right");
	assert_int_equal(fake.observed, 2);
	engine_report(e, START + 5, &r);
	assert_int_equal(r.v[RESOURCE_KILLSWITCH].repairs, 4);
	assert_true(r.v[RESOURCE_KILLSWITCH].settled);
	engine_free(e);
}

/* What one could not put right is looked at whole from then on. */
static void not_again_after_a_failure(void **state)
{
	struct engine_params p = engine_params_default();
	struct engine *e = make(&p);

	(void)state;
	fake.helps = false;
	event(e, "foreign", "foreign", START + 1);
	assert_int_equal(fake.glanced, 1);
	event(e, "foreign", "foreign", START + 2);
	assert_int_equal(fake.glanced, 1);
	assert_int_equal(fake.observed, 1);
	engine_free(e);
}

static void ks14_the_rate_holds_for_glances(void **state)
{
	struct engine_params p = engine_params_default();
	struct engine *e = make(&p);
	struct engine_report r;
	unsigned int i;

	(void)state;
	for (i = 0; i < 2 * p.repair.burst; i++)
		event(e, "foreign", "foreign", START + 1 + i);
	assert_int_equal(fake.glanced, p.repair.burst);
	assert_string_equal(fake.value, "foreign");
	engine_report(e, START + i, &r);
	assert_int_equal(r.v[RESOURCE_KILLSWITCH].repairs, p.repair.burst);
	engine_free(e);
}

static void modes_below_enforce_have_none(void **state)
{
	static const enum mode modes[] = { MODE_OBSERVE, MODE_OFF };
	struct engine_params p = engine_params_default();
	struct engine *e = make(&p);
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		want(e, modes[i]);
		(void)engine_pass(e, START + 1 + 2 * i);
		event(e, "foreign", "foreign", START + 2 + 2 * i);
		assert_int_equal(fake.glanced, 0);
		assert_int_equal(fake.applied, 0);
	}
	engine_free(e);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(repaired_at_a_glance_and_looked_at_after),
		cmocka_unit_test(not_again_after_a_failure),
		cmocka_unit_test(ks14_the_rate_holds_for_glances),
		cmocka_unit_test(modes_below_enforce_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
