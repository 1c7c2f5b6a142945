#include "tests/fleet/simagent.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/parse.h"
#include "proto/envelope.h"
#include "proto/frame.h"
#include "proto/order.h"
#include "proto/pki.h"
#include "proto/statement.h"
#include "proto/tls.h"
#include "proto/up.h"

#define EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

/* A dialled connection: a session, an enrolment or a stream. */
struct dial {
	struct simagent *agent;
	struct dial *next;
	struct tls_conn *tls;
	int fd;			/* until TLS takes it */
	sd_event_source *io;
	struct frame_reader reader;
	struct frame_writer writer;
	bool shaken, stream;
	uint8_t stream_id[16];
	uint8_t echo[16384];
	size_t echo_from, echo_to;
};

struct simagent {
	struct simfleet *fleet;
	char name[64], token[64], machine_id[64], initiator[64];
	struct key *report_key, *seal_key, *tls_key;
	struct tls_ctx *ctx;
	char *certificate;	/* PEM; NULL before enrolment */
	uint8_t node_id[16], binding[16], nonce[16], boot[16];
	uint64_t epoch, sequence;	/* of what it says */
	uint64_t done_epoch, done_sequence;	/* last order */
	struct statement statement;
	bool trusted, mute, stopped;
	struct dial *session;
	struct dial *streams;
	sd_event_source *retry;
	uint8_t *last;		/* envelope sent last */
	size_t last_size;
};

static void say(const struct simagent *a, const char *what)
{
	(void)printf("%s %s\n", a->name, what);
}

static void dial_free(struct dial *d)
{
	if (!d)
		return;
	(void)sd_event_source_disable_unref(d->io);
	frame_reader_done(&d->reader);
	frame_writer_done(&d->writer);
	if (d->fd >= 0)
		(void)close(d->fd);
	(void)tls_free(d->tls);
	free(d);
}

static void later(struct simagent *a)
{
	if (a->stopped)
		return;
	(void)sd_event_source_set_time_relative(a->retry, a->fleet->retry);
	(void)sd_event_source_set_enabled(a->retry, SD_EVENT_ONESHOT);
}

static void session_over(struct simagent *a, const char *why)
{
	if (!a->session)
		return;
	dial_free(a->session);
	a->session = NULL;
	say(a, why);
	later(a);
}

static void flush(struct dial *d)
{
	const uint8_t *data;
	size_t size, n;

	while (d->shaken && (size = frame_writer_peek(&d->writer, &data)) > 0) {
		if (tls_write(d->tls, data, size, &n, NULL) < 0)
			return;
		frame_writer_consumed(&d->writer, n);
	}
}

static void put_frame(struct dial *d, uint8_t type, const void *body,
		      size_t size)
{
	(void)frame_writer_put(&d->writer, type, body, size);
	flush(d);
}

/* ---- what it says ---- */

static int send_up(struct simagent *a, struct up *u)
{
	struct envelope_header h = { .direction = ENVELOPE_UP };
	uint8_t *payload = NULL, *bytes = NULL, digest[32];
	struct fault f = FAULT_INIT;
	size_t size = 0, n = 0;
	char text[512];
	int r;

	r = up_encode(u, &payload, &size, &f);
	(void)up_free(u);
	memcpy(h.cluster_id, a->fleet->cluster_id, 16);
	memcpy(h.node_id, a->node_id, 16);
	memcpy(h.binding, a->boot, 16);
	h.epoch = a->epoch;
	h.sequence = ++a->sequence;
	if (r == 0 && key_sha256(payload, size, digest) == 0)
		memcpy(a->binding, digest, 16);
	if (r == 0)
		r = envelope_sign(&h, a->report_key, payload, size, &bytes, &n,
				  &f);
	free(payload);
	if (r < 0) {
		(void)printf("%s broken %s\n", a->name,
			     fault_str(&f, text, sizeof(text)));
		return r;
	}
	put_frame(a->session, FRAME_ENVELOPE, bytes, n);
	free(a->last);
	a->last = bytes;
	a->last_size = n;
	return 0;
}

