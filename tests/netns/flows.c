/*
 * What is let through on purpose, and what was open before: the tunnel's own
 * packets (KS-10), link-local, neighbours and DHCP (KS-07), flows that are
 * older than the arming (FACTS S7), and a redirect that no hook sees. And
 * other hands at our tables and beside them (KS-18, MN-03).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>

#include "agent/nl/conntrack.h"
#include "agent/nl/rtnl.h"
#include "agent/res/killswitch.h"
#include "agent/res/routing.h"
#include "world.h"

#define OUT "198.51.100.1"
#define RELAY "198.51.100.7"
#define RELAY_2 "203.0.113.8"
#define RELAY_PORT 1194
#define UPLINK_SOURCE "192.0.2.1"
#define NOBODY 65534

struct fixture {
	struct run run;
	struct desired *want;
};

static int setup(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	world_make();
	x->want = sample_desired(true);
	run_open(&x->run, &resource_killswitch, false);
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *x = *state;

	run_close(&x->run);
	x->want = desired_free(x->want);
	free(x);
	world_done();
	return 0;
}

/* The class holds the uplink's own address; the tunnel goes to RELAY. */
static void uplink_is_of_the_class(struct desired *want, enum tunnel_kind kind)
{
	struct ip_prefix p = sample_prefix(UPLINK_SOURCE);
	struct desired_tunnel *t = &want->egress.tunnels[0];

	assert_int_equal(prefix_list_add(&want->egress.classes[0].sources,
					 &p), 0);
	t->kind = kind;
	t->endpoints = calloc(1, sizeof(*t->endpoints));
	assert_non_null(t->endpoints);
	t->n_endpoints = 1;
	assert_int_equal(ip_endpoint_parse(RELAY ":1194/udp", t->endpoints),
			 0);
}

/* As leaves(): the socket is opened by that user. */
static bool leaves_as(uid_t uid, const char *dest, int port)
{
	bool seen;

	assert_int_equal(seteuid(uid), 0);
	seen = leaves(PATH_OUTPUT, UPLINK_SOURCE, dest, port);
	assert_int_equal(seteuid(0), 0);
	return seen;
}

static void ks10_endpoint(struct fixture *x, enum tunnel_kind kind)
{
	uplink_is_of_the_class(x->want, kind);
	assert_true(leaves_as(NOBODY, RELAY, RELAY_PORT));
	run_converge(&x->run, x->want);
	assert_true(leaves_as(0, RELAY, RELAY_PORT));
	/* Another port, another address, another user. */
	assert_false(leaves_as(0, RELAY, RELAY_PORT + 1));
	assert_false(leaves_as(0, OUT, RELAY_PORT));
	assert_false(leaves_as(NOBODY, RELAY, RELAY_PORT));
	/* A pod of the class, which has no socket here. */
	assert_false(leaves(PATH_FORWARD, "10.44.0.6", RELAY, RELAY_PORT));
}

/*
 * KS-22: another relay is another element of a set. The old and the new one
 * pass while the spec names both; nothing else passes at any step.
 */
static void ks22_another_endpoint_opens_nothing_else(void **state)
{
	struct fixture *x = *state;
	struct desired_tunnel *t = &x->want->egress.tunnels[0];
	static const struct {
		const char *v[2];
		bool old, new;
	} steps[] = {
		{ { RELAY ":1194/udp", NULL }, true, false },
		{ { RELAY ":1194/udp", RELAY_2 ":1194/udp" }, true, true },
		{ { RELAY_2 ":1194/udp", NULL }, false, true },
	};
	size_t i, k;

	uplink_is_of_the_class(x->want, TUNNEL_OPENVPN);
	free(t->endpoints);
	t->endpoints = calloc(2, sizeof(*t->endpoints));
	assert_non_null(t->endpoints);
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		for (k = 0; k < 2 && steps[i].v[k]; k++)
			assert_int_equal(ip_endpoint_parse(steps[i].v[k],
							   &t->endpoints[k]),
					 0);
		t->n_endpoints = k;
		run_converge(&x->run, x->want);
		assert_int_equal(leaves_as(0, RELAY, RELAY_PORT),
				 steps[i].old);
		assert_int_equal(leaves_as(0, RELAY_2, RELAY_PORT),
				 steps[i].new);
		assert_false(leaves_as(0, OUT, RELAY_PORT));
		assert_false(leaves_as(NOBODY, RELAY_2, RELAY_PORT));
	}
}

