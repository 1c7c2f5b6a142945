/* proto/envelope, statement, keys, seal: trust at the byte level. */
#include <errno.h>
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

#include "proto/envelope.h"
#include "proto/seal.h"
#include "proto/statement.h"

struct fixture {
	struct key *key, *other;
	struct envelope_header header;
	struct envelope_expect expect;
	uint8_t *bytes;
	size_t size;
};

static const char payload[] = "exact payload bytes";

static int setup(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	assert_int_equal(key_generate(KEY_ED25519, &x->key, NULL), 0);
	assert_int_equal(key_generate(KEY_ED25519, &x->other, NULL), 0);
	x->header.direction = ENVELOPE_DOWN;
	memset(x->header.cluster_id, 0xc1, 16);
	memset(x->header.node_id, 0x0d, 16);
	memset(x->header.binding, 0xb1, 16);
	x->header.epoch = 3;
	x->header.sequence = 0x0102030405060708;
	assert_int_equal(envelope_sign(&x->header, x->key, payload,
				       sizeof(payload), &x->bytes, &x->size,
				       NULL), 0);
	x->expect.direction = ENVELOPE_DOWN;
	memcpy(x->expect.cluster_id, x->header.cluster_id, 16);
	memcpy(x->expect.node_id, x->header.node_id, 16);
	key_public(x->key, x->expect.public_key);
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *x = *state;

	key_free(x->key);
	key_free(x->other);
	free(x->bytes);
	free(x);
	return 0;
}

static void round_trip(void **state)
{
	struct fixture *x = *state;
	struct envelope e;

	assert_int_equal(x->size, 84 + sizeof(payload) + 64);
	assert_int_equal(envelope_verify(x->bytes, x->size, &x->expect, &e), 0);
	assert_int_equal(e.header.epoch, 3);
	assert_true(e.header.sequence == 0x0102030405060708);
	assert_int_equal(e.header.length, sizeof(payload));
	assert_memory_equal(e.payload, payload, sizeof(payload));
	assert_memory_equal(e.header.binding, x->header.binding, 16);
}

static void each_reason_is_told_apart(void **state)
{
	struct fixture *x = *state;
	struct envelope_expect expect = x->expect;
	struct envelope e;

	expect.direction = ENVELOPE_UP;
	assert_int_equal(envelope_verify(x->bytes, x->size, &expect, &e),
			 ENVELOPE_WRONG_DIRECTION);
	expect = x->expect;
	expect.cluster_id[15] ^= 1;
	assert_int_equal(envelope_verify(x->bytes, x->size, &expect, &e),
			 ENVELOPE_FOREIGN_CLUSTER);
	expect = x->expect;
	expect.node_id[0] ^= 1;
	assert_int_equal(envelope_verify(x->bytes, x->size, &expect, &e),
			 ENVELOPE_OTHER_NODE);
	expect = x->expect;
	key_public(x->other, expect.public_key);
	assert_int_equal(envelope_verify(x->bytes, x->size, &expect, &e),
			 ENVELOPE_UNKNOWN_KEY);
	assert_int_equal(envelope_verify(x->bytes, x->size - 1, &x->expect, &e),
			 ENVELOPE_TRUNCATED);
	assert_int_equal(envelope_verify(x->bytes, 3, &x->expect, &e),
			 ENVELOPE_TRUNCATED);
	assert_int_equal(envelope_verify(x->bytes, ENVELOPE_MAX + 1, &x->expect,
					 &e), ENVELOPE_OVERSIZED);
	x->bytes[0] = 'X';
	assert_int_equal(envelope_verify(x->bytes, x->size, &x->expect, &e),
			 ENVELOPE_BAD_MAGIC);
	x->bytes[0] = 'G';
	x->bytes[4] = 2;
	assert_int_equal(envelope_verify(x->bytes, x->size, &x->expect, &e),
			 ENVELOPE_WRONG_VERSION);
	x->bytes[4] = 1;
	x->bytes[x->size - 1] ^= 1;
	assert_int_equal(envelope_verify(x->bytes, x->size, &x->expect, &e),
			 ENVELOPE_BAD_SIGNATURE);
}