static void fill_identity(const struct simagent *a, struct identity *i)
{
	(void)snprintf(i->hostname, sizeof(i->hostname), "%s", a->name);
	(void)snprintf(i->machine_id, sizeof(i->machine_id), "%s",
		       a->machine_id);
	(void)snprintf(i->initiator_name, sizeof(i->initiator_name), "%s",
		       a->initiator);
	(void)snprintf(i->agent_version, sizeof(i->agent_version), "sim");
}

static int send_hello(struct simagent *a)
{
	struct up *u = up_new(UP_HELLO);

	if (!u || key_random(a->nonce, sizeof(a->nonce)) < 0)
		return -ENOMEM;
	memcpy(u->hello.nonce, a->nonce, sizeof(a->nonce));
	u->hello.epoch = a->done_epoch;
	u->hello.sequence = a->done_sequence;
	fill_identity(a, &u->hello.identity);
	return send_up(a, u);
}

static int send_report(struct simagent *a)
{
	struct up *u = up_new(UP_REPORT);

	if (!u)
		return -ENOMEM;
	u->report.counter = a->sequence;
	u->report.settled = true;
	for (int i = 0; i < RESOURCE_MAX; i++) {
		u->report.resources[i].id = (enum resource_id)i;
		u->report.resources[i].total = 3;
	}
	u->report.n_resources = RESOURCE_MAX;
	return send_up(a, u);
}

static int send_enrol(struct simagent *a)
{
	struct up *u = up_new(UP_ENROL);
	int r;

	if (!u)
		return -ENOMEM;
	(void)snprintf(u->enrol.token, sizeof(u->enrol.token), "%s", a->token);
	key_public(a->report_key, u->enrol.report_key);
	key_public(a->seal_key, u->enrol.seal_key);
	fill_identity(a, &u->enrol.identity);
	r = pki_make_csr(a->tls_key, &u->enrol.csr.v, &u->enrol.csr.n, NULL);
	if (r < 0) {
		(void)up_free(u);
		return r;
	}
	return send_up(a, u);
}

/* ---- orders ---- */

static int start_dial(struct simagent *a, const uint8_t *stream_id);

static int answer(struct simagent *a, const struct envelope_header *h,
		  const struct order *o)
{
	struct up *u = up_new(UP_RESULT);

	if (!u)
		return -ENOMEM;
	u->result.epoch = h->epoch;
	u->result.sequence = h->sequence;
	(void)snprintf(u->result.text, sizeof(u->result.text), "%s done",
		       order_row(o->kind)->name);
	if (o->kind == ORDER_READ_FACTS) {
		u->result.facts = calloc(1, sizeof(*u->result.facts));
		if (u->result.facts)
			fill_identity(a, &u->result.facts->identity);
	}
	return send_up(a, u);
}

static int new_certificate(struct simagent *a, const struct order *o)
{
	const struct order_trust_update *t = &o->trust;
	struct tls_config config = { .ca_pem = a->fleet->ca_pem };
	struct tls_ctx *ctx = NULL;
	char *pem = NULL;
	int r;

	r = pki_der_to_pem(t->certificate.v, t->certificate.n, &pem, NULL);
	if (r < 0)
		return r;
	memcpy(config.cluster_id, a->fleet->cluster_id, 16);
	config.cert_pem = pem;
	config.key = a->tls_key;
	r = tls_ctx_new(&config, &ctx, NULL);
	if (r < 0) {
		free(pem);
		return r;
	}
	(void)tls_ctx_free(a->ctx);
	a->ctx = ctx;
	free(a->certificate);
	a->certificate = pem;
	memcpy(a->node_id, t->node_id, 16);
	(void)snprintf(a->name, sizeof(a->name), "%s", t->node_name);
	say(a, "enrolled");
	return 0;
}

