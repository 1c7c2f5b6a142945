/*
 * explain against a real kernel: what it says of a packet, and whether the
 * packet then does that.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "agent/explain/explain.h"
#include "agent/res/killswitch.h"
#include "agent/res/routing.h"
#include "world.h"

#define OUT "198.51.100.1"
#define OUT6 "2001:db8:ffff::1"
#define SRC "10.44.0.5"
#define SRC6 "fd44::5"
#define POD "10.44.0.6"
#define POD6 "fd44::6"
#define ENDPOINT "203.0.113.77"
#define ENDPOINT_PORT 7643
#define NOBODY 65534
#define N(a) (sizeof(a) / sizeof((a)[0]))

struct fixture {
	struct run killswitch, routing;
	struct desired *want;
};

static int setup(void **state)
{
	struct ip_prefix v4 = sample_prefix(SRC), v6 = sample_prefix(SRC6);
	struct fixture *x = calloc(1, sizeof(*x));
	struct desired_class *c;
	struct desired_tunnel *t;

	world_make();
	x->want = sample_desired(true);
	c = &x->want->egress.classes[0];
	assert_int_equal(prefix_list_add(&c->sources, &v4), 0);
	assert_int_equal(prefix_list_add(&c->sources, &v6), 0);
	t = &x->want->egress.tunnels[0];
	t->kind = TUNNEL_OPENVPN;
	t->endpoints = calloc(1, sizeof(*t->endpoints));
	t->n_endpoints = 1;
	assert_int_equal(ip_endpoint_parse(ENDPOINT ":7643/udp",
					   &t->endpoints[0]), 0);
	run_open(&x->killswitch, &resource_killswitch, false);
	run_open(&x->routing, &resource_routing, false);
	/* So that others can take the tables away. */
	x->killswitch.host.no_table_owner = true;
	run_reopen(&x->killswitch);
	/* Both of one node. */
	x->routing.host.state_dir = x->killswitch.dir;
	run_reopen(&x->routing);
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *x = *state;

	run_close(&x->routing);
	run_close(&x->killswitch);
	x->want = desired_free(x->want);
	free(x);
	world_done();
	return 0;
}

static void tunnel_up(void)
{
	world_tunnel();
	sh("ip addr add 10.64.0.2/32 dev wg0;"
	   "ip -6 addr add fd64::2/128 dev wg0 nodad");
}

static void stand(struct fixture *x)
{
	run_converge(&x->killswitch, x->want);
	run_converge(&x->routing, x->want);
}

/* ---- one packet ---- */

struct packet_case {
	const char *name;
	enum path path;			/* PATH_OUTPUT or PATH_FORWARD */
	const char *src, *dst;
	unsigned int mark;
	int port;			/* UDP */
	unsigned int uid;
	enum explain_verdict verdict;
	const char *text;		/* in the verdict line or special */
};

static void ask(struct fixture *x, const struct packet_case *c,
		struct explanation *ret)
{
	struct fault f = FAULT_INIT;
	struct explain_world w;
	struct packet p = { .mark = c->mark, .proto = IPPROTO_UDP,
			    .dport = (uint16_t)c->port, .socket = true,
			    .uid = c->uid };

	assert_int_equal(ip_addr_parse(c->dst, &p.dst), 0);
	if (*c->src)
		assert_int_equal(ip_addr_parse(c->src, &p.src), 0);
	if (explain_look(x->killswitch.dir, x->want, &p, &w, &f) < 0)
		fail_msg("%s: %s", c->name, f.text);
	assert_int_equal(explain_conclude(&w, &p, ret), 0);
	explain_world_done(&w);
}

static bool really_leaves(const struct packet_case *c)
{
	if (c->mark)
		return leaves_marked(c->mark, c->dst, c->port);
	return leaves(c->path, c->src, c->dst, c->port);
}

