#include "coordinator/enroll_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/fault.h"
#include "common/parse.h"

const char *enroll_name(const struct enroll_facts *facts)
{
	if (facts->known)
		return facts->known->name;
	/* The operator's word comes first: a token that does not even have
	 * to be good must not turn an approval into another name's. */
	if (facts->pending && facts->pending->approved_name[0])
		return facts->pending->approved_name;
	if (facts->token && facts->token->node[0])
		return facts->token->node;
	return facts->hostname;
}

static void say(struct enroll_decision *d, enum enroll_verdict verdict,
		const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void say(struct enroll_decision *d, enum enroll_verdict verdict,
		const char *fmt, ...)
{
	va_list ap;

	d->verdict = verdict;
	va_start(ap, fmt);
	(void)vsnprintf(d->reason, sizeof(d->reason), fmt, ap);
	va_end(ap);
	fault_sanitize(d->reason);
}

/* true: the token does not speak for this request, and the reason is set. */
static bool token_fails(const struct enroll_facts *facts,
			struct enroll_decision *d)
{
	const struct store_token *t = facts->token;

	if (!t) {
		say(d, ENROLL_WAIT, "its token is not one of ours");
		return true;
	}
	/* The answer may have been lost: the same key may ask again. */
	if (t->used && memcmp(t->used_by, facts->report_key, 32) != 0) {
		say(d, ENROLL_WAIT, "its token was used by another machine");
		return true;
	}
	if (!t->used && t->expires_at <= facts->now) {
		say(d, ENROLL_WAIT, "its token expired");
		return true;
	}
	return false;
}

static void decide_name(const struct enroll_facts *facts,
			struct enroll_decision *d)
{
	const char *name = enroll_name(facts);

	if (!parse_is_label(name))
		say(d, ENROLL_WAIT,
		    "\"%.64s\" is no name for a node: approve it with --name",
		    name);
	else if (facts->name_taken)
		say(d, ENROLL_WAIT,
		    "the name %.64s is another node's: approve it with "
		    "--name, or revoke the other one first",
		    name);
	else {
		d->verdict = ENROLL_ISSUE;
		d->reason[0] = '\0';
		(void)snprintf(d->name, sizeof(d->name), "%s", name);
	}
}

void enroll_decide(const struct enroll_facts *facts,
		   struct enroll_decision *d)
{
	memset(d, 0, sizeof(*d));
	if (facts->known && facts->known->state != STORE_NODE_ACTIVE) {
		say(d, ENROLL_REFUSE,
		    "the key of node %s, which was revoked: run "
		    "garboard-agent reset-identity there",
		    facts->known->name);
		return;
	}
	if (facts->pending && facts->pending->rejected) {
		say(d, ENROLL_REFUSE, "it was rejected");
		return;
	}
	/* Identity is the key; the machine-id is only evidence (TL-01). */
	if (facts->machine && !facts->known) {
		say(d, ENROLL_WAIT,
		    "its machine-id is that of node %s (%s), it comes from "
		    "%s: give it a new /etc/machine-id, or revoke %s",
		    facts->machine->name,
		    facts->machine_peer[0] ? facts->machine_peer :
					     "not connected",
		    facts->peer, facts->machine->name);
		return;
	}
	if (facts->known) {	/* proved its key; its link lost its own */
		decide_name(facts, d);
		return;
	}
	if (facts->pending && facts->pending->approved_name[0]) {
		decide_name(facts, d);
		return;
	}
	if (!facts->token_given) {
		say(d, ENROLL_WAIT, "it has no token");
		return;
	}
	if (!token_fails(facts, d))
		decide_name(facts, d);
}