static int obey(struct simagent *a, const struct envelope *e)
{
	struct order *o = NULL;
	bool first = !a->certificate;
	char line[128];
	int r;

	r = order_decode(e->payload, e->header.length, &o, NULL);
	if (r < 0)
		return r;
	if (envelope_compare(a->done_epoch, a->done_sequence, e->header.epoch,
			     e->header.sequence) == ENVELOPE_NEXT) {
		a->done_epoch = e->header.epoch;
		a->done_sequence = e->header.sequence;
		(void)snprintf(line, sizeof(line), "did %s",
			       order_row(o->kind)->name);
		say(a, line);
		if (o->kind == ORDER_TRUST_UPDATE)
			r = new_certificate(a, o);
		if (o->kind == ORDER_OPEN_STREAM)
			r = start_dial(a, o->stream.stream_id);
	}
	if (r == 0 && !first)
		r = answer(a, &e->header, o);
	(void)order_free(o);
	if (r == 0 && first)
		session_over(a, "reconnects");
	return r;
}

static int on_order(struct simagent *a, const uint8_t *bytes, size_t size)
{
	struct envelope_expect expect = { .direction = ENVELOPE_DOWN };
	enum envelope_reason reason;
	struct envelope e;

	if (!a->trusted)
		return -EACCES;
	memcpy(expect.cluster_id, a->fleet->cluster_id, 16);
	memcpy(expect.node_id, a->node_id, 16);
	memcpy(expect.public_key, a->statement.order_key, 32);
	reason = envelope_verify(bytes, size, &expect, &e);
	if (reason != ENVELOPE_OK) {
		say(a, envelope_reason_text(reason));
		return -EBADMSG;
	}
	if (memcmp(e.header.binding, a->certificate ? a->nonce : a->binding,
		   16) != 0) {
		say(a, "order of another session");
		return -EBADMSG;
	}
	return obey(a, &e);
}

/* ---- connections ---- */

static int on_frame(void *userdata, uint8_t type, const uint8_t *body,
		    size_t size)
{
	struct dial *d = userdata;
	struct simagent *a = d->agent;
	int r;

	if (a->mute)
		return 0;
	switch (type) {
	case FRAME_PING:
		put_frame(d, FRAME_PONG, body, size);
		return 0;
	case FRAME_STATEMENT:
		r = statement_verify(body, size, a->fleet->cluster_id,
				     a->fleet->trust_root, &a->statement,
				     NULL);
		a->trusted = r == 0;
		return r;
	case FRAME_ENVELOPE:
		r = on_order(a, body, size);
		/* the session may be gone, and the reader with it */
		return a->session == d ? r : -ECANCELED;
	default:
		return 0;
	}
}

static int begin(struct dial *d)
{
	struct simagent *a = d->agent;
	int r;

	if (d->stream) {
		put_frame(d, FRAME_STREAM_HELLO, d->stream_id, 16);
		say(a, "streams");
		return 0;
	}
	if (!a->certificate)
		return send_enrol(a);
	r = send_hello(a);
	if (r == 0)
		r = send_report(a);
	say(a, "connected");
	return r;
}

/* A stream's target: whatever comes goes back. */
static int echo(struct dial *d)
{
	size_t n;
	int r;

	for (;;) {
		while (d->echo_from < d->echo_to) {
			r = tls_write(d->tls, d->echo + d->echo_from,
				      d->echo_to - d->echo_from, &n, NULL);
			if (r < 0)
				return r == -EAGAIN ? 0 : r;
			d->echo_from += n;
		}
		r = tls_read(d->tls, d->echo, sizeof(d->echo), &n, NULL);
		if (r < 0)
			return r == -EAGAIN ? 0 : r;
		if (n == 0)
			return -EPIPE;
		d->echo_from = 0;
		d->echo_to = n;
	}
}

