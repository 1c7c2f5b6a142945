/* The store: migrations, order numbers across a crash, bounded reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coordinator/store.h"

struct fixture {
	char dir[64];
	char path[96];
	struct store *store;
};

static int setup(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));
	struct fault f = FAULT_INIT;

	(void)snprintf(x->dir, sizeof(x->dir), "/tmp/test_store.XXXXXX");
	assert_non_null(mkdtemp(x->dir));
	(void)snprintf(x->path, sizeof(x->path), "%s/store.db", x->dir);
	assert_int_equal(store_open(x->path, &x->store, &f), 0);
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	static const char *const suffix[] = { "", "-wal", "-shm" };
	struct fixture *x = *state;
	char path[128];

	(void)store_free(x->store);
	for (int i = 0; i < 3; i++) {
		(void)snprintf(path, sizeof(path), "%s%s", x->path, suffix[i]);
		(void)unlink(path);
	}
	(void)rmdir(x->dir);
	free(x);
	return 0;
}

static void raw(struct fixture *x, const char *sql)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(x->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	(void)sqlite3_close(db);
}

static void reopen(struct fixture *x)
{
	struct fault f = FAULT_INIT;

	x->store = store_free(x->store);
	assert_int_equal(store_open(x->path, &x->store, &f), 0);
}

static void private_and_versioned(void **state)
{
	struct fixture *x = *state;
	unsigned int version = 0;
	struct stat st;

	assert_int_equal(stat(x->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(store_schema(x->store, &version), 0);
	assert_int_equal(version, STORE_SCHEMA);
}

/* A file of version 1 gets what it lacks and keeps what it has. */
static void an_older_file_is_migrated(void **state)
{
	struct fixture *x = *state;
	struct store_event e = { .at = 1, .text = "hello" };
	unsigned int version = 0;
	char *text = NULL;

	assert_int_equal(store_value_put(x->store, "cluster", "prod", NULL),
			 0);
	x->store = store_free(x->store);
	raw(x, "DROP TABLE event; DELETE FROM migration WHERE version=2;");
	assert_int_equal(store_open(x->path, &x->store, NULL), 0);
	assert_int_equal(store_schema(x->store, &version), 0);
	assert_int_equal(version, 2);
	assert_int_equal(store_event_add(x->store, &e, NULL), 0);
	assert_int_equal(store_value_get(x->store, "cluster", &text, NULL), 0);
	assert_string_equal(text, "prod");
	free(text);
}

static void a_newer_file_is_refused_untouched(void **state)
{
	struct fixture *x = *state;
	struct fault f = FAULT_INIT;
	struct store *s = NULL;

	x->store = store_free(x->store);
	raw(x, "INSERT INTO migration VALUES(99, 0);");
	assert_int_equal(store_open(x->path, &s, &f), -EOPNOTSUPP);
	assert_null(s);
	assert_non_null(strstr(f.text, "newer"));
}

static void no_file_of_ours_is_refused(void **state)
{
	struct fixture *x = *state;
	struct fault f = FAULT_INIT;
	struct store *s = NULL;
	FILE *file;

	x->store = store_free(x->store);
	file = fopen(x->path, "w");
	assert_non_null(file);
	for (int i = 0; i < 1000; i++)
		(void)fputs("this is no database", file);
	(void)fclose(file);
	assert_true(store_open(x->path, &s, &f) < 0);
	assert_true(f.err < 0);
}

static void no_number_before_an_epoch(void **state)
{
	struct fixture *x = *state;
	uint64_t epoch, first;

	assert_int_equal(store_sequence_reserve(x->store, 1, &epoch, &first,
						NULL),
			 -ENOENT);
}

