#include "agent/ledger/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/ledger/ledger.h"
#include "agent/res/killswitch_plan.h"
#include "agent/res/killswitch_tables.h"
#include "agent/res/routing_plan.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"

#define PENDING_MAX ((size_t)64 * LEDGER_LINE_MAX)
#define RETRY (30 * USEC_PER_SEC)
#define HOUR (3600 * USEC_PER_SEC)
#define STEP USEC_PER_SEC	/* clocks that differ by more were set */

struct ledger {
	const char *state_dir;
	struct ledger_params params;
	sd_event_source *timer;
	char boot[LEDGER_BOOT_MAX];
	bool begun;
	bool has_stood, stood_all;	/* of garboard-lockdown, unwritten */
	usec stood_at, stood_wall;
	uint64_t seq;

	/* From the last look of each. */
	bool saw[RESOURCE_MAX];
	usec proof[RESOURCE_MAX];
	struct ledger_record tables, routing;

	struct ledger_record last;	/* as it was written, or will be */
	char *pending;
	size_t n_pending;
	bool lost;			/* there was no room for more */
	bool failing;
	usec write_at, beat_at;
	bool step_known;
	int64_t offset;			/* of the wall clock */
	usec steady;			/* since when, boottime */

	unsigned int used;		/* records of this hour */
	usec hour;
	bool storm, calming;
	usec calm_at;
	uint64_t summed;
	struct ledger_record held;	/* what stands, while it calms */
};

struct ledger_params ledger_params_default(void)
{
	return (struct ledger_params){
		.gather = USEC_PER_SEC,
		.beat = HOUR,
		.calm = 60 * USEC_PER_SEC,
		.lookback = 24 * HOUR,
		.hourly = 240,
		.limit = LEDGER_SIZE_MAX,
	};
}

/* ---- what a look says ---- */

/* A device that is away is no layer: nothing leaves by it. */
static bool is_away(const struct engine_look *look, const struct item *it)
{
	return strcmp(it->have, "kept") == 0 ||
	       (it->state == ITEM_PENDING &&
		!change_list_find(look->plan, it->key));
}

static enum ledger_state state_of(enum item_state s)
{
	switch (s) {
	case ITEM_IN_SYNC:
		return LEDGER_STANDS;
	case ITEM_UNOBSERVABLE:
		return LEDGER_UNKNOWN;
	case ITEM_PENDING:
	case ITEM_ABSENT:
	case ITEM_DRIFTED:
	case ITEM_BLOCKED:
	case ITEM_STATE_MAX:
		break;
	}
	return LEDGER_MISSING;
}

static void see_table(const struct engine_look *look, const struct item *it,
		      struct ledger_record *r)
{
	static const char inet[] = "table inet " KILLSWITCH_TABLE;
	static const char netdev[] = "table netdev " KILLSWITCH_EGRESS_PREFIX;
	char name[LEDGER_NAME_MAX];

	if (it->state == ITEM_DRIFTED && !*it->want)
		return;		/* one to be taken away */
	if (strcmp(it->key, inet) == 0) {
		(void)ledger_add_layer(r, "inet", state_of(it->state));
	} else if (strncmp(it->key, netdev, strlen(netdev)) == 0) {
		if (is_away(look, it))
			return;
		(void)snprintf(name, sizeof(name), "netdev:%.16s",
			       it->key + strlen(netdev));
		(void)ledger_add_layer(r, name, state_of(it->state));
	} else if (strcmp(it->key, "tables") == 0 ||
		   strcmp(it->key, "uplinks") == 0) {
		(void)ledger_add_layer(r, it->key, state_of(it->state));
	}
}

