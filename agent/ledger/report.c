#include "agent/ledger/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"

#define STEP USEC_PER_SEC
#define SUMS_MAX (LEDGER_CLASSES_MAX * LEDGER_LAYERS_MAX * 4)
#define NAMES_MAX 1600

const char *ledger_kind_name(enum ledger_kind kind)
{
	static const char *const names[] = {
		[LEDGER_ALL] = "stood",	    [LEDGER_SOME] = "GAP",
		[LEDGER_NONE] = "OPEN",	    [LEDGER_NOBODY] = "unknown",
		[LEDGER_UNARMED] = "unarmed",
	};

	return kind < LEDGER_KIND_MAX ? names[kind] : "";
}

usec ledger_wall(const struct ledger_boot *b, usec at)
{
	return at < b->last ? b->last_wall - (b->last - at) :
			      b->last_wall + (at - b->last);
}

void ledger_report_done(struct ledger_report *r)
{
	size_t i, k;

	for (i = 0; i < r->n_boots; i++) {
		for (k = 0; k < r->boots[i].n; k++) {
			free(r->boots[i].v[k].stands);
			free(r->boots[i].v[k].missing);
			free(r->boots[i].v[k].unknown);
			free(r->boots[i].v[k].classes);
		}
		free(r->boots[i].v);
	}
	free(r->boots);
	free(r->sums);
	r->boots = NULL;
	r->sums = NULL;
	r->n_boots = r->n_sums = 0;
}

/* ---- one stretch of time ---- */

/* What is said of the time between two records. */
struct stretch {
	usec from, to;
	const struct ledger_record *state;	/* of its classes, layers */
	bool known;
	bool none;		/* nothing stood, whatever `state` says */
	const char *cause;
	uint64_t gaps;
};

static enum ledger_state layer_state(const struct stretch *s, size_t i)
{
	if (s->none)
		return LEDGER_MISSING;
	return s->known ? s->state->layers[i].state : LEDGER_UNKNOWN;
}

static enum ledger_kind kind_of(const struct stretch *s)
{
	size_t count[LEDGER_STATE_MAX] = { 0 }, i;

	if (s->state->n_classes == 0)
		return s->known || s->none ? LEDGER_UNARMED : LEDGER_NOBODY;
	if (s->none)
		return LEDGER_NONE;
	for (i = 0; i < s->state->n_layers; i++)
		count[layer_state(s, i)]++;
	if (!s->known || s->state->n_layers == 0)
		return LEDGER_NOBODY;
	if (count[LEDGER_MISSING] == s->state->n_layers)
		return LEDGER_NONE;
	if (count[LEDGER_MISSING])
		return LEDGER_SOME;
	return count[LEDGER_UNKNOWN] ? LEDGER_NOBODY : LEDGER_ALL;
}

static char *layer_names(const struct stretch *s, enum ledger_state state)
{
	char text[NAMES_MAX] = "";
	size_t used = 0, i;

	for (i = 0; i < s->state->n_layers && used < sizeof(text); i++)
		if (layer_state(s, i) == state)
			used += (size_t)snprintf(text + used,
						 sizeof(text) - used, "%s%s",
						 used ? " " : "",
						 s->state->layers[i].name);
	return strdup(text);
}