static int run(struct dial *d, struct fault *f)
{
	uint8_t buf[16384];
	size_t n;
	int r;

	if (!d->tls) {
		int fd = d->fd;

		r = tls_client_new(d->agent->ctx, fd, &d->tls, f);
		if (r < 0)
			return r;
		d->fd = -1;
	}
	if (!d->shaken) {
		r = tls_handshake(d->tls, f);
		if (r < 0)
			return r == -EAGAIN ? 0 : r;
		d->shaken = true;
		r = begin(d);
		if (r < 0)
			return r;
	}
	flush(d);
	if (d->stream)
		return echo(d);
	for (;;) {
		r = tls_read(d->tls, buf, sizeof(buf), &n, f);
		if (r < 0)
			return r == -EAGAIN ? 0 : r;
		if (n == 0)
			return -EPIPE;
		r = frame_reader_feed(&d->reader, buf, n, on_frame, d, f);
		if (r < 0)
			return r;
	}
}

static void stream_over(struct dial *d)
{
	struct dial **at = &d->agent->streams;

	while (*at && *at != d)
		at = &(*at)->next;
	if (*at)
		*at = d->next;
	dial_free(d);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents,
		 void *userdata)
{
	struct dial *d = userdata;
	struct simagent *a = d->agent;
	struct fault f = FAULT_INIT;
	int r;

	(void)source, (void)fd, (void)revents;
	r = run(d, &f);
	if (r == -ECANCELED || r == 0)
		return 0;
	if (d->stream)
		stream_over(d);
	else if (a->session == d)
		session_over(a, "disconnected");
	return 0;
}

