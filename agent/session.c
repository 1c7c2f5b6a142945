#include "agent/session.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/facts.h"
#include "agent/link_sock.h"
#include "agent/orders.h"
#include "agent/report.h"
#include "agent/upward.h"
#include "agent/wake.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "proto/frame.h"

#define PEER_TEXT_MAX 256

struct session {
	struct session_env env;
	struct link_sock *link;
	struct orders *orders;
	struct upward upward;
	bool up, enrolling, said_down;
	bool need_enrol;		/* the link has no certificate */
	uint64_t counter;		/* of reports and heartbeats */
	char peer[PEER_TEXT_MAX];
	bool carried;			/* the endpoint, when last looked */
	struct wake *addresses;
	sd_event_source *gather, *heartbeat;
};

struct session_params session_params_default(void)
{
	return (struct session_params){ .gather = 100 * USEC_PER_MSEC,
					.heartbeat = 10 * USEC_PER_SEC };
}

/* Connected by a certificate: only so does the coordinator listen. */
static bool is_member(const struct session *s)
{
	return s->up && s->env.state->enrolled && !s->need_enrol;
}

const char *session_state(const struct session *s)
{
	if (!s || !link_sock_is_connected(s->link))
		return "no link";
	if (is_member(s))
		return "up";
	return s->enrolling && !s->env.state->enrolled ?
		       "waiting for approval" :
		       "down";
}

const char *session_peer_text(const struct session *s)
{
	return s ? s->peer : "";
}

/* ---- up ---- */

static void send_payload(void *userdata, const void *payload, size_t size)
{
	struct session *s = userdata;
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t n;

	/* What cannot be sent now is told by the next Hello and report. */
	if (upward_seal(&s->upward, payload, size, &bytes, &n, NULL) == 0)
		(void)link_sock_send(s->link, FRAME_LINK_ENVELOPE, bytes, n);
}

static void send_up(struct session *s, struct up *up)
{
	_cleanup_free_ uint8_t *payload = NULL;
	struct fault f = FAULT_INIT;
	size_t size;

	if (up_encode(up, &payload, &size, &f) == 0)
		send_payload(s, payload, size);
	else
		log_error("a message cannot be encoded: %s", f.text);
	(void)up_free(up);
}

static void send_report(struct session *s)
{
	struct up *up;

	if (report_make(s->env.engine, s->env.k3s, s->env.uncovered, ++s->counter,
			clock_boottime(), &up) < 0)
		return;
	s->carried = up->report.carries_endpoint;
	send_up(s, up);
}

static int on_gather(sd_event_source *source, uint64_t due, void *userdata)
{
	struct session *s = userdata;

	(void)source;
	(void)due;
	if (is_member(s))
		send_report(s);
	return 0;
}

void session_news(struct session *s)
{
	int on = SD_EVENT_OFF;

	if (!s || !s->up)
		return;
	/* The first change starts the moment; later ones ride along. */
	(void)sd_event_source_get_enabled(s->gather, &on);
	if (on != SD_EVENT_OFF)
		return;
	(void)sd_event_source_set_time_relative(s->gather,
						s->env.params.gather);
	(void)sd_event_source_set_enabled(s->gather, SD_EVENT_ONESHOT);
}

static void arm_heartbeat(struct session *s)
{
	(void)sd_event_source_set_time_relative(s->heartbeat,
						s->env.params.heartbeat);
	(void)sd_event_source_set_enabled(s->heartbeat, SD_EVENT_ONESHOT);
}

static int on_heartbeat(sd_event_source *source, uint64_t due, void *userdata)
{
	struct session *s = userdata;
	const struct desired *d = engine_desired(s->env.engine);
	struct up *up;

	(void)source;
	(void)due;
	if (!is_member(s))
		return 0;
	up = up_new(UP_HEARTBEAT);
	if (up) {
		up->heartbeat.counter = ++s->counter;
		up->heartbeat.generation = d ? d->generation : 0;
		send_up(s, up);
	}
	arm_heartbeat(s);
	return 0;
}

/* The VIP moves without any event of ours. */
static void on_addresses(void *userdata)
{
	struct session *s = userdata;
	const struct desired *d = engine_desired(s->env.engine);

	if (d && facts_carries(&d->cluster.endpoint) != s->carried)
		session_news(s);
}

/* ---- enrolment ---- */

