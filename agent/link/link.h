/*
 * link.h - garboard-link: the only process of a node with an IP socket.
 *
 * It stands between the agent's socket and the coordinator and passes whole
 * frames; it cannot read orders, make reports or keep secrets, and losing it
 * to an attacker gives away no more than silence (DESIGN section 7). It
 * keeps a session while the agent is connected: the addresses are tried in
 * turn, with full-jitter back-off on every path, capped low while the last
 * session is recent (TL-06). A node without a certificate, or with one that
 * is due, asks for one by sending its CSR to the agent once a session
 * stands; the agent makes the signed request of it.
 */
#pragma once

#include <systemd/sd-event.h>

#include "agent/link/config.h"

struct link;

/* Loads key, certificate and bundle; starts nothing. `config` is borrowed. */
int link_new(sd_event *event, const struct link_config *config,
	     struct link **ret_link, struct fault *f);
struct link *link_free(struct link *l);
