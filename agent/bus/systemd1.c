#include "agent/bus/systemd1.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bus/systemd1_unit.h"
#include "common/cleanup.h"

struct systemd1_job {
	struct systemd1 *owner;
	enum systemd1_verb verb;
	sd_bus_slot *slot;		/* of the call, until it is answered */
	char *path;			/* of the job, then */
	sd_event_source *timer;
	bus_done done;
	void *userdata;
	struct systemd1_job *next, *prev;
};

struct systemd1_watch {
	struct systemd1 *owner;
	char *unit, *path;
	sd_bus_slot *match, *call;
	bool known, again;
	struct systemd1_unit seen;
	void (*changed)(void *userdata);
	void *userdata;
	struct systemd1_watch *next, *prev;
};

struct systemd1 {
	struct bus *bus;
	struct bus_listener *listener;
	sd_bus_slot *job_removed, *files_changed;
	struct systemd1_job *jobs;
	unsigned int n_jobs;
	struct systemd1_watch *watches;
	struct systemd1_watch *cursor;	/* next watch to be visited */
};

static const struct {
	const char *method;
	bool has_job, has_unit, has_files;
} verbs[] = {
	[SYSTEMD1_START] = { "StartUnit", true, true, false },
	[SYSTEMD1_STOP] = { "StopUnit", true, true, false },
	[SYSTEMD1_RESTART] = { "RestartUnit", true, true, false },
	[SYSTEMD1_TRY_RESTART] = { "TryRestartUnit", true, true, false },
	[SYSTEMD1_RESET_FAILED] = { "ResetFailedUnit", false, true, false },
	[SYSTEMD1_ENABLE] = { "EnableUnitFiles", false, true, true },
	[SYSTEMD1_DISABLE] = { "DisableUnitFiles", false, true, true },
	[SYSTEMD1_DAEMON_RELOAD] = { "Reload", false, false, false },
};
_Static_assert(sizeof(verbs) / sizeof(verbs[0]) == SYSTEMD1_VERB_MAX,
	       "every verb has a method");

/* ---- jobs ---- */

struct systemd1_job *systemd1_cancel(struct systemd1_job *job)
{
	if (!job)
		return NULL;
	sd_bus_slot_unref(job->slot);
	sd_event_source_disable_unref(job->timer);
	if (job->next)
		job->next->prev = job->prev;
	if (job->prev)
		job->prev->next = job->next;
	else
		job->owner->jobs = job->next;
	job->owner->n_jobs--;
	free(job->path);
	free(job);
	return NULL;
}

static void job_finish(struct systemd1_job *job, int r, const char *text)
{
	bus_done done = job->done;
	void *userdata = job->userdata;

	systemd1_cancel(job);
	done(userdata, r, text);
}

static int on_deadline(sd_event_source *source, uint64_t now, void *userdata)
{
	(void)source;
	(void)now;
	job_finish(userdata, -ETIMEDOUT, "not done by its deadline");
	return 0;
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *e)
{
	struct systemd1_job *job = userdata;
	const char *text, *path;
	int r;

	(void)e;
	r = bus_reply_error(m, &text);
	if (r < 0 || !verbs[job->verb].has_job) {
		job_finish(job, r, text);
		return 0;
	}
	r = sd_bus_message_read(m, "o", &path);
	if (r > 0)
		job->path = strdup(path);
	job->slot = sd_bus_slot_unref(job->slot);
	if (!job->path)
		job_finish(job, r < 0 ? r : -ENOMEM, "answer not understood");
	return 0;
}

static int job_result(const char *result)
{
	static const struct {
		const char *text;
		int r;
	} t[] = {
		{ "done", 0 },		 { "skipped", 0 },
		{ "timeout", -ETIMEDOUT }, { "canceled", -ECANCELED },
	};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		if (strcmp(t[i].text, result) == 0)
			return t[i].r;
	return -EIO;
}

static int on_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *e)
{
	struct systemd1 *s = userdata;
	const char *path, *unit, *result;
	struct systemd1_job *job;
	uint32_t id;
	int r;

	(void)e;
	if (sd_bus_message_read(m, "uoss", &id, &path, &unit, &result) < 0)
		return 0;
	for (job = s->jobs; job; job = job->next)
		if (job->path && strcmp(job->path, path) == 0)
			break;
	if (!job)
		return 0;
	r = job_result(result);
	job_finish(job, r, r < 0 ? result : "");
	return 0;
}

