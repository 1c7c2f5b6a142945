#include "leak_faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "world.h"

#define RESTARTS_CHECK 3
#define RESTARTS_LONG 200
#define UPGRADES_LONG 30

static bool many;

void faults_many(bool yes)
{
	many = yes;
}

static void restart_tunnel(void)
{
	int n = many ? RESTARTS_LONG : RESTARTS_CHECK;

	while (n--) {
		tunnel_end(SIGKILL);
		traffic_pass(3);
		tunnel_start(SCRIPTS_NONE);
		tunnel_wait();
		traffic_pass(10);
	}
}

/* Given up again and again before it is up (KS-22). */
static void abort_tunnel(void)
{
	int n = many ? RESTARTS_LONG : RESTARTS_CHECK;

	tunnel_end(SIGTERM);
	while (n--) {
		tunnel_start(SCRIPTS_NONE);
		traffic_pass(5);
		tunnel_end(SIGKILL);
	}
}

/* A wire to the far side, under the tunnel's name. */
static void fake_tunnel(void)
{
	tunnel_end(SIGKILL);
	sh("ip link add " LEAK_TUNNEL " type veth peer name far9 "
	   "netns /proc/%d/fd/%d; ip link set " LEAK_TUNNEL " arp off;"
	   "ip addr add 10.64.0.77/24 dev " LEAK_TUNNEL ";"
	   "ip -6 addr add fd64::77/64 dev " LEAK_TUNNEL " nodad;"
	   "ip link set " LEAK_TUNNEL " up",
	   (int)getpid(), scene_traffic()->far);
	sh("nsenter --net=/proc/%d/fd/%d ip link set far9 up", (int)getpid(),
	   scene_traffic()->far);
}

static void replug_uplink(void)
{
	sh("ip link del up0");
	traffic_pass(20);
	scene_uplink();
}

/* As a new package does it: stopped, and at once another one is there. */
static void upgrade_agent(void)
{
	int n = many ? UPGRADES_LONG : RESTARTS_CHECK;

	while (n--) {
		agent_end(SIGTERM);
		agent_start_again();
		traffic_pass(10);
	}
}

/* Not a byte is left, neither for the records nor for a log. */
static void fill_disk(void)
{
	scene_fill_disk();
	/* What it must write now: another address, the same again. */
	tunnel_end(SIGKILL);
	tunnel_start(SCRIPTS_NONE);
	tunnel_wait();
	agent_end(SIGKILL);
	agent_start_again();
}

