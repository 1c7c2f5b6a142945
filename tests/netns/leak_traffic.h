/*
 * leak_traffic.h - what sends, and what counts, in the leak harness.
 *
 * One process sends on every stream once a tick, from sockets it opened in
 * the namespaces of the scene. Another counts at the far side of the uplink
 * every frame that arrives in the clear, by destination: each stream has
 * one of its own. Both work on counters in shared memory.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum stream {
	HOST4,			/* a process with a class source */
	HOST6,
	MARK4,			/* the node's own source, with the mark */
	MARK6,
	BOUND4,			/* SO_BINDTODEVICE to the uplink */
	BOUND6,
	RAW4,			/* AF_PACKET on the uplink */
	RAW6,
	POD4,			/* forwarded from a container */
	POD6,
	BRIDGED4,		/* a container on the uplink's bridge */
	BRIDGED6,
	DNS_UDP,		/* of the class, to port 53 */
	DNS_TCP,
	CLASS_MAX,		/* those above must never be seen */
	NET4 = CLASS_MAX,	/* the node's own: must always be seen */
	NET6,
	NET_POD4,		/* a container without a class */
	STREAM_MAX,
};

const char *stream_name(enum stream s);
/*
 * Nothing but the tables holds it: it is never routed, or (BOUND6) the
 * kernel passes over unreachable routes when it looks for one device's.
 */
bool stream_is_unrouted(enum stream s);

struct counts {
	uint64_t ticks;
	uint64_t sent[STREAM_MAX];	/* that sendto() took */
	uint64_t seen[STREAM_MAX];	/* in the clear, at the far side */
	uint64_t through[STREAM_MAX];	/* out of the tunnel */
	uint64_t refused[STREAM_MAX];	/* by sendto() */
};

/* Namespaces by descriptor; uplink and bridge by name in the node. */
struct traffic_scene {
	int node, far, pod, bridged, web;
};

/* Forks both; the caller's namespace stays as it is. */
void traffic_start(const struct traffic_scene *scene);
void traffic_stop(void);
/* So far; each is one packet on each stream (fewer on TCP's). */
uint64_t traffic_ticks(void);
/* Lets `ticks` more ticks pass, with a deadline. */
void traffic_pass(unsigned int ticks);
/* All that was sent has been counted; sending rests until traffic_go(). */
void traffic_rest(struct counts *ret_counts);
void traffic_go(void);
/* Waits until the stream has come out of the tunnel, with a deadline. */
void traffic_wait_through(enum stream s);