static void see_tables(struct ledger *l, const struct engine_look *look)
{
	struct ledger_record r = { .seq = 0 };
	size_t i;

	/* Not looked at: what is armed stays so, what stands is unknown. */
	if (!look->items) {
		l->tables.n_layers = 0;
		(void)ledger_add_layer(&l->tables, "tables", LEDGER_UNKNOWN);
		return;
	}
	for (i = 0; i < look->items->n; i++) {
		const struct item *it = &look->items->v[i];

		if (strncmp(it->key, "class ", 6) == 0) {
			if (strcmp(it->have, "armed") == 0)
				(void)ledger_add_class(&r, it->key + 6);
		} else {
			see_table(look, it, &r);
		}
	}
	l->tables = r;
}

static void see_routing(struct ledger *l, const struct engine_look *look)
{
	enum ledger_state worst = LEDGER_STANDS;
	bool steers = false;
	size_t i;

	l->routing.n_layers = 0;
	for (i = 0; look->items && i < look->items->n; i++) {
		const struct item *it = &look->items->v[i];
		enum ledger_state s = state_of(it->state);

		if (it->state != ITEM_UNOBSERVABLE &&
		    !routing_key_steers(it->key))
			continue;
		steers = steers || strstr(it->key, " route table ") ||
			 it->state == ITEM_UNOBSERVABLE;
		worst = s > worst ? s : worst;
	}
	if (!look->items)
		(void)ledger_add_layer(&l->routing, "routing",
				       LEDGER_UNKNOWN);
	else if (steers)
		(void)ledger_add_layer(&l->routing, "routing", worst);
}

static struct ledger_record compose(const struct ledger *l)
{
	struct ledger_record r = l->tables;
	size_t i;

	for (i = 0; i < l->routing.n_layers; i++)
		(void)ledger_add_layer(&r, l->routing.layers[i].name,
				       l->routing.layers[i].state);
	/* Nothing armed: then nothing has to stand. */
	if (r.n_classes == 0)
		r.n_layers = 0;
	(void)memcpy(r.boot, l->boot, sizeof(r.boot));
	return r;
}

static bool all_stand(const struct ledger_record *r)
{
	size_t i;

	for (i = 0; i < r->n_layers; i++)
		if (r->layers[i].state != LEDGER_STANDS)
			return false;
	return true;
}

/* ---- what is to be written ---- */

static void push(struct ledger *l, struct ledger_record *r, usec now)
{
	char line[LEDGER_LINE_MAX];
	int n;

	r->seq = ++l->seq;
	n = ledger_encode(r, line);
	if (n < 0 || l->n_pending + (size_t)n > PENDING_MAX || !l->pending) {
		l->lost = true;
		l->n_pending = 0;
	} else {
		(void)memcpy(l->pending + l->n_pending, line, (size_t)n);
		l->n_pending += (size_t)n;
	}
	l->last = *r;
	if (!l->write_at)
		l->write_at = now + l->params.gather;
}

/* Times of one boot never go back in the file. */
static void put_times(const struct ledger *l, struct ledger_record *r,
		      usec at, usec now, usec wall)
{
	if (l->begun && at < l->last.at)
		at = l->last.at;
	r->at = at;
	r->known = at;
	r->wall = wall - (now > at ? now - at : 0);
}

static void begin(struct ledger *l, struct ledger_record *r, usec now,
		  usec wall)
{
	if (l->has_stood && l->stood_at <= now) {
		struct ledger_record stood = *r;
		size_t i;

		stood.event = LEDGER_LOCKDOWN;
		stood.at = stood.known = l->stood_at;
		stood.wall = l->stood_wall;
		for (i = 0; i < stood.n_layers; i++)
			stood.layers[i].state = l->stood_all ? LEDGER_STANDS :
							       LEDGER_UNKNOWN;
		push(l, &stood, now);
	}
	r->event = LEDGER_START;
	put_times(l, r, now, now, wall);
	push(l, r, now);
	l->begun = true;
	l->beat_at = now + l->params.beat;
	l->steady = now;
}

