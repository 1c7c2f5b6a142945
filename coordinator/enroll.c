#include "coordinator/enroll.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/parse.h"
#include "coordinator/conn.h"
#include "coordinator/enroll_rules.h"
#include "coordinator/fleet.h"
#include "coordinator/fleet_internal.h"
#include "coordinator/journal.h"
#include "coordinator/leaf.h"
#include "coordinator/signer.h"
#include "coordinator/store.h"
#include "proto/envelope.h"
#include "proto/frame.h"
#include "proto/up.h"

#define TOKEN_PREFIX "gbt-"
#define TOKEN_BYTES 20
#define UNREAD_MAX 4096		/* queued for a stranger that only asks */
#define TURN_MAX 64		/* requests judged together */

/* A connection, and the request it made, once it did. */
struct applicant {
	TAILQ_ENTRY(applicant) link;
	struct enroll *enroll;
	struct conn *conn;
	struct up *request;	/* NULL until a verified one came */
	uint8_t binding[ENVELOPE_BINDING_SIZE];
	uint8_t node_id[ENVELOPE_ID_SIZE];	/* zero: not yet a node */
	bool queued;		/* to be judged in the next turn */
	bool issued;
	uint8_t *answer;	/* an encoded order, until it is sent */
	size_t answer_size;
	struct fault fault;	/* of this turn */
};

struct enroll {
	struct fleet *fleet;
	struct store *store;
	struct signer *signer;
	struct journal *journal;
	sd_event_source *turn;
	TAILQ_HEAD(applicants, applicant) applicants;
	size_t n_applicants;
};

static int on_turn(sd_event_source *source, void *userdata);

struct enroll *enroll_new(sd_event *event, struct fleet *fleet,
			  struct store *store, struct signer *signer,
			  struct journal *journal)
{
	struct enroll *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->fleet = fleet;
	e->store = store;
	e->signer = signer;
	e->journal = journal;
	TAILQ_INIT(&e->applicants);
	if (sd_event_add_defer(event, &e->turn, on_turn, e) < 0)
		return enroll_free(e);
	(void)sd_event_source_set_enabled(e->turn, SD_EVENT_OFF);
	return e;
}

struct enroll *enroll_free(struct enroll *e)
{
	struct applicant *a;

	if (!e)
		return NULL;
	while ((a = TAILQ_FIRST(&e->applicants)))
		conn_close(a->conn, -ESHUTDOWN, "the coordinator ends");
	(void)sd_event_source_disable_unref(e->turn);
	free(e);
	return NULL;
}

/* ---- tokens ---- */

static int token_hash(const char *text, uint8_t ret_hash[32])
{
	return key_sha256(text, strlen(text), ret_hash);
}

int enroll_token(struct store *store, const char *node, usec life,
		 char ret_text[ENROLL_TOKEN_TEXT + 1], struct fault *f)
{
	char text[ENROLL_TOKEN_TEXT + 1] = TOKEN_PREFIX;
	struct store_token t = { .created_at = clock_realtime() };
	uint8_t secret[TOKEN_BYTES];
	int r;

	if (node[0] && !parse_is_label(node))
		return fault_set(f, -EINVAL, node, "is no name for a node");
	if (life == 0 || life > ENROLL_TOKEN_LIFE_MAX)
		return fault_set(f, -EINVAL, "token",
				 "a life of one second to a year");
	r = key_random(secret, sizeof(secret));
	if (r < 0)
		return fault_errno(f, r, "token", "no random bytes");
	format_hex(secret, sizeof(secret), text + strlen(TOKEN_PREFIX));
	r = token_hash(text, t.hash);
	if (r < 0)
		return fault_errno(f, r, "token", "cannot hash");
	(void)snprintf(t.node, sizeof(t.node), "%s", node);
	t.expires_at = t.created_at + life;
	r = store_token_add(store, &t, f);
	if (r < 0)
		return r;
	memcpy(ret_text, text, sizeof(text));
	key_wipe(text, sizeof(text));
	return 0;
}

/* ---- one request ---- */

struct looked_up {
	struct store_token token;
	struct store_pending pending;
	struct enroll_facts facts;
};

static int look_up(struct enroll *e, const struct applicant *a,
		   struct looked_up *l, struct fault *f)
{
	const struct up_enrol *req = &a->request->enrol;
	struct fleet_node *known, *machine, *named;
	struct enroll_facts *facts = &l->facts;
	uint8_t hash[32];
	int r;