static int fill_enrol(struct session *s, const uint8_t *csr, size_t size,
		      struct up_enrol *e)
{
	(void)snprintf(e->token, sizeof(e->token), "%s",
		       s->env.bundle->token);
	key_public(s->env.report_key, e->report_key);
	key_public(s->env.seal_key, e->seal_key);
	e->csr.v = malloc(size);
	if (!e->csr.v)
		return -ENOMEM;
	memcpy(e->csr.v, csr, size);
	e->csr.n = size;
	return facts_identity(s->env.host->root, &e->identity);
}

static void enrol(struct session *s, const uint8_t *csr, size_t size)
{
	_cleanup_free_ uint8_t *payload = NULL;
	struct fault f = FAULT_INIT;
	char fingerprint[KEY_FINGERPRINT_TEXT];
	uint8_t digest[KEY_SHA256_SIZE], public_key[KEY_PUBLIC_SIZE];
	struct up *up = up_new(UP_ENROL);
	size_t n;

	if (!up)
		return;
	if (fill_enrol(s, csr, size, &up->enrol) < 0 ||
	    up_encode(up, &payload, &n, &f) < 0 ||
	    key_sha256(payload, n, digest) < 0) {
		log_error("enrolment cannot be asked for: %s", f.text);
		(void)up_free(up);
		return;
	}
	(void)up_free(up);
	/* A renewal answers the session; any other enrolment its request. */
	if (!s->env.state->enrolled || s->need_enrol)
		orders_expect_enrolment(s->orders, digest);
	if (!s->enrolling && !s->env.state->enrolled) {
		key_public(s->env.report_key, public_key);
		key_fingerprint(public_key, fingerprint);
		log_notice("asking to be enrolled in cluster %s; fingerprint "
			   "%s", s->env.bundle->cluster, fingerprint);
	}
	s->enrolling = true;
	send_payload(s, payload, n);
}

/* ---- frames of the link ---- */

static void send_addresses(struct session *s)
{
	const struct strlist *a = s->env.state->addresses.n ?
					  &s->env.state->addresses :
					  &s->env.bundle->coordinators;
	char body[4096];
	size_t i, n = 0;

	for (i = 0; i < a->n && n < sizeof(body); i++)
		n += (size_t)snprintf(body + n, sizeof(body) - n, "%s\n",
				      a->v[i]);
	if (n < sizeof(body))
		(void)link_sock_send(s->link, FRAME_ADDRESSES, body, n);
}

static void begin(struct session *s)
{
	uint8_t nonce[UP_NONCE_SIZE];
	struct up *up;

	if (!is_member(s) || key_random(nonce, sizeof(nonce)) < 0)
		return;
	if (report_hello(s->env.engine, s->env.state, s->env.host->root, nonce,
			 &up) < 0)
		return;
	orders_session(s->orders, nonce);
	send_up(s, up);
	send_report(s);
	arm_heartbeat(s);
}

static void keep_text(struct session *s, const uint8_t *body, size_t size)
{
	(void)snprintf(s->peer, sizeof(s->peer), "%.*s",
		       (int)(size < sizeof(s->peer) ? size :
						      sizeof(s->peer) - 1),
		       (const char *)body);
	fault_sanitize(s->peer);
}

static void on_session_up(struct session *s, const uint8_t *body, size_t size)
{
	keep_text(s, body, size);
	s->up = true;
	s->said_down = false;
	log_info("connected to the coordinator at %s", s->peer);
	begin(s);
}

static void on_session_down(struct session *s, const uint8_t *body,
			    size_t size)
{
	keep_text(s, body, size);
	if (!s->said_down)
		log_notice("no session with the coordinator: %s", s->peer);
	s->said_down = true;
	s->up = s->need_enrol = false;
}

static int on_stream_result(struct session *s, const uint8_t *body,
			    size_t size)
{
	char text[PEER_TEXT_MAX];
	int32_t err;

	if (size < 20)
		return -EBADMSG;
	err = (int32_t)((uint32_t)body[16] << 24 | (uint32_t)body[17] << 16 |
			(uint32_t)body[18] << 8 | body[19]);
	(void)snprintf(text, sizeof(text), "%.*s",
		       (int)(size - 20 < sizeof(text) ? size - 20 :
							sizeof(text) - 1),
		       (const char *)body + 20);
	fault_sanitize(text);
	orders_stream_result(s->orders, body, err > 0 ? -err : err, text);
	return 0;
}