const struct leak_fault leak_faults[] = {
	{ .name = "tunnel kill -9", .flags = STRIPS_TUNNEL,
	  .tunnel = SIGKILL },
	{ .name = "tunnel stop", .flags = STRIPS_TUNNEL, .tunnel = SIGTERM },
	{ .name = "tunnel restarts", .act = restart_tunnel },
	{ .name = "tunnel start given up", .flags = STRIPS_TUNNEL,
	  .act = abort_tunnel },
	{ .name = "tunnel device deleted", .flags = STRIPS_TUNNEL,
	  .sh = "ip link del tun0" },
	{ .name = "tunnel address flushed", .flags = STRIPS_TUNNEL,
	  .sh = "ip addr flush dev tun0; ip -6 addr flush dev tun0" },
	{ .name = "tunnel link down", .flags = STRIPS_TUNNEL,
	  .sh = "ip link set tun0 down" },
	{ .name = "another device, tunnel's name",
	  .flags = STRIPS_TUNNEL | FAKES_TUNNEL, .act = fake_tunnel,
	  .undo = "ip link del tun0" },
	{ .name = "nft flush ruleset", .flags = STRIPS_NFT,
	  .sh = "nft flush ruleset" },
	{ .name = "nft delete table", .flags = STRIPS_NFT,
	  .sh = "nft delete table inet garboard 2>/dev/null; "
		"nft delete table netdev garboard_egress_up0 2>/dev/null; "
		"nft delete table netdev garboard_egress_br0 2>/dev/null; "
		"nft delete table inet updown 2>/dev/null; :" },
	{ .name = "nft delete one chain", .flags = STRIPS_NFT,
	  .sh = "nft 'flush chain netdev garboard_egress_up0 egress; "
		"delete chain netdev garboard_egress_up0 egress' "
		"2>/dev/null; :" },
	{ .name = "ip rule flush", .flags = STRIPS_ROUTING | BREAKS_NET,
	  .sh = "ip rule flush; ip -6 rule flush" },
	/*
	 * The main lookup stays: whoever is not steered leaves by it. As often
	 * as there are rules, since an agent brings them back meanwhile.
	 */
	{ .name = "our ip rules deleted", .flags = STRIPS_ROUTING,
	  .sh = "for f in -4 -6; do for t in 51820 99; do for i in 1 2 3 4 5 "
		"6; do ip $f rule del lookup $t; done; done; done "
		"2>/dev/null; :" },
	{ .name = "ip route flush table", .flags = STRIPS_ROUTING,
	  .sh = "for t in 51820 99; do ip route flush table $t; "
		"ip -6 route flush table $t; done 2>/dev/null; :" },
	{ .name = "uplink link down", .flags = BREAKS_NET,
	  .sh = "ip link set up0 down", .undo = "ip link set up0 up" },
	{ .name = "uplink renamed", .flags = MOVES_UPLINK,
	  .sh = "ip link set up0 name up9",
	  .undo = "ip link set up9 name up0" },
	{ .name = "uplink deleted, made anew",
	  .flags = MOVES_UPLINK | BREAKS_NET, .act = replug_uplink },
	{ .name = "rp_filter strict", .flags = 0,
	  .sh = "sysctl -qw net.ipv4.conf.all.rp_filter=1",
	  .undo = "sysctl -qw net.ipv4.conf.all.rp_filter=0" },
	{ .name = "agent kill -9", .flags = STRIPS_AGENT, .agent = SIGKILL },
	{ .name = "agent stop", .flags = STRIPS_AGENT, .agent = SIGTERM },
	{ .name = "agent upgraded", .agent_act = upgrade_agent },
	{ .name = "disk full, agent kill -9", .flags = FILLS_DISK,
	  .agent_act = fill_disk, .undo_act = scene_empty_disk },
};

const struct leak_fault *leak_fault_find(const char *name)
{
	size_t i;

	for (i = 0; i < leak_faults_count(); i++)
		if (strcmp(leak_faults[i].name, name) == 0)
			return &leak_faults[i];
	fail_msg("no such fault: %s", name);
	return NULL;
}

size_t leak_faults_count(void)
{
	return sizeof(leak_faults) / sizeof(leak_faults[0]);
}

void fault_act(const struct leak_fault *const *v, size_t n)
{
	char all[2048] = "";
	size_t used = 0, i;

	for (i = 0; i < n; i++)
		if (v[i]->agent)
			agent_end(v[i]->agent);
	for (i = 0; i < n; i++) {
		if (v[i]->tunnel)
			tunnel_end(v[i]->tunnel);
		if (v[i]->act)
			v[i]->act();
		if (v[i]->agent_act && agent_lives())
			v[i]->agent_act();
		if (!v[i]->sh)
			continue;
		used += (size_t)snprintf(all + used, sizeof(all) - used,
					 "{ %s; } & ", v[i]->sh);
		assert_true(used < sizeof(all));
	}
	/* What is gone already cannot be taken away: no failure of it. */
	if (used)
		(void)sh_status("{ %s wait; } 2>/dev/null", all);
}

void fault_undo(const struct leak_fault *const *v, size_t n,
		enum scripts scripts)
{
	bool tunnel = false;
	size_t i;

	for (i = 0; i < n; i++) {
		if (v[i]->undo_act)
			v[i]->undo_act();
		if (v[i]->undo)
			(void)sh_status("{ %s; } 2>/dev/null", v[i]->undo);
		tunnel = tunnel || (v[i]->flags & STRIPS_TUNNEL);
	}
	if (!agent_lives())
		scene_rules();
	if (!tunnel)
		return;
	tunnel_end(SIGKILL);
	tunnel_start(scripts);
	tunnel_wait();
}
