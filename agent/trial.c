#include "agent/trial.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/armed.h"
#include "agent/forwarding.h"
#include "agent/lockdown_keep.h"
#include "agent/orders.h"
#include "agent/statefile.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "proto/envelope.h"

/*
 * STATE/trial: the length of the armed record (4 bytes, big endian), the
 * record's text, and the previous envelope, empty if nothing was desired.
 */
#define FILE_NAME "trial"
#define FILE_FORMAT 1
#define FILE_SIZE_MAX (8u * 1024 * 1024)
#define LENGTH_SIZE 4

/* Nobody tells when the file of the next boot was lost or has rotted. */
#define KEEP_TIME (60 * USEC_PER_SEC)
#define KEEP_SLACK (10 * USEC_PER_SEC)

struct trial {
	struct trial_env env;
	sd_event_source *timer, *tick;
	bool running, applied, returned;
	uint64_t generation;
	usec deadline;
};

static const struct desired_egress no_egress;

struct desired *trial_nothing_desired(void)
{
	struct desired *d = desired_new();
	size_t i;

	for (i = 0; d && i < RESOURCE_MAX; i++)
		if (i != RESOURCE_KILLSWITCH && i != RESOURCE_ROUTING)
			d->modes[i] = MODE_OFF;
	return d;
}

/* ---- what was before ---- */

struct before {
	char *data;
	char *armed;		/* owned */
	const char *envelope;	/* within data */
	size_t envelope_size;
};

static void before_done(struct before *b)
{
	free(b->data);
	free(b->armed);
}

static int before_load(const char *state_dir, struct before *ret)
{
	_cleanup_free_ char *data = NULL;
	size_t size, n;
	int r = statefile_read(state_dir, FILE_NAME, FILE_FORMAT,
			       FILE_SIZE_MAX, &data, &size, NULL);

	if (r < 0)
		return r;
	if (size < LENGTH_SIZE)
		return -EBADMSG;
	n = (size_t)(uint8_t)data[0] << 24 | (size_t)(uint8_t)data[1] << 16 |
	    (size_t)(uint8_t)data[2] << 8 | (size_t)(uint8_t)data[3];
	if (n > size - LENGTH_SIZE)
		return -EBADMSG;
	ret->armed = strndup(data + LENGTH_SIZE, n);
	if (!ret->armed)
		return -ENOMEM;
	ret->envelope = data + LENGTH_SIZE + n;
	ret->envelope_size = size - LENGTH_SIZE - n;
	ret->data = take_ptr(data);
	return 0;
}

int trial_before(const char *state_dir, char **ret_text)
{
	struct before b = { NULL };
	int r = before_load(state_dir, &b);

	if (r == 0)
		*ret_text = take_ptr(b.armed);
	before_done(&b);
	return r;
}

static int before_save(const struct node_state *state, const char *armed,
		       struct fault *f)
{
	_cleanup_free_ char *envelope = NULL;
	_cleanup_free_ uint8_t *data = NULL;
	size_t n = strlen(armed), size = 0;
	int r = state_get_desired(state, &envelope, &size, NULL);

	if (r < 0)	/* nothing, or nothing that could return */
		size = 0;
	data = malloc(LENGTH_SIZE + n + size);
	if (!data)
		return fault_errno(f, -ENOMEM, "trial", "cannot begin");
	data[0] = (uint8_t)(n >> 24);
	data[1] = (uint8_t)(n >> 16);
	data[2] = (uint8_t)(n >> 8);
	data[3] = (uint8_t)n;
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): counted */
	(void)memcpy(data + LENGTH_SIZE, armed, n);
	if (size)
		(void)memcpy(data + LENGTH_SIZE + n, envelope, size);
	return statefile_write(state->dir, FILE_NAME, FILE_FORMAT, data,
			       LENGTH_SIZE + n + size, f);
}

/* ---- the file of garboard-lockdown ---- */

static int keep(struct trial *t, const struct desired *d, struct fault *f)
{
	int r = lockdown_keep(t->env.state->dir, d, f);

	if (r > 0)
		log_info("the file of garboard-lockdown is up to date");
	return r;
}

static void keep_now(struct trial *t)
{
	struct fault f = FAULT_INIT;
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];

	if (keep(t, engine_desired(t->env.engine), &f) < 0)
		log_error("the next boot may be closed by an older policy: %s",
			  fault_str(&f, text, sizeof(text)));
}

