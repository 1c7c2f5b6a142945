/*
 * uncovered.h - paths of an armed class that no layer of the kill-switch
 * sees, as they exist on this node now (docs/killswitch.md, MN-03, KS-13).
 *
 * Observes, changes nothing, and is no part of the resident look: it reads a
 * second after links or traffic control changed, and once a minute. What it
 * finds is a failing health check until it is gone. With no class armed
 * nothing is read and nothing is found.
 *
 *   redirect  tc or XDP sends packets from device to device (critical);
 *             programs that are Cilium's by name are left to the egress
 *             policy and the routing, where Cilium has its devices
 *   encapsulated  a device of the node's own wraps packets: the class is
 *             not seen in what comes out of it (warning)
 *   pods      the class has pods whose addresses are not its own: until
 *             Cilium has its policy a new one leaves by the uplink (warning)
 *   unread    the above cannot be told (warning)
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "agent/engine.h"
#include "agent/nl/rtnl.h"
#include "agent/nl/tc.h"

#define UNCOVERED_MAX 16	/* the rest is counted */

struct uncovered_path {
	const char *path;	/* "redirect", ...; static */
	char device[IF_NAMESIZE];	/* "" where it is none */
	bool critical;
	char text[192];		/* what it is, and the remedy */
};

struct uncovered_paths {
	struct uncovered_path v[UNCOVERED_MAX];
	size_t n, more;
};

/* Pure. `armed`: of the record of armed classes; `e` may have none. */
void uncovered_judge(const struct desired_egress *e, bool armed,
		     const struct rtnl_links *links,
		     const struct tc_redirects *redirects,
		     struct uncovered_paths *ret_paths);

struct uncovered;

/* `engine` and `state_dir` are borrowed; `news`: the answer is another. */
int uncovered_new(sd_event *event, const struct engine *engine,
		  const char *state_dir, engine_changed news, void *userdata,
		  struct uncovered **ret_uncovered, struct fault *f);
struct uncovered *uncovered_free(struct uncovered *u);	/* returns NULL */
/* Borrowed until the loop runs again; NULL gives an empty one. */
const struct uncovered_paths *uncovered_get(const struct uncovered *u);
/* The desired state is another. */
void uncovered_look(struct uncovered *u);
