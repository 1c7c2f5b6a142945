/*
 * orders.h - signed orders: verified, recorded, carried out, answered.
 *
 * The relay that delivers them is not trusted. An envelope is obeyed only
 * if it is of this cluster, for this node, signed by the order key that the
 * trust root's statement names, bound to the nonce of this session, and
 * newer than the last one; that it is, is on disk before it is acted on.
 * Only then is its payload parsed, by the closed table in proto/order. The
 * result is on disk before it is sent. An order that comes again is
 * answered with that result and not done twice; one that was interrupted by
 * a crash is answered as failed with unknown outcome.
 *
 * What is refused changes nothing. Reasons for dropped envelopes are logged
 * once each per session. Handlers may finish later; at most
 * ORDERS_RUNNING_MAX are under way.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/bundle.h"
#include "agent/engine.h"
#include "agent/res/resource.h"
#include "agent/state.h"
#include "proto/keys.h"
#include "proto/up.h"

#define ORDERS_RUNNING_MAX 8

struct k3s;
struct orders;
struct trial;

/* What handlers work with; all of it is borrowed and outlives the orders. */
struct orders_env {
	struct node_state *state;
	const struct bundle *bundle;
	struct engine *engine;
	const struct resource_host *host;
	struct k3s *k3s;
	struct trial *trial;	/* may be NULL: nothing is on trial */
	const struct key *report_key;
	const struct key *seal_key;
	/* Sends a frame of FRAME_LINK to the link; -ENOTCONN without one. */
	int (*send)(void *userdata, uint8_t type, const void *body,
		    size_t size);
	/* An encoded Up payload, to be signed and sent. */
	void (*emit)(void *userdata, const void *payload, size_t size);
	/* Enrolled, renamed or revoked: the session begins anew. */
	void (*identity_changed)(void *userdata);
	void *userdata;
};

int orders_new(const struct orders_env *env, struct orders **ret_orders);
struct orders *orders_free(struct orders *o);	/* cancels what is running */

/* A session begins: orders must carry this nonce. Its logs begin anew. */
void orders_session(struct orders *o, const uint8_t nonce[16]);

/* The binding of the enrolment that waits for its answer. */
void orders_expect_enrolment(struct orders *o, const uint8_t binding[16]);

/*
 * 0 accepted or repeated (answered), negative: dropped, `f` says why and
 * has been logged. Never crashes on any bytes.
 */
int orders_receive(struct orders *o, const void *bytes, size_t size,
		   struct fault *f);

/* The trust root's word about the order key. */
int orders_statement(struct orders *o, const void *bytes, size_t size,
		     struct fault *f);

/* The link's answer to a dial that OpenStream asked for. */
void orders_stream_result(struct orders *o, const uint8_t stream_id[16],
			  int err, const char *text);

/*
 * The accepted desired state from disk, and into the engine. 1: there is
 * none. A previous copy is used where the last is broken; `f` then says so.
 */
int orders_stored_desired(const struct node_state *state,
			  struct desired **ret_desired,
			  struct fault *f);
/* From the bytes of an accepted SetDesired envelope; -EBADMSG. */
int orders_decode_desired(const void *bytes, size_t size,
			  struct desired **ret_desired, struct fault *f);
int orders_restore_desired(const struct node_state *state,
			   struct engine *engine, struct fault *f);
