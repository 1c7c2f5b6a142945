/*
 * node_json.h - a node as people and programs see it.
 *
 * Pure: from control_client.h values to JSON with stable keys. No secrets
 * exist in these values.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

struct control_node;
struct control_nodes;

/* One short object each: name, state, seen, worst, id, note. */
json_t *node_json_list(const struct control_nodes *nodes);
/* Everything, with every item that is not in sync. */
json_t *node_json_full(const struct control_node *n);
/* node_json_full() as indented lines. */
int node_json_print(const json_t *full, FILE *out);

/* "connected", "stale", "held", "revoked", "away". */
const char *node_json_state(const struct control_node *n);
/* Worst state of any resource, "" without a report. */
const char *node_json_worst(const struct control_node *n);
/* What a person should look at first, "" when nothing; in `buf`. */
const char *node_json_note(const struct control_node *n, char *buf,
			   size_t size);