static int job_message(struct bus *b, enum systemd1_verb verb,
		       const char *unit, sd_bus_message **ret_m)
{
	sd_bus_message *m = NULL;
	int r;

	r = sd_bus_message_new_method_call(bus_connection(b), &m,
					   SYSTEMD1_NAME, SYSTEMD1_PATH,
					   SYSTEMD1_MANAGER,
					   verbs[verb].method);
	if (r >= 0 && verbs[verb].has_job)
		r = sd_bus_message_append(m, "ss", unit, "replace");
	else if (r >= 0 && verb == SYSTEMD1_ENABLE)
		r = sd_bus_message_append(m, "asbb", 1, unit, 0, 0);
	else if (r >= 0 && verb == SYSTEMD1_DISABLE)
		r = sd_bus_message_append(m, "asb", 1, unit, 0);
	else if (r >= 0 && verbs[verb].has_unit)
		r = sd_bus_message_append(m, "s", unit);
	if (r < 0) {
		sd_bus_message_unref(m);
		return r;
	}
	*ret_m = m;
	return 0;
}

static struct systemd1_job *job_new(struct systemd1 *s,
				    enum systemd1_verb verb, bus_done done,
				    void *userdata)
{
	struct systemd1_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	*job = (struct systemd1_job){
		.owner = s, .verb = verb, .done = done, .userdata = userdata,
		.next = s->jobs,
	};
	if (job->next)
		job->next->prev = job;
	s->jobs = job;
	s->n_jobs++;
	return job;
}

int systemd1_call(struct bus *b, enum systemd1_verb verb, const char *unit,
		  usec deadline, bus_done done, void *userdata,
		  struct systemd1_job **ret_job, struct fault *f)
{
	sd_bus_message *m = NULL;
	struct systemd1_job *job;
	int r;

	if (!bus_is_up(b) || !bus_event(b))
		return fault_set(f, -ENOTCONN, "D-Bus", "is not there yet");
	if (verbs[verb].has_unit && !systemd1_unit_name_is_valid(unit))
		return fault_set(f, -EINVAL, unit, "is no name of a unit");
	if (bus_systemd1(b)->n_jobs >= SYSTEMD1_JOBS_MAX)
		return fault_set(f, -EBUSY, unit, "too many jobs wait");
	job = job_new(bus_systemd1(b), verb, done, userdata);
	if (!job)
		return fault_set(f, -ENOMEM, unit, "out of memory");
	r = job_message(b, verb, unit, &m);
	if (r >= 0)
		r = sd_bus_call_async(bus_connection(b), &job->slot, m,
				      on_answer, job, deadline);
	sd_bus_message_unref(m);
	if (r >= 0)
		r = sd_event_add_time_relative(bus_event(b), &job->timer,
					       CLOCK_MONOTONIC, deadline, 0,
					       on_deadline, job);
	if (r < 0) {
		systemd1_cancel(job);
		return fault_errno(f, r, verbs[verb].method,
				   "cannot be called");
	}
	*ret_job = job;
	return 0;
}

/* ---- watches ---- */

static void watch_tell(struct systemd1_watch *w)
{
	if (w->changed)
		w->changed(w->userdata);
}

static void watch_ask(struct systemd1_watch *w);

static bool unit_equal(const struct systemd1_unit *a,
		       const struct systemd1_unit *b)
{
	return strcmp(a->load_state, b->load_state) == 0 &&
	       strcmp(a->active_state, b->active_state) == 0 &&
	       strcmp(a->sub_state, b->sub_state) == 0 &&
	       strcmp(a->unit_file_state, b->unit_file_state) == 0 &&
	       strcmp(a->result, b->result) == 0 &&
	       a->need_daemon_reload == b->need_daemon_reload &&
	       a->n_restarts == b->n_restarts && a->main_pid == b->main_pid &&
	       a->exec_main_status == b->exec_main_status &&
	       a->active_enter == b->active_enter;
}

static int on_properties(sd_bus_message *m, void *userdata, sd_bus_error *e)
{
	struct systemd1_watch *w = userdata;
	struct systemd1_unit seen = { 0 };
	const char *text;
	int r;

	(void)e;
	w->call = sd_bus_slot_unref(w->call);
	r = bus_reply_error(m, &text);
	if (r == 0)
		r = systemd1_unit_parse(m, &seen);
	if (w->again) {
		w->again = false;
		watch_ask(w);
	}
	if (r < 0 || (w->known && unit_equal(&seen, &w->seen)))
		return 0;
	w->known = true;
	w->seen = seen;
	watch_tell(w);
	return 0;
}

static void watch_ask(struct systemd1_watch *w)
{
	sd_bus *conn = bus_connection(w->owner->bus);

	if (!conn || !bus_event(w->owner->bus))
		return;
	if (w->call) {
		w->again = true;
		return;
	}
	(void)sd_bus_call_method_async(conn, &w->call, SYSTEMD1_NAME, w->path,
				       "org.freedesktop.DBus.Properties",
				       "GetAll", on_properties, w, "s", "");
}

/* The signal tells what changed, but not of all we want: ask for all. */
static int on_changed(sd_bus_message *m, void *userdata, sd_bus_error *e)
{
	(void)m;
	(void)e;
	watch_ask(userdata);
	return 0;
}

