#include "coordinator/fleet_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "coordinator/conn.h"
#include "coordinator/leaf.h"
#include "proto/envelope.h"
#include "proto/frame.h"
#include "proto/up.h"

#define REFUSALS_MAX 16		/* then the connection is not worth having */
#define QUEUE_ENOUGH (1024 * 1024)
#define RENEW_EVERY (60 * USEC_PER_SEC)
#define RENEW_TIME (60 * USEC_PER_SEC)
#define PROBE_SIZE 8
#define PARKED_MAX 16		/* frames of a session that waits its turn */
#define PARKED_BYTES (1024u * 1024)

struct parked {
	uint8_t type;
	size_t size;
	uint8_t *body;
};

struct session {
	struct fleet *fleet;
	struct fleet_node *node;
	struct conn *conn;
	struct session *next;
	bool hello;		/* nonce is valid */
	bool renew_only;	/* its certificate has expired */
	uint8_t nonce[UP_NONCE_SIZE];
	unsigned int refusals;
	usec renewed;
	/* while an older session is asked whether it lives (TL-02) */
	sd_event_source *probe;
	uint8_t probe_body[PROBE_SIZE];
	struct parked parked[PARKED_MAX];
	size_t n_parked, parked_bytes;
};

const char *session_peer(const struct session *s)
{
	return conn_peer(s->conn);
}

bool session_ready(const struct session *s)
{
	return s->hello && !s->renew_only && !s->node->held[0];
}

static void session_free(struct session *s)
{
	struct session **at = &s->fleet->sessions;

	while (*at && *at != s)
		at = &(*at)->next;
	if (*at)
		*at = s->next;
	(void)sd_event_source_disable_unref(s->probe);
	for (size_t i = 0; i < s->n_parked; i++)
		free(s->parked[i].body);
	free(s);
}

void session_close(struct session *s, int err, const char *reason)
{
	conn_close(s->conn, err, reason);
}

void session_close_all(struct fleet *fleet)
{
	while (fleet->sessions)
		session_close(fleet->sessions, -ESHUTDOWN,
			      "the coordinator ends");
}

void session_close_node(struct fleet *fleet, struct fleet_node *n, int err,
			const char *reason)
{
	struct session *s = fleet->sessions, *next;

	for (; s; s = next) {
		next = s->next;
		if (s->node == n)
			session_close(s, err, reason);
	}
}

int session_send_order(struct session *s, uint64_t epoch, uint64_t sequence,
		       const void *payload, size_t size, struct fault *f)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t n = 0;
	int r;

	if (conn_queued(s->conn) > QUEUE_ENOUGH)
		return -EAGAIN;
	r = signer_order(s->fleet->signer, s->node->row.id, epoch, sequence,
			 s->nonce, payload, size, &bytes, &n, f);
	if (r < 0)
		return r;
	return conn_send(s->conn, FRAME_ENVELOPE, bytes, n);
}

/* ---- what a node says ---- */

/* Drops it; a peer that goes on is closed. */
static int refuse(struct session *s, const char *reason, struct fault *f)
{
	char who[CONN_PEER_MAX + STORE_NAME_MAX + 8];

	(void)snprintf(who, sizeof(who), "%s (%s)", s->node->row.name,
		       session_peer(s));
	journal_refused(s->fleet->journal, who, reason, clock_boottime());
	if (++s->refusals < REFUSALS_MAX)
		return 0;
	return fault_set(f, -EBADMSG, who, "too much was refused, last: %s",
			 reason);
}

static void keep(struct store_blob *blob, const void *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		return;		/* the earlier one stays */
	memcpy(copy, data, size);
	free(blob->data);
	*blob = (struct store_blob){ copy, size };
}

static void hold(struct session *s, usec until, const char *text)
{
	struct fleet_node *n = s->node;

	if (strcmp(n->held, text) != 0)
		journal_note(s->fleet->journal, "alarm", n->row.name,
			     "held: %s", text);
	(void)snprintf(n->held, sizeof(n->held), "%s", text);
	fault_sanitize(n->held);
	n->held_until = until;
	fleet_changed(s->fleet);
}

/*
 * Another node with the same machine-id: whoever had it first is not
 * disturbed, the other one is held and both are named (TL-01). First is who
 * the store knows it of already: a node that takes on the id of another one
 * later holds itself, however long it has been with us, and a claim of its
 * does not stop anybody. Two that both had it: the later enrolled one.
 */
