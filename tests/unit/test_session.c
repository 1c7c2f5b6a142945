/* The link's socket, the session over it, and the status document. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "order_fixture.h"

#include "agent/session.h"
#include "agent/status.h"
#include "agent/status_client.h"

static struct session *session;
static int link_fd;
static struct frame_reader reader;

/* What the link got, newest last. */
static struct {
	uint8_t type;
	size_t size;
	uint8_t body[65536];
} got[8];
static size_t n_got;

static int listen_on(const char *name)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%s", scratch,
		       name);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static int connect_to(const char *name)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%s", scratch,
		       name);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

static int keep(void *userdata, uint8_t type, const uint8_t *body, size_t size)
{
	(void)userdata;
	assert_true(n_got < 8 && size <= sizeof(got[0].body));
	got[n_got].type = type;
	got[n_got].size = size;
	memcpy(got[n_got].body, body, size);
	n_got++;
	return 0;
}

/* Lets the agent run until the link has that many frames, or is closed. */
static int wait_frames(size_t n)
{
	usec until = clock_boottime() + DEADLINE;
	int r = 0;

	while (n_got < n && r == 0 && clock_boottime() < until) {
		(void)sd_event_run(t.host.event, 20 * USEC_PER_MSEC);
		r = frame_reader_fd(&reader, link_fd, keep, NULL, NULL);
	}
	return r;
}

static void say(uint8_t type, const void *body, size_t size)
{
	struct frame_writer w = { 0 };

	frame_writer_init(&w, FRAME_LINK);
	assert_int_equal(frame_writer_put(&w, type, body, size), 0);
	assert_int_equal(frame_writer_fd(&w, link_fd), 0);
	frame_writer_done(&w);
}

static void open_session(bool enrolled)
{
	struct session_env env = { .host = &t.host,
				   .state = &t.state,
				   .bundle = &t.bundle,
				   .engine = t.engine,
				   .k3s = t.k3s,
				   .report_key = t.report,
				   .seal_key = t.seal,
				   .link_uid = getuid() };
	struct fault f = FAULT_INIT;

	assert_int_equal(t.state.enrolled, enrolled);
	env.params.gather = 20 * USEC_PER_MSEC;
	env.params.heartbeat = 100 * USEC_PER_MSEC;
	strlist_done(&t.bundle.coordinators);
	assert_int_equal(strlist_add(&t.bundle.coordinators, "192.0.2.1:7643"),
			 0);
	assert_int_equal(session_new(&env, listen_on("link.sock"), &session,
				     &f), 0);
	link_fd = connect_to("link.sock");
	frame_reader_init(&reader, FRAME_LINK);
	n_got = 0;
	assert_int_equal(wait_frames(1), 0);
	assert_int_equal(got[0].type, FRAME_ADDRESSES);
	assert_memory_equal(got[0].body, "192.0.2.1:7643\n", 15);
}

static int end_session(void **state)
{
	frame_reader_done(&reader);
	if (link_fd >= 0)
		(void)close(link_fd);
	session = session_free(session);
	strlist_done(&t.bundle.coordinators);
	return end(state);
}

/* The report key's word, in an envelope of this boot. */
static struct up *opened(size_t i)
{
	struct envelope_expect x = { .direction = ENVELOPE_UP };
	struct envelope e;
	struct fault f = FAULT_INIT;
	struct up *up = NULL;

	assert_int_equal(got[i].type, FRAME_LINK_ENVELOPE);
	memcpy(x.cluster_id, cluster, 16);
	memcpy(x.node_id, t.state.node_id, 16);
	key_public(t.report, x.public_key);
	assert_int_equal(envelope_verify(got[i].body, got[i].size, &x, &e),
			 ENVELOPE_OK);
	assert_memory_equal(e.header.binding, t.state.boot, 16);
	assert_int_equal(up_decode(e.payload, e.header.length, &up, &f), 0);
	return up;
}

