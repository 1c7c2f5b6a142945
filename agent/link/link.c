#include "agent/link/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "agent/link/agent_conn.h"
#include "agent/link/cred.h"
#include "agent/link/dial.h"
#include "agent/link/streams.h"
#include "agent/link/tls_session.h"
#include "common/backoff.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "proto/frame.h"

#define HIGH_WATER (256 * 1024)	/* queued: the other side is held back */
#define SETTLED (10 * USEC_PER_SEC)
#define RENEW_CHECK (6 * 3600 * USEC_PER_SEC)

struct link {
	sd_event *event;
	const struct link_config *config;
	struct cred cred;
	struct agent_conn *agent;
	struct tls_session *session;
	struct dial *dial;
	struct streams *streams;
	struct strlist addresses;	/* of the agent, else of the bundle */
	size_t next;			/* address to try */
	struct ip_endpoint peer;	/* of the dial or session */
	struct backoff backoff;
	usec last_up;			/* session's begin, then end; 0: never */
	sd_event_source *retry, *renew;
	char said[FAULT_TEXT_MAX];	/* the last failure logged */
};

DEFINE_CLEANUP(link, struct link, link_free)

static void status(const char *text)
{
	char line[sizeof("STATUS=") + FAULT_OBJECT_MAX + FAULT_TEXT_MAX];
	size_t n = strnlen(text, sizeof(line) - sizeof("STATUS="));

	memcpy(line, "STATUS=", 7);
	memcpy(line + 7, text, n);
	line[7 + n] = '\0';
	(void)sd_notify(0, line);
}

/* Each cause once, until another one or success comes (DESIGN section 7). */
static void tell_failure(struct link *l, const char *text)
{
	(void)agent_conn_send(l->agent, FRAME_SESSION_DOWN, text,
			      strlen(text));
	status(text);
	if (strcmp(l->said, text) == 0)
		return;
	(void)snprintf(l->said, sizeof(l->said), "%s", text);
	log_warning("no session: %s", text);
}

static void dial_later(struct link *l)
{
	usec now = clock_boottime();
	uint64_t bits = 0;

	if (!agent_conn_is_up(l->agent) || l->session || l->dial)
		return;
	(void)key_random(&bits, sizeof(bits));
	l->backoff.cap = l->last_up && now - l->last_up < LINK_RECENT ?
				 l->config->backoff_recent :
				 l->config->backoff_cap;
	(void)sd_event_source_set_time_relative(
		l->retry, backoff_next(&l->backoff, bits));
	(void)sd_event_source_set_enabled(l->retry, SD_EVENT_ONESHOT);
}

/* Streams are connections of their own and outlive the session. */
static void drop_session(struct link *l)
{
	usec now = clock_boottime();

	/* A session that ends at once must not turn into a busy loop. */
	if (l->session && now - l->last_up >= SETTLED)
		backoff_reset(&l->backoff);
	if (l->session)
		l->last_up = now;
	l->dial = dial_free(l->dial);
	l->session = tls_session_free(l->session);
	(void)sd_event_source_set_enabled(l->retry, SD_EVENT_OFF);
	agent_conn_hold(l->agent, false);
}

/* ---- frames ---- */

static void send_csr(struct link *l)
{
	_cleanup_free_ uint8_t *der = NULL;
	struct fault f = FAULT_INIT;
	size_t size = 0;

	if (cred_csr(&l->cred, &der, &size, &f) < 0)
		log_error("no certificate request: %s", f.text);
	else
		(void)agent_conn_send(l->agent, FRAME_CSR, der, size);
}

static void check_renewal(struct link *l)
{
	int64_t now = (int64_t)(clock_realtime() / USEC_PER_SEC);

	if (l->session && cred_wants_renewal(&l->cred, now))
		send_csr(l);
}

