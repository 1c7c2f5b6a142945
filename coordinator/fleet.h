/*
 * fleet.h - the nodes, their sessions and the orders on their way.
 *
 * Owns the table of nodes in memory (its rows are the store's), one session
 * per node and the queue of orders of each node. Promises:
 *
 * - a node is who its certificate says (H38); each envelope is verified
 *   with the report key of that node, and its (start counter, sequence)
 *   rises, also across restarts of the coordinator;
 * - a second living session on one identity, and a machine-id that another
 *   node had already, hold the node: no order goes out, both are named
 *   (TL-01, TL-02);
 * - an order has its number on disk before it is sent, keeps it when it is
 *   sent again after a reconnect, and is answered exactly once to who asked;
 * - staleness is judged by our own clock.
 *
 * It knows nothing of what orders mean. Times are CLOCK_BOOTTIME.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/fault.h"
#include "coordinator/store.h"

#define FLEET_HELD_MAX 256
#define FLEET_ORDERS_PER_NODE 2048
#define FLEET_STALE_AFTER (90 * USEC_PER_SEC)
#define FLEET_PROBE (3 * USEC_PER_SEC)	/* is the older session alive? */
#define FLEET_CLONE_HOLD (180 * USEC_PER_SEC)	/* after the last sighting */

struct conn;
struct fleet;
struct journal;
struct session;
struct signer;

struct fleet_options {
	usec stale_after;	/* 0: FLEET_STALE_AFTER */
	usec probe;		/* 0: FLEET_PROBE */
};

struct fleet_node {
	struct store_node row;
	char held[FLEET_HELD_MAX];	/* "": not held */
	usec held_until;		/* 0: until the next Hello decides */
	usec seen;			/* 0: not since the coordinator began */
	usec reported;
	bool stale;
	bool dirty;			/* row differs from the store's */
	struct session *session;	/* the one in force, or NULL */
	struct fleet_order *orders;	/* in order of sequence */
	size_t n_orders;
};

/* store, signer and journal are borrowed. Loads the nodes. */
int fleet_new(sd_event *event, struct store *store, struct signer *signer,
	      struct journal *journal, const struct fleet_options *options,
	      struct fleet **ret_fleet, struct fault *f);
struct fleet *fleet_free(struct fleet *fleet);	/* returns NULL */

/* ---- nodes ---- */

struct fleet_node *fleet_by_id(struct fleet *fleet, const uint8_t id[16]);
/* Nodes that are not revoked, by name or report key. */
struct fleet_node *fleet_by_name(struct fleet *fleet, const char *name);
struct fleet_node *fleet_by_key(struct fleet *fleet, const uint8_t key[32]);
/* An active node with that machine-id other than `not_this` (may be NULL). */
struct fleet_node *fleet_by_machine(struct fleet *fleet, const char *machine_id,
				    const uint8_t not_this[16]);
size_t fleet_count(const struct fleet *fleet);
struct fleet_node *fleet_at(struct fleet *fleet, size_t index);

/* Writes the row to the store first; *row's blobs are taken on success. */
int fleet_add(struct fleet *fleet, struct store_node *row, struct fault *f);
/* Writes the row again, for enrolment. */
int fleet_save(struct fleet *fleet, struct fleet_node *n, struct fault *f);
/* Ends the session at once and fails every order. */
int fleet_revoke(struct fleet *fleet, struct fleet_node *n, struct fault *f);
/* Address of the session in force, "" when there is none. */
const char *fleet_peer(const struct fleet_node *n);

/* ---- change ---- */

/* Rises with each change worth looking at. */
uint64_t fleet_revision(const struct fleet *fleet);
void fleet_changed(struct fleet *fleet);
/* Calls the listener soon, also when nothing changes meanwhile. */
void fleet_notify(struct fleet *fleet);
/* One listener; it is called from the loop, not from inside a change. */
void fleet_on_change(struct fleet *fleet, void (*fn)(void *userdata),
		     void *userdata);

/* ---- sessions ---- */

/* Takes over a connection whose certificate names a node. */
int fleet_attach(struct fleet *fleet, struct conn *c, struct fault *f);

/* ---- orders ---- */

struct fleet_order;

/*
 * The answer: err 0 and the verified Up payload of the OrderResult (valid
 * during the call), or a negative errno with its fault. The order is gone
 * when it is called.
 */
typedef void (*fleet_answer)(void *userdata, int err, const uint8_t *result,
			     size_t size, const struct fault *why);

/*
 * Queues an encoded order (copied). -EACCES: held or revoked. -ENOBUFS: too
 * many. *ret_order is for fleet_order_cancel() and valid until the answer.
 */
int fleet_order(struct fleet *fleet, struct fleet_node *n,
		const void *payload, size_t size, usec deadline,
		fleet_answer answer, void *userdata,
		struct fleet_order **ret_order, struct fault *f);
/* No answer will be called; what was sent may still be carried out. */
void fleet_order_cancel(struct fleet_order *o);
/* A number for an order outside a session (enrolment). */
int fleet_sequence(struct fleet *fleet, uint64_t *ret_epoch,
		   uint64_t *ret_sequence, struct fault *f);
