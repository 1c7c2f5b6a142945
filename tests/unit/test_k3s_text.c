/* k3s: the rendered configuration, drop-ins, last lines. Pure. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/up.h"
#include "agent/k3s_config.h"
#include "agent/k3s_lines.h"
#include "common/cleanup.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static struct order *founder(void)
{
	struct order *o = order_new(ORDER_K3S_CONFIGURE);
	struct order_k3s_configure *c = &o->configure;

	strcpy(c->node_name, "server-1");
	(void)ip_addr_parse("192.0.2.11", &c->node_ip);
	c->cluster_init = true;
	(void)strlist_add(&c->tls_sans, "192.0.2.10");
	(void)strlist_add(&c->tls_sans, "api.example.net");
	(void)ip_prefix_parse("10.44.0.0/16", &c->cluster_cidr);
	(void)ip_prefix_parse("10.45.0.0/16", &c->service_cidr);
	(void)strlist_add(&c->labels, "garboard/egress=vpn");
	c->extra = calloc(2, sizeof(*c->extra));
	c->n_extra = 2;
	strcpy(c->extra[0].key, "kubelet-arg");
	c->extra[0].list = true;
	(void)strlist_add(&c->extra[0].values, "max-pods=\"200\"");
	strcpy(c->extra[1].key, "etcd-expose-metrics");
	(void)strlist_add(&c->extra[1].values, "true");
	return o;
}

#define SERVER_FIXED                     \
	"flannel-backend: \"none\"\n"    \
	"disable-network-policy: true\n" \
	"disable-kube-proxy: true\n"     \
	"disable:\n"                     \
	"  - \"traefik\"\n"              \
	"  - \"servicelb\"\n"            \
	"write-kubeconfig-mode: \"0600\"\n"

static void founder_golden(void **state)
{
	struct order *o = founder();
	_cleanup_free_ char *text = NULL;
	struct fault f = FAULT_INIT;

	(void)state;
	assert_int_equal(k3s_config_render(&o->configure, &text, &f), 0);
	assert_string_equal(
		text,
		"# Written by garboard-agent; it is replaced as a whole. "
		"Change the spec.\n"
		"node-name: \"server-1\"\n"
		"node-ip: \"192.0.2.11\"\n"
		"token-file: \"/etc/rancher/k3s/garboard-token\"\n"
		"cluster-init: true\n"
		"tls-san:\n"
		"  - \"192.0.2.10\"\n"
		"  - \"api.example.net\"\n"
		"cluster-cidr: \"10.44.0.0/16\"\n"
		"service-cidr: \"10.45.0.0/16\"\n" SERVER_FIXED
		"node-label:\n"
		"  - \"garboard/egress=vpn\"\n"
		"kubelet-arg:\n"
		"  - \"max-pods=\\\"200\\\"\"\n"
		"etcd-expose-metrics: \"true\"\n");
	order_free(o);
}

/* A38: a joiner dials a server's own address, in either family. */
static void joiner_and_worker(void **state)
{
	struct order *o = founder();
	_cleanup_free_ char *text = NULL, *worker = NULL;
	struct fault f = FAULT_INIT;

	(void)state;
	o->configure.cluster_init = false;
	(void)ip_addr_parse("2001:db8::12", &o->configure.join_address);
	assert_int_equal(k3s_config_render(&o->configure, &text, &f), 0);
	assert_non_null(strstr(text, "\nserver: \"https://[2001:db8::12]:"
				     "6443\"\ntls-san:"));
	assert_null(strstr(text, "cluster-init"));
	assert_non_null(strstr(text, SERVER_FIXED));
	o->configure.agent = true;
	assert_int_equal(k3s_config_render(&o->configure, &worker, &f), 0);
	assert_null(strstr(worker, "flannel"));
	assert_null(strstr(worker, "tls-san"));
	assert_non_null(strstr(worker, "node-label"));
	order_free(o);
}