static bool hold_duplicate(struct session *s, const struct up_hello *h)
{
	struct fleet_node *n = s->node, *other;
	char text[FLEET_HELD_MAX];

	other = fleet_by_machine(s->fleet, h->identity.machine_id, n->row.id);
	if (!other)
		return false;
	if (strcmp(n->row.machine_id, h->identity.machine_id) == 0 &&
	    (other->row.enrolled_at > n->row.enrolled_at ||
	     (other->row.enrolled_at == n->row.enrolled_at &&
	      memcmp(other->row.id, n->row.id, sizeof(n->row.id)) > 0)))
		return false;
	(void)snprintf(text, sizeof(text),
		       "machine-id %.40s is also that of node %s (%s); this is "
		       "%s: give one of them a new /etc/machine-id",
		       h->identity.machine_id, other->row.name,
		       fleet_peer(other), session_peer(s));
	hold(s, 0, text);
	return true;
}

/* A node ahead of us has obeyed a coordinator with a later state. */
static bool hold_future(struct session *s, const struct up_hello *h)
{
	struct fleet *fleet = s->fleet;
	char text[FLEET_HELD_MAX];

	if (fleet_horizon(fleet, NULL) < 0 || h->epoch < fleet->epoch ||
	    (h->epoch == fleet->epoch && h->sequence < fleet->next))
		return false;
	(void)snprintf(text, sizeof(text),
		       "it has obeyed order %llu of epoch %llu, which this "
		       "coordinator (at %llu of %llu) never gave: the state "
		       "directory is older than the fleet",
		       (unsigned long long)h->sequence,
		       (unsigned long long)h->epoch,
		       (unsigned long long)fleet->next,
		       (unsigned long long)fleet->epoch);
	hold(s, 0, text);
	return true;
}

static int on_hello(struct session *s, const struct up_hello *h,
		    const void *payload, size_t size)
{
	struct fleet_node *n = s->node;
	bool duplicate;
	int r;

	memcpy(s->nonce, h->nonce, sizeof(s->nonce));
	s->hello = true;
	keep(&n->row.hello, payload, size);
	r = conn_send(s->conn, FRAME_STATEMENT,
		      signer_statement(s->fleet->signer), STATEMENT_SIZE);
	if (r < 0)
		return r;
	duplicate = hold_duplicate(s, h);
	if (!duplicate)
		(void)snprintf(n->row.machine_id, sizeof(n->row.machine_id),
			       "%s", h->identity.machine_id);
	if (!duplicate && !hold_future(s, h) && !n->held_until)
		n->held[0] = '\0';
	fleet_changed(s->fleet);
	dispatch_rewind(n);
	dispatch_run(s->fleet, n);
	return 0;
}

static void renewed(void *userdata, int err, const uint8_t *result,
		    size_t size, const struct fault *why)
{
	(void)userdata, (void)err, (void)result, (void)size, (void)why;
}

/* Inside its own session a node asks for a new certificate, same identity. */
static int on_renewal(struct session *s, const struct up_enrol *e,
		      struct fault *f)
{
	struct fleet_node *n = s->node;
	_cleanup_free_ uint8_t *payload = NULL;
	struct fleet_order *order;
	usec now = clock_boottime();
	struct fault why = FAULT_INIT;
	size_t size = 0;
	int r;

	if (memcmp(e->report_key, n->row.report_key, 32) != 0)
		return refuse(s, "renewal with another report key", f);
	if (s->renewed && now - s->renewed < RENEW_EVERY)
		return 0;
	s->renewed = now;
	r = leaf_order(s->fleet->signer, e->csr.v, e->csr.n, n->row.id,
		       n->row.name, time(NULL), n->row.certificate, &payload,
		       &size, &why);
	if (r < 0)
		return refuse(s, why.text, f);
	fleet_touch(s->fleet, n);
	s->renew_only = false;
	journal_note(s->fleet->journal, "enrolment", n->row.name,
		     "certificate renewed");
	return fleet_order(s->fleet, n, payload, size, now + RENEW_TIME,
			   renewed, NULL, &order, f);
}

static int on_up(struct session *s, const struct up *u, const void *payload,
		 size_t size, struct fault *f)
{
	struct fleet_node *n = s->node;

	if (s->renew_only && u->kind != UP_ENROL && u->kind != UP_HELLO)
		return 0;
	switch (u->kind) {
	case UP_HELLO:
		return on_hello(s, &u->hello, payload, size);
	case UP_ENROL:
		return on_renewal(s, &u->enrol, f);
	case UP_REPORT:
		keep(&n->row.report, payload, size);
		n->reported = clock_boottime();
		n->row.reported_at = clock_realtime();
		fleet_changed(s->fleet);
		return 0;
	case UP_RESULT:
		dispatch_result(s->fleet, n, u->result.epoch,
				u->result.sequence, payload, size);
		return 0;
	case UP_HEARTBEAT:
		return 0;
	case UP_KIND_MAX:
		break;
	}
	return -EBADMSG;
}

