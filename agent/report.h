/*
 * report.h - what the engine and k3s know, as a message to the coordinator.
 *
 * Every item that is not in sync is in it, and how many there are in all,
 * so that a report that lost some is recognised (A69).
 */
#pragma once

#include "agent/engine.h"
#include "agent/state.h"
#include "proto/up.h"

struct k3s;
struct uncovered;

/* A UP_REPORT; up_free() it. `uncovered` may be NULL. -ENOMEM. */
int report_make(const struct engine *engine, const struct k3s *k3s,
		const struct uncovered *uncovered,
		uint64_t counter, usec now, struct up **ret_up);

/* A UP_HELLO with this nonce. */
int report_hello(const struct engine *engine, const struct node_state *state,
		 const char *root, const uint8_t nonce[UP_NONCE_SIZE],
		 struct up **ret_up);
