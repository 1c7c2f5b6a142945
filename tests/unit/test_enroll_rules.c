/* Who may become a node: every rule, and each perturbed once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/enroll_rules.h"

#define NOW 1000

static const uint8_t key[32] = { 1 }, other_key[32] = { 2 };

struct scene {
	struct store_token token;
	struct store_pending pending;
	struct store_node known, machine;
	struct enroll_facts facts;
};

/* A machine with a good token, seen for the first time. */
static void good(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	s->token.expires_at = NOW + 1;
	(void)snprintf(s->known.name, sizeof(s->known.name), "known-1");
	(void)snprintf(s->machine.name, sizeof(s->machine.name), "twin-1");
	s->facts = (struct enroll_facts){
		.now = NOW,
		.hostname = "host-1",
		.peer = "192.0.2.1:5",
		.token_given = true,
		.token = &s->token,
		.report_key = key,
		.machine_peer = "192.0.2.2:6",
	};
}

static void expect(const struct scene *s, enum enroll_verdict verdict,
		   const char *name_or_reason)
{
	struct enroll_decision d;

	enroll_decide(&s->facts, &d);
	if (d.verdict != verdict)
		fail_msg("verdict %d, not %d: %s", (int)d.verdict,
			 (int)verdict, d.reason);
	if (verdict == ENROLL_ISSUE)
		assert_string_equal(d.name, name_or_reason);
	else if (!strstr(d.reason, name_or_reason))
		fail_msg("\"%s\" is not in \"%s\"", name_or_reason, d.reason);
}

static void tokens(void **state)
{
	struct scene s;

	(void)state;
	good(&s);
	expect(&s, ENROLL_ISSUE, "host-1");
	(void)snprintf(s.token.node, sizeof(s.token.node), "server-1");
	expect(&s, ENROLL_ISSUE, "server-1");
	s.token.expires_at = NOW;
	expect(&s, ENROLL_WAIT, "expired");
	good(&s);
	s.token.used = true;
	memcpy(s.token.used_by, other_key, 32);
	expect(&s, ENROLL_WAIT, "used by another machine");
	/* the answer was lost: the same machine asks again, also late */
	memcpy(s.token.used_by, key, 32);
	s.token.expires_at = NOW - 1;
	expect(&s, ENROLL_ISSUE, "host-1");
	good(&s);
	s.facts.token = NULL;
	expect(&s, ENROLL_WAIT, "not one of ours");
	s.facts.token_given = false;
	expect(&s, ENROLL_WAIT, "no token");
}

static void names(void **state)
{
	static const char *const bad[] = { "", "UPPER", "a b", "a.b", "-a",
					   "a_b", "\x1b[2J" };
	struct scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		good(&s);
		s.facts.hostname = bad[i];
		expect(&s, ENROLL_WAIT, "is no name for a node");
	}
	good(&s);
	s.facts.name_taken = true;
	expect(&s, ENROLL_WAIT, "is another node's");
}

static void approval(void **state)
{
	struct scene s;

	(void)state;
	good(&s);
	s.facts.token_given = false;
	s.facts.token = NULL;
	s.facts.pending = &s.pending;
	expect(&s, ENROLL_WAIT, "no token");
	(void)snprintf(s.pending.approved_name, sizeof(s.pending.approved_name),
		       "server-9");
	expect(&s, ENROLL_ISSUE, "server-9");
	s.facts.name_taken = true;
	expect(&s, ENROLL_WAIT, "is another node's");
	s.facts.name_taken = false;
	/* the name is bound at approval: a token brings no other one */
	s.facts.token_given = true;
	s.facts.token = &s.token;
	(void)snprintf(s.token.node, sizeof(s.token.node), "server-1");
	expect(&s, ENROLL_ISSUE, "server-9");
	s.token.used = true;
	memcpy(s.token.used_by, other_key, 32);
	expect(&s, ENROLL_ISSUE, "server-9");
	s.pending.rejected = true;
	expect(&s, ENROLL_REFUSE, "rejected");
	/* also with a good token */
	s.facts.token_given = true;
	s.facts.token = &s.token;
	expect(&s, ENROLL_REFUSE, "rejected");
}

static void known_keys(void **state)
{
	struct scene s;

	(void)state;
	good(&s);
	s.facts.token_given = false;
	s.facts.token = NULL;
	s.facts.known = &s.known;
	expect(&s, ENROLL_ISSUE, "known-1");	/* proved its key */
	s.known.state = STORE_NODE_REVOKED;
	expect(&s, ENROLL_REFUSE, "revoked");
	s.facts.token_given = true;
	s.facts.token = &s.token;
	expect(&s, ENROLL_REFUSE, "revoked");
}

static void tl01_one_machine_id(void **state)
{
	struct scene s;

	(void)state;
	good(&s);
	s.facts.machine = &s.machine;
	expect(&s, ENROLL_WAIT, "twin-1 (192.0.2.2:6)");
	expect(&s, ENROLL_WAIT, "192.0.2.1:5");
	/* an approval does not help, only the cause's end does */
	s.facts.pending = &s.pending;
	(void)snprintf(s.pending.approved_name, sizeof(s.pending.approved_name),
		       "server-9");
	expect(&s, ENROLL_WAIT, "machine-id");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens),
		cmocka_unit_test(names),
		cmocka_unit_test(approval),
		cmocka_unit_test(known_keys),
		cmocka_unit_test(tl01_one_machine_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
