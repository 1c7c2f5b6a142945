/*
 * fleet_internal.h - shared by fleet.c (table), session.c (what nodes say)
 * and dispatch.c (orders) alone.
 */
#pragma once

#include <sys/queue.h>

#include "coordinator/fleet.h"
#include "coordinator/journal.h"
#include "coordinator/signer.h"

struct fleet {
	sd_event *event;
	struct store *store;
	struct signer *signer;
	struct journal *journal;
	struct fleet_options options;
	struct fleet_node **nodes;	/* sorted by id */
	size_t n_nodes, room;
	struct session *sessions;	/* every one, also not in force */
	sd_event_source *flush;		/* writes dirty rows */
	sd_event_source *sweep;		/* staleness */
	sd_event_source *notify;
	void (*changed)(void *userdata);
	void *changed_data;
	uint64_t revision;
	uint64_t epoch, next, reserved_end;	/* order numbers in hand */
	usec began;
};

/* Makes sure that numbers are in hand; `next` is then the first unused. */
int fleet_horizon(struct fleet *fleet, struct fault *f);

/* The row will reach the store within a second. */
void fleet_touch(struct fleet *fleet, struct fleet_node *n);

/* ---- session.c ---- */
void session_close_all(struct fleet *fleet);
void session_close(struct session *s, int err, const char *reason);
/* Also those that wait for their turn. */
void session_close_node(struct fleet *fleet, struct fleet_node *n, int err,
			const char *reason);
const char *session_peer(const struct session *s);
/* Hello was heard and nothing holds the node: orders may go out. */
bool session_ready(const struct session *s);
/* -EAGAIN: enough is queued already; session.c calls dispatch_run() later. */
int session_send_order(struct session *s, uint64_t epoch, uint64_t sequence,
		       const void *payload, size_t size, struct fault *f);

/* ---- dispatch.c ---- */
/* Sends what is queued for the node, as far as its session takes it. */
void dispatch_run(struct fleet *fleet, struct fleet_node *n);
/* After a reconnect: everything unanswered goes out again, same numbers. */
void dispatch_rewind(struct fleet_node *n);
void dispatch_result(struct fleet *fleet, struct fleet_node *n,
		     uint64_t epoch, uint64_t sequence,
		     const uint8_t *result, size_t size);
void dispatch_fail_all(struct fleet_node *n, int err, const char *reason);