static void numbers_rise_over_restarts(void **state)
{
	struct fixture *x = *state;
	uint64_t epoch = 0, first = 0;

	assert_int_equal(store_epoch_start(x->store, 1, NULL), 0);
	assert_int_equal(store_sequence_reserve(x->store, 64, &epoch, &first,
						NULL), 0);
	assert_int_equal(epoch, 1);
	assert_int_equal(first, 1);
	reopen(x);
	assert_int_equal(store_sequence_reserve(x->store, 64, &epoch, &first,
						NULL), 0);
	assert_int_equal(first, 65);
	assert_int_equal(store_epoch_start(x->store, 1, NULL), -EINVAL);
	assert_int_equal(store_epoch_start(x->store, 3, NULL), 0);
	assert_int_equal(store_epoch_start(x->store, 2, NULL), -EINVAL);
	assert_int_equal(store_sequence_reserve(x->store, 1, &epoch, &first,
						NULL), 0);
	assert_int_equal(epoch, 3);
	assert_int_equal(first, 1);
}

/* Killed at once after the call: what was handed out stays handed out. */
static void numbers_survive_a_kill(void **state)
{
	struct fixture *x = *state;
	uint64_t epoch, first, last = 0;
	int pipefd[2], status;

	assert_int_equal(store_epoch_start(x->store, 1, NULL), 0);
	x->store = store_free(x->store);
	assert_int_equal(pipe(pipefd), 0);
	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			struct store *s = NULL;

			if (store_open(x->path, &s, NULL) < 0 ||
			    store_sequence_reserve(s, 10, &epoch, &first,
						   NULL) < 0 ||
			    write(pipefd[1], &first, sizeof(first)) < 0)
				_exit(1);
			(void)kill(getpid(), SIGKILL);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(read(pipefd[0], &first, sizeof(first)),
				 sizeof(first));
		assert_true(first > last);
		last = first + 9;
	}
	(void)close(pipefd[0]);
	(void)close(pipefd[1]);
	reopen(x);
}

static struct store_node a_node(uint8_t tag, const char *name)
{
	struct store_node n = { .enrolled_at = tag };

	memset(n.id, tag, sizeof(n.id));
	memset(n.report_key, tag, sizeof(n.report_key));
	(void)snprintf(n.name, sizeof(n.name), "%s", name);
	return n;
}

static int keep_last(struct store_node *n, void *arg)
{
	struct store_node *last = arg;

	store_node_done(last);
	*last = *n;
	return 0;
}

static int count_node(struct store_node *n, void *arg)
{
	store_node_done(n);
	return ++*(int *)arg == 2 ? 7 : 0;
}

static void nodes_there_and_back(void **state)
{
	struct fixture *x = *state;
	struct store_node n = a_node(1, "a"), back = { 0 };
	int seen = 0;

	n.report = (struct store_blob){ (uint8_t *)"rep", 3 };
	n.up_epoch = UINT64_MAX;
	n.up_sequence = 5;
	assert_int_equal(store_node_add(x->store, &n, NULL), 0);
	n.up_sequence = 6;
	n.enrolled_at = 99;	/* not changed by an update */
	assert_int_equal(store_node_update(x->store, &n, NULL), 0);
	assert_int_equal(store_nodes(x->store, keep_last, &back, NULL), 0);
	assert_memory_equal(back.id, n.id, 16);
	assert_true(back.up_epoch == UINT64_MAX);
	assert_int_equal(back.up_sequence, 6);
	assert_int_equal(back.enrolled_at, 1);
	assert_int_equal(back.report.size, 3);
	assert_memory_equal(back.report.data, "rep", 3);
	assert_null(back.hello.data);
	store_node_done(&back);
	n = a_node(2, "b");
	assert_int_equal(store_node_update(x->store, &n, NULL), -ENOENT);
	assert_int_equal(store_node_add(x->store, &n, NULL), 0);
	n = a_node(3, "c");
	assert_int_equal(store_node_add(x->store, &n, NULL), 0);
	assert_int_equal(store_nodes(x->store, count_node, &seen, NULL), 7);
	assert_int_equal(seen, 2);
}