static int on_renew(sd_event_source *source, uint64_t now, void *userdata)
{
	(void)now;
	check_renewal(userdata);
	(void)sd_event_source_set_time_relative(source, RENEW_CHECK);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* From the coordinator: nothing is looked into. */
static int on_session_frame(void *userdata, uint8_t type, const uint8_t *body,
			    size_t size)
{
	struct link *l = userdata;
	int r;

	if (type == FRAME_ENVELOPE)
		r = agent_conn_send(l->agent, FRAME_LINK_ENVELOPE, body, size);
	else if (type == FRAME_STATEMENT)
		r = agent_conn_send(l->agent, FRAME_LINK_STATEMENT, body, size);
	else
		return -EPROTO;
	if (agent_conn_queued(l->agent) > HIGH_WATER)
		tls_session_hold(l->session, true);
	return r;
}

static void on_session_drained(void *userdata)
{
	struct link *l = userdata;

	agent_conn_hold(l->agent, false);
}

static void on_session_down(void *userdata, int r, const struct fault *f)
{
	struct link *l = userdata;
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];

	(void)fault_str(f, text, sizeof(text));
	drop_session(l);
	tell_failure(l, f->err ? text : strerror(-r));
	dial_later(l);
}

static void begin_session(struct link *l, struct tls_conn *conn)
{
	static const char enrolling[] = "connected; waiting to be enrolled";
	struct tls_session_owner owner = {
		.frame = on_session_frame,
		.drained = on_session_drained,
		.down = on_session_down,
		.userdata = l,
	};
	char text[IP_TEXT_MAX];
	int r;

	r = tls_session_new(l->event, conn, l->config->ping, &owner,
			    &l->session);
	if (r < 0) {
		(void)tls_free(conn);
		tell_failure(l, strerror(-r));
		dial_later(l);
		return;
	}
	l->last_up = clock_boottime();
	l->said[0] = '\0';
	(void)ip_endpoint_format(&l->peer, text);
	/* First, so that an enrolled agent does not greet as a member. */
	if (!l->cred.cert_pem)
		(void)agent_conn_send(l->agent, FRAME_NEED_ENROL, NULL, 0);
	(void)agent_conn_send(l->agent, FRAME_SESSION_UP, text, strlen(text));
	log_info("session with %s", text);
	status(l->cred.cert_pem ? "connected" : enrolling);
	check_renewal(l);
}

static void on_dialled(void *userdata, int r, int fd, struct tls_conn *conn,
		       const struct fault *f)
{
	struct link *l = userdata;
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];

	(void)fd;
	l->dial = dial_free(l->dial);
	if (r == 0) {
		begin_session(l, conn);
		return;
	}
	tell_failure(l, fault_str(f, text, sizeof(text)));
	dial_later(l);
}

static int on_retry(sd_event_source *source, uint64_t now, void *userdata)
{
	struct link *l = userdata;
	struct fault f = FAULT_INIT;
	int r;

	(void)source;
	(void)now;
	if (l->session || l->dial || l->addresses.n == 0)
		return 0;
	l->next = (l->next + 1) % l->addresses.n;
	r = ip_endpoint_parse(l->addresses.v[l->next], &l->peer);
	if (r == 0)
		r = dial_new(l->event, &l->peer.addr, l->peer.port,
			     l->cred.tls, l->config->dial, on_dialled, l,
			     &l->dial, &f);
	if (r < 0)
		on_dialled(l, r, -1, NULL, &f);
	return 0;
}

/* ---- the agent's side ---- */

static int set_addresses(struct link *l, const uint8_t *body, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)body, size);
	struct strlist list = STRLIST_INIT;
	struct ip_endpoint e;
	char *next = text, *line;

	if (!text)
		return -ENOMEM;
	while ((line = strsep(&next, "\n"))) {
		if (*line && (ip_endpoint_parse(line, &e) < 0 || !e.port ||
			      e.proto || strlist_add(&list, line) < 0)) {
			strlist_done(&list);
			return -EBADMSG;
		}
	}
	if (list.n == 0)	/* nowhere to go is no improvement */
		return 0;
	strlist_done(&l->addresses);
	l->addresses = list;
	return 0;
}

static int set_certificate(struct link *l, const uint8_t *body, size_t size)
{
	static const char again[] = "connecting again with a new certificate";
	struct fault f = FAULT_INIT;
	int r = cred_accept(&l->cred, body, size, &f);

	if (r < 0) {
		log_error("the certificate is not taken: %s", f.text);
		return 0;	/* the connection to the agent is still good */
	}
	log_notice("%s", again);
	drop_session(l);
	backoff_reset(&l->backoff);
	(void)agent_conn_send(l->agent, FRAME_SESSION_DOWN, again,
			      sizeof(again) - 1);
	/* The same coordinator, at once: it has just answered. */
	l->next = (l->next + l->addresses.n - 1) % l->addresses.n;
	(void)sd_event_source_set_time_relative(l->retry, 0);
	(void)sd_event_source_set_enabled(l->retry, SD_EVENT_ONESHOT);
	return 0;
}

