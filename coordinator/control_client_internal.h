/*
 * control_client_internal.h - between control_client.c (connection) and
 * control_calls.c (what is asked) alone.
 */
#pragma once

#include "coordinator/control_client.h"

/* One request and its reply apart; `id` is awaited once. */
int control_begin(struct control *c, json_t *request, usec deadline,
		  uint32_t *ret_id, struct fault *f);
int control_await(struct control *c, uint32_t id, usec deadline,
		  json_t **ret_reply, struct fault *f);
bool control_spawned(const struct control *c);