static char *class_names(const struct ledger_record *r)
{
	char text[NAMES_MAX] = "";
	size_t used = 0, i;

	for (i = 0; i < r->n_classes && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s%s", i ? " " : "", r->classes[i]);
	return strdup(text);
}

static struct ledger_sum *sum_of(struct ledger_report *r, const char *class,
				 const char *layer)
{
	struct ledger_sum *v;
	size_t i;

	for (i = 0; i < r->n_sums; i++)
		if (strcmp(r->sums[i].class_name, class) == 0 &&
		    strcmp(r->sums[i].layer, layer) == 0)
			return &r->sums[i];
	if (r->n_sums >= SUMS_MAX)
		return NULL;
	v = reallocarray(r->sums, r->n_sums + 1, sizeof(*v));
	if (!v)
		return NULL;
	r->sums = v;
	v += r->n_sums++;
	*v = (struct ledger_sum){ .gaps = 0 };
	(void)snprintf(v->class_name, sizeof(v->class_name), "%s", class);
	(void)snprintf(v->layer, sizeof(v->layer), "%s", layer);
	return v;
}

static int add_sums(struct ledger_report *r, const struct stretch *s,
		    enum ledger_kind kind, bool begins)
{
	static const enum ledger_kind of[] = {
		[LEDGER_STANDS] = LEDGER_ALL,
		[LEDGER_MISSING] = LEDGER_NONE,
		[LEDGER_UNKNOWN] = LEDGER_NOBODY,
	};
	uint64_t gaps = kind == LEDGER_SOME || kind == LEDGER_NONE ?
				s->gaps + begins : 0;
	usec time = s->to - s->from;
	struct ledger_sum *v;
	size_t i, k;

	r->kinds[kind] += time;
	r->gaps += gaps;
	for (i = 0; i < s->state->n_classes; i++) {
		v = sum_of(r, s->state->classes[i], "");
		if (!v)
			return -ENOMEM;
		v->kinds[kind] += time;
		v->gaps += gaps;
		for (k = 0; k < s->state->n_layers; k++) {
			enum ledger_state state = layer_state(s, k);

			v = sum_of(r, s->state->classes[i],
				   s->state->layers[k].name);
			if (!v)
				return -ENOMEM;
			v->kinds[of[state]] += time;
			v->gaps += state == LEDGER_MISSING ? gaps : 0;
		}
	}
	return 0;
}

static bool same_segment(const struct ledger_segment *a,
			 const struct ledger_segment *b)
{
	return a->kind == b->kind && a->to == b->from &&
	       strcmp(a->stands, b->stands) == 0 &&
	       strcmp(a->missing, b->missing) == 0 &&
	       strcmp(a->unknown, b->unknown) == 0 &&
	       strcmp(a->classes, b->classes) == 0 &&
	       (!b->cause[0] || strcmp(a->cause, b->cause) == 0);
}

static void segment_done(struct ledger_segment *g)
{
	free(g->stands);
	free(g->missing);
	free(g->unknown);
	free(g->classes);
}

static int add_segment(struct ledger_boot *b, const struct stretch *s,
		       enum ledger_kind kind, bool *ret_begins)
{
	struct ledger_segment g = {
		.kind = kind,
		.from = s->from,
		.to = s->to,
		.stands = layer_names(s, LEDGER_STANDS),
		.missing = layer_names(s, LEDGER_MISSING),
		.unknown = layer_names(s, LEDGER_UNKNOWN),
		.classes = class_names(s->state),
		.gaps = s->gaps,
	};
	struct ledger_segment *v;

	(void)snprintf(g.cause, sizeof(g.cause), "%s", s->cause);
	if (!g.stands || !g.missing || !g.unknown || !g.classes) {
		segment_done(&g);
		return -ENOMEM;
	}
	if (b->n && same_segment(&b->v[b->n - 1], &g)) {
		b->v[b->n - 1].to = g.to;
		b->v[b->n - 1].gaps += g.gaps;
		segment_done(&g);
		*ret_begins = false;
		return 0;
	}
	v = reallocarray(b->v, b->n + 1, sizeof(*v));
	if (!v) {
		segment_done(&g);
		return -ENOMEM;
	}
	b->v = v;
	g.gaps += kind == LEDGER_SOME || kind == LEDGER_NONE;
	v[b->n++] = g;
	*ret_begins = true;
	return 0;
}

static int add_stretch(struct ledger_report *r, struct stretch *s)
{
	struct ledger_boot *b = &r->boots[r->n_boots - 1];
	int64_t offset = (int64_t)b->last_wall - (int64_t)b->last;
	int64_t since = (int64_t)r->since - offset;
	enum ledger_kind kind;
	bool begins;
	int err;

	if (r->since && since > 0 && s->from < (usec)since)
		s->from = (usec)since;
	if (s->from >= s->to)
		return 0;
	kind = kind_of(s);
	err = add_segment(b, s, kind, &begins);
	return err < 0 ? err : add_sums(r, s, kind, begins);
}

/* ---- from record to record ---- */

static int unknown(struct ledger_report *r, const struct ledger_record *state,
		   usec from, usec to, const char *cause)
{
	struct stretch s = { from, to, state, false, false, cause, 0 };

	return add_stretch(r, &s);
}

static int new_boot(struct ledger_report *r, const struct ledger_record *c)
{
	struct stretch s = { 0, c->at, c, false, false, "", 0 };
	struct ledger_boot *v;

	v = reallocarray(r->boots, r->n_boots + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	r->boots = v;
	v += r->n_boots++;
	*v = (struct ledger_boot){ .last = c->at, .last_wall = c->wall,
				   .records = 1 };
	(void)memcpy(v->id, c->boot, sizeof(v->id));
	if (r->after_cut)
		s.cause = "older records were removed";
	else if (r->gap)
		s.cause = "broken record";
	else if (c->event == LEDGER_LOCKDOWN)
		s.cause = "boot, before garboard-lockdown";
	else
		s.cause = "nobody looked since the boot";
	s.none = c->event == LEDGER_LOCKDOWN && !r->after_cut && !r->gap;
	return add_stretch(r, &s);
}

/* Why nothing can be said of the time before this record; NULL: it can. */
static const char *why_unknown(const struct ledger_report *r,
			       const struct ledger_record *c)
{
	const struct ledger_record *l = &r->last;

	if (r->gap)
		return "broken record";
	if (l->event == LEDGER_LOCKDOWN)
		return "before the agent looked";
	if (l->event == LEDGER_STOP)
		return "the agent was stopped";
	if (c->event == LEDGER_START)
		return "the agent ended without a word";
	if (c->event == LEDGER_LOST)
		return "changes could not be written";
	if (c->seq != l->seq + 1)
		return "records are missing";
	return NULL;
}

static void find_step(struct ledger_boot *b, const struct ledger_record *c)
{
	int64_t was = (int64_t)b->last_wall - (int64_t)b->last;
	int64_t is = (int64_t)c->wall - (int64_t)c->at;

	if (llabs(is - was) <= (int64_t)STEP)
		return;
	if (b->n_steps < LEDGER_STEPS_MAX)
		b->steps[b->n_steps] =
			(struct ledger_step){ c->at, is - was };
	b->n_steps++;
}

static int same_boot(struct ledger_report *r, const struct ledger_record *c)
{
	struct ledger_boot *b = &r->boots[r->n_boots - 1];
	const struct ledger_record *l = &r->last;
	struct stretch s = { l->at, c->known, l, true, false, l->cause, 0 };
	const char *why = why_unknown(r, c);
	int err = 0;

	find_step(b, c);
	b->last = c->at > b->last ? c->at : b->last;
	b->last_wall = c->wall;
	b->records++;
	s.gaps = c->count;
	if (c->at < l->at)
		return 0;	/* no time that could be told of */
	if (why)
		return unknown(r, l->n_classes ? l : c, l->at, c->at, why);
	if (c->known > l->at)
		err = add_stretch(r, &s);
	else
		s.to = l->at;
	if (err == 0 && s.to < c->at)
		err = unknown(r, l, s.to, c->at,
			      "until a look found it, without an event");
	return err;
}

static void add_broken(struct ledger_report *r, bool torn)
{
	if (r->n_broken < LEDGER_BROKEN_MAX)
		r->broken[r->n_broken] =
			(struct ledger_broken){ r->lines, torn };
	r->n_broken++;
	r->gap = true;
}

static void add_cut(struct ledger_report *r, const struct ledger_record *c)
{
	static const char broken[] = "broken:";
	uint64_t n = 0;

	r->cut += c->count;
	if (strncmp(c->cause, broken, strlen(broken)) == 0 &&
	    parse_u64(c->cause + strlen(broken), UINT64_MAX, &n) == 0)
		r->cut_broken += n;
	r->cut_wall = c->wall;
	r->after_cut = true;
}

int ledger_report_feed(struct ledger_report *r, const char *line, size_t size,
		       bool torn)
{
	struct ledger_record c;
	int err;

	r->lines++;
	if (ledger_decode(line, size, &c) < 0) {
		add_broken(r, torn);
		return 0;
	}
	if (c.event == LEDGER_CUT) {
		add_cut(r, &c);
		return 0;
	}
	if (!r->has_last || strcmp(r->last.boot, c.boot) != 0)
		err = new_boot(r, &c);
	else
		err = same_boot(r, &c);
	r->last = c;
	r->has_last = true;
	r->gap = r->after_cut = false;
	return err;
}

int ledger_report_end(struct ledger_report *r, const char *boot, usec now)
{
	if (!r->has_last || !boot || strcmp(boot, r->last.boot) != 0 ||
	    now <= r->last.at)
		return 0;
	return unknown(r, &r->last, r->last.at, now,
		       r->last.event == LEDGER_STOP ?
			       "the agent was stopped" :
			       "after the last record");
}