static int on_tick(sd_event_source *source, uint64_t due, void *userdata)
{
	(void)due;
	keep_now(userdata);
	(void)sd_event_source_set_time_relative(source, KEEP_TIME);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* ---- the end of a trial ---- */

static void stop(struct trial *t)
{
	struct fault f = FAULT_INIT;

	t->running = false;
	(void)sd_event_source_set_enabled(t->timer, SD_EVENT_OFF);
	if (statefile_remove(t->env.state->dir, FILE_NAME, &f) < 0)
		log_error("trial: %s", f.text);
	keep_now(t);
}

void trial_heard(struct trial *t)
{
	if (!t || !t->running || !t->applied)
		return;
	log_notice("desired state %" PRIu64 " is confirmed: the coordinator "
		   "was heard from under it", t->generation);
	t->returned = false;
	stop(t);
}

/* The record of before, without what was disarmed since. */
static int restore_record(const struct node_state *state, const char *text,
			  struct fault *f)
{
	struct armed before = ARMED_INIT, now = ARMED_INIT, next = ARMED_INIT;
	size_t i;
	int r = armed_parse(text, &before, f);

	if (r == 0)
		r = armed_load(state->dir, &now, f);
	for (i = 0; r == 0 && i < now.disarmed.n; i++)
		if (!strlist_has(&before.disarmed, now.disarmed.v[i]))
			r = strlist_add(&before.disarmed, now.disarmed.v[i]);
	if (r == 0)
		r = armed_merge(&no_egress, &before, &next);
	if (r == 0) {
		/* Found, or tables of the trial would be nobody's. */
		next.found = true;
		r = armed_save(state->dir, &next, f);
	}
	armed_done(&before);
	armed_done(&now);
	armed_done(&next);
	return r;
}

/* Twice, so that the previous copy is not the refused one. */
static int restore_desired(struct node_state *state, const struct before *b,
			   struct fault *f)
{
	int r;

	if (b->envelope_size == 0)
		return statefile_remove(state->dir, "desired", f);
	r = state_put_desired(state, b->envelope, b->envelope_size, f);
	return r < 0 ? r : state_put_desired(state, b->envelope,
					     b->envelope_size, f);
}

/*
 * A state before that enforces will set its own values. Of one that does
 * not, no key is wanted: then what the trial set is put back (SY-06).
 */
static void undo_forwarding(struct desired *d)
{
	if (d->modes[RESOURCE_SYSCTL] == MODE_ENFORCE)
		return;
	while (d->n_sysctls > 0) {
		free(d->sysctls[--d->n_sysctls].key);
		free(d->sysctls[d->n_sysctls].value);
	}
	d->modes[RESOURCE_SYSCTL] = MODE_ENFORCE;
}

static int give_back(struct trial *t, struct fault *f)
{
	const struct desired *now = engine_desired(t->env.engine);
	struct before b = { NULL };
	struct desired *d = NULL;
	int r = before_load(t->env.state->dir, &b);

	if (r < 0)
		return fault_errno(f, r, "trial", "what was before is lost");
	r = b.envelope_size ?
		    orders_decode_desired(b.envelope, b.envelope_size, &d,
					  f) :
		    0;
	if (r == 0 && !d)
		d = trial_nothing_desired();
	if (d && now && forwarding_changes(d, now))
		undo_forwarding(d);
	if (r == 0 && !d)
		r = fault_errno(f, -ENOMEM, "trial", "cannot end");
	/* Each is worth doing though another fails: the node is cut off. */
	if (r == 0) {
		r = restore_record(t->env.state, b.armed, f);
		if (restore_desired(t->env.state, &b, f) < 0)
			r = f->err;
		engine_set_desired(t->env.engine, d);
	}
	before_done(&b);
	return r;
}

static int on_time(sd_event_source *source, uint64_t due, void *userdata)
{
	struct trial *t = userdata;
	struct fault f = FAULT_INIT;
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];

	(void)source;
	(void)due;
	if (!t->running)
		return 0;
	log_warning("desired state %" PRIu64 " is taken back: the coordinator "
		    "was not heard from under it in time; the previous one "
		    "returns, and what was armed before stays closed",
		    t->generation);
	if (give_back(t, &f) < 0)
		log_error("trial: %s", fault_str(&f, text, sizeof(text)));
	t->returned = true;
	stop(t);
	return 0;
}

/* ---- its beginning ---- */

static int start(struct trial *t, uint64_t generation)
{
	int r;

	t->generation = generation;
	t->running = true;
	t->applied = false;
	t->deadline = clock_boottime() + t->env.time;
	r = sd_event_source_set_time(t->timer, t->deadline);
	return r < 0 ? r : sd_event_source_set_enabled(t->timer,
						       SD_EVENT_ONESHOT);
}

static bool other_modes(const struct desired *a, const struct desired *b)
{
	return a && (a->modes[RESOURCE_KILLSWITCH] !=
			     b->modes[RESOURCE_KILLSWITCH] ||
		     a->modes[RESOURCE_ROUTING] != b->modes[RESOURCE_ROUTING]);
}

