/*
 * agent/link: the whole link in this process, between an agent and a
 * coordinator played by the test over real sockets on loopback.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <systemd/sd-event.h>

#include "agent/link/link.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/parse.h"
#include "proto/frame.h"
#include "proto/pki.h"
#include "proto/tls.h"

#define DEADLINE (10 * USEC_PER_SEC)

/* One frame that arrived, kept until the test takes it. */
struct got {
	uint8_t type;
	uint8_t *body;
	size_t size;
};

struct inbox {
	struct got v[32];
	size_t n;
};

/* The coordinator's side of one accepted connection. */
struct peer {
	struct tls_conn *conn;
	bool shaken, raw, gone;
	struct frame_reader reader;
	struct inbox in;
	uint8_t bytes[1 << 16];	/* of a raw stream */
	size_t n;
	bool ended;
};

struct fixture {
	char dir[64], sock[128];
	struct key *ca_key, *coord_key;
	char *ca;
	uint8_t cluster[16], node[16];
	struct tls_ctx *server;
	int listen_fd, port;	/* coordinator */
	struct peer peers[8];
	size_t n_peers;
	bool answer_pings;
	int agent_listen, agent;
	bool agent_deaf;
	struct frame_reader agent_reader;
	struct inbox agent_in;
	sd_event *event;
	struct link_config config;
	struct link *link;
};

static int keep(void *userdata, uint8_t type, const uint8_t *body, size_t size)
{
	struct inbox *in = userdata;
	struct got *g = &in->v[in->n];

	assert_true(in->n < 32);
	g->type = type;
	g->body = malloc(size + 1);
	memcpy(g->body, body, size);
	g->body[size] = '\0';
	g->size = size;
	in->n++;
	return 0;
}

static void inbox_done(struct inbox *in)
{
	size_t i;

	for (i = 0; i < in->n; i++)
		free(in->v[i].body);
	in->n = 0;
}

static const struct got *find(const struct inbox *in, uint8_t type)
{
	size_t i;

	for (i = 0; i < in->n; i++)
		if (in->v[i].type == type)
			return &in->v[i];
	return NULL;
}

static void drop_peer(struct peer *p)
{
	p->conn = tls_free(p->conn);
	frame_reader_done(&p->reader);
	p->gone = true;
}

static void send_peer(struct peer *p, uint8_t type, const void *body, size_t n)
{
	struct frame_writer w;
	const uint8_t *data;
	size_t size, out;

	frame_writer_init(&w, FRAME_TLS);
	assert_int_equal(frame_writer_put(&w, type, body, n), 0);
	size = frame_writer_peek(&w, &data);
	assert_int_equal(tls_write(p->conn, data, size, &out, NULL), 0);
	assert_int_equal(out, size);
	frame_writer_done(&w);
}

static void read_peer(struct fixture *x, struct peer *p)
{
	uint8_t chunk[16384];
	size_t n = 0;
	int r = tls_read(p->conn, chunk, sizeof(chunk), &n, NULL);

	if (r == -EAGAIN)
		return;
	if (r < 0) {
		drop_peer(p);
		return;
	}
	p->ended |= n == 0;
	if (p->raw) {
		assert_true(p->n + n <= sizeof(p->bytes));
		memcpy(p->bytes + p->n, chunk, n);
		p->n += n;
		return;
	}
	assert_int_equal(frame_reader_feed(&p->reader, chunk, n, keep, &p->in,
					   NULL), 0);
	if (find(&p->in, FRAME_STREAM_HELLO))
		p->raw = true;
	if (x->answer_pings && find(&p->in, FRAME_PING)) {
		inbox_done(&p->in);
		send_peer(p, FRAME_PONG, NULL, 0);
	}
}

static void serve_peer(struct fixture *x, struct peer *p)
{
	int r;

	if (p->gone)
		return;
	if (p->shaken) {
		read_peer(x, p);
		return;
	}
	r = tls_handshake(p->conn, NULL);
	if (r == 0)
		p->shaken = true;
	else if (r != -EAGAIN)
		drop_peer(p);
}

/* One turn of everything: the link's loop, the agent, the coordinator. */
static void turn(struct fixture *x)
{
	size_t i;
	int fd;

	assert_true(sd_event_run(x->event, 5000) >= 0);
	fd = accept4(x->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0) {
		struct peer *p = &x->peers[x->n_peers];

		assert_true(x->n_peers++ < 8);
		frame_reader_init(&p->reader, FRAME_TLS);
		assert_int_equal(tls_server_new(x->server, fd, &p->conn, NULL),
				 0);
	}
	for (i = 0; i < x->n_peers; i++)
		serve_peer(x, &x->peers[i]);
	if (x->agent < 0 && x->agent_listen >= 0)
		x->agent = accept4(x->agent_listen, NULL, NULL, SOCK_NONBLOCK);
	if (x->agent >= 0 && !x->agent_deaf)
		(void)frame_reader_fd(&x->agent_reader, x->agent, keep,
				      &x->agent_in, NULL);
}

