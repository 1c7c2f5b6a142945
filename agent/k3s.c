#include "agent/k3s.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/bus/systemd1.h"
#include "agent/child.h"
#include "agent/k3s_files.h"
#include "agent/k3s_paths.h"
#include "agent/k3s_work.h"
#include "common/parse.h"

#define CALL_USEC (60 * USEC_PER_SEC)
#define BEGIN_USEC (15 * USEC_PER_SEC)	/* until a start shows in the unit */
#define LINES_EVERY (2 * USEC_PER_SEC)
#define LINES_DEADLINE (10 * USEC_PER_SEC)
#define STEPS_MAX 4

struct k3s {
	const struct resource_host *host;
	void (*changed)(void *userdata);
	void *userdata;
	const struct state_install *install;

	struct systemd1_watch *watch;
	struct systemd1_unit unit;
	char unit_state[64];
	struct strlist lines;
	struct child *reader;
	struct k3s_journal journal;
	sd_event_source *lines_timer;
	bool lines_due;

	/* The action under way: its verbs in order, then the wait. */
	enum systemd1_verb steps[STEPS_MAX];
	size_t n_steps, step;
	bool acting, waiting;
	uint64_t was_active_since;
	uint32_t restarts_before;
	struct systemd1_job *job;
	sd_event_source *begin_timer;
	bus_done done;
	void *done_data;
};

static void next_step(struct k3s *k);

static void tell(struct k3s *k)
{
	if (k->changed)
		k->changed(k->userdata);
}

static bool is(const struct k3s *k, const char *state)
{
	return strcmp(k->unit.active_state, state) == 0;
}

/* ---- the last lines ---- */

static void read_lines(struct k3s *k);

static int on_lines_timer(sd_event_source *s, uint64_t due, void *userdata)
{
	struct k3s *k = userdata;

	(void)s;
	(void)due;
	if (k->lines_due)
		read_lines(k);
	return 0;
}

static void on_lines(void *userdata, int r, const char *output, size_t size)
{
	struct k3s *k = userdata;
	struct strlist lines = STRLIST_INIT;
	const char *line = output;
	char buf[1024];

	(void)size;
	k->reader = NULL;
	while (r == 0 && *line) {
		size_t n = strcspn(line, "\n");

		(void)snprintf(buf, sizeof(buf), "%.*s", (int)n, line);
		if (strlist_add(&lines, buf) < 0)
			break;
		line += n + (line[n] == '\n');
	}
	if (r == 0) {
		strlist_done(&k->lines);
		k->lines = lines;
		tell(k);
	}
	(void)sd_event_source_set_time_relative(k->lines_timer, LINES_EVERY);
	(void)sd_event_source_set_enabled(k->lines_timer, SD_EVENT_ONESHOT);
}

static void read_lines(struct k3s *k)
{
	int on = SD_EVENT_OFF;

	k->lines_due = true;
	(void)sd_event_source_get_enabled(k->lines_timer, &on);
	if (k->reader || on != SD_EVENT_OFF)
		return;		/* on_lines() or the timer comes back */
	k->lines_due = false;
	(void)snprintf(k->journal.secret_file, sizeof(k->journal.secret_file),
		       "%s%s", k->host->root, K3S_TOKEN_FILE);
	(void)child_start(k->host->event, k3s_work_journal, &k->journal,
			  LINES_DEADLINE, on_lines, k, &k->reader, NULL);
}

/* ---- the unit ---- */

static void finish(struct k3s *k, int r, const char *text)
{
	bus_done done = k->done;

	k->acting = k->waiting = false;
	k->done = NULL;
	(void)sd_event_source_set_enabled(k->begin_timer, SD_EVENT_OFF);
	if (done)
		done(k->done_data, r, text);
}

/* Begun: it is on its way, is up anew, or has failed and been retried. */
static void check_begun(struct k3s *k)
{
	bool moved = is(k, "activating") || is(k, "failed") ||
		     k->unit.n_restarts != k->restarts_before ||
		     (is(k, "active") &&
		      (!k->was_active_since ||
		       k->unit.active_enter != k->was_active_since));

	if (k->waiting && moved)
		finish(k, 0, "");
}

static void on_unit(void *userdata)
{
	struct k3s *k = userdata;
	struct systemd1_unit u;
	char state[sizeof(k->unit_state)] = "";
	bool moved;

	if (systemd1_watch_get(k->watch, &u) < 0)
		memset(&u, 0, sizeof(u));
	else if (strcmp(u.load_state, "not-found") == 0)
		(void)snprintf(state, sizeof(state), "not-found");
	else
		(void)snprintf(state, sizeof(state), "%s/%s", u.active_state,
			       u.sub_state);
	moved = strcmp(state, k->unit_state) != 0 ||
		u.n_restarts != k->unit.n_restarts;
	k->unit = u;
	memcpy(k->unit_state, state, sizeof(state));
	if (is(k, "active"))
		strlist_done(&k->lines);
	else if (moved && *u.active_state && !is(k, "inactive"))
		read_lines(k);
	if (moved)
		tell(k);
	check_begun(k);
}

static int on_begin_timer(sd_event_source *s, uint64_t due, void *userdata)
{
	struct k3s *k = userdata;

	(void)s;
	(void)due;
	if (k->waiting)
		finish(k, -ETIMEDOUT, "systemd took the job, but the unit "
				      "does not move");
	return 0;
}