static int start_dial(struct simagent *a, const uint8_t *stream_id)
{
	struct sockaddr_in sa = {
		.sin_family = AF_INET,
		.sin_port = htons(a->fleet->port),
		.sin_addr.s_addr = a->fleet->address,
	};
	struct dial *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->agent = a;
	frame_reader_init(&d->reader, FRAME_TLS);
	frame_writer_init(&d->writer, FRAME_TLS);
	d->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r = d->fd < 0 ? -errno : 0;
	if (r == 0 &&
	    connect(d->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 &&
	    errno != EINPROGRESS)
		r = -errno;
	if (r == 0)
		r = sd_event_add_io(a->fleet->event, &d->io, d->fd, EVENTS,
				    on_io, d);
	if (r < 0) {
		dial_free(d);
		return r;
	}
	if (stream_id) {
		d->stream = true;
		memcpy(d->stream_id, stream_id, 16);
		d->next = a->streams;
		a->streams = d;
	} else {
		a->session = d;
	}
	return 0;
}

static int on_retry(sd_event_source *source, uint64_t now, void *userdata)
{
	struct simagent *a = userdata;

	(void)source, (void)now;
	if (!a->session && !a->stopped && start_dial(a, NULL) < 0)
		later(a);
	return 0;
}

/* ---- life ---- */

static int plain_ctx(struct simfleet *fleet, struct tls_ctx **ret_ctx,
		     struct fault *f)
{
	struct tls_config config = { .ca_pem = fleet->ca_pem };

	memcpy(config.cluster_id, fleet->cluster_id, 16);
	return tls_ctx_new(&config, ret_ctx, f);
}

int simagent_new(struct simfleet *fleet, const char *name, const char *token,
		 struct simagent **ret_agent, struct fault *f)
{
	struct simagent *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->fleet = fleet;
	a->epoch = 1;
	(void)snprintf(a->name, sizeof(a->name), "%s", name);
	(void)snprintf(a->token, sizeof(a->token), "%s", token ? token : "");
	if ((r = key_generate(KEY_ED25519, &a->report_key, f)) < 0 ||
	    (r = key_generate(KEY_X25519, &a->seal_key, f)) < 0 ||
	    (r = key_generate(KEY_P256, &a->tls_key, f)) < 0 ||
	    (r = key_random(a->boot, sizeof(a->boot))) < 0 ||
	    (r = plain_ctx(fleet, &a->ctx, f)) < 0 ||
	    (r = sd_event_add_time_relative(fleet->event, &a->retry,
					    CLOCK_MONOTONIC, 0, 0, on_retry,
					    a)) < 0) {
		(void)simagent_free(a);
		return r;
	}
	format_hex(a->boot, sizeof(a->boot), a->machine_id);
	*ret_agent = a;
	return 0;
}

static struct key *copy_key(const struct key *key, enum key_type type)
{
	char path[] = "/tmp/simagent-XXXXXX";
	struct key *copy = NULL;
	int fd = mkstemp(path);

	if (fd >= 0)
		(void)close(fd);
	if (key_save(key, path, NULL) == 0)
		(void)key_load(path, type, &copy, NULL);
	(void)unlink(path);
	return copy;
}

int simagent_clone(const struct simagent *from, const char *name,
		   struct simagent **ret_agent, struct fault *f)
{
	struct simagent *a;
	struct tls_config config = { .ca_pem = from->fleet->ca_pem };
	int r;

	r = simagent_new(from->fleet, name, NULL, &a, f);
	if (r < 0)
		return r;
	(void)key_free(a->report_key);
	(void)key_free(a->tls_key);
	a->report_key = copy_key(from->report_key, KEY_ED25519);
	a->tls_key = copy_key(from->tls_key, KEY_P256);
	a->certificate = strdup(from->certificate);
	memcpy(a->node_id, from->node_id, 16);
	memcpy(config.cluster_id, a->fleet->cluster_id, 16);
	config.cert_pem = a->certificate;
	config.key = a->tls_key;
	(void)tls_ctx_free(a->ctx);
	a->ctx = NULL;
	a->epoch = from->epoch + 1;
	r = tls_ctx_new(&config, &a->ctx, f);
	if (r < 0) {
		(void)simagent_free(a);
		return r;
	}
	*ret_agent = a;
	return 0;
}

struct simagent *simagent_free(struct simagent *a)
{
	if (!a)
		return NULL;
	dial_free(a->session);
	while (a->streams)
		stream_over(a->streams);
	(void)sd_event_source_disable_unref(a->retry);
	(void)key_free(a->report_key);
	(void)key_free(a->seal_key);
	(void)key_free(a->tls_key);
	(void)tls_ctx_free(a->ctx);
	free(a->certificate);
	free(a->last);
	free(a);
	return NULL;
}

const char *simagent_name(const struct simagent *a)
{
	return a->name;
}

/* The last envelope again, with the byte at `at` changed, cut to `size`. */
static void resend(struct simagent *a, size_t at, size_t size)
{
	uint8_t *copy = malloc(a->last_size);

	if (!copy)
		return;
	memcpy(copy, a->last, a->last_size);
	if (at < a->last_size)
		copy[at] ^= 0x01;
	put_frame(a->session, FRAME_ENVELOPE, copy, size);
	free(copy);
}

int simagent_order(struct simagent *a, const char *what)
{
	static const uint8_t junk[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2 };
	size_t n;

	if (strncmp(what, "machine-id ", 11) == 0)
		(void)snprintf(a->machine_id, sizeof(a->machine_id), "%.63s",
			       what + 11);
	else if (strncmp(what, "initiator ", 10) == 0)
		(void)snprintf(a->initiator, sizeof(a->initiator), "%.63s",
			       what + 10);
	else if (strcmp(what, "stop") == 0)
		a->stopped = true;
	else if (strcmp(what, "mute") == 0)
		a->mute = true;
	else if (strcmp(what, "speak") == 0)
		a->mute = false;
	else if (!a->session)
		return -ENOTCONN;
	else if (strcmp(what, "drop") == 0)
		session_over(a, "dropped");
	else if (strcmp(what, "hello") == 0)
		return send_hello(a);
	else if (strcmp(what, "report") == 0)
		return send_report(a);
	else if (strcmp(what, "replay") == 0)
		resend(a, SIZE_MAX, a->last_size);
	else if (strcmp(what, "edit") == 0)
		resend(a, ENVELOPE_HEADER_SIZE + 2, a->last_size);
	else if (strcmp(what, "truncate") == 0)
		resend(a, SIZE_MAX, a->last_size - 1);
	else if (strcmp(what, "foreign") == 0)
		resend(a, 8, a->last_size);
	else if (strcmp(what, "garbage") == 0)
		(void)tls_write(a->session->tls, junk, sizeof(junk), &n, NULL);
	else
		return -EINVAL;
	return 0;
}