static int on_frame(void *userdata, uint8_t type, const uint8_t *body,
		    size_t size)
{
	struct session *s = userdata;
	struct fault f = FAULT_INIT;

	switch ((enum frame_type)type) {
	case FRAME_SESSION_UP:
		on_session_up(s, body, size);
		return 0;
	case FRAME_SESSION_DOWN:
		on_session_down(s, body, size);
		return 0;
	case FRAME_LINK_ENVELOPE:	/* refusals are logged inside */
		(void)orders_receive(s->orders, body, size, &f);
		return 0;
	case FRAME_LINK_STATEMENT:
		(void)orders_statement(s->orders, body, size, &f);
		return 0;
	case FRAME_STREAM_RESULT:
		return on_stream_result(s, body, size);
	case FRAME_CSR:
		enrol(s, body, size);
		return 0;
	case FRAME_NEED_ENROL:
		if (s->env.state->enrolled && !s->need_enrol)
			log_warning("the link has lost its certificate; "
				    "asking for another under the same key");
		s->need_enrol = true;
		return 0;
	case FRAME_ENVELOPE:
	case FRAME_STATEMENT:
	case FRAME_STREAM_HELLO:
	case FRAME_PING:
	case FRAME_PONG:
	case FRAME_STREAM_DIAL:
	case FRAME_CERTIFICATE:
	case FRAME_ADDRESSES:
	case FRAME_REQUEST:
	case FRAME_EVENT:
	case FRAME_REPLY:
		break;
	}
	return -EPROTO;
}

static void on_connected(void *userdata, bool up)
{
	struct session *s = userdata;

	s->up = s->need_enrol = false;
	s->enrolling = false;
	(void)snprintf(s->peer, sizeof(s->peer), "%s",
		       up ? "" : "garboard-link is not connected");
	if (up)
		send_addresses(s);
}

/* ---- what orders need ---- */

static int order_send(void *userdata, uint8_t type, const void *body,
		      size_t size)
{
	return link_sock_send(((struct session *)userdata)->link, type, body,
			      size);
}

static void identity_changed(void *userdata)
{
	struct session *s = userdata;

	if (s->env.state->revoked)
		log_warning("this node was revoked: no more orders are taken");
	else
		log_notice("enrolled as %s", s->env.state->node_name);
	s->enrolling = false;
}

static int make_orders(struct session *s)
{
	struct orders_env oe = {
		.state = s->env.state,
		.bundle = s->env.bundle,
		.engine = s->env.engine,
		.host = s->env.host,
		.k3s = s->env.k3s,
		.trial = s->env.trial,
		.report_key = s->env.report_key,
		.seal_key = s->env.seal_key,
		.send = order_send,
		.emit = send_payload,
		.identity_changed = identity_changed,
		.userdata = s,
	};

	return orders_new(&oe, &s->orders);
}

static int make_timers(struct session *s)
{
	sd_event *event = s->env.host->event;
	int r;

	r = sd_event_add_time(event, &s->gather, CLOCK_BOOTTIME, UINT64_MAX,
			      10 * USEC_PER_MSEC, on_gather, s);
	if (r >= 0)
		r = sd_event_source_set_enabled(s->gather, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time(event, &s->heartbeat, CLOCK_BOOTTIME,
				      UINT64_MAX, 100 * USEC_PER_MSEC,
				      on_heartbeat, s);
	return r < 0 ? r :
		       sd_event_source_set_enabled(s->heartbeat, SD_EVENT_OFF);
}

int session_new(const struct session_env *env, int link_fd,
		struct session **ret_session, struct fault *f)
{
	struct session *s = calloc(1, sizeof(*s));
	struct link_sock_owner owner = { .uid = env->link_uid,
					 .connected = on_connected,
					 .frame = on_frame,
					 .userdata = s };
	int r;

	if (!s)
		return fault_errno(f, -ENOMEM, "session", "not started");
	s->env = *env;
	s->upward.state = env->state;
	s->upward.report_key = env->report_key;
	memcpy(s->upward.cluster_id, env->bundle->cluster_id, 16);
	on_connected(s, false);
	r = make_orders(s);
	if (r >= 0)
		r = make_timers(s);
	if (r >= 0)
		r = wake_new(env->host->event, on_addresses, s, &s->addresses,
			     f);
	if (r >= 0)
		r = wake_netlink(s->addresses, NETLINK_ROUTE,
				 RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
				 NULL, f);
	if (r >= 0)
		r = link_sock_new(env->host->event, link_fd, &owner, &s->link);
	if (r < 0) {
		(void)session_free(s);
		return fault_errno(f, r, "session", "not started");
	}
	*ret_session = s;
	return 0;
}

struct session *session_free(struct session *s)
{
	if (!s)
		return NULL;
	(void)wake_free(s->addresses);
	(void)sd_event_source_disable_unref(s->gather);
	(void)sd_event_source_disable_unref(s->heartbeat);
	(void)orders_free(s->orders);
	(void)link_sock_free(s->link);
	free(s);
	return NULL;
}