#define UNTIL(x, condition)                                                   \
	do {                                                                  \
		usec limit_ = clock_boottime() + DEADLINE;                    \
		while (!(condition)) {                                        \
			assert_true(clock_boottime() < limit_);               \
			turn(x);                                              \
		}                                                             \
	} while (0)

static void send_agent(struct fixture *x, uint8_t type, const void *body,
		       size_t n)
{
	struct frame_writer w;

	frame_writer_init(&w, FRAME_LINK);
	assert_int_equal(frame_writer_put(&w, type, body, n), 0);
	assert_int_equal(frame_writer_fd(&w, x->agent), 0);
}

static int listen_tcp(int *ret_port)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int small = 65536;	/* or the kernel alone would take it all */

	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &size), 0);
	*ret_port = ntohs(in.sin_port);
	return fd;
}

static void listen_agent(struct fixture *x)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	memcpy(un.sun_path, x->sock, strlen(x->sock));
	(void)unlink(x->sock);
	x->agent_listen = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(x->agent_listen, (struct sockaddr *)&un,
			      sizeof(un)), 0);
	assert_int_equal(listen(x->agent_listen, 1), 0);
	x->agent = -1;
	frame_reader_init(&x->agent_reader, FRAME_LINK);
}

static void write_file(struct fixture *x, const char *name, const char *text)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", x->dir, name);
	assert_int_equal(file_write(path, 0600, text, strlen(text), NULL), 0);
}

static void write_bundle(struct fixture *x, int first_port)
{
	char text[512], cluster[33], root[65];

	format_hex(x->cluster, 16, cluster);
	memset(root, '0', 64);
	root[64] = '\0';
	(void)snprintf(text, sizeof(text),
		       "format garboard-bundle-1\ncluster-id %s\ncluster t\n"
		       "trust-root %s\ncoordinator 127.0.0.1:%d\n"
		       "coordinator 127.0.0.1:%d\n", cluster, root, first_port,
		       x->port);
	write_file(x, "bundle", text);
	write_file(x, "ca.pem", x->ca);
}

static void make_server(struct fixture *x, const char *ca, bool optional)
{
	struct tls_config c = { .server = true, .ca_pem = ca,
				.key = x->coord_key,
				.peer_optional = optional };
	char *pem = NULL;

	memcpy(c.cluster_id, x->cluster, 16);
	assert_int_equal(pki_make_coordinator(x->ca_key, x->ca, x->coord_key,
					      x->cluster,
					      (int64_t)time(NULL), &pem, NULL),
			 0);
	c.cert_pem = pem;
	(void)tls_ctx_free(x->server);
	assert_int_equal(tls_ctx_new(&c, &x->server, NULL), 0);
	free(pem);
}

static int setup(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	(void)signal(SIGPIPE, SIG_IGN);
	strcpy(x->dir, "/tmp/garboard-link-XXXXXX");
	assert_non_null(mkdtemp(x->dir));
	(void)snprintf(x->sock, sizeof(x->sock), "%s/link.sock", x->dir);
	memset(x->cluster, 0xc1, 16);
	memset(x->node, 0x0e, 16);
	assert_int_equal(key_generate(KEY_P256, &x->ca_key, NULL), 0);
	assert_int_equal(key_generate(KEY_P256, &x->coord_key, NULL), 0);
	assert_int_equal(pki_make_ca(x->ca_key, "t", x->cluster,
				     (int64_t)time(NULL), &x->ca, NULL), 0);
	make_server(x, x->ca, true);
	x->listen_fd = listen_tcp(&x->port);
	x->answer_pings = true;
	listen_agent(x);
	write_bundle(x, x->port);
	x->config = (struct link_config){
		.socket = x->sock, .state_dir = x->dir, .bundle_dir = x->dir,
		.backoff_base = 5000, .backoff_cap = 20000,
		.backoff_recent = 20000, .ping = 5 * USEC_PER_SEC,
		.dial = 2 * USEC_PER_SEC,
	};
	assert_int_equal(sd_event_new(&x->event), 0);
	*state = x;
	return 0;
}

static void start(struct fixture *x)
{
	struct fault f = FAULT_INIT;

	if (link_new(x->event, &x->config, &x->link, &f) < 0)
		fail_msg("%s: %s", f.object, f.text);
}