	memset(l, 0, sizeof(*l));
	facts->now = clock_realtime();
	facts->hostname = req->identity.hostname;
	facts->peer = conn_peer(a->conn);
	facts->report_key = req->report_key;
	facts->machine_peer = "";
	facts->token_given = req->token[0] != '\0';
	if (facts->token_given) {
		r = token_hash(req->token, hash);
		if (r == 0)
			r = store_token_get(e->store, hash, &l->token, f);
		if (r < 0 && r != -ENOENT)
			return r;
		facts->token = r == 0 ? &l->token : NULL;
	}
	r = store_pending_get(e->store, req->report_key, &l->pending, f);
	if (r < 0 && r != -ENOENT)
		return r;
	facts->pending = r == 0 ? &l->pending : NULL;
	known = fleet_by_key(e->fleet, req->report_key);
	facts->known = known ? &known->row : NULL;
	machine = fleet_by_machine(e->fleet, req->identity.machine_id,
				   known ? known->row.id : NULL);
	if (machine) {
		facts->machine = &machine->row;
		facts->machine_peer = fleet_peer(machine);
	}
	named = fleet_by_name(e->fleet, enroll_name(facts));
	facts->name_taken = named && named != known;
	return 0;
}

static int queue_request(struct enroll *e, const struct applicant *a,
			 const struct enroll_decision *d, struct fault *f)
{
	const struct up_enrol *req = &a->request->enrol;
	struct store_pending p = { .first_at = clock_realtime() };
	char fingerprint[KEY_FINGERPRINT_TEXT];
	int r;

	memcpy(p.report_key, req->report_key, sizeof(p.report_key));
	(void)snprintf(p.hostname, sizeof(p.hostname), "%.63s",
		       req->identity.hostname);
	(void)snprintf(p.machine_id, sizeof(p.machine_id), "%.63s",
		       req->identity.machine_id);
	(void)snprintf(p.address, sizeof(p.address), "%.63s",
		       conn_peer(a->conn));
	(void)snprintf(p.reason, sizeof(p.reason), "%s", d->reason);
	/* Cut inside a character it would no longer be text: JSON refuses
	 * it, and a stranger could make the whole list unreadable. */
	fault_sanitize(p.hostname);
	fault_sanitize(p.machine_id);
	fault_sanitize(p.reason);
	p.last_at = p.first_at;
	r = store_pending_put(e->store, &p, f);
	if (r < 0)
		return r;
	key_fingerprint(req->report_key, fingerprint);
	journal_note(e->journal, "enrolment", p.hostname,
		     "%s waits for approval (%s): %s; compare the fingerprint, "
		     "then garboard enroll approve %s",
		     p.address, fingerprint, d->reason, fingerprint);
	fleet_changed(e->fleet);
	return 0;
}

/* The node's row, its token and its request change together. */
static int record(struct enroll *e, const struct looked_up *l,
		  const struct up_enrol *req, struct store_node *row,
		  struct fault *f)
{
	struct fleet_node *known = fleet_by_key(e->fleet, req->report_key);
	int r, end;

	r = store_part_begin(e->store, f);
	if (r < 0)
		return r;
	if (l->facts.token && !l->token.used)
		r = store_token_use(e->store, l->token.hash, req->report_key,
				    f);
	if (r >= 0 && l->facts.pending)
		r = store_pending_remove(e->store, req->report_key, f);
	if (r >= 0 && known) {
		memcpy(known->row.certificate, row->certificate, 32);
		memcpy(known->row.seal_key, row->seal_key, 32);
		r = fleet_save(e->fleet, known, f);
	} else if (r >= 0) {
		r = fleet_add(e->fleet, row, f);
	}
	end = store_part_end(e->store, r >= 0, r >= 0 ? f : NULL);
	return r < 0 ? r : end;
}

static int new_row(const struct looked_up *l, const struct up_enrol *req,
		   const char *name, struct store_node *row)
{
	memset(row, 0, sizeof(*row));
	row->enrolled_at = clock_realtime();
	(void)snprintf(row->name, sizeof(row->name), "%s", name);
	(void)snprintf(row->machine_id, sizeof(row->machine_id), "%.63s",
		       req->identity.machine_id);
	memcpy(row->report_key, req->report_key, sizeof(row->report_key));
	memcpy(row->seal_key, req->seal_key, sizeof(row->seal_key));
	if (l->facts.known) {
		memcpy(row->id, l->facts.known->id, sizeof(row->id));
		return 0;
	}
	return key_random(row->id, sizeof(row->id));
}