static void ks10_relay_is_for_openvpn_only(void **state)
{
	ks10_endpoint(*state, TUNNEL_OPENVPN);
}

static void ks10_relay_is_for_wireguard_only(void **state)
{
	ks10_endpoint(*state, TUNNEL_WIREGUARD);
}

/* ---- what never leaves the link (KS-07) ---- */

static void ks07_link_scope_dhcp_and_neighbours(void **state)
{
	struct fixture *x = *state;
	int i;

	run_converge(&x->run, x->want);
	sh("ip route add 169.254.0.0/16 dev up0;"
	   "ip route add 224.0.0.0/24 dev up0;"
	   "ip neigh replace 169.254.9.9 lladdr 02:00:00:00:00:fe dev up0");
	assert_true(leaves(PATH_OUTPUT, "10.44.0.5", "169.254.9.9", 1000));
	assert_true(leaves(PATH_BOUND, "10.44.0.5", "224.0.0.251", 5353));
	/* A lease is renewed with its server, wherever that is. */
	assert_true(leaves_by("perl -MSocket -e 'socket(S, AF_INET, "
			      "SOCK_DGRAM, 0); bind(S, pack_sockaddr_in(68, "
			      "inet_aton(\"10.44.0.5\"))) or die; send(S, "
			      "\"x\", 0, pack_sockaddr_in(67, inet_aton("
			      "\"198.51.100.67\"))) or die'", 67));
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", "198.51.100.67", 67));
	/* A neighbour is found with a class address as the source. */
	sh_peer("ip -6 route add fd44::/64 via 2001:db8:1::1");
	sh("ip -6 addr add fd44::55/128 dev up0 nodad;"
	   "ip -6 neigh del 2001:db8:1::fe dev up0");
	for (i = 0; i < 5000; i++) {
		if (leaves(PATH_OUTPUT, "fd44::55", "2001:db8:1::fe", 1000))
			return;
		(void)poll(NULL, 0, 1);
	}
	fail_msg("neighbour discovery is blocked");
}

/* ---- flows that were opened before (FACTS S7) ---- */

static size_t forget(const char *source, const struct prefix_list *local)
{
	struct ip_prefix p = sample_prefix(source);
	struct prefix_list list = { &p, 1 };
	struct conntrack_match match = { .sources = &list, .local = local };
	struct nl_sock *s = NULL;
	size_t n = 0;

	assert_int_equal(nl_sock_open(NETLINK_NETFILTER, &s, NULL), 0);
	assert_int_equal(conntrack_forget(s, &match, &n, NULL), 0);
	(void)nl_sock_free(s);
	return n;
}

static void open_flows(void)
{
	send_from("10.44.0.5", OUT, 1000);
	send_from("10.44.0.5", OUT, 1001);
	send_from("fd44::5", "2001:db8:ffff::1", 1000);
	send_from("10.44.0.5", "192.0.2.53", 1000);	/* local */
	send_from("", OUT, 1000);
}

static void flows_from_before_are_forgotten(void **state)
{
	struct fixture *x = *state;
	const struct prefix_list *local = &x->want->egress.local;

	sh("nft -f - <<'N'\n"
	   "table inet track {\n"
	   "chain o { type filter hook output priority 0;\n"
	   "ct state new counter\n"
	   "meta mark 0x2001 ct mark set meta mark\n}\n}\nN");
	open_flows();
	assert_int_equal(forget("10.44.0.0/24", local), 2);
	assert_int_equal(forget("10.44.0.0/24", local), 0);
	assert_int_equal(forget("10.44.0.0/24", NULL), 1);
	open_flows();
	(void)leaves_marked(0x2001, OUT, 1002);
	run_converge(&x->run, x->want);
	assert_int_equal(forget("10.44.0.0/24", local), 0);
	assert_int_equal(forget("fd44::/64", local), 0);
	/* What is local, and what is of no class, goes on. */
	assert_int_equal(forget("10.44.0.0/24", NULL), 1);
	assert_int_equal(forget("192.0.2.1/32", NULL), 2);
}

