#include "agent/verdict.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *verdict_name(enum verdict_code code)
{
	static const char *const names[] = { "OK", "WARNING", "CRITICAL",
					     "UNKNOWN" };

	return code <= VERDICT_UNKNOWN ? names[code] : "UNKNOWN";
}

static void say(struct verdict *v, enum verdict_code code, const char *fmt,
		...) __attribute__((format(printf, 3, 4)));

static void say(struct verdict *v, enum verdict_code code, const char *fmt,
		...)
{
	size_t n = strlen(v->text);
	va_list ap;

	if (code > v->code)
		v->code = code;
	if (n)
		n += (size_t)snprintf(v->text + n, sizeof(v->text) - n, "; ");
	if (n >= sizeof(v->text))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(v->text + n, sizeof(v->text) - n, fmt, ap);
	va_end(ap);
}

static const struct item *worst_item(const struct item_list *items)
{
	const struct item *worst = NULL;
	size_t i;

	for (i = 0; i < items->n; i++)
		if (items->v[i].state != ITEM_IN_SYNC &&
		    (!worst || items->v[i].state > worst->state))
			worst = &items->v[i];
	return worst;
}

static size_t count_bad(const struct item_list *items)
{
	size_t i, n = 0;

	for (i = 0; i < items->n; i++)
		n += items->v[i].state > ITEM_PENDING;
	return n;
}

static void judge(enum resource_id id, const struct engine_resource *r,
		  struct verdict *v)
{
	enum verdict_code bad = id == RESOURCE_KILLSWITCH ? VERDICT_CRITICAL :
							    VERDICT_WARNING;
	const char *name = resource_name(id);
	const struct item *worst = worst_item(r->items);

	if (r->mode == MODE_OFF) {
		say(v, VERDICT_OK, "%s is off", name);
		return;
	}
	if (!r->looked || r->proof_age > VERDICT_PROOF_MAX)
		say(v, VERDICT_CRITICAL, "%s has not been looked at for %" PRIu64
		    " s", name, r->proof_age / USEC_PER_SEC);
	if (r->fault->err)
		say(v, bad, "%s: %s", name, r->fault->text);
	if (worst && worst->state > ITEM_PENDING)
		say(v, bad, "%s: %s is %s%s%s", name, worst->key,
		    item_state_name(worst->state), *worst->reason ? ", " : "",
		    worst->reason);
	else if (worst)
		say(v, VERDICT_OK, "%s: %s is pending", name, worst->key);
	if (r->contended)
		say(v, bad, "%s is contended by %s", name,
		    *r->writer ? r->writer : "somebody");
}

static void judge_trial(const struct trial_status *t, struct verdict *v)
{
	if (t->running)
		say(v, VERDICT_OK, "desired state %" PRIu64 " is on trial, "
		    "%" PRIu64 " s left", t->generation,
		    t->left / USEC_PER_SEC);
	else if (t->returned)
		say(v, VERDICT_WARNING, "desired state %" PRIu64 " was taken "
		    "back: the coordinator was not heard from under it",
		    t->generation);
}

static void judge_uncovered(const struct uncovered_paths *p,
			    struct verdict *v)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		say(v, p->v[i].critical ? VERDICT_CRITICAL : VERDICT_WARNING,
		    "not covered: %s", p->v[i].text);
	if (p->more)
		say(v, VERDICT_WARNING, "not covered: %zu more", p->more);
}

void verdict_make(const struct verdict_input *in, struct verdict *ret_verdict)
{
	struct verdict v = { .code = VERDICT_OK };
	uint64_t repairs = 0;
	size_t i, items = 0, bad = 0, contended = 0;
	usec oldest = 0;

	for (i = 0; in->engine->desired && i < RESOURCE_MAX; i++) {
		const struct engine_resource *r = &in->engine->v[i];

		if (!r->present)
			continue;
		judge(i, r, &v);
		items += r->items->n;
		bad += count_bad(r->items);
		repairs += r->repairs;
		contended += r->contended;
		oldest = r->proof_age > oldest ? r->proof_age : oldest;
	}
	if (!in->engine->desired)
		say(&v, VERDICT_WARNING, "nothing is desired of this node yet");
	if (*in->state_fault)
		say(&v, VERDICT_WARNING, "state: %s", in->state_fault);
	if (!in->enrolled)
		say(&v, VERDICT_WARNING, "not enrolled");
	else if (!in->session)
		say(&v, VERDICT_WARNING, "no session with the coordinator");
	if (in->trial)
		judge_trial(in->trial, &v);
	if (in->uncovered)
		judge_uncovered(in->uncovered, &v);
	if (!*v.text)
		say(&v, VERDICT_OK, "%zu items in sync", items);
	(void)snprintf(v.perfdata, sizeof(v.perfdata),
		       "items=%zu bad=%zu;0 contended=%zu;0 repairs=%" PRIu64
		       "c proof_age=%" PRIu64 "s",
		       items, bad, contended, repairs, oldest / USEC_PER_SEC);
	*ret_verdict = v;
}
