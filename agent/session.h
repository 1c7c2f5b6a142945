/*
 * session.h - the conversation with the coordinator, through the link.
 *
 * Owns the link socket, the orders, and what goes up: the enrolment while
 * there is no certificate; then, each time the link is connected, a Hello
 * with a fresh nonce, a full report, a report whenever something changed
 * (gathered for a moment), and heartbeats. A session is only a way to talk:
 * the node is kept as desired with or without one.
 */
#pragma once

#include "proto/bundle.h"
#include "agent/engine.h"
#include "agent/state.h"
#include "proto/keys.h"

struct k3s;
struct trial;
struct uncovered;
struct session;

struct session_params {
	usec gather;		/* changes within it are one report */
	usec heartbeat;
};

/* 100 ms, 10 s. */
struct session_params session_params_default(void);

struct session_env {		/* all borrowed */
	struct session_params params;
	const struct resource_host *host;	/* with an event loop */
	struct node_state *state;
	const struct bundle *bundle;
	struct engine *engine;
	struct k3s *k3s;
	struct trial *trial;
	const struct uncovered *uncovered;	/* may be NULL */
	const struct key *report_key;
	const struct key *seal_key;
	uid_t link_uid;
};

/* Takes `link_fd`, a listening socket, on success. */
int session_new(const struct session_env *env, int link_fd,
		struct session **ret_session, struct fault *f);
struct session *session_free(struct session *s);

/* Something reportable changed. */
void session_news(struct session *s);

/* "up", "down", "waiting for approval", "no link"; and address or cause. */
const char *session_state(const struct session *s);
const char *session_peer_text(const struct session *s);