static int start_stream(struct link *l, const uint8_t *body, size_t size)
{
	if (!l->session) {
		streams_refuse(l->streams, body, size, "there is no session");
		return 0;
	}
	return streams_dial(l->streams, body, size, &l->peer);
}

static int on_agent_frame(void *userdata, uint8_t type, const uint8_t *body,
			  size_t size)
{
	struct link *l = userdata;
	int r;

	switch (type) {
	case FRAME_LINK_ENVELOPE:
		if (!l->session)
			return 0;	/* the next session says it anew */
		r = tls_session_send(l->session, FRAME_ENVELOPE, body, size);
		if (tls_session_queued(l->session) > HIGH_WATER)
			agent_conn_hold(l->agent, true);
		return r;
	case FRAME_STREAM_DIAL:
		return start_stream(l, body, size);
	case FRAME_CERTIFICATE:
		return set_certificate(l, body, size);
	case FRAME_ADDRESSES:
		return set_addresses(l, body, size);
	default:
		return -EPROTO;
	}
}

static void on_agent_up(void *userdata)
{
	struct link *l = userdata;

	dial_later(l);
}

/* A nonce of the session belongs to one run of the agent. */
static void on_agent_down(void *userdata)
{
	struct link *l = userdata;

	drop_session(l);
	status("waiting for garboard-agent");
}

static void on_agent_drained(void *userdata)
{
	struct link *l = userdata;

	if (l->session)
		tls_session_hold(l->session, false);
}

static void on_stream_result(void *userdata, const void *body, size_t size)
{
	struct link *l = userdata;

	(void)agent_conn_send(l->agent, FRAME_STREAM_RESULT, body, size);
}

/* ---- life ---- */

static int start(struct link *l)
{
	struct agent_conn_owner owner = {
		.up = on_agent_up,
		.down = on_agent_down,
		.frame = on_agent_frame,
		.drained = on_agent_drained,
		.userdata = l,
	};
	int r;

	r = strlist_copy(&l->cred.bundle.coordinators, &l->addresses);
	if (r >= 0)
		r = sd_event_add_time_relative(l->event, &l->retry,
					       CLOCK_BOOTTIME, 0, 0, on_retry,
					       l);
	if (r >= 0)
		r = sd_event_source_set_enabled(l->retry, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(l->event, &l->renew,
					       CLOCK_BOOTTIME, RENEW_CHECK,
					       RENEW_CHECK / 10, on_renew, l);
	if (r >= 0)
		r = streams_new(l->event, &l->cred.tls, l->config->dial,
				on_stream_result, l, &l->streams);
	if (r >= 0)
		r = agent_conn_new(l->event, l->config, &owner, &l->agent);
	return r;
}

int link_new(sd_event *event, const struct link_config *config,
	     struct link **ret_link, struct fault *f)
{
	CLEANUP(cleanup_link) struct link *l = calloc(1, sizeof(*l));
	uint64_t bits = 0;
	int r;

	if (!l)
		return -ENOMEM;
	l->event = event;
	l->config = config;
	l->backoff.base = config->backoff_base;
	r = cred_load(&l->cred, config->bundle_dir, config->state_dir, f);
	if (r < 0)
		return r;
	r = start(l);
	if (r < 0)
		return fault_errno(f, r, "garboard-link", "cannot be started");
	/* A whole fleet must not begin with the same address. */
	(void)key_random(&bits, sizeof(bits));
	l->next = l->addresses.n ? bits % l->addresses.n : 0;
	*ret_link = take_ptr(l);
	return 0;
}

struct link *link_free(struct link *l)
{
	if (!l)
		return NULL;
	(void)sd_event_source_disable_unref(l->retry);
	(void)sd_event_source_disable_unref(l->renew);
	l->streams = streams_free(l->streams);
	(void)dial_free(l->dial);
	(void)tls_session_free(l->session);
	(void)agent_conn_free(l->agent);
	strlist_done(&l->addresses);
	cred_done(&l->cred);
	free(l);
	return NULL;
}