/* ---- devices under other names ---- */

static int setup_resident(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	world_make();
	x->want = sample_desired(true);
	run_open(&x->run, &resource_killswitch, true);
	run_watch(&x->run, x->want);
	*state = x;
	return 0;
}

static void renamed_uplink_stays_guarded(void **state)
{
	struct fixture *x = *state;

	run_converge(&x->run, x->want);
	while (sd_event_run(x->run.event, 0) > 0)
		;
	sh("ip link set up0 name up9");
	assert_true(run_wait(&x->run));
	run_converge(&x->run, x->want);
	sh("nft list chain netdev garboard_egress_up9 egress | "
	   "grep -q 'device \"*up9'");
	sh("ip link set up9 name up0");
	run_converge(&x->run, x->want);
	assert_false(leaves(PATH_RAW, "10.44.0.5", OUT, 1000));
	/* One that the spec no longer names is let go. */
	strlist_done(&x->want->egress.uplinks);
	assert_int_equal(strlist_add(&x->want->egress.uplinks, "pod0"), 0);
	run_converge(&x->run, x->want);
	assert_int_equal(sh_status("nft list table netdev garboard_egress_up0 "
				   "2>/dev/null"), 1);
}

/* A wire of that name is no tunnel: no way in, and no exception. */
static void another_device_is_no_tunnel(void **state)
{
	struct fixture *x = *state;
	struct run rt;

	run_converge(&x->run, x->want);
	run_open(&rt, &resource_routing, false);
	world_tunnel();
	sh("ip addr add 10.64.0.2/32 dev wg0");
	run_converge(&rt, x->want);
	assert_int_equal(run_item(&rt, x->want, "tunnel wg0"), ITEM_IN_SYNC);
	sh("ip route show table 51820 | grep -q '^default dev wg0'");
	sh("ip link del wg0; ip link set up0 name wg0");
	sh("ip addr add 10.64.0.2/32 dev wg0; ip link set wg0 up");
	run_converge(&rt, x->want);
	assert_int_equal(run_item(&rt, x->want, "tunnel wg0"), ITEM_BLOCKED);
	assert_int_equal(sh_status("ip route show table 51820 | "
				   "grep -q '^default dev wg0'"), 1);
	/* Even where the main table leads there, and by inet alone. */
	run_reopen(&x->run);
	sh("nft delete table netdev garboard_egress_up0; ip rule flush;"
	   "ip rule add pref 32766 lookup main");
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
	run_close(&rt);
}

/* ---- other hands at the same tables ---- */

/*
 * Somebody else's firewall flushes and loads its own tables all the while,
 * and a second apply of ours runs beside the first.
 */
static void ks18_a_firewall_reloads_meanwhile(void **state)
{
	struct fixture *x = *state;
	struct run other = { 0 };
	int i;

	sh("cat >%s/theirs <<'N'\n"
	   "table ip theirs\n"
	   "delete table ip theirs\n"
	   "table ip theirs {\n"
	   "  chain c { type filter hook input priority 0; }\n"
	   "}\n"
	   "N\n"
	   "nft -f %s/theirs", x->run.dir, x->run.dir);
	sh("(while test -e %s/theirs; do nft -f %s/theirs; done) "
	   ">/dev/null 2>&1 &", x->run.dir, x->run.dir);
	run_open(&other, &resource_killswitch, false);
	for (i = 0; i < 40; i++) {
		sh("nft delete table inet garboard 2>/dev/null; true");
		(void)run_apply(&x->run, x->want);
		(void)run_apply(&other, x->want);
		run_reopen(&x->run);
		run_reopen(&other);
	}
	sh("rm %s/theirs", x->run.dir);
	run_converge(&x->run, x->want);
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
	sh("nft list table ip theirs >/dev/null");
	run_close(&other);
}