static void hello_then_report_then_heartbeats(void **state)
{
	struct up *up;

	(void)state;
	open_session(true);
	assert_string_equal(session_state(session), "down");
	say(FRAME_SESSION_UP, "192.0.2.1:7643", 14);
	assert_int_equal(wait_frames(4), 0);
	assert_string_equal(session_state(session), "up");
	assert_string_equal(session_peer_text(session), "192.0.2.1:7643");
	up = opened(1);
	assert_int_equal(up->kind, UP_HELLO);
	assert_int_equal(up->hello.epoch, 1);
	up_free(up);
	up = opened(2);
	assert_int_equal(up->kind, UP_REPORT);
	assert_false(up->report.settled);	/* nothing is desired yet */
	up_free(up);
	up = opened(3);
	assert_int_equal(up->kind, UP_HEARTBEAT);
	up_free(up);
}

static void news_are_gathered(void **state)
{
	struct up *up;
	size_t i;

	(void)state;
	open_session(true);
	say(FRAME_SESSION_UP, "x", 1);
	assert_int_equal(wait_frames(3), 0);
	for (i = 0; i < 100; i++)
		session_news(session);
	assert_int_equal(wait_frames(4), 0);
	up = opened(3);
	assert_int_equal(up->kind, UP_REPORT);
	assert_int_equal(up->report.counter, 2);
	up_free(up);
}

static void orders_answer_the_nonce_of_this_session(void **state)
{
	struct order *o = order_new(ORDER_READ_FACTS);
	const struct forge honest = { .sequence = 1 };
	uint8_t *payload = NULL, *bytes = NULL;
	struct fault f = FAULT_INIT;
	size_t size, n;
	struct up *up;

	(void)state;
	open_session(true);
	say(FRAME_SESSION_UP, "x", 1);
	assert_int_equal(wait_frames(3), 0);
	up = opened(1);
	memcpy(t.nonce, up->hello.nonce, sizeof(t.nonce));
	up_free(up);
	assert_int_equal(order_encode(o, &payload, &size, &f), 0);
	wrap(&honest, payload, size, &bytes, &n);
	say(FRAME_LINK_ENVELOPE, bytes, n);
	do
		assert_int_equal(wait_frames(n_got + 1), 0);
	while ((up = opened(n_got - 1))->kind != UP_RESULT &&
	       !(up = up_free(up)));
	assert_int_equal(up->result.code, RESULT_DONE);
	up_free(up);
	order_free(o);
	free(payload);
	free(bytes);
}

static void enrolment_is_asked_for(void **state)
{
	struct up *up;

	(void)state;
	open_session(false);
	strcpy(t.bundle.token, "one-time");
	say(FRAME_SESSION_UP, "x", 1);
	say(FRAME_NEED_ENROL, "", 0);
	say(FRAME_CSR, "csr-der", 7);
	assert_int_equal(wait_frames(2), 0);
	assert_string_equal(session_state(session), "waiting for approval");
	up = opened(1);
	assert_int_equal(up->kind, UP_ENROL);
	assert_string_equal(up->enrol.token, "one-time");
	assert_int_equal(up->enrol.csr.n, 7);
	up_free(up);
}

/* Its identity was kept, the link's certificate was not: a power cut. */
static void an_enrolled_node_asks_again(void **state)
{
	struct up *up;

	(void)state;
	open_session(true);
	say(FRAME_NEED_ENROL, "", 0);
	say(FRAME_SESSION_UP, "x", 1);
	say(FRAME_CSR, "csr-der", 7);
	assert_int_equal(wait_frames(2), 0);
	up = opened(1);
	assert_int_equal(up->kind, UP_ENROL);	/* no Hello: nobody listens */
	up_free(up);
	assert_string_equal(session_state(session), "down");
	say(FRAME_SESSION_DOWN, "again", 5);
	say(FRAME_SESSION_UP, "x", 1);
	assert_int_equal(wait_frames(3), 0);
	up = opened(2);
	assert_int_equal(up->kind, UP_HELLO);
	up_free(up);
	assert_string_equal(session_state(session), "up");
}

