/*
 * systemd1.h - units of the system manager, asked without blocking.
 *
 * Jobs: systemd1_call() asks for one verb on one unit and calls back when
 * its outcome is known: for start, stop and restart that is the removal of
 * the job, not the answer to the call. "done" of a job says what systemd
 * did, not what the unit does: look at the effect (FACTS S5).
 *
 * Watches: systemd1_watch_new() keeps the properties of a unit up to date
 * through PropertiesChanged, so that reading them costs no round trip. A
 * unit that does not exist has load_state "not-found".
 *
 * Promises: every call ends by its deadline; a bus that goes ends all calls
 * with -ENOTCONN; watches read again when it is back. Unit names are
 * checked here (no path, no blank, a known suffix).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/bus/bus.h"

#define SYSTEMD1_UNIT_NAME_MAX 256
#define SYSTEMD1_JOBS_MAX 256		/* outstanding at a time: -EBUSY */

enum systemd1_verb {
	SYSTEMD1_START,
	SYSTEMD1_STOP,
	SYSTEMD1_RESTART,		/* starts it, too, if it was stopped */
	SYSTEMD1_TRY_RESTART,		/* only if it runs */
	SYSTEMD1_RESET_FAILED,
	SYSTEMD1_ENABLE,		/* as "systemctl enable" */
	SYSTEMD1_DISABLE,
	SYSTEMD1_DAEMON_RELOAD,		/* the unit is ignored, may be NULL */
	SYSTEMD1_VERB_MAX,
};

struct systemd1_job;

/*
 * Asks for `verb` on `unit`; `done` is called once, at most `deadline`
 * microseconds later, unless the job was cancelled before:
 *   0            the job's result is "done" (or "skipped"), or for the verbs
 *                without a job: the call succeeded
 *   -ENOENT      no such unit
 *   -ETIMEDOUT   the deadline, or the job's own time-out
 *   -ECANCELED   another job replaced it
 *   -EIO         the job failed; text: "failed", "dependency", ...
 *   -ENOTCONN    the bus went meanwhile; the outcome is unknown: observe
 * The handle is dead when `done` is entered; the caller forgets it there.
 * Returns -ENOTCONN at once while the bus is down, -EINVAL for a bad name.
 */
int systemd1_call(struct bus *b, enum systemd1_verb verb, const char *unit,
		  usec deadline, bus_done done, void *userdata,
		  struct systemd1_job **ret_job, struct fault *f);
/* Forgets the call; systemd goes on with it. Returns NULL. */
struct systemd1_job *systemd1_cancel(struct systemd1_job *job);

#define SYSTEMD1_STATE_MAX 32

struct systemd1_unit {
	char load_state[SYSTEMD1_STATE_MAX];	/* "loaded", "not-found" */
	char active_state[SYSTEMD1_STATE_MAX];	/* "active", "failed", ... */
	char sub_state[SYSTEMD1_STATE_MAX];	/* "running", "listening" */
	char unit_file_state[SYSTEMD1_STATE_MAX];	/* "enabled", "" */
	char result[SYSTEMD1_STATE_MAX];	/* "success", "exit-code" */
	bool need_daemon_reload;
	uint32_t n_restarts;		/* services: automatic restarts */
	uint32_t main_pid;		/* services: 0 when none runs */
	int32_t exec_main_status;	/* services: of the last exit */
	uint64_t active_enter;		/* CLOCK_MONOTONIC usec; 0: never */
};

struct systemd1_watch;

/*
 * Keeps `unit` in view; `changed` (may be NULL) is called when something of
 * it may differ, and when the bus comes or goes. The bus may be down.
 */
int systemd1_watch_new(struct bus *b, const char *unit,
		       void (*changed)(void *userdata), void *userdata,
		       struct systemd1_watch **ret_watch, struct fault *f);
/* The last known properties; -EAGAIN: not known (yet). */
int systemd1_watch_get(const struct systemd1_watch *w,
		       struct systemd1_unit *ret_unit);
struct systemd1_watch *systemd1_watch_free(struct systemd1_watch *w);

/* Blocks, at most `timeout`: for one-shots without an event loop. */
int systemd1_unit_read(struct bus *b, const char *unit, usec timeout,
		       struct systemd1_unit *ret_unit, struct fault *f);

/* A name of systemd.unit(5) with a known suffix, and no template. */
bool systemd1_unit_name_is_valid(const char *unit);

/* bus.c only. */
struct systemd1;
int systemd1_new(struct bus *b, struct systemd1 **ret_s);
struct systemd1 *systemd1_free(struct systemd1 *s);
struct systemd1 *bus_systemd1(struct bus *b);