/* Every bit of every byte, header, payload and signature. */
static void every_flipped_byte_is_refused(void **state)
{
	struct fixture *x = *state;
	struct envelope e;
	size_t i;

	for (i = 0; i < x->size; i++) {
		uint8_t mask = (uint8_t)(1u << (i % 8));

		x->bytes[i] ^= mask;
		assert_int_not_equal(envelope_verify(x->bytes, x->size,
						     &x->expect, &e), 0);
		x->bytes[i] ^= 0xff;
		assert_int_not_equal(envelope_verify(x->bytes, x->size,
						     &x->expect, &e), 0);
		x->bytes[i] ^= (uint8_t)(0xff ^ mask);
	}
	assert_int_equal(envelope_verify(x->bytes, x->size, &x->expect, &e), 0);
	for (i = 0; i < x->size; i++)
		assert_int_not_equal(envelope_verify(x->bytes, i, &x->expect,
						     &e), 0);
}

static void garbage_is_refused(void **state)
{
	struct fixture *x = *state;
	uint8_t bytes[512];
	struct envelope e;
	int i;

	srand(7);
	for (i = 0; i < 20000; i++) {
		size_t n = (size_t)rand() % sizeof(bytes), j;

		for (j = 0; j < n; j++)
			bytes[j] = (uint8_t)rand();
		if (i % 2 && n >= 84)	/* a good header, a random tail */
			memcpy(bytes, x->bytes, 84);
		assert_int_not_equal(envelope_verify(bytes, n, &x->expect, &e),
				     0);
	}
}

static void oversized_payload_is_not_signed(void **state)
{
	struct fixture *x = *state;
	uint8_t *big = calloc(1, ENVELOPE_PAYLOAD_MAX + 1);
	uint8_t *bytes = NULL;
	size_t size = 0;
	struct envelope e;

	assert_int_equal(envelope_sign(&x->header, x->key, big,
				       ENVELOPE_PAYLOAD_MAX + 1, &bytes, &size,
				       NULL), -E2BIG);
	assert_int_equal(envelope_sign(&x->header, x->key, big,
				       ENVELOPE_PAYLOAD_MAX, &bytes, &size,
				       NULL), 0);
	assert_int_equal(size, ENVELOPE_MAX);
	assert_int_equal(envelope_verify(bytes, size, &x->expect, &e), 0);
	free(bytes);
	free(big);
}