/* TL: whatever a hostile link sends, it is only ever disconnected. */
static void garbage_closes_the_peer(void **state)
{
	static const uint8_t oversized[] = { 0x7f, 0xff, 0xff, 0xff, 18 };

	(void)state;
	open_session(true);
	assert_int_equal(write(link_fd, oversized, sizeof(oversized)),
			 sizeof(oversized));
	assert_int_equal(wait_frames(2), -EPIPE);
	assert_string_equal(session_state(session), "no link");
	/* And may come back. */
	(void)close(link_fd);
	link_fd = connect_to("link.sock");
	frame_reader_done(&reader);
	frame_reader_init(&reader, FRAME_LINK);
	n_got = 0;
	assert_int_equal(wait_frames(1), 0);
	assert_int_equal(got[0].type, FRAME_ADDRESSES);
}

static void frames_of_the_other_side_are_refused(void **state)
{
	(void)state;
	open_session(true);
	say(FRAME_CERTIFICATE, "x", 1);
	assert_int_equal(wait_frames(2), -EPIPE);
}

static void fill(void *userdata, struct status_input *in)
{
	(void)userdata;
	*in = (struct status_input){ .engine = t.engine,
				     .state = &t.state,
				     .k3s = t.k3s,
				     .cluster = "lab \"quoted\"\n",
				     .session = "up",
				     .peer = "",
				     .fingerprint = "0011",
				     .state_fault = "" };
}

static void status_is_read_back(void **state)
{
	struct status_sock *sock = NULL;
	struct status_doc *doc = NULL;
	struct fault f = FAULT_INIT;
	char text[65536];
	usec until = clock_boottime() + DEADLINE;
	ssize_t n = -1;
	size_t size = 0;
	int fd;

	(void)state;
	link_fd = -1;
	assert_int_equal(status_sock_new(t.host.event, listen_on("s"), fill,
					 NULL, &sock), 0);
	fd = connect_to("s");
	while (n != 0 && clock_boottime() < until) {
		(void)sd_event_run(t.host.event, 20 * USEC_PER_MSEC);
		n = recv(fd, text + size, sizeof(text) - size, 0);
		size += n > 0 ? (size_t)n : 0;
	}
	assert_int_equal(n, 0);
	assert_int_equal(status_parse(text, size, &doc, &f), 0);
	assert_string_equal(status_get(doc, "node"), "n1");
	assert_string_equal(status_get(doc, "cluster"), "lab \"quoted\"\n");
	assert_string_equal(status_get(doc, "health.name"), "WARNING");
	assert_string_equal(status_get(doc, "k3s.has_data"), "false");
	assert_string_equal(status_get(doc, "no.such.thing"), "");
	assert_int_equal(status_count(doc, "resources"), 0);
	status_doc_free(doc);
	(void)close(fd);
	status_sock_free(sock);
}

/* The journal of k3s is not for every user; neither are its last lines. */
static void no_lines_of_k3s_for_strangers(void **state)
{
	struct status_input in;
	struct status_doc *doc = NULL;
	char *text = NULL;
	size_t size = 0;
	int i;

	(void)state;
	link_fd = -1;
	for (i = 0; i < 2; i++) {
		fill(NULL, &in);
		in.stranger = i;
		assert_int_equal(status_document(&in, 1, &text, &size), 0);
		assert_int_equal(status_parse(text, size, &doc, NULL), 0);
		assert_string_equal(status_get(doc, "k3s.lines_withheld"),
				    i ? "true" : "false");
		status_doc_free(doc);
		free(text);
	}
}

#define SESSION(fn) cmocka_unit_test_setup_teardown(fn, begin, end_session)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SESSION(hello_then_report_then_heartbeats),
		SESSION(news_are_gathered),
		SESSION(orders_answer_the_nonce_of_this_session),
		cmocka_unit_test_setup_teardown(enrolment_is_asked_for,
						begin_unenrolled, end_session),
		SESSION(an_enrolled_node_asks_again),
		SESSION(garbage_closes_the_peer),
		SESSION(frames_of_the_other_side_are_refused),
		SESSION(status_is_read_back),
		SESSION(no_lines_of_k3s_for_strangers),
	};

	return cmocka_run_group_tests_name("session", tests, make_keys,
					   free_keys);
}