static void cleanup_up(struct up **u)
{
	(void)up_free(*u);
}

static int on_envelope(struct session *s, const uint8_t *bytes, size_t size,
		       struct fault *f)
{
	struct store_node *row = &s->node->row;
	struct envelope_expect expect = { .direction = ENVELOPE_UP };
	struct up *u CLEANUP(cleanup_up) = NULL;
	struct fault why = FAULT_INIT;
	enum envelope_reason reason;
	struct envelope e;
	int r;

	memcpy(expect.cluster_id, signer_cluster_id(s->fleet->signer), 16);
	memcpy(expect.node_id, row->id, sizeof(row->id));
	memcpy(expect.public_key, row->report_key, sizeof(row->report_key));
	reason = envelope_verify(bytes, size, &expect, &e);
	if (reason != ENVELOPE_OK)
		return refuse(s, envelope_reason_text(reason), f);
	if (envelope_compare(row->up_epoch, row->up_sequence, e.header.epoch,
			     e.header.sequence) != ENVELOPE_NEXT)
		return refuse(s, "a report that was sent before (replay)", f);
	r = up_decode(e.payload, e.header.length, &u, &why);
	if (r < 0)
		return refuse(s, why.text, f);
	row->up_epoch = e.header.epoch;
	row->up_sequence = e.header.sequence;
	memcpy(row->up_boot, e.header.binding, sizeof(row->up_boot));
	row->seen_at = clock_realtime();
	s->node->seen = clock_boottime();
	fleet_touch(s->fleet, s->node);
	return on_up(s, u, e.payload, e.header.length, f);
}

/* ---- two sessions on one identity (TL-02) ---- */

/* The older one answered: two machines are alive with one identity. */
static void clone_seen(struct session *older, struct session *newer)
{
	char text[FLEET_HELD_MAX];

	(void)snprintf(text, sizeof(text),
		       "two machines use this identity: %s and %s; was the "
		       "image taken after enrolment? reset one of them",
		       session_peer(older), session_peer(newer));
	hold(older, clock_boottime() + FLEET_CLONE_HOLD, text);
	session_close(newer, -EEXIST,
		      "another living machine uses this identity");
}

static void on_pong(struct session *s, const uint8_t *body, size_t size)
{
	struct session *other;

	if (size != PROBE_SIZE)
		return;
	for (other = s->fleet->sessions; other; other = other->next) {
		if (other == s || other->node != s->node || !other->probe)
			continue;
		if (memcmp(other->probe_body, body, size) != 0)
			continue;
		clone_seen(s, other);
		return;
	}
}

static int on_frame(void *owner, struct conn *c, uint8_t type,
		    const uint8_t *body, size_t size, struct fault *f);

static int park(struct session *s, uint8_t type, const uint8_t *body,
		size_t size, struct fault *f)
{
	struct parked *p = &s->parked[s->n_parked];

	if (s->n_parked == PARKED_MAX || size > PARKED_BYTES - s->parked_bytes)
		return fault_set(f, -ENOBUFS, session_peer(s),
				 "too much while an older session is asked");
	p->body = malloc(size ? size : 1);
	if (!p->body)
		return fault_set(f, -ENOMEM, session_peer(s), "out of memory");
	memcpy(p->body, body, size);
	p->type = type;
	p->size = size;
	s->n_parked++;
	s->parked_bytes += size;
	return 0;
}

/* The older session is silent: it is dead, and this one takes its place. */
static int on_probe_time(sd_event_source *source, uint64_t usec_,
			 void *userdata)
{
	struct session *s = userdata;
	struct fault f = FAULT_INIT;
	size_t n = s->n_parked;
	int r = 0;

	(void)source, (void)usec_;
	s->probe = sd_event_source_disable_unref(s->probe);
	if (s->node->session)
		session_close(s->node->session, -EPIPE,
			      "replaced by a newer connection");
	s->node->session = s;
	s->n_parked = 0;
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ uint8_t *body = s->parked[i].body;

		s->parked[i].body = NULL;
		if (r >= 0)
			r = on_frame(s, s->conn, s->parked[i].type, body,
				     s->parked[i].size, &f);
	}
	if (r < 0)
		session_close(s, r, f.text);
	return 0;
}

