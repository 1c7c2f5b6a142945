/*
 * control_client.h - how a verb or a step talks to the coordinator.
 *
 * Owns one connection to STATE/control.sock. When no coordinator runs for
 * this state directory, control_open() starts one as a child that ends
 * with the connection (and with this process, however that dies).
 * Synchronous: each call blocks in a poll with a deadline. It knows nothing
 * of stages, specs or Kubernetes, and makes no decision.
 *
 * Deadlines are absolute, on CLOCK_BOOTTIME (clock.h). While a connection
 * is open SIGINT and SIGTERM are blocked and read from a descriptor: the
 * first one makes the running call, and each later one, return -EINTR;
 * what was sent may still be carried out by the node, and is answered, not
 * done twice, when it is ordered again.
 *
 * Errors of every call, beside those it names:
 *   -EINTR      interrupted by the operator
 *   -ETIMEDOUT  the deadline passed
 *   -EPIPE      the coordinator is gone
 *   -ENOENT     no such node (or what the call asks for)
 *   -EPROTO     an answer that makes no sense (our bug, or a version skew)
 * The fault names the node and the remedy. One connection is used by one
 * thread. Sources: PLAN of the control protocol in control.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/fault.h"

struct order;			/* proto/order.h */
struct founding_record;		/* proto/order.h */
struct up;			/* proto/up.h */
struct sealed;			/* proto/seal.h */
struct control;
typedef struct json_t json_t;

#define CONTROL_NAME_MAX 64
#define CONTROL_SECRET_MAX (64 * 1024)
#define CONTROL_NEVER UINT64_MAX

struct control_options {
	const char *state;		/* STATE directory, made by init */
	const char *const *listen;	/* ADDR:PORT for a started child */
	size_t n_listen;		/* 0: what init recorded */
	bool no_spawn;			/* only use a running coordinator */
};

/* -ENOENT: not initialised, -ECONNREFUSED: none runs and no_spawn. */
int control_open(const struct control_options *options,
		 struct control **ret_control, struct fault *f);
struct control *control_free(struct control *c);	/* returns NULL */
static inline void control_freep(struct control **c)
{
	(void)control_free(*c);
}

/* ---- the cluster ---- */

struct control_info {
	char cluster[CONTROL_NAME_MAX];
	uint8_t cluster_id[16];
	uint8_t seal_key[32];	/* public; credentials are sealed to it */
	uint64_t epoch;		/* of orders */
	bool spawned;		/* this process started the coordinator */
};

int control_info(struct control *c, struct control_info *ret_info,
		 struct fault *f);

/* ---- waiting and Ctrl-C ---- */

/* Readable once the operator interrupted; for a poll of one's own. */
int control_interrupt_fd(const struct control *c);
bool control_interrupted(struct control *c);

/* Sleeps until the deadline: 0, or -EINTR. */
int control_sleep(struct control *c, usec deadline);

/*
 * Returns 1 when something about any node (a connection, a report, a held
 * state) changed after `revision` (of the list below, 0 at first), 0 at the
 * deadline.
 */
int control_wait(struct control *c, uint64_t revision, usec deadline,
		 struct fault *f);

/* ---- nodes ---- */

struct control_node {
	uint8_t id[16];
	char name[CONTROL_NAME_MAX];
	bool connected;
	bool stale;		/* not heard of for longer than allowed */
	bool revoked;
	char held[256];		/* "" or why orders are refused (TL-01, TL-02) */
	uint8_t seal_key[32];	/* public, of the node's root process */
	usec seen_ago;		/* by the coordinator's clock; CONTROL_NEVER */
	usec report_ago;	/* since the last report; CONTROL_NEVER */
	struct up *hello;	/* UP_HELLO, also of an earlier session; NULL */
	struct up *report;	/* UP_REPORT, the last one; NULL: none yet */
};

struct control_nodes {
	struct control_node *v;		/* sorted by name */
	size_t n;
	uint64_t revision;
};

int control_nodes(struct control *c, struct control_nodes *ret_nodes,
		  struct fault *f);
const struct control_node *control_nodes_find(const struct control_nodes *nodes,
					      const char *name);
void control_nodes_done(struct control_nodes *nodes);

/* ---- orders ---- */

/*
 * Signs, sends and waits for the result. 0: *ret_result (UP_RESULT, release
 * with up_free()) was received; its code may still be failed or refused.
 * The coordinator sends the same (epoch, sequence) again when the node
 * reconnects before the deadline.
 * -ENOTCONN: the node was not connected before the deadline and nothing was
 * sent. -EACCES: it is held or revoked. -ETIMEDOUT: sent, no answer.
 * -E2BIG: larger than its row of the order table allows.
 */
int control_order(struct control *c, const char *node,
		  const struct order *order, usec deadline,
		  struct up **ret_result, struct fault *f);

/*
 * The same in two halves, for several nodes at once: at most
 * CONTROL_ORDERS_MAX begun and not finished. Each ticket is finished once;
 * orders to one node are carried out in the order they were begun.
 */
#define CONTROL_ORDERS_MAX 1024
int control_order_begin(struct control *c, const char *node,
			const struct order *order, usec deadline,
			uint32_t *ret_ticket, struct fault *f);
int control_order_finish(struct control *c, uint32_t ticket, usec deadline,
			 struct up **ret_result, struct fault *f);

/* ---- streams ---- */

/*
 * A Unix socket (below STATE/run, 0600) of which each accepted connection
 * becomes one stream through `node` to `target` (enum stream_target of
 * proto/order.h; `server` is the address for the API of another server,
 * else NULL). It lives until this connection to the coordinator ends, or
 * until the same triple is asked for again, which returns the same path.
 * *ret_path: owned by the caller (free).
 */
int control_listen_stream(struct control *c, const char *node, int target,
			  const char *server, char **ret_path,
			  struct fault *f);

/* ---- what the operator's side keeps ---- */

/*
 * Secrets lie in the store sealed to the coordinator's own key. `name` is
 * [a-z0-9-], such as "k3s-token". *ret_data is NUL-terminated beyond
 * *ret_size; release it with control_secret_free(), which wipes it.
 */
int control_secret_put(struct control *c, const char *name, const void *data,
		       size_t size, struct fault *f);
int control_secret_get(struct control *c, const char *name, char **ret_data,
		       size_t *ret_size, struct fault *f);
void control_secret_free(char *data, size_t size);

/*
 * Opens what a node sealed to our key (a credential); `context` as in
 * seal.h. The result as of control_secret_get().
 */
int control_unseal(struct control *c, const struct sealed *sealed,
		   const char *context, char **ret_data, size_t *ret_size,
		   struct fault *f);

/* The founding record on the operator host. -ENOENT: none. */
int control_founding_get(struct control *c,
			 struct founding_record *ret_record, struct fault *f);
int control_founding_put(struct control *c,
			 const struct founding_record *record,
			 struct fault *f);

/* Small named values (generation counters and the like), text <= 4096. */
int control_value_get(struct control *c, const char *name, char **ret_text,
		      struct fault *f);
int control_value_put(struct control *c, const char *name, const char *text,
		      struct fault *f);

/* One line of the run log; `node` and `stage` may be NULL. No secrets. */
int control_event(struct control *c, const char *stage, const char *node,
		  const char *text, struct fault *f);

/* ---- for verbs ---- */

/*
 * One request of control.h ("op" and its members; borrowed) and its answer.
 * *ret_reply is owned by the caller (json_decref).
 */
int control_call(struct control *c, json_t *request, usec deadline,
		 json_t **ret_reply, struct fault *f);
