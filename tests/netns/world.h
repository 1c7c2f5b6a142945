/*
 * world.h - a node, its upstream peer and a pod, each a network namespace
 * of this process, and a way to run one resource by hand.
 *
 *	pod (10.44.0.6, fd44::6) -- pod0 | node | up0 -- peer (192.0.2.254)
 *
 * The node also has dum0 with class addresses of its own (10.44.0.5,
 * fd44::5). The peer sees every frame that leaves up0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "agent/res/resource.h"

/* Plans skip with a reason and exit() unless namespaces can be made. */
void world_require(void);

/* A new world; the caller is in the node's namespace afterwards. */
void world_make(void);
void world_done(void);
/* After `ip link del up0`: makes it again, at the same place. */
void world_replug(void);
/* A device wg0 that is up, has no address, and swallows all it gets. */
void world_tunnel(void);

/* Runs a shell command in the node (asserts success), or elsewhere. */
void sh(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int sh_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void sh_peer(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Output of a command in the node; owned by the caller. */
char *sh_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

enum path {
	PATH_OUTPUT,		/* a socket of the node bound to the source */
	PATH_BOUND,		/* the same, bound to up0 as well */
	PATH_FORWARD,		/* from the pod */
	PATH_RAW,		/* AF_PACKET on up0 */
	PATH_RAW_ODD,		/* the same, said not to be IP */
	PATH_MAX,
};

/*
 * Sends one UDP packet from `source` ("" for the node's own address) to
 * `dest` and says whether the peer saw it leave up0. A marker packet that
 * belongs to no class is sent behind it, so no time has to pass.
 */
bool leaves(enum path path, const char *source, const char *dest, int port);
/* Only sends, on PATH_OUTPUT. */
void send_from(const char *source, const char *dest, int port);
/* As leaves(); a command in the node sends, to that port. */
bool leaves_by(const char *cmd, int port);
/* As leaves(), with SO_MARK, on PATH_OUTPUT. */
bool leaves_marked(unsigned int mark, const char *dest, int port);

/* ---- one resource, by hand ---- */

struct run {
	const struct resource *res;
	struct resource_host host;
	sd_event *event;
	void *state;
	char dir[64];		/* state_dir, below /tmp */
	unsigned int looks;	/* times "look again" was said */
};

/* With an event loop when `resident`. */
void run_open(struct run *r, const struct resource *res, bool resident);
void run_reopen(struct run *r);	/* as a new process would: same state_dir */
void run_close(struct run *r);

/* Observes and plans; the number of changes. Lists may be NULL. */
size_t run_plan(struct run *r, const struct desired *want,
		struct item_list *items, struct change_list *changes);
/* Observes, plans, applies; 0 or the error of apply. */
int run_apply(struct run *r, const struct desired *want);
/* run_apply() and then asserts that an empty plan is left. */
void run_converge(struct run *r, const struct desired *want);
void run_watch(struct run *r, const struct desired *want);
/* Waits for "look again" with a deadline; false when it does not come. */
bool run_wait(struct run *r);
/* State of an item by key; ITEM_STATE_MAX when there is none. */
enum item_state run_item(struct run *r, const struct desired *want,
			 const char *key);

/* ---- desired states ---- */

/* Class "vpn" (10.44.0.0/20, fd44::/64), tunnel wg0, uplink up0. */
struct desired *sample_desired(bool gateway);
struct ip_prefix sample_prefix(const char *text);
