/*
 * neigh_probe.h - does anybody on the link answer for this address?
 *
 * The agent has no packet socket, so it lets the kernel ask: the neighbour
 * entry is dropped, made anew with NTF_USE (which starts ARP or neighbour
 * discovery), and its state is read from events: REACHABLE and the like
 * means somebody answered, FAILED that nobody did. Needs CAP_NET_ADMIN.
 */
#pragma once

#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/ip.h"

struct neigh_probe;

/* `r`: 1 somebody answered (`mac` says who), 0 nobody, negative: unknown. */
typedef void (*neigh_probe_done)(void *userdata, int r, const char *mac);

/*
 * `done` is called once, from the loop, after which the probe is gone;
 * neigh_probe_free() before that forgets it.
 */
int neigh_probe_start(sd_event *event, unsigned int ifindex,
		      const struct ip_addr *address, usec deadline,
		      neigh_probe_done done, void *userdata,
		      struct neigh_probe **ret_probe, struct fault *f);
struct neigh_probe *neigh_probe_free(struct neigh_probe *p);
