/* The signer: what init makes, what it refuses, what needs the trust root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/file.h"
#include "coordinator/signer.h"
#include "proto/envelope.h"
#include "proto/pki.h"

static const char *const files[] = {
	"trust-root.key", "trust-root.pub",  "ca.key",	  "ca.crt",
	"coordinator.key", "coordinator.crt", "order.key", "order.statement",
	"seal.key",
};
#define FILES (sizeof(files) / sizeof(files[0]))

struct fixture {
	char dir[64];
	uint8_t id[16];
	struct signer *signer;
};

static char *path_of(const struct fixture *x, const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", x->dir, name);
	return path;
}

static void init_dir(struct fixture *x)
{
	struct fault f = FAULT_INIT;

	(void)snprintf(x->dir, sizeof(x->dir), "/tmp/test_signer.XXXXXX");
	assert_non_null(mkdtemp(x->dir));
	assert_int_equal(signer_init(x->dir, "prod", time(NULL), x->id, &f),
			 0);
}

static void remove_dir(struct fixture *x)
{
	x->signer = signer_free(x->signer);
	for (size_t i = 0; i < FILES; i++)
		(void)unlink(path_of(x, files[i]));
	(void)rmdir(x->dir);
}

static int setup(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	init_dir(x);
	assert_int_equal(signer_open(x->dir, &x->signer, NULL), 0);
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	remove_dir(*state);
	free(*state);
	return 0;
}

static void files_are_the_owners_alone(void **state)
{
	struct fixture *x = *state;
	struct stat st;

	for (size_t i = 0; i < FILES; i++) {
		assert_int_equal(stat(path_of(x, files[i]), &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
	assert_memory_equal(signer_cluster_id(x->signer), x->id, 16);
	assert_int_equal(signer_epoch(x->signer), 1);
}

static void init_twice_is_refused(void **state)
{
	struct fixture *x = *state;
	uint8_t id[16] = { 0 };
	struct fault f = FAULT_INIT;

	assert_int_equal(signer_init(x->dir, "prod", time(NULL), id, &f),
			 -EEXIST);
	x->signer = signer_free(x->signer);
	assert_int_equal(signer_open(x->dir, &x->signer, NULL), 0);
	assert_memory_equal(signer_cluster_id(x->signer), x->id, 16);
}

static void an_order_verifies_by_the_statement(void **state)
{
	struct fixture *x = *state;
	struct envelope_expect expect = { .direction = ENVELOPE_DOWN };
	uint8_t node[16] = { 1 }, binding[16] = { 2 }, *bytes = NULL;
	struct statement st;
	struct envelope e;
	size_t size = 0;

	assert_int_equal(statement_verify(signer_statement(x->signer),
					  STATEMENT_SIZE, x->id,
					  signer_trust_root(x->signer), &st,
					  NULL), 0);
	assert_int_equal(signer_order(x->signer, node, 1, 7, binding, "order",
				      5, &bytes, &size, NULL), 0);
	memcpy(expect.cluster_id, x->id, 16);
	memcpy(expect.node_id, node, 16);
	memcpy(expect.public_key, st.order_key, 32);
	assert_int_equal(envelope_verify(bytes, size, &expect, &e),
			 ENVELOPE_OK);
	assert_int_equal(e.header.sequence, 7);
	assert_memory_equal(e.header.binding, binding, 16);
	expect.node_id[0] = 9;
	assert_int_equal(envelope_verify(bytes, size, &expect, &e),
			 ENVELOPE_OTHER_NODE);
	free(bytes);
}

static void a_leaf_names_cluster_and_node(void **state)
{
	struct fixture *x = *state;
	uint8_t node[16] = { 5 }, *csr = NULL, *der = NULL;
	struct pki_identity who;
	struct key *key = NULL;
	size_t csr_size = 0, size = 0;
	struct fault f = FAULT_INIT;

	assert_int_equal(key_generate(KEY_P256, &key, NULL), 0);
	assert_int_equal(pki_make_csr(key, &csr, &csr_size, NULL), 0);
	assert_int_equal(signer_issue(x->signer, csr, csr_size, node,
				      time(NULL), &der, &size, NULL), 0);
	assert_int_equal(pki_read_der(der, size, &who, NULL), 0);
	assert_int_equal(who.kind, PKI_NODE);
	assert_memory_equal(who.cluster_id, x->id, 16);
	assert_memory_equal(who.node_id, node, 16);
	free(der);
	der = NULL;
	/* a clock of another decade mints nothing (TL-04) */
	assert_int_equal(signer_issue(x->signer, csr, csr_size, node, 1000,
				      &der, &size, &f), -ETIME);
	assert_null(der);
	csr[csr_size / 2] ^= 1;
	assert_true(signer_issue(x->signer, csr, csr_size, node, time(NULL),
				 &der, &size, NULL) < 0);
	free(csr);
	(void)key_free(key);
}

static int64_t own_end(const struct fixture *x)
{
	struct pki_identity me;
	char *pem = NULL;
	size_t n = 0;

	assert_int_equal(file_read(path_of(x, "coordinator.crt"), PKI_PEM_MAX,
				   &pem, &n, NULL), 0);
	assert_int_equal(pki_read_pem(pem, &me, NULL), 0);
	free(pem);
	return me.not_after;
}