static int teardown(void **state)
{
	static const char *const files[] = {
		"bundle", "ca.pem", "tls.key", "tls.crt", "link.sock",
	};
	struct fixture *x = *state;
	char path[256];
	size_t i;

	x->link = link_free(x->link);
	(void)sd_event_unref(x->event);
	for (i = 0; i < x->n_peers; i++) {
		drop_peer(&x->peers[i]);
		inbox_done(&x->peers[i].in);
	}
	inbox_done(&x->agent_in);
	frame_reader_done(&x->agent_reader);
	(void)close(x->agent);
	(void)close(x->agent_listen);
	(void)close(x->listen_fd);
	(void)tls_ctx_free(x->server);
	key_free(x->ca_key);
	key_free(x->coord_key);
	free(x->ca);
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", x->dir, files[i]);
		(void)unlink(path);
	}
	assert_int_equal(rmdir(x->dir), 0);
	free(x);
	return 0;
}

/* What the agent does with a CSR and an approving coordinator. */
static void give_certificate(struct fixture *x, const struct got *csr)
{
	const void *items[1];
	uint8_t *der = NULL, *body = NULL;
	size_t der_size = 0, size = 0;

	assert_int_equal(pki_issue_leaf(x->ca_key, x->ca, csr->body, csr->size,
					x->cluster, x->node,
					(int64_t)time(NULL), &der, &der_size,
					NULL), 0);
	items[0] = der;
	assert_int_equal(frame_pack_list(items, &der_size, 1, &body, &size), 0);
	send_agent(x, FRAME_CERTIFICATE, body, size);
	free(der);
	free(body);
}

static struct peer *enrol(struct fixture *x)
{
	start(x);
	UNTIL(x, find(&x->agent_in, FRAME_CSR));
	give_certificate(x, find(&x->agent_in, FRAME_CSR));
	inbox_done(&x->agent_in);
	UNTIL(x, x->n_peers == 2 && x->peers[1].shaken &&
		 find(&x->agent_in, FRAME_SESSION_UP));
	assert_int_equal(tls_peer(x->peers[1].conn)->kind, PKI_NODE);
	assert_memory_equal(tls_peer(x->peers[1].conn)->node_id, x->node, 16);
	inbox_done(&x->agent_in);
	return &x->peers[1];
}

static void enrolment(void **state)
{
	struct fixture *x = *state;
	struct peer *p;
	char path[256];

	start(x);
	UNTIL(x, find(&x->agent_in, FRAME_CSR));
	assert_int_equal(x->agent_in.v[0].type, FRAME_NEED_ENROL);
	assert_int_equal(x->agent_in.v[1].type, FRAME_SESSION_UP);
	assert_int_equal(tls_peer(x->peers[0].conn)->kind, PKI_NONE);
	/* Verbatim, both ways, of any content. */
	send_agent(x, FRAME_LINK_ENVELOPE, "\0request\xff", 9);
	p = &x->peers[0];
	UNTIL(x, find(&p->in, FRAME_ENVELOPE));
	assert_int_equal(find(&p->in, FRAME_ENVELOPE)->size, 9);
	assert_memory_equal(find(&p->in, FRAME_ENVELOPE)->body,
			    "\0request\xff", 9);
	send_peer(p, FRAME_STATEMENT, "statement", 9);
	send_peer(p, FRAME_ENVELOPE, "order", 5);
	UNTIL(x, find(&x->agent_in, FRAME_LINK_ENVELOPE));
	assert_memory_equal(find(&x->agent_in, FRAME_LINK_STATEMENT)->body,
			    "statement", 9);
	give_certificate(x, find(&x->agent_in, FRAME_CSR));
	UNTIL(x, x->n_peers == 2 && x->peers[1].shaken);
	assert_int_equal(tls_peer(x->peers[1].conn)->kind, PKI_NODE);
	/* Another start needs no enrolment any more. */
	inbox_done(&x->agent_in);
	x->link = link_free(x->link);
	(void)close(x->agent);
	x->agent = -1;
	start(x);
	UNTIL(x, x->n_peers == 3 && x->peers[2].shaken &&
		 find(&x->agent_in, FRAME_SESSION_UP));
	assert_null(find(&x->agent_in, FRAME_NEED_ENROL));
	(void)snprintf(path, sizeof(path), "%s/tls.key", x->dir);
	assert_int_equal(access(path, R_OK), 0);
}