/* Says `verdict`, and the packet does it: seen on the wire, or not. */
static void check(struct fixture *x, const struct packet_case *c,
		  bool disagree)
{
	struct explanation e;
	bool out;

	ask(x, c, &e);
	if (e.verdict != c->verdict ||
	    (c->text && !strstr(e.verdict_text, c->text) &&
	     !strstr(e.special, c->text)))
		fail_msg("%s: \"%s\" (%s), special \"%s\", kernel \"%s\"",
			 c->name, e.verdict_text,
			 explain_verdict_name(e.verdict), e.special,
			 e.kernel);
	if ((e.n_clashes != 0) != disagree)
		fail_msg("%s: %zu disagreements: %s", c->name, e.n_clashes,
			 e.n_clashes ? e.clashes[0] : "none");
	/* This process is root, so only root's packets can be sent. */
	if (c->uid || e.verdict == EXPLAIN_HERE)
		return;
	out = e.verdict == EXPLAIN_INTERNET || e.verdict == EXPLAIN_ALLOWED ||
	      e.verdict == EXPLAIN_LEAKS;
	if (really_leaves(c) != out)
		fail_msg("%s: said \"%s\", but the packet %s", c->name,
			 e.verdict_text, out ? "does not leave" : "leaves");
}

static void check_all(struct fixture *x, const struct packet_case *v,
		      size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		check(x, &v[i], false);
}

/* ---- all stands, the tunnel is up ---- */

static void healthy_node(void **state)
{
	static const struct packet_case v[] = {
		{ "no class", PATH_OUTPUT, "", OUT, 0, 1000, 0,
		  EXPLAIN_INTERNET, "up0" },
		{ "no class, IPv6", PATH_OUTPUT, "", OUT6, 0, 1000, 0,
		  EXPLAIN_INTERNET, "up0" },
		{ "source", PATH_OUTPUT, SRC, OUT, 0, 1000, 0,
		  EXPLAIN_TUNNEL, "tunnel wg0, class vpn" },
		{ "source, IPv6", PATH_OUTPUT, SRC6, OUT6, 0, 1000, 0,
		  EXPLAIN_TUNNEL, "tunnel wg0, class vpn" },
		{ "mark", PATH_OUTPUT, "", OUT, 0x2001, 1000, 0,
		  EXPLAIN_TUNNEL, "tunnel wg0" },
		{ "another mark", PATH_OUTPUT, "", OUT, 0x1000, 1000, 0,
		  EXPLAIN_INTERNET, "no class" },
		{ "pod", PATH_FORWARD, POD, OUT, 0, 1000, 0, EXPLAIN_TUNNEL,
		  "tunnel wg0" },
		{ "pod, IPv6", PATH_FORWARD, POD6, OUT6, 0, 1000, 0,
		  EXPLAIN_TUNNEL, "tunnel wg0" },
		{ "local prefix", PATH_OUTPUT, SRC, "192.0.2.53", 0, 1000, 0,
		  EXPLAIN_ALLOWED, "local prefix 192.0.2.0/24" },
		{ "DNS to a local prefix", PATH_OUTPUT, SRC, "192.0.2.53", 0,
		  53, 0, EXPLAIN_DROPPED, "DNS of the class" },
		{ "resolver", PATH_OUTPUT, SRC, "10.64.0.1", 0, 53, 0,
		  EXPLAIN_TUNNEL, "resolver of the class" },
		{ "endpoint, by root", PATH_OUTPUT, SRC, ENDPOINT, 0,
		  ENDPOINT_PORT, 0, EXPLAIN_ALLOWED,
		  "the tunnel's own packet" },
		{ "endpoint, by another", PATH_OUTPUT, SRC, ENDPOINT, 0,
		  ENDPOINT_PORT, NOBODY, EXPLAIN_DROPPED, "own packet if" },
		{ "the tunnel's address", PATH_OUTPUT, "10.64.0.2", OUT, 0,
		  1000, 0, EXPLAIN_TUNNEL, "last known address" },
		{ "this node", PATH_OUTPUT, "", SRC, 0, 1000, 0, EXPLAIN_HERE,
		  "this node itself" },
	};
	struct fixture *x = *state;

	tunnel_up();
	stand(x);
	check_all(x, v, N(v));
}