/* 1 and the record's text when `next` changes what is closed or forwarded. */
static int touches(const struct trial *t, const struct desired *next,
		   char **ret_record, struct fault *f)
{
	const struct desired *now = engine_desired(t->env.engine);
	struct armed record = ARMED_INIT, a = ARMED_INIT, b = ARMED_INIT;
	_cleanup_free_ char *x = NULL, *y = NULL;
	int r = armed_load(t->env.state->dir, &record, f);

	if (r < 0)
		return r;
	r = armed_merge(now ? &now->egress : &no_egress, &record, &a);
	if (r == 0)
		r = armed_merge(&next->egress, &record, &b);
	if (r == 0)
		r = armed_format(&a, &x);
	if (r == 0)
		r = armed_format(&b, &y);
	if (r == 0 && (strcmp(x, y) != 0 ||
		       (other_modes(now, next) && b.d->egress.n_classes) ||
		       forwarding_changes(now, next)))
		r = armed_format(&record, ret_record) < 0 ? -ENOMEM : 1;
	armed_done(&record);
	armed_done(&a);
	armed_done(&b);
	return r < 0 ? fault_errno(f, r, "trial", "cannot begin") : r;
}

int trial_begin(struct trial *t, const struct desired *next, struct fault *f)
{
	_cleanup_free_ char *record = NULL;
	int r;

	if (!t)
		return 0;
	r = touches(t, next, &record, f);
	if (r == -EBADMSG) {
		/* A damaged record is the kill-switch's to tell of. */
		fault_clear(f);
		return 0;
	}
	if (r == 0 && !t->running)	/* the file may lack it all the same */
		return keep(t, next, f) < 0 ? f->err : 0;
	if (r > 0 && !t->running)
		r = before_save(t->env.state, record, f);
	if (r < 0)
		return r;
	/* On disk before it is in force: a power cut finds both closed. */
	r = keep(t, next, f);
	if (r >= 0)
		r = start(t, next->generation);
	if (r < 0) {
		trial_cancel(t);
		return fault_errno(f, r, "trial", "cannot begin");
	}
	log_notice("desired state %" PRIu64 " is on trial for %" PRIu64
		   " s: it is kept if the coordinator is heard from",
		   next->generation, t->env.time / USEC_PER_SEC);
	return 1;
}

void trial_cancel(struct trial *t)
{
	if (t && t->running)
		stop(t);
}

/* It applies in the same run in which it looks for the first time. */
static bool has_looked(const struct engine_resource *r)
{
	return !r->present || r->looked;
}

void trial_look(struct trial *t)
{
	struct engine_report report;

	if (!t)
		return;
	keep_now(t);
	if (!t->running || t->applied)
		return;
	engine_report(t->env.engine, clock_boottime(), &report);
	t->applied = report.generation == t->generation &&
		     has_looked(&report.v[RESOURCE_KILLSWITCH]) &&
		     has_looked(&report.v[RESOURCE_ROUTING]) &&
		     has_looked(&report.v[RESOURCE_SYSCTL]);
}

void trial_status(const struct trial *t, usec now,
		  struct trial_status *ret_status)
{
	*ret_status = (struct trial_status){ 0 };
	if (!t)
		return;
	ret_status->running = t->running;
	ret_status->applied = t->applied;
	ret_status->returned = t->returned;
	ret_status->generation = t->generation;
	if (t->running && t->deadline > now)
		ret_status->left = t->deadline - now;
}

/* A restart is no confirmation, and its time begins anew. */
static int resume(struct trial *t)
{
	const struct desired *d = engine_desired(t->env.engine);
	_cleanup_free_ char *text = NULL;
	int r = trial_before(t->env.state->dir, &text);

	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		log_error("trial: what was before the desired state is lost: "
			  "it is kept");
		stop(t);
		return 0;
	}
	return start(t, d ? d->generation : 0);
}

int trial_new(const struct trial_env *env, struct trial **ret_trial,
	      struct fault *f)
{
	struct trial *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return fault_errno(f, -ENOMEM, "trial", "not started");
	t->env = *env;
	r = sd_event_add_time(env->event, &t->timer, CLOCK_BOOTTIME,
			      UINT64_MAX, 10 * USEC_PER_MSEC, on_time, t);
	if (r >= 0)
		r = sd_event_source_set_enabled(t->timer, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(env->event, &t->tick,
					       CLOCK_BOOTTIME, KEEP_TIME,
					       KEEP_SLACK, on_tick, t);
	if (r >= 0)
		r = resume(t);
	if (r < 0) {
		(void)trial_free(t);
		return fault_errno(f, r, "trial", "not started");
	}
	*ret_trial = t;
	return 0;
}

struct trial *trial_free(struct trial *t)
{
	if (!t)
		return NULL;
	(void)sd_event_source_disable_unref(t->timer);
	(void)sd_event_source_disable_unref(t->tick);
	free(t);
	return NULL;
}