static void foreign_certificate_is_not_taken(void **state)
{
	struct fixture *x = *state;
	uint8_t other[16] = { 1 };

	start(x);
	UNTIL(x, find(&x->agent_in, FRAME_CSR));
	memcpy(x->cluster, other, 16);
	give_certificate(x, find(&x->agent_in, FRAME_CSR));
	send_agent(x, FRAME_LINK_ENVELOPE, "still", 5);
	UNTIL(x, find(&x->peers[0].in, FRAME_ENVELOPE));
	assert_int_equal(x->n_peers, 1);
}

static void dead_address_is_passed_over(void **state)
{
	struct fixture *x = *state;
	int port;
	int fd = listen_tcp(&port);

	assert_int_equal(close(fd), 0);
	write_bundle(x, port);
	start(x);
	UNTIL(x, find(&x->agent_in, FRAME_SESSION_UP));
}

static void false_coordinator_is_named(void **state)
{
	struct fixture *x = *state;
	struct key *key = NULL;
	char *ca = NULL;

	assert_int_equal(key_generate(KEY_P256, &key, NULL), 0);
	assert_int_equal(pki_make_ca(key, "t", x->cluster,
				     (int64_t)time(NULL), &ca, NULL), 0);
	write_file(x, "ca.pem", ca);
	start(x);
	UNTIL(x, find(&x->agent_in, FRAME_SESSION_DOWN));
	assert_non_null(strstr((char *)find(&x->agent_in,
					    FRAME_SESSION_DOWN)->body,
			       "peer's certificate: was refused"));
	assert_null(find(&x->agent_in, FRAME_SESSION_UP));
	free(ca);
	key_free(key);
}

static void agent_restarts(void **state)
{
	struct fixture *x = *state;
	struct peer *p = enrol(x);

	(void)close(x->agent);
	(void)close(x->agent_listen);
	UNTIL(x, p->gone || p->ended);	/* no session without an agent */
	listen_agent(x);
	UNTIL(x, find(&x->agent_in, FRAME_SESSION_UP));
	assert_int_equal(x->n_peers, 3);
}

static void garbage_ends_the_session(void **state)
{
	struct fixture *x = *state;
	struct peer *p = enrol(x);
	static const uint8_t frames[][5] = {
		{ 0xff, 0xff, 0xff, 0xff, FRAME_ENVELOPE },
		{ 0, 0, 0, 0, 99 },
		{ 0, 0, 0, 0, FRAME_STREAM_HELLO },
	};
	size_t i, n;

	for (i = 0; i < 3; i++) {
		assert_int_equal(tls_write(p->conn, frames[i], 5, &n, NULL), 0);
		UNTIL(x, find(&x->agent_in, FRAME_SESSION_DOWN));
		UNTIL(x, find(&x->agent_in, FRAME_SESSION_UP));
		assert_null(find(&x->agent_in, FRAME_LINK_ENVELOPE));
		inbox_done(&x->agent_in);
		p = &x->peers[x->n_peers - 1];
		UNTIL(x, p->shaken);
	}
}

static void silence_is_noticed(void **state)
{
	struct fixture *x = *state;
	const struct got *g;

	x->config.ping = 20000;
	x->answer_pings = false;
	start(x);
	UNTIL(x, (g = find(&x->agent_in, FRAME_SESSION_DOWN)));
	assert_non_null(strstr((char *)g->body, "silent"));
}

static void dial(struct fixture *x, int port)
{
	uint8_t body[18 + 9];

	memset(body, 0x51, 16);
	body[16] = (uint8_t)(port >> 8);
	body[17] = (uint8_t)port;
	memcpy(body + 18, "127.0.0.1", 9);
	send_agent(x, FRAME_STREAM_DIAL, body, sizeof(body));
}

static void write_some(struct fixture *x, struct peer *p, const char *data,
		       size_t size)
{
	size_t n = 0;

	while (size > 0) {
		int r = tls_write(p->conn, data, size, &n, NULL);

		assert_true(r == 0 || r == -EAGAIN);
		if (r == 0) {
			data += n;
			size -= n;
		}
		turn(x);
	}
}