/* Only after the commit: what a node was given is never forgotten. */
static int send_answer(struct enroll *e, struct applicant *a, struct fault *f)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	uint64_t epoch, sequence;
	size_t n = 0;
	int r;

	r = fleet_sequence(e->fleet, &epoch, &sequence, f);
	if (r < 0)
		return r;
	r = signer_order(e->signer, a->node_id, epoch, sequence, a->binding,
			 a->answer, a->answer_size, &bytes, &n, f);
	if (r < 0)
		return r;
	r = conn_send(a->conn, FRAME_STATEMENT, signer_statement(e->signer),
		      STATEMENT_SIZE);
	if (r == 0)
		r = conn_send(a->conn, FRAME_ENVELOPE, bytes, n);
	return r < 0 ? fault_errno(f, r, conn_peer(a->conn), "cannot answer") :
		       0;
}

static int issue(struct enroll *e, struct applicant *a,
		 const struct looked_up *l, const char *name, struct fault *f)
{
	const struct up_enrol *req = &a->request->enrol;
	struct store_node row;
	int r;

	r = new_row(l, req, name, &row);
	if (r < 0)
		return fault_errno(f, r, name, "no random bytes");
	r = leaf_order(e->signer, req->csr.v, req->csr.n, row.id, name,
		       time(NULL), row.certificate, &a->answer,
		       &a->answer_size, f);
	if (r < 0)
		return r;
	r = record(e, l, req, &row, f);
	if (r < 0)
		return r;
	journal_note(e->journal, "enrolment", name, "enrolled from %s",
		     conn_peer(a->conn));
	return 0;
}

static int judge(struct enroll *e, struct applicant *a, struct fault *f)
{
	struct enroll_decision d;
	struct looked_up l;
	int r;

	r = look_up(e, a, &l, f);
	if (r < 0)
		return r;
	enroll_decide(&l.facts, &d);
	switch (d.verdict) {
	case ENROLL_ISSUE:
		return issue(e, a, &l, d.name, f);
	case ENROLL_WAIT:
		return queue_request(e, a, &d, f);
	case ENROLL_REFUSE:
	case ENROLL_VERDICT_MAX:
		break;
	}
	return fault_set(f, -EACCES, conn_peer(a->conn), "enrolment: %s",
			 d.reason);
}

/* ---- turns ---- */

/*
 * Requests that came together are judged in one transaction: a fleet that
 * enrols at once costs a flush of the disk per turn, not per node.
 */
static int judge_queued(struct enroll *e, struct applicant **turn, int *ret_n)
{
	struct fault f = FAULT_INIT;
	struct applicant *a;
	int n = 0, r;

	r = store_begin(e->store, &f);
	TAILQ_FOREACH(a, &e->applicants, link) {
		if (!a->queued || n == TURN_MAX)
			continue;
		a->queued = false;
		a->fault = FAULT_INIT;
		turn[n++] = a;
		if (r == 0)
			(void)judge(e, a, &a->fault);
	}
	if (r == 0)
		r = store_end(e->store, true, &f);
	for (int i = 0; r < 0 && i < n; i++)
		turn[i]->fault = f;
	*ret_n = n;
	return r;
}

static void finish(struct enroll *e, struct applicant *a)
{
	if (a->answer && !a->fault.err) {
		a->issued = true;
		(void)send_answer(e, a, &a->fault);
	}
	free(a->answer);
	a->answer = NULL;
	if (a->fault.err)
		conn_close(a->conn, a->fault.err, a->fault.text);
}

