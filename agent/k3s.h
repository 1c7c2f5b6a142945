/*
 * k3s.h - the k3s service of this node: what it is doing, and starting and
 * stopping it.
 *
 * Owns a watch on k3s.service and the latest status. While the unit is not
 * active its last lines are read from the journal, in a child, whenever the
 * unit's state moves and at most every two seconds. Nothing is started or
 * stopped but by the functions below, each of which answers once.
 *
 * A start is done when systemd has begun it: the unit is then activating,
 * which for a joiner may take minutes (its READY comes late and its unit
 * has no start time-out, K3S-CONTRACT 2.1). The reports tell the rest.
 */
#pragma once

#include "agent/bus/bus.h"
#include "agent/res/resource.h"
#include "agent/state.h"
#include "proto/up.h"

struct k3s;

/* `changed` is called when k3s_status_copy() would say something new. */
int k3s_new(const struct resource_host *host, void (*changed)(void *userdata),
	    void *userdata, struct k3s **ret_k3s);
struct k3s *k3s_free(struct k3s *k);


/* The binary that was verified, for the status. Borrowed. */
void k3s_set_install(struct k3s *k, const struct state_install *install);

/* A deep copy; k3s_status_done() it. -ENOMEM. */
int k3s_status_copy(const struct k3s *k, struct k3s_status *ret_status);

/* "active/running" and the like; "" while unknown. Borrowed. */
const char *k3s_unit_state(const struct k3s *k);

enum k3s_action { K3S_START, K3S_RESTART, K3S_STOP };

/*
 * Enables and starts (or restarts), or stops and disables. `done` is called
 * once from the loop, with 0 or a negative errno and its reason; -EBUSY at
 * once when another action is under way; -ENOTCONN without D-Bus.
 */
int k3s_act(struct k3s *k, enum k3s_action action, bus_done done,
	    void *userdata, struct fault *f);
/* The caller of k3s_act() is gone: its `done` will not be called. */
void k3s_forget(struct k3s *k, void *userdata);