static void names_rule_and_table(void **state)
{
	static const struct packet_case c = { .src = SRC, .dst = OUT,
					      .port = 1000 };
	struct fixture *x = *state;
	struct explanation e;

	tunnel_up();
	stand(x);
	ask(x, &c, &e);
	assert_int_equal(e.priority, 18201);
	assert_int_equal(e.table, 51820);
	assert_non_null(strstr(e.rule, "from 10.44.0.5"));
	assert_non_null(strstr(e.rule, "(ours)"));
	assert_non_null(strstr(e.open_way, "dev up0"));
	assert_string_equal(e.layers[1].name, "inet");
	assert_true(e.layers[1].stands);
	assert_non_null(strstr(e.layers[1].text, "passes it on wg0"));
	assert_non_null(strstr(e.layers[1].text, "drops it on up0"));
	assert_string_equal(e.layers[2].name, "netdev up0");
	assert_non_null(strstr(e.layers[2].text, "drops it on up0"));
}

/* ---- the tunnel is not there ---- */

static void tunnel_gone_is_unreachable(void **state)
{
	static const struct packet_case v[] = {
		{ "source", PATH_OUTPUT, SRC, OUT, 0, 1000, 0,
		  EXPLAIN_UNREACHABLE, "class vpn" },
		{ "source, IPv6", PATH_OUTPUT, SRC6, OUT6, 0, 1000, 0,
		  EXPLAIN_UNREACHABLE, "class vpn" },
		{ "pod", PATH_FORWARD, POD, OUT, 0, 1000, 0,
		  EXPLAIN_UNREACHABLE, "class vpn" },
		{ "local prefix", PATH_OUTPUT, SRC, "192.0.2.53", 0, 1000, 0,
		  EXPLAIN_ALLOWED, "local prefix" },
		{ "no class", PATH_OUTPUT, "", OUT, 0, 1000, 0,
		  EXPLAIN_INTERNET, "up0" },
	};
	struct fixture *x = *state;

	tunnel_up();
	stand(x);
	sh("ip link del wg0");
	run_converge(&x->routing, x->want);
	check_all(x, v, N(v));
}

static void tunnel_never_seen_is_dropped(void **state)
{
	static const struct packet_case v[] = {
		{ "source", PATH_OUTPUT, SRC, OUT, 0, 1000, 0,
		  EXPLAIN_DROPPED, "inet" },
		{ "pod, IPv6", PATH_FORWARD, POD6, OUT6, 0, 1000, 0,
		  EXPLAIN_DROPPED, "inet" },
	};
	struct fixture *x = *state;

	stand(x);
	check_all(x, v, N(v));
}

/* ---- somebody took something away ---- */

static const struct packet_case by_source = {
	"source", PATH_OUTPUT, SRC, OUT, 0, 1000, 0, EXPLAIN_TUNNEL, NULL
};

static struct packet_case as(enum explain_verdict v, const char *text)
{
	struct packet_case c = by_source;

	c.verdict = v;
	c.text = text;
	return c;
}

static void missing_layers_are_shouted(void **state)
{
	struct packet_case tunnel = as(EXPLAIN_TUNNEL, NULL),
			   dropped = as(EXPLAIN_DROPPED, "inet"),
			   late = as(EXPLAIN_DROPPED, "netdev up0"),
			   leak = as(EXPLAIN_LEAKS, "LEAKS");
	struct fixture *x = *state;

	tunnel_up();
	stand(x);
	check(x, &tunnel, false);
	sh("nft delete table inet garboard");
	check(x, &tunnel, true);
	sh("while ip rule del priority 18201 2>/dev/null; do :; done");
	check(x, &late, true);
	sh("nft delete table netdev garboard_egress_up0");
	check(x, &leak, true);
	run_converge(&x->killswitch, x->want);
	check(x, &dropped, true);
	run_converge(&x->routing, x->want);
	check(x, &tunnel, false);
}