/* It would expire under a fleet that has nobody else to believe. */
static void its_own_certificate_is_renewed(void **state)
{
	static const struct {
		int64_t age, left;
	} t[] = {
		{ 200L * 86400, PKI_LEAF_LIFE - 200L * 86400 },
		{ 300L * 86400, PKI_LEAF_LIFE },
		{ 500L * 86400, PKI_LEAF_LIFE },
	};
	struct fixture *x = *state;
	int64_t now = time(NULL), off;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		remove_dir(x);
		assert_int_equal(mkdir(x->dir, 0700), 0);
		assert_int_equal(signer_init(x->dir, "prod", now - t[i].age,
					     x->id, NULL), 0);
		assert_int_equal(signer_open(x->dir, &x->signer, NULL), 0);
		off = own_end(x) - now - t[i].left;
		assert_true(off >= 0 && off < 60);
		assert_memory_equal(signer_cluster_id(x->signer), x->id, 16);
	}
}

static void secrets_open_under_their_context_only(void **state)
{
	struct fixture *x = *state;
	struct sealed sealed = { 0 };
	uint8_t *plain = NULL;
	size_t size = 0;

	assert_int_equal(signer_seal(x->signer, "store a", "hush", 4, &sealed,
				     NULL), 0);
	assert_int_equal(signer_unseal(x->signer, "store b", &sealed, &plain,
				       &size, NULL), -EKEYREJECTED);
	assert_int_equal(signer_unseal(x->signer, "store a", &sealed, &plain,
				       &size, NULL), 0);
	assert_int_equal(size, 4);
	assert_memory_equal(plain, "hush", 4);
	free(plain);
	sealed_done(&sealed);
}

static void the_trust_root_may_be_away(void **state)
{
	struct fixture *x = *state;
	struct fault f = FAULT_INIT;
	struct statement st;
	char aside[160];

	(void)snprintf(aside, sizeof(aside), "%s.aside", x->dir);
	assert_int_equal(rename(path_of(x, "trust-root.key"), aside), 0);
	x->signer = signer_free(x->signer);
	assert_int_equal(signer_open(x->dir, &x->signer, NULL), 0);
	assert_int_equal(signer_new_epoch(x->signer, 2, &f), -ENOKEY);
	assert_int_equal(rename(aside, path_of(x, "trust-root.key")), 0);
	assert_int_equal(signer_new_epoch(x->signer, 1, NULL), -EINVAL);
	assert_int_equal(signer_new_epoch(x->signer, 2, NULL), 0);
	x->signer = signer_free(x->signer);
	assert_int_equal(signer_open(x->dir, &x->signer, NULL), 0);
	assert_int_equal(signer_epoch(x->signer), 2);
	assert_int_equal(statement_verify(signer_statement(x->signer),
					  STATEMENT_SIZE, x->id,
					  signer_trust_root(x->signer), &st,
					  NULL), 0);
}

/* Each file in turn: missing, and of another cluster. */
static void files_that_do_not_belong_are_refused(void **state)
{
	struct fixture *x = *state, other = { .signer = NULL };
	static const char *const paired[] = {
		"trust-root.pub", "order.key", "order.statement",
	};

	init_dir(&other);
	x->signer = signer_free(x->signer);
	for (size_t i = 0; i < FILES; i++) {
		struct fault f = FAULT_INIT;
		char aside[160];

		if (strcmp(files[i], "trust-root.key") == 0)
			continue;
		(void)snprintf(aside, sizeof(aside), "%s.aside", x->dir);
		assert_int_equal(rename(path_of(x, files[i]), aside), 0);
		assert_int_equal(signer_open(x->dir, &x->signer, &f), -ENOENT);
		assert_non_null(strstr(f.object, files[i]));
		assert_int_equal(rename(aside, path_of(x, files[i])), 0);
	}
	for (size_t i = 0; i < sizeof(paired) / sizeof(paired[0]); i++) {
		char *mine = NULL, *foreign = NULL;
		size_t n = 0, m = 0;

		assert_int_equal(file_read(path_of(x, paired[i]), 4096, &mine,
					   &n, NULL), 0);
		assert_int_equal(file_read(path_of(&other, paired[i]), 4096,
					   &foreign, &m, NULL), 0);
		assert_int_equal(file_write(path_of(x, paired[i]), 0600,
					    foreign, m, NULL), 0);
		assert_true(signer_open(x->dir, &x->signer, NULL) < 0);
		assert_int_equal(file_write(path_of(x, paired[i]), 0600, mine,
					    n, NULL), 0);
		free(mine);
		free(foreign);
	}
	assert_int_equal(signer_open(x->dir, &x->signer, NULL), 0);
	remove_dir(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		T(files_are_the_owners_alone),
		T(init_twice_is_refused),
		T(an_order_verifies_by_the_statement),
		T(a_leaf_names_cluster_and_node),
		T(its_own_certificate_is_renewed),
		T(secrets_open_under_their_context_only),
		T(the_trust_root_may_be_away),
		T(files_that_do_not_belong_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
