/*
 * What was found on a machine, what may be done with it, and what may be a
 * host: all pure. The scripts themselves run in tests/node/60_enroll_ssh.t.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/machine.h"
#include "coordinator/ssh.h"

#define OURS "0123456789abcdef0123456789abcdef"
#define ELSE "fedcba9876543210fedcba9876543210"
#define NODE_ID "00112233445566778899aabbccddeeff"

static void hosts(void **state)
{
	static const char *const good[] = {
		"server-1", "192.0.2.11", "root@192.0.2.11", "2001:db8::11",
		"root@fe80::1%eth0", "a.b.example", "Joe_x.y-z@host_1",
	};
	static const char *const bad[] = {
		"", "-v", "root@-v", "@host", "root@", "a b", "a;b", "$(a)",
		"`a`", "a@b@c", "a'b", "a\"b", "a\nb", "-l@host", "x y@host",
		"host/", "ssh://host", "[2001:db8::1]", "a|b", "a&b", ".",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!ssh_check_host(good[i]))
			fail_msg("\"%s\" is refused", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (ssh_check_host(bad[i]))
			fail_msg("\"%s\" is allowed", bad[i]);
}

static void scripts_have_no_quote(void **state)
{
	(void)state;
	assert_null(strchr(machine_probe, '\''));
	assert_null(strchr(machine_install, '\''));
	assert_null(strchr(machine_bundle, '\''));
	assert_null(strchr(machine_start, '\''));
	assert_null(strchr(machine_why, '\''));
}

static void parses(void **state)
{
	struct fault f = FAULT_INIT;
	struct machine m;

	(void)state;
	assert_int_equal(machine_parse("Welcome!\ngarboard-probe-1\n"
				       "login root\nroot yes\nos debian 12\n"
				       "arch amd64\nhostname server-1\n"
				       "systemd yes\nagent 0.1.0\n"
				       "cluster " OURS "\nenrolled yes\n"
				       "id " NODE_ID "\nfuture thing\nodd\n",
				       &m, &f), 0);
	assert_true(m.root && m.systemd && m.enrolled && !m.sudo);
	assert_string_equal(m.os, "debian 12");
	assert_string_equal(m.agent, "0.1.0");
	assert_string_equal(m.cluster, OURS);
	assert_string_equal(m.node_id, NODE_ID);
	assert_int_equal(machine_parse("This account is not available.\n", &m,
				       &f), -EPROTO);
}

/* A terminal is not steered by what a machine calls itself. */
static void parses_hostile(void **state)
{
	struct fault f = FAULT_INIT;
	char text[4096];
	struct machine m;

	(void)state;
	(void)memset(text, 'x', sizeof(text));
	memcpy(text, "garboard-probe-1\nhostname \033[2J", 30);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(machine_parse(text, &m, &f), 0);
	assert_null(strchr(m.hostname, '\033'));
	assert_true(strlen(m.hostname) < sizeof(m.hostname));
}

struct row {
	const char *what;
	struct machine m;
	struct machine_case c;
	bool deb;
	int err;
	enum machine_verdict verdict;
	const char *says;
};

#define FRESH .root = true, .systemd = true, .arch = "amd64"
#define CASE .cluster_id = OURS, .name = "server-1"

static const struct row rows[] = {
	{ "fresh, with a package", { FRESH }, { CASE }, true, 0,
	  MACHINE_SET_UP, NULL },
	{ "installed", { FRESH, .agent = "0.1.0" }, { CASE }, false, 0,
	  MACHINE_SET_UP, NULL },
	{ "no agent, no package", { FRESH }, { CASE }, false, -EOPNOTSUPP, 0,
	  "--deb" },
	{ "no root", { .login = "joe" }, { CASE }, false, -EOPNOTSUPP, 0, "sudo -n" },
	{ "by sudo", { .sudo = true, .systemd = true, .agent = "0.1.0" },
	  { CASE }, false, 0, MACHINE_SET_UP, NULL },
	{ "no systemd", { .root = true, .arch = "amd64", .agent = "0.1.0" },
	  { CASE }, false, -EOPNOTSUPP, 0, "systemd" },
	{ "a package, but no dpkg", { .root = true, .systemd = true },
	  { CASE }, true, -EOPNOTSUPP, 0, "dpkg" },
	{ "of another cluster", { FRESH, .agent = "0.1.0", .cluster = ELSE },
	  { CASE }, false, -EACCES, 0, "reset-identity" },
	{ "our bundle, not enrolled yet",
	  { FRESH, .agent = "0.1.0", .cluster = OURS }, { CASE }, false, 0,
	  MACHINE_SET_UP, NULL },
	{ "a node already",
	  { FRESH, .agent = "0.1.0", .cluster = OURS, .enrolled = true,
	    .node_id = NODE_ID },
	  { CASE, .known = true, .known_as = "server-1" }, false, 0, MACHINE_KEEP,
	  NULL },
	{ "under another name",
	  { FRESH, .agent = "0.1.0", .cluster = OURS, .enrolled = true,
	    .node_id = NODE_ID },
	  { CASE, .known = true, .known_as = "server-9" }, false, -EACCES, 0,
	  "server-9" },
	{ "revoked",
	  { FRESH, .agent = "0.1.0", .cluster = OURS, .enrolled = true,
	    .node_id = NODE_ID },
	  { CASE, .known = true, .known_as = "server-1", .bad = "was revoked" },
	  false, -EACCES, 0, "was revoked" },
	{ "unknown to this coordinator",
	  { FRESH, .agent = "0.1.0", .cluster = OURS, .enrolled = true,
	    .node_id = NODE_ID },
	  { CASE }, false, -EACCES, 0, "does not know" },
	{ "the name is taken", { FRESH, .agent = "0.1.0" },
	  { CASE, .name_taken = true }, false, -EACCES, 0, "node revoke" },
};

static void judges(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum machine_verdict v = MACHINE_VERDICT_MAX;
		struct fault f = FAULT_INIT;
		int r = machine_usable(&rows[i].m, rows[i].deb, &f);

		if (r == 0)
			r = machine_judge(&rows[i].m, &rows[i].c, &v, &f);
		if (r != rows[i].err || (r == 0 && v != rows[i].verdict))
			fail_msg("%s: %d, verdict %d", rows[i].what, r, v);
		if (rows[i].says && !strstr(f.text, rows[i].says))
			fail_msg("%s: says \"%s\"", rows[i].what, f.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts),
		cmocka_unit_test(scripts_have_no_quote),
		cmocka_unit_test(parses),
		cmocka_unit_test(parses_hostile),
		cmocka_unit_test(judges),
	};

	return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
