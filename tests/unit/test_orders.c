/* Which orders are obeyed: forged, repeated, interrupted, early ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "order_fixture.h"

static void honest_order_is_done_and_kept(void **state)
{
	struct node_state again;
	struct fault f = FAULT_INIT;
	struct stat st;

	(void)state;
	assert_int_equal(send_order(manifest("a: 1\n")), RESULT_DONE);
	assert_string_equal(t.result->result.text, "changed");
	assert_int_equal(stat(scratch_path(MANIFEST), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(send_order(manifest("a: 1\n")), RESULT_DONE);
	assert_string_equal(t.result->result.text, "unchanged");
	assert_int_equal(state_load(scratch_state, 0, &again, &f), 0);
	assert_int_equal(again.sequence, 2);
	assert_int_equal(again.epoch, 1);
	state_done(&again);
}

static void repeated_order_is_answered_not_redone(void **state)
{
	const struct forge honest = { 0 };
	struct order *o = manifest("a: 1\n"), *differs = manifest("a: 2\n");

	(void)state;
	t.sequence = 5;
	assert_int_equal(send_as(&honest, o), 0);
	assert_int_equal(unlink(scratch_path(MANIFEST)), 0);
	assert_int_equal(send_as(&honest, o), 0);
	assert_int_equal(t.emitted, 2);
	assert_int_equal(t.result->result.sequence, 5);
	assert_string_equal(t.result->result.text, "changed");
	assert_false(exists(MANIFEST));
	/* Other bytes under a number that was used are no repetition. */
	assert_true(send_as(&honest, differs) < 0);
	assert_int_equal(t.emitted, 2);
	assert_false(exists(MANIFEST));
	/* It is answered in a later session and by a restarted agent, too. */
	stop();
	(void)make_node(false);
	assert_true(t.state.enrolled);
	memset(t.nonce, 0x77, sizeof(t.nonce));
	orders_session(t.orders, t.nonce);
	t.sequence = 5;
	assert_int_equal(send_as(&honest, o), 0);
	assert_string_equal(t.result->result.text, "changed");
	assert_false(exists(MANIFEST));
	order_free(o);
	order_free(differs);
}

static void interrupted_order_is_not_redone(void **state)
{
	const struct forge honest = { 0 };
	struct order *o = manifest("a: 1\n");
	struct fault f = FAULT_INIT;

	(void)state;
	/* The number was taken, then the power went. */
	t.sequence = 3;
	assert_int_equal(state_set_order(&t.state, 1, 3, &f), 0);
	assert_int_equal(send_as(&honest, o), 0);
	assert_int_equal(t.result->result.code, RESULT_FAILED);
	assert_non_null(strstr(t.result->result.text, "outcome unknown"));
	assert_false(exists(MANIFEST));
	order_free(o);
}

static void forged_orders_change_nothing(void **state)
{
	uint8_t elsewhere[16] = { 1 };
	const struct forge forgeries[] = {
		{ .cluster = other, .sequence = 10 },
		{ .node = other, .sequence = 10 },
		{ .key = t.foreign, .sequence = 10 },
		{ .binding = elsewhere, .sequence = 10 },
		{ .direction = ENVELOPE_UP, .sequence = 10 },
		{ .epoch = 2, .sequence = 10 },
		{ .sequence = 1 },	/* older than the last one */
	};
	struct order *o = manifest("forged: true\n");
	size_t i;

	(void)state;
	t.sequence = 1;
	assert_int_equal(send_order(manifest("a: 1\n")), RESULT_DONE);
	assert_int_equal(unlink(scratch_path(MANIFEST)), 0);
	for (i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++) {
		assert_true(send_as(&forgeries[i], o) < 0);
		assert_int_equal(t.emitted, 1);
		assert_int_equal(t.state.sequence, 2);
		assert_false(exists(MANIFEST));
	}
	order_free(o);
}

static void any_changed_byte_is_noticed(void **state)
{
	const struct forge honest = { .sequence = 9 };
	struct order *o = manifest("a: 1\n");
	uint8_t *payload = NULL, *bytes = NULL;
	struct fault f = FAULT_INIT;
	size_t size, n, i;

	(void)state;
	assert_int_equal(order_encode(o, &payload, &size, &f), 0);
	wrap(&honest, payload, size, &bytes, &n);
	for (i = 0; i < n; i++) {
		fault_clear(&f);
		bytes[i] ^= 1;
		assert_true(orders_receive(t.orders, bytes, n, &f) < 0);
		bytes[i] ^= 1;
		fault_clear(&f);
		assert_true(orders_receive(t.orders, bytes, i, &f) < 0);
	}
	assert_int_equal(t.emitted, 0);
	assert_false(exists(MANIFEST));
	assert_int_equal(orders_receive(t.orders, bytes, n, &f), 0);
	assert_true(exists(MANIFEST));
	order_free(o);
	free(payload);
	free(bytes);
}

