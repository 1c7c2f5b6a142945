#include "coordinator/gate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"

const char *gate_rating_name(enum gate_rating rating)
{
	static const char *const names[GATE_RATING_MAX] = {
		[GATE_MATCH] = "match",
		[GATE_DIFFERENT] = "different",
		[GATE_ABSENT] = "absent",
		[GATE_UNOBSERVABLE] = "unobservable",
	};

	return rating < GATE_RATING_MAX ? names[rating] : "unknown";
}

/* What the cluster is held against, once it is known. */
struct reference {
	bool known;			/* founded: a uid is recorded */
	bool intended;			/* only our intent is recorded */
	struct founding_record record;
	const char *where;
};

static void evidence(struct gate_result *r, const char *where,
		     const char *what, enum gate_rating rating,
		     const char *text)
{
	struct gate_evidence *e = &r->v[r->n++];

	(void)snprintf(e->where, sizeof(e->where), "%s", where);
	(void)snprintf(e->text, sizeof(e->text), "%s", text);
	e->what = what;
	e->rating = rating;
}

/*
 * The operator host's own record counts first. Where that was lost, the
 * record that servers keep stands in: they hold a copy for this very day.
 */
static struct reference find_reference(const struct gate_input *in)
{
	struct reference ref = { 0 };
	size_t i;

	if (in->has_record) {
		ref.record = in->record;
		ref.where = "operator host";
	}
	for (i = 0; i < in->n_servers && !ref.where; i++) {
		if (!in->servers[i].has_record ||
		    !in->servers[i].record.cluster_uid[0])
			continue;
		ref.record = in->servers[i].record;
		ref.where = in->servers[i].name;
	}
	ref.known = ref.where && ref.record.cluster_uid[0];
	ref.intended = ref.where && !ref.known && ref.record.intent;
	return ref;
}

static enum gate_rating rate_record(const struct reference *ref,
				    const struct gate_server *s)
{
	if (!s->has_record)
		return GATE_ABSENT;
	if (ref->known && s->record.cluster_uid[0])
		return strcmp(ref->record.cluster_uid,
			      s->record.cluster_uid) == 0 ?
			       GATE_MATCH : GATE_DIFFERENT;
	/* Before the uid is known everywhere, the intent is the tie. */
	if (ref->where && ref->record.intent)
		return ref->record.intent == s->record.intent ?
			       GATE_MATCH : GATE_DIFFERENT;
	return ref->known || !ref->where ? GATE_DIFFERENT : GATE_ABSENT;
}

static enum gate_rating rate_ca(const struct reference *ref,
				const struct gate_server *s)
{
	char want[65];

	if (!s->ca_sha256[0])
		return GATE_ABSENT;
	if (!ref->where || !ref->record.has_ca)
		/* Ours is not known yet: only a founding in flight may. */
		return ref->intended ? GATE_MATCH : GATE_DIFFERENT;
	format_hex(ref->record.ca_sha256, 32, want);
	return strcmp(want, s->ca_sha256) == 0 ? GATE_MATCH : GATE_DIFFERENT;
}

/* Data without any record is a cluster somebody else founded. */
static enum gate_rating rate_data(const struct reference *ref,
				  const struct gate_server *s)
{
	if (!s->has_data)
		return GATE_ABSENT;
	return ref->where ? GATE_MATCH : GATE_DIFFERENT;
}

static void judge_server(const struct reference *ref,
			 const struct gate_server *s, struct gate_result *r)
{
	if (!s->observed) {
		evidence(r, s->name, "server", GATE_UNOBSERVABLE,
			 s->why ? s->why : "not seen");
		return;
	}
	evidence(r, s->name, "founding record", rate_record(ref, s),
		 s->has_record ? s->record.cluster_uid[0] ?
				 s->record.cluster_uid : "an intent" : "");
	evidence(r, s->name, "etcd data", rate_data(ref, s),
		 s->has_data ? "there" : "");
	evidence(r, s->name, "cluster CA", rate_ca(ref, s), s->ca_sha256);
}