/* A big transfer each way, and each way ends on its own. */
static void stream_carries_bytes(void **state)
{
	struct fixture *x = *state;
	static char big[50000];
	struct peer *p;
	char buf[65536];
	size_t got = 0;
	int port, fd, server = listen_tcp(&port);

	(void)enrol(x);
	dial(x, port);
	UNTIL(x, x->n_peers == 3 && x->peers[2].raw &&
		 find(&x->agent_in, FRAME_STREAM_RESULT));
	p = &x->peers[2];
	assert_int_equal(tls_peer(p->conn)->kind, PKI_NODE);
	assert_int_equal(find(&p->in, FRAME_STREAM_HELLO)->body[0], 0x51);
	assert_memory_equal(find(&x->agent_in, FRAME_STREAM_RESULT)->body + 16,
			    "\0\0\0\0", 4);
	fd = accept4(server, NULL, NULL, SOCK_NONBLOCK);
	assert_true(fd >= 0);
	memset(big, 'u', sizeof(big));
	write_some(x, p, big, sizeof(big));
	assert_int_equal(tls_shutdown(p->conn, NULL), 0);
	for (;;) {
		ssize_t n;

		turn(x);
		n = read(fd, buf, sizeof(buf));
		if (n == 0)
			break;
		if (n > 0)
			got += (size_t)n;
	}
	assert_int_equal(got, sizeof(big));
	/* The other way is still open. */
	memset(big, 'd', sizeof(big));
	assert_int_equal(write(fd, big, sizeof(big)), sizeof(big));
	UNTIL(x, p->n == sizeof(big));
	assert_memory_equal(p->bytes, big, sizeof(big));
	assert_false(p->ended);
	assert_int_equal(close(fd), 0);
	UNTIL(x, p->ended);
	(void)close(server);
}

static void stream_refused_is_told(void **state)
{
	struct fixture *x = *state;
	const struct got *g;
	int port, fd = listen_tcp(&port);

	assert_int_equal(close(fd), 0);
	(void)enrol(x);
	dial(x, port);
	UNTIL(x, find(&x->agent_in, FRAME_STREAM_RESULT));
	g = find(&x->agent_in, FRAME_STREAM_RESULT);
	assert_int_equal(g->body[19], ECONNREFUSED);
	assert_non_null(strstr((char *)g->body + 20, "cannot be reached"));
	assert_int_equal(x->n_peers, 2);
}

/* A slow agent stops the coordinator, and nothing is lost. */
static void slow_agent_holds_the_coordinator(void **state)
{
	static uint8_t big[200 * 1024];
	struct fixture *x = *state;
	struct peer *p = enrol(x);
	struct frame_writer w;
	const uint8_t *data;
	size_t size, out, stuck = 0, i;

	x->agent_deaf = true;
	frame_writer_init(&w, FRAME_TLS);
	for (i = 0; i < 20; i++)
		assert_int_equal(frame_writer_put(&w, FRAME_ENVELOPE, big,
						  sizeof(big)), 0);
	while (!frame_writer_empty(&w)) {
		int r;

		size = frame_writer_peek(&w, &data);
		r = tls_write(p->conn, data, size, &out, NULL);
		assert_true(r == 0 || r == -EAGAIN);
		if (r == 0) {
			frame_writer_consumed(&w, out);
			stuck = 0;
		}
		/* Stuck for long: every queue on the way is full. */
		if (r == -EAGAIN && ++stuck == 20)
			x->agent_deaf = false;
		turn(x);
	}
	UNTIL(x, x->agent_in.n == 20 && !x->agent_deaf);
	frame_writer_done(&w);
}

static void no_addresses_are_no_news(void **state)
{
	struct fixture *x = *state;

	start(x);
	UNTIL(x, find(&x->agent_in, FRAME_CSR));
	send_agent(x, FRAME_ADDRESSES, "\n", 1);
	give_certificate(x, find(&x->agent_in, FRAME_CSR));
	UNTIL(x, x->n_peers == 2 && x->peers[1].shaken);
}

static void bad_settings_are_named(void **state)
{
	struct link_config c;
	struct fault f = FAULT_INIT;

	(void)state;
	assert_int_equal(setenv("GARBOARD_LINK_PING_MS", "0", 1), 0);
	assert_int_equal(link_config_read(&c, &f), -EINVAL);
	assert_string_equal(f.object, "GARBOARD_LINK_PING_MS");
	assert_int_equal(setenv("GARBOARD_LINK_PING_MS", "250", 1), 0);
	assert_int_equal(link_config_read(&c, NULL), 0);
	assert_true(c.ping == 250 * USEC_PER_MSEC);
	assert_int_equal(unsetenv("GARBOARD_LINK_PING_MS"), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(enrolment),
		T(foreign_certificate_is_not_taken),
		T(dead_address_is_passed_over),
		T(false_coordinator_is_named),
		T(agent_restarts),
		T(garbage_ends_the_session),
		T(silence_is_noticed),
		T(slow_agent_holds_the_coordinator),
		T(no_addresses_are_no_news),
		T(stream_carries_bytes),
		T(stream_refused_is_told),
		cmocka_unit_test(bad_settings_are_named),
	};

	key_init();
	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
