/* gate.c: the provenance gate, by evidence (B96..B101, CO-02). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/parse.h"
#include "coordinator/gate.h"

#define CA_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define CA_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct founding_record record(const char *uid, const char *ca,
				     uint64_t intent)
{
	struct founding_record r = { .intent = intent };

	(void)snprintf(r.cluster_uid, sizeof(r.cluster_uid), "%s", uid);
	(void)snprintf(r.founder, sizeof(r.founder), "s1");
	r.has_ca = ca != NULL;
	if (ca)
		assert_int_equal(parse_hex(ca, r.ca_sha256, 32), 0);
	return r;
}

static struct gate_server bare(const char *name)
{
	return (struct gate_server){ .name = name, .observed = true };
}

static struct gate_server member(const char *name, const char *uid,
				 const char *ca)
{
	struct gate_server s = bare(name);

	s.has_record = true;
	s.record = record(uid, ca, 7);
	s.has_data = true;
	(void)snprintf(s.ca_sha256, sizeof(s.ca_sha256), "%s", ca);
	return s;
}

static struct gate_result judge(struct gate_input in)
{
	struct gate_result r;

	in.founder = "s1";
	in.cluster_id = "id-a";
	assert_int_equal(gate_judge(&in, &r), 0);
	return r;
}

#define EXPECT(in_, verdict_, word)                                           \
	do {                                                                  \
		struct gate_result r_ = judge(in_);                           \
		assert_int_equal(r_.verdict, verdict_);                       \
		if (!strstr(r_.text, word))                                   \
			fail_msg("\"%s\" lacks \"%s\"", r_.text, word);       \
		gate_result_done(&r_);                                        \
	} while (0)

static void nothing_anywhere(void **state)
{
	struct gate_server s[] = { bare("s1"), bare("s2"), bare("s3") };
	struct gate_input in = { .servers = s, .n_servers = 3 };

	(void)state;
	EXPECT(in, GATE_MAY_FOUND, "s1");
	/* The spec of another cluster, with this one's state directory. */
	in.pin = "id-b";
	EXPECT(in, GATE_STOP_DIFFERENT, "clusterId");
	in.pin = "id-a";
	EXPECT(in, GATE_MAY_FOUND, "s1");
}

static void b101_unobservable_is_not_absent(void **state)
{
	struct gate_server s[] = { bare("s1"), bare("s2"), bare("s3") };
	struct gate_input in = { .servers = s, .n_servers = 3 };

	(void)state;
	s[1].observed = false;
	s[1].why = "not connected";
	EXPECT(in, GATE_STOP_UNKNOWN, "s2");
	EXPECT(in, GATE_STOP_UNKNOWN, "not connected");
}

static void our_intent_resumes(void **state)
{
	struct gate_server s[] = { bare("s1"), bare("s2") };
	struct gate_input in = { .servers = s, .n_servers = 2 };

	(void)state;
	in.has_record = true;
	in.record = record("", NULL, 7);
	EXPECT(in, GATE_RESUME_FOUNDING, "resumed");
	s[0].has_record = true;
	s[0].record = record("", NULL, 7);
	s[0].has_data = true;
	(void)strcpy(s[0].ca_sha256, CA_A);
	EXPECT(in, GATE_RESUME_FOUNDING, "resumed");
	/* Somebody else's intent on a node is not ours. */
	s[1].has_record = true;
	s[1].record = record("", NULL, 8);
	EXPECT(in, GATE_STOP_DIFFERENT, "s2");
}

static void known_cluster(void **state)
{
	struct gate_server s[] = { member("s1", "uid-a", CA_A),
				   member("s2", "uid-a", CA_A), bare("s3") };
	struct gate_input in = { .servers = s, .n_servers = 3 };

	(void)state;
	in.has_record = true;
	in.record = record("uid-a", CA_A, 7);
	in.live_uid = "uid-a";
	EXPECT(in, GATE_KNOWN, "uid-a");
	in.live_uid = "uid-b";
	EXPECT(in, GATE_STOP_DIFFERENT, "uid-b");
}

static void co02_founder_wiped_never_founds_again(void **state)
{
	struct gate_server s[] = { bare("s1"), member("s2", "uid-a", CA_A),
				   member("s3", "uid-a", CA_A) };
	struct gate_input in = { .servers = s, .n_servers = 3 };

	(void)state;
	in.has_record = true;
	in.record = record("uid-a", CA_A, 7);
	EXPECT(in, GATE_KNOWN, "only join");
	/* The record of the operator host is lost too: the servers know. */
	in.has_record = false;
	EXPECT(in, GATE_KNOWN, "uid-a");
}

static void co02_second_cluster_is_named(void **state)
{
	struct gate_server s[] = { member("s1", "uid-a", CA_A),
				   member("s2", "uid-b", CA_B) };
	struct gate_input in = { .servers = s, .n_servers = 2 };

	(void)state;
	in.has_record = true;
	in.record = record("uid-a", CA_A, 7);
	EXPECT(in, GATE_STOP_DIFFERENT, "s2");
	/* The same record, but another CA is served. */
	s[1] = member("s2", "uid-a", CA_A);
	(void)strcpy(s[1].ca_sha256, CA_B);
	EXPECT(in, GATE_STOP_DIFFERENT, "cluster CA of s2");
}

static void found_cluster_is_not_ours(void **state)
{
	struct gate_server s[] = { bare("s1"), bare("s2") };
	struct gate_input in = { .servers = s, .n_servers = 2 };

	(void)state;
	s[1].has_data = true;
	EXPECT(in, GATE_STOP_DIFFERENT, "etcd data of s2");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_anywhere),
		cmocka_unit_test(b101_unobservable_is_not_absent),
		cmocka_unit_test(our_intent_resumes),
		cmocka_unit_test(known_cluster),
		cmocka_unit_test(co02_founder_wiped_never_founds_again),
		cmocka_unit_test(co02_second_cluster_is_named),
		cmocka_unit_test(found_cluster_is_not_ours),
	};

	return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
