/*
 * simagent.h - one node of a simulated fleet: link and agent in one.
 *
 * It enrols with a token or waits for approval, connects mutually, says
 * hello, reports, answers orders and dials streams, with the real wire
 * modules and none of the real agent's work. What happens is printed as one
 * line per fact on standard output. Misbehaviour is by simagent_order().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "common/fault.h"

struct simagent;

struct simfleet {		/* shared by all agents; borrowed */
	sd_event *event;
	const char *ca_pem;
	uint8_t cluster_id[16];
	uint8_t trust_root[32];
	uint32_t address;	/* IPv4, network order */
	uint16_t port;
	uint64_t retry;		/* microseconds between dials */
};

/* `token` NULL: waits for approval. Starts dialling at once. */
int simagent_new(struct simfleet *fleet, const char *name, const char *token,
		 struct simagent **ret_agent, struct fault *f);
/* A second machine with the same keys and certificate (TL-02). */
int simagent_clone(const struct simagent *a, const char *name,
		   struct simagent **ret_agent, struct fault *f);
struct simagent *simagent_free(struct simagent *a);

const char *simagent_name(const struct simagent *a);

/*
 * drop (close the connection), mute (answer no order and no ping), speak,
 * report, replay (the last envelope again), edit (an envelope with one
 * byte changed), truncate, foreign (another cluster's), garbage (no frame),
 * stop (do not dial again), machine-id TEXT. -EINVAL: none of these.
 */
int simagent_order(struct simagent *a, const char *what);