static void watch_start(struct systemd1_watch *w)
{
	sd_bus *conn = bus_connection(w->owner->bus);

	if (!conn || !bus_event(w->owner->bus))
		return;
	(void)sd_bus_match_signal_async(conn, &w->match, SYSTEMD1_NAME,
					w->path,
					"org.freedesktop.DBus.Properties",
					"PropertiesChanged", on_changed, NULL,
					w);
	watch_ask(w);
}

static void watch_stop(struct systemd1_watch *w)
{
	w->match = sd_bus_slot_unref(w->match);
	w->call = sd_bus_slot_unref(w->call);
	w->known = w->again = false;
}

int systemd1_watch_new(struct bus *b, const char *unit,
		       void (*changed)(void *userdata), void *userdata,
		       struct systemd1_watch **ret_watch, struct fault *f)
{
	struct systemd1 *s = bus_systemd1(b);
	struct systemd1_watch *w;

	if (!systemd1_unit_name_is_valid(unit))
		return fault_set(f, -EINVAL, unit, "is no name of a unit");
	w = calloc(1, sizeof(*w));
	if (!w)
		return fault_set(f, -ENOMEM, unit, "out of memory");
	w->owner = s;
	w->unit = strdup(unit);
	if (!w->unit || systemd1_unit_path(unit, &w->path) < 0) {
		free(w->unit);
		free(w);
		return fault_set(f, -ENOMEM, unit, "out of memory");
	}
	w->changed = changed;
	w->userdata = userdata;
	w->next = s->watches;
	if (w->next)
		w->next->prev = w;
	s->watches = w;
	watch_start(w);
	*ret_watch = w;
	return 0;
}

int systemd1_watch_get(const struct systemd1_watch *w,
		       struct systemd1_unit *ret_unit)
{
	if (!w || !w->known)
		return -EAGAIN;
	*ret_unit = w->seen;
	return 0;
}

struct systemd1_watch *systemd1_watch_free(struct systemd1_watch *w)
{
	if (!w)
		return NULL;
	watch_stop(w);
	if (w->owner->cursor == w)
		w->owner->cursor = w->next;
	if (w->next)
		w->next->prev = w->prev;
	if (w->prev)
		w->prev->next = w->next;
	else
		w->owner->watches = w->next;
	free(w->unit);
	free(w->path);
	free(w);
	return NULL;
}

/* Each callback may free any watch, its own included. */
static void for_each_watch(struct systemd1 *s,
			   void (*fn)(struct systemd1_watch *w))
{
	struct systemd1_watch *w;

	for (s->cursor = s->watches; (w = s->cursor);) {
		s->cursor = w->next;
		fn(w);
	}
}

/* ---- the bus comes and goes ---- */

static int on_files_changed(sd_bus_message *m, void *userdata,
			    sd_bus_error *e)
{
	(void)m;
	(void)e;
	for_each_watch(userdata, watch_ask);
	return 0;
}

/* AddMatch and Subscribe precede every call of ours on this connection. */
static void came_up(struct systemd1 *s)
{
	sd_bus *conn = bus_connection(s->bus);

	(void)sd_bus_match_signal_async(conn, &s->job_removed, SYSTEMD1_NAME,
					SYSTEMD1_PATH, SYSTEMD1_MANAGER,
					"JobRemoved", on_job_removed, NULL, s);
	(void)sd_bus_match_signal_async(conn, &s->files_changed,
					SYSTEMD1_NAME, SYSTEMD1_PATH,
					SYSTEMD1_MANAGER, "UnitFilesChanged",
					on_files_changed, NULL, s);
	(void)sd_bus_call_method_async(conn, NULL, SYSTEMD1_NAME,
				       SYSTEMD1_PATH, SYSTEMD1_MANAGER,
				       "Subscribe", NULL, NULL, NULL);
	for_each_watch(s, watch_start);
}

static void went(struct systemd1 *s)
{
	s->job_removed = sd_bus_slot_unref(s->job_removed);
	s->files_changed = sd_bus_slot_unref(s->files_changed);
	for_each_watch(s, watch_stop);
	/* A callback may cancel any other job: take the first each time. */
	while (s->jobs)
		job_finish(s->jobs, -ENOTCONN, "D-Bus went meanwhile");
}

static void on_bus(void *userdata, bool up)
{
	struct systemd1 *s = userdata;

	if (up)
		came_up(s);
	else
		went(s);
	for_each_watch(s, watch_tell);
}

int systemd1_new(struct bus *b, struct systemd1 **ret_s)
{
	struct systemd1 *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->bus = b;
	if (bus_listen(b, on_bus, s, &s->listener) < 0) {
		free(s);
		return -ENOMEM;
	}
	*ret_s = s;
	return 0;
}

struct systemd1 *systemd1_free(struct systemd1 *s)
{
	if (!s)
		return NULL;
	assert(!s->jobs && !s->watches);
	s->listener = bus_unlisten(s->listener);
	sd_bus_slot_unref(s->job_removed);
	sd_bus_slot_unref(s->files_changed);
	free(s);
	return NULL;
}