static void names_and_keys_are_one_nodes(void **state)
{
	struct fixture *x = *state;
	struct store_node n = a_node(1, "a"), other = a_node(2, "a");

	assert_int_equal(store_node_add(x->store, &n, NULL), 0);
	assert_int_equal(store_node_add(x->store, &other, NULL), -EEXIST);
	other = a_node(1, "b");
	other.id[0] = 9;
	assert_int_equal(store_node_add(x->store, &other, NULL), -EEXIST);
	/* a revoked node frees its name, so that a successor can have it */
	n.state = STORE_NODE_REVOKED;
	assert_int_equal(store_node_update(x->store, &n, NULL), 0);
	other = a_node(2, "a");
	assert_int_equal(store_node_add(x->store, &other, NULL), 0);
}

static void a_token_is_used_once(void **state)
{
	struct fixture *x = *state;
	struct store_token t = { .created_at = 10, .expires_at = 20 }, back;
	uint8_t one[32] = { 1 }, two[32] = { 2 };
	size_t open = 0;

	memset(t.hash, 7, sizeof(t.hash));
	assert_int_equal(store_token_get(x->store, t.hash, &back, NULL),
			 -ENOENT);
	assert_int_equal(store_token_add(x->store, &t, NULL), 0);
	assert_int_equal(store_token_add(x->store, &t, NULL), -EEXIST);
	assert_int_equal(store_tokens_open(x->store, 15, &open, NULL), 0);
	assert_int_equal(open, 1);
	assert_int_equal(store_token_use(x->store, t.hash, one, NULL), 0);
	assert_int_equal(store_token_use(x->store, t.hash, two, NULL),
			 -EEXIST);
	assert_int_equal(store_token_get(x->store, t.hash, &back, NULL), 0);
	assert_true(back.used);
	assert_memory_equal(back.used_by, one, 32);
	assert_int_equal(store_tokens_open(x->store, 15, &open, NULL), 0);
	assert_int_equal(open, 0);
}

static void a_decision_outlives_a_new_request(void **state)
{
	struct fixture *x = *state;
	struct store_pending p = { .hostname = "a", .first_at = 1 }, back;

	memset(p.report_key, 3, sizeof(p.report_key));
	assert_int_equal(store_pending_put(x->store, &p, NULL), 0);
	assert_int_equal(store_pending_decide(x->store, p.report_key, "n1",
					      false, NULL), 0);
	(void)snprintf(p.hostname, sizeof(p.hostname), "b");
	p.first_at = 5;
	assert_int_equal(store_pending_put(x->store, &p, NULL), 0);
	assert_int_equal(store_pending_get(x->store, p.report_key, &back,
					   NULL), 0);
	assert_string_equal(back.approved_name, "n1");
	assert_string_equal(back.hostname, "b");
	assert_int_equal(back.first_at, 1);
	assert_int_equal(store_pending_remove(x->store, p.report_key, NULL),
			 0);
	assert_int_equal(store_pending_remove(x->store, p.report_key, NULL),
			 -ENOENT);
}

static void requests_are_bounded(void **state)
{
	struct fixture *x = *state;
	struct store_pending p = { .hostname = "x" };
	int r = 0;

	assert_int_equal(store_begin(x->store, NULL), 0);
	for (uint32_t i = 0; r == 0 && i <= STORE_PENDING_MAX; i++) {
		memcpy(p.report_key, &i, sizeof(i));
		r = store_pending_put(x->store, &p, NULL);
		assert_int_equal(r, i < STORE_PENDING_MAX ? 0 : -E2BIG);
	}
	/* one that is known may still renew itself */
	memset(p.report_key, 0, sizeof(p.report_key));
	assert_int_equal(store_pending_put(x->store, &p, NULL), 0);
	/* what was rejected makes room, and what nobody decided for long */
	assert_int_equal(store_pending_decide(x->store, p.report_key, "", true,
					      NULL), 0);
	memset(p.report_key, 0xfe, sizeof(p.report_key));
	assert_int_equal(store_pending_put(x->store, &p, NULL), 0);
	memset(p.report_key, 0, sizeof(p.report_key));
	assert_int_equal(store_pending_put(x->store, &p, NULL), -E2BIG);
	p.last_at = STORE_PENDING_LIFE;
	assert_int_equal(store_pending_put(x->store, &p, NULL), -E2BIG);
	p.last_at = STORE_PENDING_LIFE + 1;
	assert_int_equal(store_pending_put(x->store, &p, NULL), 0);
	assert_int_equal(store_end(x->store, true, NULL), 0);
}