/* MN-03: the name is there, and that is all that is there. */
static void mn03_empty_tables_of_our_name(void **state)
{
	struct fixture *x = *state;

	run_converge(&x->run, x->want);
	run_reopen(&x->run);
	sh("nft 'delete table inet garboard; add table inet garboard;"
	   "delete table netdev garboard_egress_up0;"
	   "add table netdev garboard_egress_up0'");
	assert_true(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
	assert_int_equal(run_item(&x->run, x->want, "table inet garboard"),
			 ITEM_DRIFTED);
	assert_int_equal(run_item(&x->run, x->want,
				  "table netdev garboard_egress_up0"),
			 ITEM_DRIFTED);
	run_converge(&x->run, x->want);
	assert_false(leaves(PATH_OUTPUT, "10.44.0.5", OUT, 1000));
}

/* ---- what is not covered ---- */

static int bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* return bpf_redirect(index, 0); */
static int load_redirect(int index)
{
	static const char license[] = "GPL";
	const struct bpf_insn program[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1,
		  .imm = index },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insn_cnt = sizeof(program) / sizeof(program[0]),
		.insns = (uintptr_t)program,
		.license = (uintptr_t)license,
	};

	return bpf(BPF_PROG_LOAD, &attr);
}

/* What enters by `from` goes out by `to`; ends with the descriptor. */
static int redirect(const char *from, const char *to)
{
	union bpf_attr attr = { .link_create = {
		.attach_type = BPF_XDP,
		.flags = 2,		/* of the kernel, not of a driver */
	} };
	int program = load_redirect((int)if_nametoindex(to)), link;

	if (program < 0)
		return -errno;
	attr.link_create.prog_fd = (uint32_t)program;
	attr.link_create.target_ifindex = if_nametoindex(from);
	link = bpf(BPF_LINK_CREATE, &attr);
	(void)close(program);
	return link < 0 ? -errno : link;
}

/* As the health check sees it (uncovered.h). */
static bool seen_by_netlink(const char *device)
{
	struct rtnl_links links = { 0 };
	struct nl_sock *sock = NULL;
	struct fault f = FAULT_INIT;
	bool xdp = false;
	size_t i;

	assert_int_equal(nl_sock_open(NETLINK_ROUTE, &sock, &f), 0);
	assert_int_equal(rtnl_link_dump(sock, &links, &f), 0);
	for (i = 0; i < links.n; i++)
		xdp = xdp || (strcmp(links.v[i].name, device) == 0 &&
			      links.v[i].xdp);
	free(links.v);
	(void)nl_sock_free(sock);
	return xdp;
}

/*
 * MN-03: what a program redirects from device to device passes every hook of
 * netfilter and every lookup (FACTS S3). It is seen to leave: the detector is
 * not blind, and nobody shall say that this path is covered.
 */
static void mn03_redirect_is_not_covered(void **state)
{
	struct fixture *x = *state;
	int link;

	run_converge(&x->run, x->want);
	assert_false(leaves(PATH_FORWARD, "10.44.0.6", OUT, 1000));
	link = redirect("pod0", "up0");
	if (link < 0) {
		print_message("# the kernel has no redirect: not shown\n");
		return;
	}
	assert_true(leaves(PATH_FORWARD, "10.44.0.6", OUT, 1000));
	assert_true(seen_by_netlink("pod0"));
	(void)close(link);
	assert_false(seen_by_netlink("pod0"));
	assert_false(leaves(PATH_FORWARD, "10.44.0.6", OUT, 1000));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(ks22_another_endpoint_opens_nothing_else),
		T(ks10_relay_is_for_openvpn_only),
		T(ks10_relay_is_for_wireguard_only),
		T(ks07_link_scope_dhcp_and_neighbours),
		T(flows_from_before_are_forgotten),
		cmocka_unit_test_setup_teardown(renamed_uplink_stays_guarded,
						setup_resident, teardown),
		T(another_device_is_no_tunnel),
		T(ks18_a_firewall_reloads_meanwhile),
		T(mn03_empty_tables_of_our_name),
		T(mn03_redirect_is_not_covered),
	};

	world_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