int k3s_new(const struct resource_host *host, void (*changed)(void *userdata),
	    void *userdata, struct k3s **ret_k3s)
{
	struct k3s *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	k->host = host;
	k->changed = changed;
	k->userdata = userdata;
	r = sd_event_add_time(host->event, &k->lines_timer, CLOCK_BOOTTIME,
			      UINT64_MAX, 0, on_lines_timer, k);
	if (r >= 0)
		r = sd_event_source_set_enabled(k->lines_timer, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time(host->event, &k->begin_timer,
				      CLOCK_BOOTTIME, UINT64_MAX, 0,
				      on_begin_timer, k);
	if (r >= 0)
		r = sd_event_source_set_enabled(k->begin_timer, SD_EVENT_OFF);
	if (r >= 0)
		r = systemd1_watch_new(host->bus, K3S_UNIT, on_unit, k,
				       &k->watch, NULL);
	if (r < 0) {
		(void)k3s_free(k);
		return r;
	}
	*ret_k3s = k;
	return 0;
}

struct k3s *k3s_free(struct k3s *k)
{
	if (!k)
		return NULL;
	(void)systemd1_cancel(k->job);
	(void)systemd1_watch_free(k->watch);
	(void)child_free(k->reader);
	(void)sd_event_source_disable_unref(k->lines_timer);
	(void)sd_event_source_disable_unref(k->begin_timer);
	strlist_done(&k->lines);
	free(k);
	return NULL;
}

void k3s_set_install(struct k3s *k, const struct state_install *install)
{
	k->install = install;
}

const char *k3s_unit_state(const struct k3s *k)
{
	return k->unit_state;
}

int k3s_status_copy(const struct k3s *k, struct k3s_status *ret_status)
{
	struct k3s_status s = { 0 };
	int r;

	(void)snprintf(s.unit_state, sizeof(s.unit_state), "%s",
		       k->unit_state);
	s.restarts = k->unit.n_restarts;
	if (k->install && k->install->version[0]) {
		(void)snprintf(s.version, sizeof(s.version), "%s",
			       k->install->version);
		format_hex(k->install->sha256, 32, s.binary_sha256);
	}
	r = strlist_copy(&k->lines, &s.last_lines);
	if (r < 0)
		return r;
	k3s_files_status(k->host->root, &s);
	*ret_status = s;
	return 0;
}

/* ---- actions ---- */

static void on_step(void *userdata, int r, const char *text)
{
	struct k3s *k = userdata;

	k->job = NULL;
	if (!k->acting)
		return;		/* the start itself, long after it began */
	if (k->waiting && r == 0)
		return check_begun(k);
	/* A unit that was never loaded has no failure to forget. */
	if (r < 0 && k->steps[k->step] != SYSTEMD1_RESET_FAILED) {
		finish(k, r, text);
		return;
	}
	k->step++;
	next_step(k);
}

static void next_step(struct k3s *k)
{
	enum systemd1_verb verb;
	struct fault f = FAULT_INIT;
	usec deadline = CALL_USEC;
	int r;

	if (k->step == k->n_steps) {
		finish(k, 0, "");
		return;
	}
	verb = k->steps[k->step];
	if (verb == SYSTEMD1_START || verb == SYSTEMD1_RESTART) {
		/* Its job lasts until READY, or for ever: we do not wait. */
		deadline = 24 * 3600 * USEC_PER_SEC;
		k->waiting = true;
		(void)sd_event_source_set_time_relative(k->begin_timer,
							BEGIN_USEC);
		(void)sd_event_source_set_enabled(k->begin_timer,
						  SD_EVENT_ONESHOT);
	}
	r = systemd1_call(k->host->bus, verb, K3S_UNIT, deadline, on_step, k,
			  &k->job, &f);
	if (r < 0)
		finish(k, r, f.text);
}

static void plan_steps(struct k3s *k, enum k3s_action action)
{
	static const enum systemd1_verb start[] = {
		SYSTEMD1_DAEMON_RELOAD, SYSTEMD1_RESET_FAILED, SYSTEMD1_ENABLE,
		SYSTEMD1_START,
	};
	static const enum systemd1_verb restart[] = {
		SYSTEMD1_DAEMON_RELOAD, SYSTEMD1_ENABLE, SYSTEMD1_RESTART,
	};
	static const enum systemd1_verb stop[] = {
		SYSTEMD1_STOP, SYSTEMD1_DISABLE,
	};

	switch (action) {
	case K3S_START:
		memcpy(k->steps, start, sizeof(start));
		k->n_steps = sizeof(start) / sizeof(start[0]);
		return;
	case K3S_RESTART:
		memcpy(k->steps, restart, sizeof(restart));
		k->n_steps = sizeof(restart) / sizeof(restart[0]);
		return;
	case K3S_STOP:
		memcpy(k->steps, stop, sizeof(stop));
		k->n_steps = sizeof(stop) / sizeof(stop[0]);
		return;
	}
}

int k3s_act(struct k3s *k, enum k3s_action action, bus_done done,
	    void *userdata, struct fault *f)
{
	int r;

	if (k->acting)
		return fault_set(f, -EBUSY, K3S_UNIT,
				 "another start or stop is under way");
	if (!bus_is_up(k->host->bus))
		return fault_set(f, -ENOTCONN, K3S_UNIT,
				 "there is no D-Bus to ask systemd by");
	/* Our interest in an earlier start is over. */
	k->job = systemd1_cancel(k->job);
	plan_steps(k, action);
	k->step = 0;
	k->was_active_since = is(k, "active") ? k->unit.active_enter : 0;
	k->restarts_before = k->unit.n_restarts;
	r = systemd1_call(k->host->bus, k->steps[0], K3S_UNIT, CALL_USEC,
			  on_step, k, &k->job, f);
	if (r < 0)
		return r;
	k->acting = true;
	k->done = done;
	k->done_data = userdata;
	return 0;
}

void k3s_forget(struct k3s *k, void *userdata)
{
	if (k->done_data == userdata)
		k->done = NULL;
}
