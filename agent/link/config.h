/*
 * config.h - where garboard-link finds things and how patient it is.
 *
 * Everything comes from the environment (units/garboard-link.service reads
 * /etc/garboard/link.conf into it) and nothing of it is secret. Times are
 * in milliseconds there and in microseconds here. Texts are borrowed from
 * the environment.
 */
#pragma once

#include "common/clock.h"
#include "common/fault.h"

struct link_config {
	const char *socket;	/* GARBOARD_LINK_SOCKET */
	const char *state_dir;	/* GARBOARD_LINK_STATE: key, certificate */
	const char *bundle_dir;	/* GARBOARD_BUNDLE: bundle, ca.pem */
	usec backoff_base;	/* GARBOARD_LINK_BACKOFF_BASE_MS */
	usec backoff_cap;	/* GARBOARD_LINK_BACKOFF_CAP_MS */
	usec backoff_recent;	/* GARBOARD_LINK_BACKOFF_RECENT_MS: the cap
				 * while the last session is less than
				 * LINK_RECENT ago */
	usec ping;		/* GARBOARD_LINK_PING_MS */
	usec dial;		/* GARBOARD_LINK_DIAL_MS: connect + handshake */
};

#define LINK_RECENT (300 * USEC_PER_SEC)

/* -EINVAL names the variable. */
int link_config_read(struct link_config *ret_config, struct fault *f);
