/* proto/frame: every split of a stream, limits before allocation. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/envelope.h"
#include "proto/frame.h"

struct seen {
	size_t n;
	uint8_t type[8];
	size_t size[8];
	uint8_t last[4096];
	int answer;
};

static int collect(void *userdata, uint8_t type, const uint8_t *body,
		   size_t size)
{
	struct seen *s = userdata;

	assert_true(s->n < 8);
	s->type[s->n] = type;
	s->size[s->n++] = size;
	if (size <= sizeof(s->last))
		memcpy(s->last, body, size);
	return s->answer;
}

static void build(struct frame_writer *w)
{
	frame_writer_init(w, FRAME_TLS);
	assert_int_equal(frame_writer_put(w, FRAME_PING, NULL, 0), 0);
	assert_int_equal(frame_writer_put(w, FRAME_ENVELOPE, "abcdef", 6), 0);
	assert_int_equal(frame_writer_put(w, FRAME_PONG, "12345678", 8), 0);
}

static void every_split(void **state)
{
	struct frame_writer w;
	const uint8_t *data;
	size_t size, i, j;

	(void)state;
	build(&w);
	size = frame_writer_peek(&w, &data);
	assert_int_equal(size, 3 * FRAME_HEADER_SIZE + 14);
	for (i = 0; i <= size; i++)
		for (j = i; j <= size; j++) {
			struct seen s = { 0 };
			struct frame_reader r;

			frame_reader_init(&r, FRAME_TLS);
			assert_int_equal(frame_reader_feed(&r, data, i, collect,
							   &s, NULL), 0);
			assert_int_equal(frame_reader_feed(&r, data + i, j - i,
							   collect, &s, NULL),
					 0);
			assert_int_equal(frame_reader_feed(&r, data + j,
							   size - j, collect,
							   &s, NULL), 0);
			assert_int_equal(s.n, 3);
			assert_int_equal(s.type[1], FRAME_ENVELOPE);
			assert_int_equal(s.size[0], 0);
			assert_int_equal(s.size[1], 6);
			assert_memory_equal(s.last, "12345678", 8);
			assert_null(r.body);	/* idle owns nothing */
			frame_reader_done(&r);
		}
	frame_writer_done(&w);
}

static void limits(void **state)
{
	static const struct {
		uint8_t header[5];
		int r;
	} t[] = {
		{ { 0, 0, 0, 9, FRAME_PING }, -E2BIG },
		{ { 0, 0, 0, 0, 0 }, -EPROTO },
		{ { 0, 0, 0, 0, 6 }, -EPROTO },
		{ { 0, 0, 0, 1, FRAME_SESSION_UP }, -EPROTO },
		{ { 0xff, 0xff, 0xff, 0xff, FRAME_ENVELOPE }, -E2BIG },
		{ { 0, 0x10, 0, 149, FRAME_ENVELOPE }, -E2BIG },
		{ { 0, 0x10, 0, 148, FRAME_ENVELOPE }, 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct seen s = { 0 };
		struct frame_reader r;

		frame_reader_init(&r, FRAME_TLS);
		assert_int_equal(frame_reader_feed(&r, t[i].header, 5, collect,
						   &s, NULL), t[i].r);
		assert_int_equal(r.room, 0);	/* nothing came, nothing held */
		assert_int_equal(s.n, 0);
		frame_reader_done(&r);
	}
	assert_int_equal(frame_limit(FRAME_TLS, FRAME_ENVELOPE), ENVELOPE_MAX);
	assert_int_equal(frame_limit(FRAME_LINK, FRAME_ENVELOPE), -1);
	assert_int_equal(frame_limit(FRAME_CONTROL, FRAME_REPLY), 8 << 20);
}

static void memory_follows_what_arrived(void **state)
{
	static const uint8_t header[] = { 0, 0x10, 0, 0, FRAME_ENVELOPE };
	struct seen s = { 0 };
	struct frame_reader r;
	uint8_t byte = 0;

	(void)state;
	frame_reader_init(&r, FRAME_TLS);
	assert_int_equal(frame_reader_feed(&r, header, 5, collect, &s, NULL), 0);
	assert_int_equal(frame_reader_feed(&r, &byte, 1, collect, &s, NULL), 0);
	assert_true(r.room <= 4096);
	frame_reader_done(&r);
}

/* A stranger's frames: less than the type may have, frame after frame. */
static void a_reader_of_its_own_limit(void **state)
{
	static const uint8_t good[] = { 0, 0, 0, 2, FRAME_ENVELOPE, 1, 2 };
	static const uint8_t big[] = { 0, 0, 0, 3, FRAME_ENVELOPE };
	struct seen s = { 0 };
	struct frame_reader r;

	(void)state;
	frame_reader_init(&r, FRAME_TLS);
	r.most = 2;
	assert_int_equal(frame_reader_feed(&r, good, 7, collect, &s, NULL), 0);
	assert_int_equal(s.n, 1);
	assert_int_equal(frame_reader_feed(&r, big, 5, collect, &s, NULL),
			 -E2BIG);
	frame_reader_done(&r);
}

static void handler_stops_the_feed(void **state)
{
	struct seen s = { .answer = -ECANCELED };
	struct frame_writer w;
	struct frame_reader r;
	const uint8_t *data;
	size_t size;

	(void)state;
	build(&w);
	size = frame_writer_peek(&w, &data);
	frame_reader_init(&r, FRAME_TLS);
	assert_int_equal(frame_reader_feed(&r, data, size, collect, &s, NULL),
			 -ECANCELED);
	assert_int_equal(s.n, 1);
	frame_reader_done(&r);
	frame_writer_done(&w);
}

static void over_a_socket(void **state)
{
	struct frame_writer w;
	struct frame_reader r;
	struct seen s = { 0 };
	struct fault f = FAULT_INIT;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
				    fds), 0);
	build(&w);
	frame_reader_init(&r, FRAME_TLS);
	assert_int_equal(frame_writer_fd(&w, fds[0]), 0);
	assert_true(frame_writer_empty(&w));
	assert_null(w.buf);
	assert_int_equal(frame_reader_fd(&r, fds[1], collect, &s, &f), 0);
	assert_int_equal(s.n, 3);
	assert_int_equal(write(fds[0], "\0\0", 2), 2);
	assert_int_equal(close(fds[0]), 0);
	assert_int_equal(frame_reader_fd(&r, fds[1], collect, &s, &f),
			 -ECONNRESET);
	frame_reader_done(&r);
	assert_int_equal(frame_reader_fd(&r, fds[1], collect, &s, &f), -EPIPE);
	assert_int_equal(close(fds[1]), 0);
}

