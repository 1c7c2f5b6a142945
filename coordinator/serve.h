/*
 * serve.h - the coordinator as a process: `garboard serve`.
 *
 * Owns the lock of the state directory (one coordinator per cluster), the
 * loop and the parts (store, signer, fleet, enrolment, streams, server,
 * control socket). Started by another verb it lives as long as that one, or
 * as the last client that came meanwhile.
 */
#pragma once

#include <stddef.h>

#include "common/fault.h"
#include "coordinator/fleet.h"

#define SERVE_STORE "store.db"
#define SERVE_LOCK "lock"
#define SERVE_LISTEN_DEFAULT "0.0.0.0:7643"
#define SERVE_READY 'R'		/* written to the parent once listening */

struct serve_options {
	const char *state;
	const char *const *listen;	/* ADDR:PORT; n 0: as recorded */
	size_t n_listen;
	int parent_fd;			/* -1: on its own */
	struct fleet_options fleet;
};

/*
 * Runs until a signal or the parent's end. -EALREADY: another one runs.
 * Signals SIGINT and SIGTERM are blocked by it.
 */
int serve_run(const struct serve_options *options, struct fault *f);