static void judge_identity(const struct gate_input *in,
			   const struct reference *ref, struct gate_result *r)
{
	const char *uid = ref->known ? ref->record.cluster_uid : NULL;

	evidence(r, ref->where ? ref->where : "operator host",
		 "founding record",
		 ref->where ? GATE_MATCH : GATE_ABSENT,
		 uid ? uid : ref->intended ? "an intent" : "");
	if (in->pin)
		evidence(r, "spec", "clusterId",
			 strcmp(in->cluster_id, in->pin) == 0 ?
				 GATE_MATCH : GATE_DIFFERENT,
			 in->pin);
	if (in->live_uid)
		evidence(r, "API", "kube-system uid",
			 !uid ? ref->intended ? GATE_MATCH : GATE_DIFFERENT :
			 strcmp(uid, in->live_uid) == 0 ? GATE_MATCH :
							  GATE_DIFFERENT,
			 in->live_uid);
}

static const struct gate_evidence *first_of(const struct gate_result *r,
					    enum gate_rating rating)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		if (r->v[i].rating == rating)
			return &r->v[i];
	return NULL;
}

/* A founder whose disk was wiped would found a second cluster (trap 8). */
static const struct gate_server *wiped_founder(const struct gate_input *in,
					       const struct reference *ref)
{
	size_t i;

	for (i = 0; ref->known && i < in->n_servers; i++)
		if (in->servers[i].observed && !in->servers[i].has_data &&
		    strcmp(in->servers[i].name, ref->record.founder) == 0)
			return &in->servers[i];
	return NULL;
}

static void decide(const struct gate_input *in, const struct reference *ref,
		   struct gate_result *r)
{
	const struct gate_evidence *e = first_of(r, GATE_DIFFERENT);

	if (e) {
		r->verdict = GATE_STOP_DIFFERENT;
		(void)snprintf(r->text, sizeof(r->text),
			       "%s of %s is not this cluster's (%s); nothing "
			       "was changed. If that machine belongs to "
			       "another cluster, take it out of the spec; if "
			       "it is to be used anew, wipe it first",
			       e->what, e->where, e->text);
		return;
	}
	e = first_of(r, GATE_UNOBSERVABLE);
	if (e) {
		r->verdict = GATE_STOP_UNKNOWN;
		(void)snprintf(r->text, sizeof(r->text),
			       "cannot tell whether %s belongs to a cluster: "
			       "%s; nothing was changed. Bring it back, or "
			       "take it out of the spec",
			       e->where, e->text);
		return;
	}
	r->verdict = ref->known ? GATE_KNOWN :
		     ref->intended ? GATE_RESUME_FOUNDING : GATE_MAY_FOUND;
	if (ref->known)
		(void)snprintf(r->text, sizeof(r->text),
			       "cluster %s, founded on %s%s",
			       ref->record.cluster_uid, ref->record.founder,
			       wiped_founder(in, ref) ?
				       ", whose disk has no etcd data: it may "
				       "only join again" : "");
	else if (ref->intended)
		(void)snprintf(r->text, sizeof(r->text),
			       "founding on %s was begun by us and is resumed",
			       ref->record.founder);
	else
		(void)snprintf(r->text, sizeof(r->text),
			       "no trace of a cluster anywhere: it may be "
			       "founded on %s", in->founder);
}

int gate_judge(const struct gate_input *in, struct gate_result *ret_result)
{
	struct gate_result r = { 0 };
	struct reference ref = find_reference(in);
	size_t i;

	if (3 * in->n_servers + 4 > GATE_EVIDENCE_MAX)
		return -E2BIG;
	r.v = calloc(3 * in->n_servers + 4, sizeof(*r.v));
	if (!r.v)
		return -ENOMEM;
	(void)snprintf(r.founder, sizeof(r.founder), "%s",
		       ref.where && ref.record.founder[0] ?
			       ref.record.founder : in->founder);
	judge_identity(in, &ref, &r);
	for (i = 0; i < in->n_servers; i++)
		judge_server(&ref, &in->servers[i], &r);
	decide(in, &ref, &r);
	*ret_result = r;
	return 0;
}

void gate_result_done(struct gate_result *r)
{
	free(r->v);
	*r = (struct gate_result){ 0 };
}