static void unknown_field_is_refused(void **state)
{
	const struct forge honest = { .sequence = 1 };
	/* Order { read_facts {} } and a field of number 99. */
	static const uint8_t payload[] = { 0x4a, 0x00, 0x98, 0x06, 0x01 };
	uint8_t *bytes = NULL;
	struct fault f = FAULT_INIT;
	size_t n;

	(void)state;
	wrap(&honest, payload, sizeof(payload), &bytes, &n);
	assert_int_equal(orders_receive(t.orders, bytes, n, &f), 0);
	assert_int_equal(t.result->result.code, RESULT_REFUSED);
	free(bytes);
}

static void older_statement_is_refused(void **state)
{
	struct statement st = { .epoch = 1 };
	uint8_t bytes[STATEMENT_SIZE];
	struct fault f = FAULT_INIT;

	(void)state;
	give_statement(4);
	assert_int_equal(t.state.sequence, 0);
	memcpy(st.cluster_id, cluster, 16);
	key_public(t.foreign, st.order_key);
	assert_int_equal(statement_sign(&st, t.root, bytes, &f), 0);
	assert_true(orders_statement(t.orders, bytes, sizeof(bytes), &f) < 0);
	/* Nor a second key for the same epoch, nor one of another root. */
	st.epoch = 4;
	assert_int_equal(statement_sign(&st, t.root, bytes, &f), 0);
	assert_true(orders_statement(t.orders, bytes, sizeof(bytes), &f) < 0);
	st.epoch = 9;
	assert_int_equal(statement_sign(&st, t.foreign, bytes, &f), 0);
	assert_true(orders_statement(t.orders, bytes, sizeof(bytes), &f) < 0);
	assert_int_equal(t.state.epoch, 4);
}

static void nothing_before_enrolment_but_enrolment(void **state)
{
	struct order *o = order_new(ORDER_TRUST_UPDATE);
	struct order *zero = order_new(ORDER_TRUST_UPDATE);

	(void)state;
	assert_int_equal(send_order(manifest("a: 1\n")), RESULT_REFUSED);
	assert_false(exists(MANIFEST));
	/* nor an identity that is nobody's */
	zero->trust.has_node_id = true;
	strcpy(zero->trust.node_name, "n1");
	set_bytes(&zero->trust.certificate, "leaf");
	assert_int_equal(send_order(zero), RESULT_REFUSED);
	assert_false(t.state.enrolled);
	memcpy(o->trust.node_id, node, 16);
	o->trust.has_node_id = true;
	strcpy(o->trust.node_name, "n1");
	set_bytes(&o->trust.certificate, "leaf");
	o->trust.ca = calloc(1, sizeof(*o->trust.ca));
	o->trust.n_ca = 1;
	set_bytes(&o->trust.ca[0], "root");
	assert_int_equal(send_order(o), RESULT_DONE);
	assert_int_equal(t.identity_changes, 1);
	assert_memory_equal(t.state.node_id, node, 16);
	/* The certificate follows the result: the link hangs up on it. */
	assert_int_equal(t.frame_type, FRAME_CERTIFICATE);
	assert_int_equal(t.frames_before_result, 3);
	assert_memory_equal(t.frame, "\0\0\0\4leaf\0\0\0\4root", 16);
	assert_int_equal(send_order(manifest("a: 1\n")), RESULT_DONE);
}

static void id_of_an_enrolled_node_stays(void **state)
{
	struct order *o = order_new(ORDER_TRUST_UPDATE);

	(void)state;
	memcpy(o->trust.node_id, other, 16);
	o->trust.has_node_id = true;
	assert_int_equal(send_order(o), RESULT_REFUSED);
	assert_memory_equal(t.state.node_id, node, 16);
}

static void revoked_node_takes_no_orders(void **state)
{
	const struct forge honest = { .sequence = 50 };
	struct order *o = order_new(ORDER_TRUST_UPDATE), *m;

	(void)state;
	o->trust.revoke = true;
	assert_int_equal(send_order(o), RESULT_DONE);
	m = manifest("a: 1\n");
	assert_int_equal(send_as(&honest, m), -EKEYREVOKED);
	assert_false(exists(MANIFEST));
	order_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(honest_order_is_done_and_kept),
		CASE(repeated_order_is_answered_not_redone),
		CASE(interrupted_order_is_not_redone),
		CASE(forged_orders_change_nothing),
		CASE(any_changed_byte_is_noticed),
		CASE(unknown_field_is_refused),
		CASE(older_statement_is_refused),
		cmocka_unit_test_setup_teardown(
			nothing_before_enrolment_but_enrolment,
			begin_unenrolled, end),
		CASE(id_of_an_enrolled_node_stays),
		CASE(revoked_node_takes_no_orders),
	};

	return cmocka_run_group_tests_name("orders", tests, make_keys,
					   free_keys);
}