static int on_turn(sd_event_source *source, void *userdata)
{
	struct applicant *turn[TURN_MAX];
	struct enroll *e = userdata;
	int n = 0;

	(void)judge_queued(e, turn, &n);
	for (int i = 0; i < n; i++)
		finish(e, turn[i]);
	if (n == TURN_MAX)
		(void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	return 0;
}

static void enqueue(struct applicant *a)
{
	a->queued = true;
	(void)sd_event_source_set_enabled(a->enroll->turn, SD_EVENT_ONESHOT);
}

/* ---- connections ---- */

/* A node that lost only its certificate; its requests are no replays. */
static int check_known(struct enroll *e, const struct envelope_header *h,
		       struct fleet_node *known, const char *peer,
		       struct fault *f)
{
	struct store_node *row = &known->row;

	if (envelope_compare(row->up_epoch, row->up_sequence, h->epoch,
			     h->sequence) != ENVELOPE_NEXT)
		return fault_set(f, -EBADMSG, peer,
				 "a request of node %s that was sent before "
				 "(replay)", row->name);
	row->up_epoch = h->epoch;
	row->up_sequence = h->sequence;
	fleet_touch(e->fleet, known);
	return 0;
}

/* The key is inside: possession is proved before anything else is used. */
static int read_request(struct applicant *a, const uint8_t *bytes, size_t size,
			struct fault *f)
{
	struct envelope_expect expect = { .direction = ENVELOPE_UP };
	static const uint8_t nobody[ENVELOPE_ID_SIZE];
	const char *peer = conn_peer(a->conn);
	struct fleet_node *known;
	enum envelope_reason reason;
	uint8_t digest[32];
	struct envelope e;
	int r;

	reason = envelope_peek(bytes, size, &e);
	if (reason != ENVELOPE_OK)
		return fault_set(f, -EBADMSG, peer, "%s",
				 envelope_reason_text(reason));
	r = up_decode(e.payload, e.header.length, &a->request, f);
	if (r < 0)
		return r;
	if (a->request->kind != UP_ENROL)
		return fault_set(f, -EPROTO, peer,
				 "no certificate and no request for one");
	memcpy(expect.cluster_id, signer_cluster_id(a->enroll->signer), 16);
	memcpy(expect.public_key, a->request->enrol.report_key, 32);
	known = fleet_by_key(a->enroll->fleet, expect.public_key);
	if (known && memcmp(e.header.node_id, nobody, sizeof(nobody)) != 0)
		memcpy(expect.node_id, known->row.id, sizeof(expect.node_id));
	reason = envelope_verify(bytes, size, &expect, &e);
	if (reason != ENVELOPE_OK)
		return fault_set(f, -EBADMSG, peer, "%s",
				 envelope_reason_text(reason));
	r = known ? check_known(a->enroll, &e.header, known, peer, f) : 0;
	if (r < 0)
		return r;
	r = key_sha256(e.payload, e.header.length, digest);
	if (r < 0)
		return fault_errno(f, r, peer, "cannot hash");
	memcpy(a->node_id, expect.node_id, sizeof(a->node_id));
	memcpy(a->binding, digest, sizeof(a->binding));
	return 0;
}

static int on_frame(void *owner, struct conn *c, uint8_t type,
		    const uint8_t *body, size_t size, struct fault *f)
{
	struct applicant *a = owner;
	int r;

	if (type == FRAME_PING && conn_queued(c) > UNREAD_MAX)
		return fault_set(f, -ENOBUFS, conn_peer(c),
				 "does not read what it asked for");
	if (type == FRAME_PING)
		return conn_send(c, FRAME_PONG, body, size);
	if (type != FRAME_ENVELOPE)
		return fault_set(f, -EPROTO, conn_peer(c),
				 "frame %u has no place before enrolment",
				 type);
	/* What follows is the result of our order; the certificate shows. */
	if (a->issued)
		return 0;
	if (a->request)
		return fault_set(f, -EPROTO, conn_peer(c),
				 "one request per connection");
	r = read_request(a, body, size, f);
	if (r == 0)
		enqueue(a);
	return r;
}

static int on_ready(void *owner, struct conn *c, struct fault *f)
{
	(void)owner, (void)c, (void)f;
	return 0;
}

static void on_closed(void *owner, struct conn *c, const struct fault *why)
{
	struct applicant *a = owner;

	if (why->err != -EPIPE && why->err != -ESHUTDOWN)
		journal_refused(a->enroll->journal, conn_peer(c), why->text,
				clock_boottime());
	TAILQ_REMOVE(&a->enroll->applicants, a, link);
	a->enroll->n_applicants--;
	(void)up_free(a->request);
	free(a->answer);
	free(a);
}

static const struct conn_ops applicant_ops = {
	.frame = on_frame,
	.ready = on_ready,
	.closed = on_closed,
};

int enroll_attach(struct enroll *e, struct conn *c, struct fault *f)
{
	struct applicant *a = calloc(1, sizeof(*a));

	if (!a)
		return fault_set(f, -ENOMEM, conn_peer(c), "out of memory");
	a->enroll = e;
	a->conn = c;
	if (e->n_applicants >= ENROLL_WAITING_MAX)
		conn_close(TAILQ_FIRST(&e->applicants)->conn, -EPIPE,
			   "others wait too");
	TAILQ_INSERT_TAIL(&e->applicants, a, link);
	e->n_applicants++;
	conn_set_owner(c, &applicant_ops, a);
	return 0;
}

/* ---- approval ---- */

struct search {
	const char *fingerprint;
	struct store_pending found;
	size_t n;
};

static int match_fingerprint(const struct store_pending *p, void *arg)
{
	char text[KEY_FINGERPRINT_TEXT];
	struct search *s = arg;

	key_fingerprint(p->report_key, text);
	if (strcmp(text, s->fingerprint) == 0) {
		s->found = *p;
		s->n++;
	}
	return 0;
}

static int find_pending(struct enroll *e, const char *fingerprint,
			struct store_pending *ret_pending, struct fault *f)
{
	struct search s = { .fingerprint = fingerprint };
	int r;

	r = store_pendings(e->store, match_fingerprint, &s, f);
	if (r < 0)
		return r;
	if (s.n != 1)
		return fault_set(f, -ENOENT, fingerprint,
				 "no request with that fingerprint waits: see "
				 "garboard enroll list");
	*ret_pending = s.found;
	return 0;
}

int enroll_approve(struct enroll *e, const char *fingerprint,
		   const char *name, struct fault *f)
{
	struct store_pending p;
	struct fleet_node *machine;
	struct applicant *a;
	int r;

	r = find_pending(e, fingerprint, &p, f);
	if (r < 0)
		return r;
	if (!name[0])
		name = p.hostname;
	if (!parse_is_label(name))
		return fault_set(f, -EINVAL, name,
				 "is no name for a node: give one with --name");
	if (fleet_by_name(e->fleet, name))
		return fault_set(f, -EEXIST, name,
				 "is the name of another node: revoke that "
				 "one first, or give another with --name");
	machine = fleet_by_machine(e->fleet, p.machine_id, NULL);
	if (machine)	/* TL-01: an approval would not help it */
		return fault_set(f, -EEXIST, fingerprint,
				 "has the machine-id of node %s: give it a new "
				 "/etc/machine-id, or revoke that node first",
				 machine->row.name);
	r = store_pending_decide(e->store, p.report_key, name, false, f);
	if (r < 0)
		return r;
	journal_note(e->journal, "enrolment", name, "approved (%s)",
		     fingerprint);
	TAILQ_FOREACH(a, &e->applicants, link)
		if (a->request && !a->issued &&
		    memcmp(a->request->enrol.report_key, p.report_key, 32) == 0)
			enqueue(a);
	return 0;
}

int enroll_reject(struct enroll *e, const char *fingerprint, struct fault *f)
{
	struct store_pending p;
	struct applicant *a, *next;
	int r;

	r = find_pending(e, fingerprint, &p, f);
	if (r < 0)
		return r;
	r = store_pending_decide(e->store, p.report_key, "", true, f);
	if (r < 0)
		return r;
	journal_note(e->journal, "enrolment", p.hostname, "rejected (%s)",
		     fingerprint);
	for (a = TAILQ_FIRST(&e->applicants); a; a = next) {
		next = TAILQ_NEXT(a, link);
		if (a->request && memcmp(a->request->enrol.report_key,
					 p.report_key, 32) == 0)
			conn_close(a->conn, -EACCES, "rejected");
	}
	return 0;
}

static int list_one(const struct store_pending *p, void *arg)
{
	char text[KEY_FINGERPRINT_TEXT];
	json_t *o;

	key_fingerprint(p->report_key, text);
	o = json_pack("{ss ss ss ss ss sb ss sI sI}", "fingerprint", text,
		      "hostname", p->hostname, "machine_id", p->machine_id,
		      "address", p->address, "reason", p->reason, "rejected",
		      p->rejected, "approved_as", p->approved_name, "first",
		      (json_int_t)p->first_at, "last", (json_int_t)p->last_at);
	if (!o || json_array_append_new(arg, o) < 0)
		return -ENOMEM;
	return 0;
}

int enroll_list(struct enroll *e, json_t **ret_list, struct fault *f)
{
	json_t *list = json_array();
	int r;

	if (!list)
		return fault_set(f, -ENOMEM, "enrolment", "out of memory");
	r = store_pendings(e->store, list_one, list, f);
	if (r < 0) {
		json_decref(list);
		return r;
	}
	*ret_list = list;
	return 0;
}
