/*
 * agent_conn.h - the link's end of /run/garboard/link.sock.
 *
 * Connects, and connects again for ever when the agent restarts (with the
 * same full-jitter back-off as towards the coordinator, capped low: it is a
 * local socket). Frames in both directions are bounded by proto/frame.h.
 * Callbacks come from the loop; none may free the object.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "agent/link/config.h"

struct agent_conn;

struct agent_conn_owner {
	void (*up)(void *userdata);
	void (*down)(void *userdata);
	/* Negative closes the connection (it is made again). */
	int (*frame)(void *userdata, uint8_t type, const uint8_t *body,
		     size_t size);
	void (*drained)(void *userdata);
	void *userdata;
};

/* `config` is borrowed for the object's life. */
int agent_conn_new(sd_event *event, const struct link_config *config,
		   const struct agent_conn_owner *owner,
		   struct agent_conn **ret_conn);
struct agent_conn *agent_conn_free(struct agent_conn *a);

bool agent_conn_is_up(const struct agent_conn *a);
/* -ENOTCONN; -ENOBUFS when the agent does not read. */
int agent_conn_send(struct agent_conn *a, uint8_t type, const void *body,
		    size_t size);
size_t agent_conn_queued(const struct agent_conn *a);
void agent_conn_hold(struct agent_conn *a, bool hold);