/* One too many in an hour: it is missing until it has stood for long. */
static bool is_storm(struct ledger *l, const struct ledger_record *r, usec now)
{
	if (now - l->hour >= HOUR) {
		l->hour = now;
		l->used = 0;
	}
	if (!l->storm) {
		l->used++;
		/* Begun with something missing, so that it is never hidden. */
		l->storm = l->used > l->params.hourly && !all_stand(r);
		l->calming = false;
		return false;
	}
	if (all_stand(r)) {
		if (!l->calming)
			l->calm_at = now + l->params.calm;
		l->held = *r;
		l->calming = true;
	} else {
		l->summed += l->calming;
		l->calming = false;
	}
	return true;
}

static void change(struct ledger *l, struct ledger_record *r,
		   const struct engine_look *look, usec now, usec wall)
{
	bool worse = !all_stand(r);

	if (is_storm(l, r, now))
		return;
	r->event = LEDGER_LOOK;
	put_times(l, r, worse && look->began < now ? look->began : now, now,
		  wall);
	/* Found without an event: it may have been so since the last look. */
	if (worse && look->items && !look->prompted &&
	    l->proof[look->id] < r->at)
		r->known = l->proof[look->id] > l->last.at ?
				   l->proof[look->id] : l->last.at;
	if (worse && look->prompted && look->id == RESOURCE_KILLSWITCH)
		ledger_set_cause(r, look->writer);
	push(l, r, now);
}

void ledger_see(struct ledger *l, const struct engine_look *look, usec now,
		usec wall)
{
	struct ledger_record r;

	if (look->id == RESOURCE_KILLSWITCH)
		see_tables(l, look);
	else if (look->id == RESOURCE_ROUTING)
		see_routing(l, look);
	else
		return;
	l->saw[look->id] = true;
	if (l->saw[RESOURCE_KILLSWITCH] && l->saw[RESOURCE_ROUTING]) {
		r = compose(l);
		/* A node that nobody ever armed has no log. */
		if (!l->begun && r.n_classes)
			begin(l, &r, now, wall);
		else if (l->begun && (l->storm || !ledger_same(&r, &l->last)))
			change(l, &r, look, now, wall);
	}
	l->proof[look->id] = now;
}

/* ---- writing ---- */

static void put_again(struct ledger *l, enum ledger_event event, usec now,
		      usec wall)
{
	struct ledger_record r = l->last;

	r.event = event;
	r.count = 0;
	r.cause[0] = '\0';
	put_times(l, &r, now, now, wall);
	push(l, &r, now);
}

static void write_out(struct ledger *l, usec now, usec wall)
{
	struct fault f = FAULT_INIT;
	int r;

	if (l->lost && l->pending) {
		l->n_pending = 0;
		l->lost = false;
		put_again(l, LEDGER_LOST, now, wall);
	}
	l->write_at = 0;
	if (l->n_pending == 0)
		return;
	r = ledger_append(l->state_dir, l->pending, l->n_pending, &f);
	if (r < 0) {
		if (!l->failing)
			log_warning("kill-switch log: %s: %s", f.object,
				    f.text);
		l->write_at = now + RETRY;
	} else {
		l->n_pending = 0;
	}
	l->failing = r < 0;
}

static void end_storm(struct ledger *l, usec now, usec wall)
{
	struct ledger_record r = l->held;

	l->storm = l->calming = false;
	l->used = 0;
	l->hour = now;
	r.event = LEDGER_LOOK;
	r.count = l->summed;
	r.cause[0] = '\0';
	l->summed = 0;
	put_times(l, &r, now, now, wall);
	push(l, &r, now);
}

static void tidy(struct ledger *l, usec now, usec wall)
{
	int64_t offset = (int64_t)wall - (int64_t)now;
	bool steady;

	if (!l->step_known || llabs(offset - l->offset) > (int64_t)STEP)
		l->steady = now;
	l->step_known = true;
	l->offset = offset;
	/* A clock that was just set says nothing about what is old. */
	steady = now - l->steady >= l->params.lookback;
	if (steady)
		l->steady = now;	/* and again after as long */
	(void)ledger_tidy(l->state_dir, steady ? wall : 0, l->params.limit,
			  NULL);
}