/* An approval waits for its machine, however long and however many ask. */
static void an_approval_is_never_dropped(void **state)
{
	struct fixture *x = *state;
	struct store_pending p = { .hostname = "x" };

	assert_int_equal(store_begin(x->store, NULL), 0);
	for (uint32_t i = 0; i < STORE_PENDING_MAX; i++) {
		memcpy(p.report_key, &i, sizeof(i));
		assert_int_equal(store_pending_put(x->store, &p, NULL), 0);
		assert_int_equal(store_pending_decide(x->store, p.report_key,
						      "n1", false, NULL), 0);
	}
	memset(p.report_key, 0xfe, sizeof(p.report_key));
	p.last_at = 10 * STORE_PENDING_LIFE;
	assert_int_equal(store_pending_put(x->store, &p, NULL), -E2BIG);
	assert_int_equal(store_end(x->store, true, NULL), 0);
}

static void founding_and_secrets(void **state)
{
	struct fixture *x = *state;
	struct store_founding rec = { .intent = UINT64_MAX }, back;
	uint8_t ephemeral[32] = { 4 }, key[32];
	struct store_blob box = { NULL, 0 };

	assert_int_equal(store_founding_get(x->store, &back, NULL), -ENOENT);
	assert_int_equal(store_founding_put(x->store, &rec, NULL), 0);
	(void)snprintf(rec.cluster_uid, sizeof(rec.cluster_uid), "u");
	rec.has_ca = true;
	assert_int_equal(store_founding_put(x->store, &rec, NULL), 0);
	assert_int_equal(store_founding_get(x->store, &back, NULL), 0);
	assert_true(back.intent == UINT64_MAX);
	assert_true(back.has_ca);
	assert_string_equal(back.cluster_uid, "u");
	assert_int_equal(store_secret_get(x->store, "t", key, &box, NULL),
			 -ENOENT);
	assert_int_equal(store_secret_put(x->store, "t", ephemeral, "box", 3,
					  NULL), 0);
	assert_int_equal(store_secret_get(x->store, "t", key, &box, NULL), 0);
	assert_memory_equal(key, ephemeral, 32);
	assert_int_equal(box.size, 3);
	free(box.data);
}

static void a_rollback_undoes(void **state)
{
	struct fixture *x = *state;
	char *text = NULL;

	assert_int_equal(store_begin(x->store, NULL), 0);
	assert_int_equal(store_value_put(x->store, "k", "v", NULL), 0);
	assert_int_equal(store_end(x->store, false, NULL), 0);
	assert_int_equal(store_value_get(x->store, "k", &text, NULL), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		T(private_and_versioned),
		T(an_older_file_is_migrated),
		T(a_newer_file_is_refused_untouched),
		T(no_file_of_ours_is_refused),
		T(no_number_before_an_epoch),
		T(numbers_rise_over_restarts),
		T(numbers_survive_a_kill),
		T(nodes_there_and_back),
		T(names_and_keys_are_one_nodes),
		T(a_token_is_used_once),
		T(a_decision_outlives_a_new_request),
		T(requests_are_bounded),
		T(an_approval_is_never_dropped),
		T(founding_and_secrets),
		T(a_rollback_undoes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