static void a_peer_that_is_gone_is_an_error(void **state)
{
	struct frame_writer w;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	frame_writer_init(&w, FRAME_CONTROL);
	assert_int_equal(frame_writer_put(&w, FRAME_REQUEST, "{}", 2), 0);
	(void)close(pair[1]);
	assert_int_equal(frame_writer_fd(&w, pair[0]), -EPIPE);
	(void)close(pair[0]);
	frame_writer_done(&w);
}

static void writer_is_bounded(void **state)
{
	uint8_t *big = calloc(1, ENVELOPE_MAX);
	struct frame_writer w;
	int r = 0, n;

	(void)state;
	frame_writer_init(&w, FRAME_TLS);
	for (n = 0; n < 64 && r == 0; n++)
		r = frame_writer_put(&w, FRAME_ENVELOPE, big, ENVELOPE_MAX);
	assert_int_equal(r, -ENOBUFS);
	assert_true(w.end - w.start <= FRAME_WRITER_MAX);
	assert_int_equal(frame_writer_put(&w, FRAME_PING, big, 9), -E2BIG);
	assert_int_equal(frame_writer_put(&w, FRAME_CSR, big, 9), -EPROTO);
	frame_writer_done(&w);
	free(big);
}

static void garbage(void **state)
{
	int i;

	(void)state;
	srand(11);
	for (i = 0; i < 20000; i++) {
		struct seen s = { .answer = 0 };
		struct frame_reader r;
		uint8_t bytes[40];
		size_t n = (size_t)rand() % sizeof(bytes), j;

		for (j = 0; j < n; j++)
			bytes[j] = (uint8_t)(rand() % 6);
		frame_reader_init(&r, (enum frame_channel)(i % 3));
		(void)frame_reader_feed(&r, bytes, n, collect, &s, NULL);
		frame_reader_done(&r);
	}
}

static void lists(void **state)
{
	const void *items[] = { "leaf", "", "ca" };
	const size_t sizes[] = { 4, 0, 2 };
	const uint8_t *item;
	uint8_t *bytes;
	size_t size, n, at = 0, i;

	(void)state;
	assert_int_equal(frame_pack_list(items, sizes, 3, &bytes, &size), 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(frame_unpack_next(bytes, size, &at, &item, &n),
				 1);
		assert_int_equal(n, sizes[i]);
		assert_memory_equal(item, items[i], n);
	}
	assert_int_equal(frame_unpack_next(bytes, size, &at, &item, &n), 0);
	at = 0;
	assert_int_equal(frame_unpack_next(bytes, 3, &at, &item, &n), -EBADMSG);
	assert_int_equal(frame_unpack_next(bytes, 7, &at, &item, &n), -EBADMSG);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_split),
		cmocka_unit_test(limits),
		cmocka_unit_test(memory_follows_what_arrived),
		cmocka_unit_test(a_reader_of_its_own_limit),
		cmocka_unit_test(handler_stops_the_feed),
		cmocka_unit_test(over_a_socket),
		cmocka_unit_test(a_peer_that_is_gone_is_an_error),
		cmocka_unit_test(writer_is_bounded),
		cmocka_unit_test(garbage),
		cmocka_unit_test(lists),
	};

	return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
