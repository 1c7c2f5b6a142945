/* Nodes that say the same of themselves: who is named, and who is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/twins.h"

#define NODES 4

static struct identity ids[NODES];
static const struct identity *all[NODES];
static struct twin *twins;
static size_t n;

static void find(void)
{
	free(twins);
	twins = NULL;
	assert_int_equal(twins_find(all, NODES, &twins, &n), 0);
}

static int fresh(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < NODES; i++) {
		ids[i] = (struct identity){ 0 };
		(void)snprintf(ids[i].machine_id, sizeof(ids[i].machine_id),
			       "%032zu", i + 1);
		all[i] = &ids[i];
	}
	return 0;
}

static int drop(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < NODES; i++)
		strlist_done(&ids[i].macs);
	free(twins);
	twins = NULL;
	return 0;
}

static void is_pair(size_t i, size_t a, size_t b, enum twin_kind kind)
{
	assert_true(i < n);
	assert_int_equal(twins[i].a, a);
	assert_int_equal(twins[i].b, b);
	assert_int_equal(twins[i].kind, kind);
}

static void set(char *field, const char *value)
{
	memcpy(field, value, strlen(value) + 1);
}

static void nothing_said_is_nothing_shared(void **state)
{
	(void)state;
	find();
	assert_int_equal(n, 0);
	all[1] = NULL;
	all[3] = NULL;
	find();
	assert_int_equal(n, 0);
}

static void tl01_each_is_named_with_the_first(void **state)
{
	(void)state;
	set(ids[3].machine_id, ids[1].machine_id);
	set(ids[2].machine_id, ids[1].machine_id);
	find();
	assert_int_equal(n, 2);
	is_pair(0, 1, 2, TWIN_MACHINE_ID);
	is_pair(1, 1, 3, TWIN_MACHINE_ID);
}

static void is01_initiator_names(void **state)
{
	(void)state;
	set(ids[0].initiator_name, "iqn.1993-08.org.debian:01:a");
	set(ids[2].initiator_name, "iqn.1993-08.org.debian:01:A");
	find();
	assert_int_equal(n, 1);
	is_pair(0, 0, 2, TWIN_INITIATOR);
}

/* A bridge's or a hypervisor's own invention may well be the same. */
static void macs_that_are_burnt_in(void **state)
{
	static const struct {
		const char *mac;
		size_t n;
	} t[] = {
		{ "3c:ec:ef:01:02:03", 1 }, { "02:42:ac:11:00:01", 0 },
		{ "52:54:00:00:00:11", 0 }, { "00:00:5e:00:01:01", 1 },
		{ "x", 0 }, { "3", 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		(void)drop(state);
		assert_int_equal(strlist_add(&ids[0].macs, t[i].mac), 0);
		/* One port of a bond shows the address of the other. */
		assert_int_equal(strlist_add(&ids[0].macs, t[i].mac), 0);
		find();
		assert_int_equal(n, 0);
		assert_int_equal(strlist_add(&ids[3].macs, t[i].mac), 0);
		find();
		assert_int_equal(n, t[i].n);
	}
}

static void vendors_that_fill_in_a_uuid(void **state)
{
	static const struct {
		const char *uuid;
		size_t n;
	} t[] = {
		{ "4c4c4544-0039-4a10-8034-b4c04f4e4d32", 1 },
		{ "00000000-0000-0000-0000-000000000000", 0 },
		{ "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", 0 },
		{ "03000200-0400-0500-0006-000700080009", 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		set(ids[1].product_uuid, t[i].uuid);
		set(ids[2].product_uuid, t[i].uuid);
		find();
		assert_int_equal(n, t[i].n);
	}
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fresh, drop)
	static const struct CMUnitTest tests[] = {
		TEST(nothing_said_is_nothing_shared),
		TEST(tl01_each_is_named_with_the_first),
		TEST(is01_initiator_names),
		TEST(macs_that_are_burnt_in),
		TEST(vendors_that_fill_in_a_uuid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
