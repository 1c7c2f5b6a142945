/*
 * control_internal.h - between control.c (transport) and control_ops.c
 * (the table of requests) alone.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "common/clock.h"
#include "coordinator/control.h"

struct client;
struct fleet_order;
struct stream_listener;

/* A request that is answered later. */
struct deferred {
	LIST_ENTRY(deferred) link;
	struct client *client;
	json_int_t id;
	struct fleet_order *order;	/* "order", until its answer */
	sd_event_source *timer;		/* "wait" */
	uint64_t revision;
};

struct held_listener {
	LIST_ENTRY(held_listener) link;
	struct stream_listener *listener;
	char key[256];
};

struct control_server {
	sd_event *event;
	struct control_parts parts;
	char *path;
	sd_event_source *io;
	LIST_HEAD(client_list, client) clients;
	size_t n_clients;
	void (*idle)(void *userdata);
	void *idle_data;
};

/*
 * Fills `reply` (an object that has the id). 0: send it. 1: answered later,
 * through a deferred. Negative: the fault is sent.
 */
typedef int (*control_op)(struct client *c, const json_t *request,
			  json_t *reply, struct fault *f);

/* NULL: no such request. */
control_op control_ops_find(const char *name);
/* Nodes changed: answers whoever waits for that. */
void control_ops_changed(struct client *c);
void control_ops_release(struct client *c);

struct control_parts *client_parts(struct client *c);
sd_event *client_event(struct client *c);
struct deferred *client_defer(struct client *c, const json_t *request,
			      struct fault *f);
void deferred_free(struct deferred *d);
LIST_HEAD(deferred_list, deferred);
LIST_HEAD(listener_list, held_listener);
struct deferred_list *client_deferred(struct client *c);
struct listener_list *client_listeners(struct client *c);

/* Takes `reply`. */
void client_reply(struct client *c, json_t *reply);
void client_fail(struct client *c, json_int_t id, const struct fault *f);
