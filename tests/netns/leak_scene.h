/*
 * leak_scene.h - the places of the leak harness, its tunnel and its agent.
 *
 *	pod (10.44.0.6) -- pod0 |      | br0 - up0 -- far0 (far side)
 *	web (10.42.0.9) -- web0 | node |  |
 *	                        |      | tun0 == OpenVPN == tun0 (far side)
 *	                          bridged (10.44.0.7), a port of br0
 *
 * The far side is the gateway, the internet and the OpenVPN server at once.
 * The agent is a process of its own with the real engine and the resources
 * that keep classes closed; it can be killed like one.
 */
#pragma once

#include <stdbool.h>
#include <signal.h>

#include "leak_traffic.h"
#include "proto/desired.h"

#define LEAK_TUNNEL "tun0"

/* Makes everything but tunnel and agent; the caller is in the node then. */
void scene_make(void);
void scene_done(void);
const struct traffic_scene *scene_traffic(void);
/* The uplink and its neighbours, after `ip link del up0` or a rename. */
void scene_uplink(void);
/* The kernel's own lookups, where no agent brings them back. */
void scene_rules(void);
/* Keys and state; gone with the scene. */
const char *scene_dir(void);

enum scripts {
	SCRIPTS_NONE,		/* route-noexec: the agent steers */
	SCRIPTS_UPDOWN,		/* the usual: up and down with ip and nft */
};

/* Starts the client; `tunnel_wait` until it has its address. */
void tunnel_start(enum scripts scripts);
void tunnel_wait(void);
void tunnel_signal(int signal);
/* Ends the client and waits for it; SIGKILL or SIGTERM. */
void tunnel_end(int signal);
bool tunnel_is_up(void);

/* The class of the harness: pods, a source and a mark, both families. */
struct desired *scene_desired(void);

/* A small disk of its own for the state, in this mount namespace. */
void scene_disk(const char *state_dir);
void scene_disk_done(void);
void scene_fill_disk(void);
void scene_empty_disk(void);

/* Enforces scene_desired(); waits for its first convergence. */
void agent_start(const char *state_dir, bool plain);
/* As it was started last. */
void agent_start_again(void);
void agent_end(int signal);
bool agent_lives(void);