static void order_of_sequences(void **state)
{
	static const struct {
		uint64_t last_epoch, last, epoch, sequence;
		enum envelope_order order;
	} t[] = {
		{ 0, 0, 1, 1, ENVELOPE_NEXT },
		{ 1, 5, 1, 6, ENVELOPE_NEXT },
		{ 1, 5, 1, 9, ENVELOPE_NEXT },
		{ 1, 5, 1, 5, ENVELOPE_REPEATED },
		{ 1, 5, 1, 4, ENVELOPE_STALE },
		{ 1, 5, 2, 1, ENVELOPE_NEXT },
		{ 2, 1, 1, 9, ENVELOPE_STALE },
		{ UINT64_MAX, UINT64_MAX, 0, 0, ENVELOPE_STALE },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		assert_int_equal(envelope_compare(t[i].last_epoch, t[i].last,
						  t[i].epoch, t[i].sequence),
				 t[i].order);
}

static void statements(void **state)
{
	struct fixture *x = *state;
	struct statement s = { .epoch = 4 }, back;
	uint8_t bytes[STATEMENT_SIZE], root[32];
	struct fault f = FAULT_INIT;
	size_t i;

	memcpy(s.cluster_id, x->header.cluster_id, 16);
	key_public(x->other, s.order_key);
	key_public(x->key, root);
	assert_int_equal(statement_sign(&s, x->key, bytes, NULL), 0);
	assert_int_equal(statement_verify(bytes, sizeof(bytes), s.cluster_id,
					  root, &back, NULL), 0);
	assert_memory_equal(&s, &back, sizeof(s));
	for (i = 0; i < sizeof(bytes); i++) {
		bytes[i] ^= 0x10;
		fault_clear(&f);
		assert_true(statement_verify(bytes, sizeof(bytes), s.cluster_id,
					     root, &back, &f) < 0);
		assert_true(f.err < 0);
		bytes[i] ^= 0x10;
	}
	assert_int_equal(statement_verify(bytes, sizeof(bytes), root, root,
					  &back, NULL), -EXDEV);
	assert_int_equal(statement_verify(bytes, 123, s.cluster_id, root,
					  &back, NULL), -EBADMSG);
	back = s;
	assert_true(statement_supersedes(&s, &back));
	back.order_key[0] ^= 1;
	assert_false(statement_supersedes(&s, &back));
	back.epoch = 5;
	assert_true(statement_supersedes(&s, &back));
	back.epoch = 3;
	assert_false(statement_supersedes(&s, &back));
}

static void sealing(void **state)
{
	struct key *a = NULL, *b = NULL;
	struct sealed s = { 0 };
	uint8_t public_key[32], *plain = NULL;
	size_t size = 0, i;

	(void)state;
	assert_int_equal(key_generate(KEY_X25519, &a, NULL), 0);
	assert_int_equal(key_generate(KEY_X25519, &b, NULL), 0);
	key_public(a, public_key);
	assert_int_equal(seal_to(public_key, "token 1", "secret", 6, &s, NULL),
			 0);
	assert_int_equal(s.size, 6 + SEAL_TAG_SIZE);
	assert_int_equal(seal_open(a, "token 1", &s, &plain, &size, NULL), 0);
	assert_int_equal(size, 6);
	assert_string_equal((char *)plain, "secret");
	free(plain);
	assert_int_equal(seal_open(a, "token 2", &s, &plain, &size, NULL),
			 -EKEYREJECTED);
	assert_int_equal(seal_open(b, "token 1", &s, &plain, &size, NULL),
			 -EKEYREJECTED);
	for (i = 0; i < s.size; i++) {
		s.box[i] ^= 1;
		assert_int_equal(seal_open(a, "token 1", &s, &plain, &size,
					   NULL), -EKEYREJECTED);
		s.box[i] ^= 1;
	}
	s.ephemeral[3] ^= 1;
	assert_int_equal(seal_open(a, "token 1", &s, &plain, &size, NULL),
			 -EKEYREJECTED);
	sealed_done(&s);
	/* A public key of small order would make the secret known. */
	memset(public_key, 0, sizeof(public_key));
	assert_true(seal_to(public_key, "x", "secret", 6, &s, NULL) < 0);
	key_free(a);
	key_free(b);
}

static void key_files(void **state)
{
	char dir[] = "/tmp/garboard-keys-XXXXXX", path[64];
	struct key *a = NULL, *b = NULL;
	uint8_t pa[32], pb[32];
	struct fault f = FAULT_INIT;
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/k", dir);
	assert_int_equal(key_load(path, KEY_ED25519, &a, &f), -ENOENT);
	assert_int_equal(f.err, 0);
	assert_int_equal(key_load_or_make(path, KEY_ED25519, &a, &f), 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(key_load_or_make(path, KEY_ED25519, &b, &f), 0);
	key_public(a, pa);
	key_public(b, pb);
	assert_memory_equal(pa, pb, 32);
	b = key_free(b);
	assert_int_equal(key_load(path, KEY_X25519, &b, &f), -EINVAL);
	assert_int_equal(chmod(path, 0640), 0);
	fault_clear(&f);
	assert_int_equal(key_load(path, KEY_ED25519, &b, &f), -EPERM);
	assert_non_null(strstr(f.text, "others may read"));
	key_free(a);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(each_reason_is_told_apart,
						setup, teardown),
		cmocka_unit_test_setup_teardown(every_flipped_byte_is_refused,
						setup, teardown),
		cmocka_unit_test_setup_teardown(garbage_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(oversized_payload_is_not_signed,
						setup, teardown),
		cmocka_unit_test(order_of_sequences),
		cmocka_unit_test_setup_teardown(statements, setup, teardown),
		cmocka_unit_test(sealing),
		cmocka_unit_test(key_files),
	};

	key_init();
	return cmocka_run_group_tests_name("envelope", tests, NULL, NULL);
}