/* It would go by main, and only the tables hold it. */
static void a_rule_before_ours_is_shouted(void **state)
{
	struct packet_case c = as(EXPLAIN_DROPPED, "inet");
	struct fixture *x = *state;
	struct explanation e;

	tunnel_up();
	stand(x);
	sh("ip rule add from " SRC " lookup main priority 99");
	check(x, &c, true);
	ask(x, &c, &e);
	assert_non_null(strstr(e.clashes[0], "is not ours"));
}

/* An exception that somebody put in is seen, not just a missing table. */
static void an_added_exception_is_shouted(void **state)
{
	struct packet_case c = as(EXPLAIN_LEAKS, "up0");
	struct fixture *x = *state;

	stand(x);
	sh("nft insert rule inet garboard class_vpn accept;"
	   "nft insert rule netdev garboard_egress_up0 class_vpn accept");
	check(x, &c, true);
}

static void a_rule_it_does_not_know_is_no_guess(void **state)
{
	struct packet_case c = as(EXPLAIN_TUNNEL, NULL);
	struct fixture *x = *state;
	struct explanation e;
	bool said = false;
	size_t i;

	tunnel_up();
	stand(x);
	sh("ip rule add not from 192.0.2.99 suppress_prefixlength 0 lookup "
	   "main priority 98");
	ask(x, &c, &e);
	assert_int_equal(e.verdict, EXPLAIN_TUNNEL);
	assert_int_equal(e.n_clashes, 0);
	for (i = 0; i < e.n_notes; i++)
		said = said || strstr(e.notes[i], "kernel's word");
	assert_true(said);
}

/* ---- the verb ---- */

static int verb(const char *dir, const char *args)
{
	const char *build = getenv("BUILD");
	int r = sh_status("%s/garboard-agent explain --state-dir %s %s "
			  ">/tmp/garboard-explain.out 2>&1",
			  build ? build : "build", dir, args);

	return r;
}

static void verb_and_exit_codes(void **state)
{
	struct fixture *x = *state;
	const char *dir = x->killswitch.dir;

	tunnel_up();
	stand(x);
	assert_int_equal(verb(dir, "--from " SRC " " OUT), 0);
	sh("head -1 /tmp/garboard-explain.out | "
	   "grep -qx 'verdict    leaves by tunnel wg0, class vpn'");
	assert_int_equal(verb(dir, "-o json --from " SRC6 " " OUT6), 0);
	sh("python3 -c 'import json; d = json.load(open(\"/tmp/"
	   "garboard-explain.out\")); assert d[\"verdict\"] == \"tunnel\" "
	   "and d[\"agree\"] and d[\"table\"] == 51820'");
	assert_int_equal(verb(dir, "--from " SRC " " OUT6), 2);
	assert_int_equal(verb(dir, ""), 2);
	assert_int_equal(verb(dir, "--in nothere0 --from " POD " " OUT), 5);
	sh("nft delete table inet garboard");
	assert_int_equal(verb(dir, "--from " SRC " " OUT), 1);
	sh("grep -q '^DISAGREE   inet: ' /tmp/garboard-explain.out");
	sh("rm /tmp/garboard-explain.out");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(healthy_node),
		T(names_rule_and_table),
		T(tunnel_gone_is_unreachable),
		T(tunnel_never_seen_is_dropped),
		T(missing_layers_are_shouted),
		T(a_rule_before_ours_is_shouted),
		T(an_added_exception_is_shouted),
		T(a_rule_it_does_not_know_is_no_guess),
		T(verb_and_exit_codes),
	};

	world_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