usec ledger_tick(struct ledger *l, usec now, usec wall)
{
	usec next = ENGINE_NEVER;

	if (l->storm && l->calming && l->calm_at <= now)
		end_storm(l, now, wall);
	if (l->begun && l->beat_at <= now) {
		put_again(l, LEDGER_BEAT, now, wall);
		l->beat_at = now + l->params.beat;
		l->write_at = now;
		write_out(l, now, wall);
		tidy(l, now, wall);
	}
	if (l->write_at && l->write_at <= now)
		write_out(l, now, wall);
	if (l->begun)
		next = l->beat_at;
	if (l->write_at && l->write_at < next)
		next = l->write_at;
	if (l->storm && l->calming && l->calm_at < next)
		next = l->calm_at;
	return next;
}

/* ---- in the loop ---- */

static void set_timer(struct ledger *l, usec due)
{
	if (!l->timer)
		return;
	(void)sd_event_source_set_time(l->timer, due);
	(void)sd_event_source_set_enabled(l->timer, due == ENGINE_NEVER ?
							    SD_EVENT_OFF :
							    SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *s, uint64_t due, void *userdata)
{
	struct ledger *l = userdata;

	(void)s;
	(void)due;
	set_timer(l, ledger_tick(l, clock_boottime(), clock_realtime()));
	return 0;
}

void ledger_looked(void *userdata, const struct engine_look *look)
{
	struct ledger *l = userdata;
	uint64_t before = l->seq;
	bool calming = l->calming;
	usec now;

	if (look->id != RESOURCE_KILLSWITCH && look->id != RESOURCE_ROUTING)
		return;
	now = clock_boottime();
	ledger_see(l, look, now, clock_realtime());
	if (l->seq != before || l->calming != calming)
		set_timer(l, l->write_at ? l->write_at : now);
}

void ledger_beat(struct ledger *l)
{
	usec now = clock_boottime();

	if (l->begun)
		l->beat_at = now;
	set_timer(l, ledger_tick(l, now, clock_realtime()));
}

static void read_stood(struct ledger *l, const char *path)
{
	struct ledger_record last;
	char text[128];

	if (ledger_last(l->state_dir, &last) == 0) {
		l->seq = last.seq;
		/* Told already, by the first agent of this boot. */
		if (strcmp(last.boot, l->boot) == 0)
			return;
	}
	l->has_stood = file_line(path, text, sizeof(text), NULL) == 0 &&
		       ledger_stood_parse(text, &l->stood_at, &l->stood_wall,
					  &l->stood_all) == 0;
}

int ledger_new(sd_event *event, const char *state_dir, const char *boot_id,
	       const char *stood, const struct ledger_params *p,
	       struct ledger **ret_ledger)
{
	struct ledger *l = calloc(1, sizeof(*l));
	int r = 0;

	if (!l)
		return -ENOMEM;
	l->state_dir = state_dir;
	l->params = *p;
	(void)strncpy(l->boot, boot_id, sizeof(l->boot) - 1);
	l->pending = malloc(PENDING_MAX);
	if (!l->pending)
		r = -ENOMEM;
	else if (event)
		r = sd_event_add_time(event, &l->timer, CLOCK_BOOTTIME,
				      UINT64_MAX, 100 * USEC_PER_MSEC,
				      on_timer, l);
	if (r < 0) {
		(void)ledger_free(l);
		return r;
	}
	read_stood(l, stood);
	*ret_ledger = l;
	return 0;
}

struct ledger *ledger_free(struct ledger *l)
{
	usec now, wall;

	if (!l)
		return NULL;
	(void)sd_event_source_disable_unref(l->timer);
	now = clock_boottime();
	wall = clock_realtime();
	if (l->begun) {
		put_again(l, LEDGER_STOP, now, wall);
		write_out(l, now, wall);
	}
	free(l->pending);
	free(l);
	return NULL;
}