static int probe_older(struct session *s, struct session *older,
		       struct fault *f)
{
	int r;

	r = key_random(s->probe_body, sizeof(s->probe_body));
	if (r >= 0)
		r = sd_event_add_time_relative(s->fleet->event, &s->probe,
					       CLOCK_MONOTONIC,
					       s->fleet->options.probe, 0,
					       on_probe_time, s);
	if (r < 0)
		return fault_errno(f, r, session_peer(s), "cannot probe");
	/* When it cannot even be sent, silence will tell the same. */
	(void)conn_send(older->conn, FRAME_PING, s->probe_body,
			sizeof(s->probe_body));
	return 0;
}

/* ---- the connection ---- */

static int on_frame(void *owner, struct conn *c, uint8_t type,
		    const uint8_t *body, size_t size, struct fault *f)
{
	struct session *s = owner;

	if (type == FRAME_PING)
		return conn_send(c, FRAME_PONG, body, size);
	if (s->probe)
		return park(s, type, body, size, f);
	switch (type) {
	case FRAME_ENVELOPE:
		return on_envelope(s, body, size, f);
	case FRAME_PONG:
		s->node->seen = clock_boottime();
		on_pong(s, body, size);
		return 0;
	default:
		return fault_set(f, -EPROTO, session_peer(s),
				 "frame %u has no place in a session", type);
	}
}

static int on_ready(void *owner, struct conn *c, struct fault *f)
{
	struct session *s = owner;

	(void)c, (void)f;
	dispatch_run(s->fleet, s->node);
	return 0;
}

/* Whoever waited for the answer of a session that ended need not wait. */
static void hurry_successor(struct fleet *fleet, const struct fleet_node *n)
{
	for (struct session *s = fleet->sessions; s; s = s->next)
		if (s->node == n && s->probe)
			(void)sd_event_source_set_time_relative(s->probe, 0);
}

static void on_closed(void *owner, struct conn *c, const struct fault *why)
{
	struct session *s = owner;
	struct fleet_node *n = s->node;

	(void)c;
	if (n->session == s) {
		n->session = NULL;
		hurry_successor(s->fleet, n);
		dispatch_rewind(n);
		journal_note(s->fleet->journal, "fleet", n->row.name,
			     "disconnected: %s", why->text);
		fleet_changed(s->fleet);
	}
	session_free(s);
}

static const struct conn_ops session_ops = {
	.frame = on_frame,
	.ready = on_ready,
	.closed = on_closed,
};

/* One at a time: each holds memory until the older one has answered. */
static bool being_judged(const struct fleet *fleet, const struct fleet_node *n)
{
	const struct session *s = fleet->sessions;

	while (s && (s->node != n || !s->probe))
		s = s->next;
	return s != NULL;
}

int fleet_attach(struct fleet *fleet, struct conn *c, struct fault *f)
{
	const struct pki_identity *who = conn_identity(c);
	struct fleet_node *n = fleet_by_id(fleet, who->node_id);
	struct session *s;
	int r;

	if (!n)
		return fault_set(f, -ENOENT, conn_peer(c),
				 "a certificate of ours, but no node has that "
				 "id: was the state directory restored?");
	if (n->row.state != STORE_NODE_ACTIVE)
		return fault_set(f, -EACCES, conn_peer(c), "node %s is revoked",
				 n->row.name);
	if (n->session && being_judged(fleet, n))
		return fault_set(f, -EBUSY, conn_peer(c),
				 "a newer connection of node %s is being "
				 "judged already", n->row.name);
	s = calloc(1, sizeof(*s));
	if (!s)
		return fault_set(f, -ENOMEM, conn_peer(c), "out of memory");
	s->fleet = fleet;
	s->node = n;
	s->conn = c;
	s->renew_only = who->not_after < (int64_t)time(NULL);
	s->next = fleet->sessions;
	fleet->sessions = s;
	conn_set_owner(c, &session_ops, s);
	if (n->session) {
		r = probe_older(s, n->session, f);
		if (r < 0)	/* the session owns it by now */
			conn_close(c, r, "cannot ask the older session");
		return 0;
	}
	n->session = s;
	journal_note(fleet->journal, "fleet", n->row.name, "connected from %s",
		     conn_peer(c));
	fleet_changed(fleet);
	return 0;
}