static void dropins(void **state)
{
	static const struct {
		const char *text;
		int r;
		const char *key;
	} t[] = {
		{ "kubelet-arg:\n- a=b\n", 0, NULL },
		{ "", 0, NULL },
		{ "# nothing\n", 0, NULL },
		{ "tls-san: [x]\n", 1, "tls-san" },
		{ "\"disable\": [metrics-server]\n", 1, "disable" },
		{ "{debug: true, node-ip: 192.0.2.1}\n", 1, "node-ip" },
		{ "disable+: [metrics-server]\n", 0, NULL },
		{ "tls-san-security: false\n", 0, NULL },
		{ "- a\n", -EBADMSG, NULL },
		{ "a: [\n", -EBADMSG, NULL },
	};
	static const char config[] = "# x\nnode-ip: \"192.0.2.11\"\n"
				     "tls-san:\n  - \"a\"\n" SERVER_FIXED;
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		_cleanup_free_ char *key = NULL;
		struct fault f = FAULT_INIT;

		assert_int_equal(k3s_config_conflict(config, t[i].text,
						     strlen(t[i].text), &key,
						     &f), t[i].r);
		if (t[i].key)
			assert_string_equal(key, t[i].key);
	}
}

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* K3-04: nothing that looks like a token leaves the node. */
static void k304_tokens_are_redacted(void **state)
{
	static const struct {
		const char *in, *out;
	} t[] = {
		{ "plain words", "plain words" },
		{ "join with K10" HASH "::server:sesame now",
		  "join with [redacted] now" },
		{ "--token abcdefghijklmnop1234 failed",
		  "--token [redacted] failed" },
		{ "token=\"abcdefghijklmnop1234\"", "token=\"[redacted]\"" },
		{ "the sesame0123456 was wrong", "the [redacted] was wrong" },
		{ "failed to validate token: token CA hash does not match",
		  "failed to validate token: token CA hash does not match" },
		{ "token-file: /etc/rancher/k3s/garboard-token is missing",
		  "token-file: /etc/rancher/k3s/garboard-token is missing" },
		{ "a\x1b[31mred\nb", "a?[31mred?b" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		char line[K3S_LINE_MAX];

		strcpy(line, t[i].in);
		k3s_line_clean(line, "sesame0123456");
		assert_string_equal(line, t[i].out);
	}
	/* A secret shorter than the mark is still hidden. */
	{
		char line[] = "x sesame01 y";

		k3s_line_clean(line, "sesame01");
		assert_string_equal(line, "x ******** y");
	}
}

static void fatal_lines_come_first(void **state)
{
	struct k3s_lines l = { 0 };
	struct strlist out = STRLIST_INIT;
	char line[2 * K3S_LINE_MAX];
	size_t i;

	(void)state;
	/* Newest first, as the journal is read. */
	for (i = 0; i < 20; i++) {
		(void)snprintf(line, sizeof(line), "level=%s msg=%zu",
			       i % 5 == 4 ? "fatal" : "info", i);
		assert_int_equal(k3s_lines_add(&l, line, NULL), 0);
	}
	assert_int_equal(k3s_lines_take(&l, &out), 0);
	assert_int_equal(out.n, K3S_LINES_MAX);
	assert_string_equal(out.v[0], "level=fatal msg=4");
	assert_string_equal(out.v[2], "level=fatal msg=14");
	assert_string_equal(out.v[3], "level=info msg=5");
	assert_string_equal(out.v[7], "level=info msg=0");
	strlist_done(&out);
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	assert_int_equal(k3s_lines_add(&l, line, NULL), 0);
	assert_int_equal(k3s_lines_take(&l, &out), 0);
	assert_int_equal(strlen(out.v[0]), K3S_LINE_MAX);
	strlist_done(&out);
}

/* After :6443 is open k3s ends without a fatal line, and with status 0. */
static void a_shutdown_with_a_cause_is_one(void **state)
{
	static const char cause[] =
		"level=error msg=\"Shutdown request received: \\\"etcd cluster "
		"join failed: duplicate node name found\\\"\"";
	static const char bare[] =
		"level=info msg=\"Shutdown request received\"";
	struct k3s_lines l = { 0 };
	struct strlist out = STRLIST_INIT;

	(void)state;
	assert_int_equal(k3s_lines_add(&l, bare, NULL), 0);
	assert_int_equal(k3s_lines_add(&l, cause, NULL), 0);
	assert_int_equal(k3s_lines_take(&l, &out), 0);
	assert_string_equal(out.v[0], cause);
	assert_true(k3s_line_is_cause(cause));
	assert_false(k3s_line_is_cause(bare));
	strlist_done(&out);
}

/* K3S-CONTRACT 2.1: what the unit must say. */
static void unit_text(void **state)
{
	static const char *const lines[] = {
		"\nType=notify\n",	  "\nKillMode=process\n",
		"\nDelegate=yes\n",	  "\nTimeoutStartSec=0\n",
		"\nRestart=always\n",	  "\nRestartSec=5s\n",
		"\nLimitNOFILE=1048576\n", "\nAfter=network-online.target\n",
		"\nWantedBy=multi-user.target\n",
	};
	size_t i;

	(void)state;
	for (i = 0; i < N(lines); i++)
		assert_non_null(strstr(k3s_unit_text(false), lines[i]));
	assert_non_null(strstr(k3s_unit_text(false), "/k3s server\n"));
	assert_non_null(strstr(k3s_unit_text(true), "/k3s agent\n"));
	assert_null(strstr(k3s_unit_text(false), "token"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(founder_golden),
		cmocka_unit_test(joiner_and_worker),
		cmocka_unit_test(dropins),
		cmocka_unit_test(k304_tokens_are_redacted),
		cmocka_unit_test(fatal_lines_come_first),
		cmocka_unit_test(a_shutdown_with_a_cause_is_one),
		cmocka_unit_test(unit_text),
	};

	return cmocka_run_group_tests_name("k3s text", tests, NULL, NULL);
}
