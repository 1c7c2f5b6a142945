/*
 * status.h - the status document, and the read-only socket that gives it.
 *
 * /run/garboard/status.sock: connect, read one JSON document, end of file.
 * Nothing is read from the client, so nothing can be asked of the agent
 * here. At most STATUS_CLIENTS_MAX are served at a time; one that does not
 * read is dropped after five seconds. No secret is ever in the document;
 * the last lines of k3s, which its journal shows to few, are for root alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/engine.h"
#include "agent/state.h"

#define STATUS_SOCKET "/run/garboard/status.sock"
#define STATUS_CLIENTS_MAX 16

struct k3s;
struct trial;
struct uncovered;

/* What the document is made of; all borrowed. */
struct status_input {
	const struct engine *engine;
	const struct node_state *state;
	const struct k3s *k3s;		/* may be NULL */
	const struct trial *trial;	/* may be NULL */
	const struct uncovered *uncovered;	/* may be NULL */
	const char *cluster;		/* "" without a bundle */
	const char *session;		/* "up", "down", "waiting for approval" */
	const char *peer;		/* coordinator address, or why not */
	const char *fingerprint;	/* of the report key; "" */
	const char *state_fault;	/* "" */
	bool stranger;			/* for another user than root */
};

/* Heap text. -E2BIG, -ENOMEM. */
int status_document(const struct status_input *in, usec now, char **ret_text,
		    size_t *ret_size);

struct status_sock;

/* Fills the input anew for each client. */
typedef void (*status_fill)(void *userdata, struct status_input *ret_input);

/* Takes `listen_fd`. */
int status_sock_new(sd_event *event, int listen_fd, status_fill fill,
		    void *userdata, struct status_sock **ret_sock);
struct status_sock *status_sock_free(struct status_sock *s);
