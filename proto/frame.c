#include "proto/frame.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/envelope.h"
#include "proto/statement.h"

#define CHUNK 16384		/* of one read, on the stack */
#define READS_PER_CALL 16	/* then other sources get their turn */
#define FIRST_ROOM 4096		/* the buffer grows with what arrived */
#define TEXT_MAX_BODY 1024
#define CONTROL_MAX (8L * 1024 * 1024)

struct row {
	enum frame_channel channel;
	uint8_t type;
	long limit;
};

static const struct row rows[] = {
	{ FRAME_TLS, FRAME_ENVELOPE, ENVELOPE_MAX },
	{ FRAME_TLS, FRAME_STATEMENT, STATEMENT_SIZE },
	{ FRAME_TLS, FRAME_STREAM_HELLO, 16 },
	{ FRAME_TLS, FRAME_PING, 8 },
	{ FRAME_TLS, FRAME_PONG, 8 },
	{ FRAME_LINK, FRAME_SESSION_UP, TEXT_MAX_BODY },
	{ FRAME_LINK, FRAME_SESSION_DOWN, TEXT_MAX_BODY },
	{ FRAME_LINK, FRAME_LINK_ENVELOPE, ENVELOPE_MAX },
	{ FRAME_LINK, FRAME_LINK_STATEMENT, STATEMENT_SIZE },
	{ FRAME_LINK, FRAME_STREAM_DIAL, 16 + 2 + 64 },
	{ FRAME_LINK, FRAME_STREAM_RESULT, 16 + 4 + TEXT_MAX_BODY },
	{ FRAME_LINK, FRAME_CSR, 8192 },
	{ FRAME_LINK, FRAME_CERTIFICATE, 128L * 1024 },
	{ FRAME_LINK, FRAME_NEED_ENROL, 0 },
	{ FRAME_LINK, FRAME_ADDRESSES, 4096 },
	{ FRAME_CONTROL, FRAME_REQUEST, CONTROL_MAX },
	{ FRAME_CONTROL, FRAME_EVENT, CONTROL_MAX },
	{ FRAME_CONTROL, FRAME_REPLY, CONTROL_MAX },
};

long frame_limit(enum frame_channel channel, uint8_t type)
{
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].channel == channel && rows[i].type == type)
			return rows[i].limit;
	return -1;
}

void frame_reader_init(struct frame_reader *r, enum frame_channel channel)
{
	*r = (struct frame_reader){ .channel = channel };
}

void frame_reader_done(struct frame_reader *r)
{
	free(r->body);
	*r = (struct frame_reader){ .channel = r->channel, .most = r->most };
}

static int begin_body(struct frame_reader *r, struct fault *f)
{
	uint8_t type = r->header[4];
	long limit = frame_limit(r->channel, type);
	uint32_t size;

	memcpy(&size, r->header, sizeof(size));
	size = be32toh(size);
	if (limit < 0)
		return fault_set(f, -EPROTO, "frame", "of unknown type %u",
				 type);
	if (r->most && (size_t)limit > r->most)
		limit = (long)r->most;
	if ((long)size > limit)
		return fault_set(f, -E2BIG, "frame",
				 "of type %u and %u bytes; at most %ld", type,
				 size, limit);
	r->size = size;
	r->have = 0;
	return 0;
}

/* A peer that only announces much costs nothing. */
static int grow(struct frame_reader *r, size_t need)
{
	size_t room = r->room ? r->room : FIRST_ROOM;
	uint8_t *body;

	if (need <= r->room)
		return 0;
	while (room < need)
		room *= 2;
	if (room > r->size)
		room = r->size;
	body = realloc(r->body, room);
	if (!body)
		return -ENOMEM;
	r->body = body;
	r->room = room;
	return 0;
}

/*
 * The body is moved out first: the handler may destroy the reader, or feed
 * nothing more; either way nobody else frees it.
 */
static int deliver(struct frame_reader *r, frame_handler handler,
		   void *userdata)
{
	static const uint8_t nothing;
	uint8_t *body = r->body, type = r->header[4];
	size_t size = r->size;
	int ret;

	*r = (struct frame_reader){ .channel = r->channel, .most = r->most };
	ret = handler(userdata, type, size ? body : &nothing, size);
	free(body);
	return ret < 0 ? ret : 0;
}

int frame_reader_feed(struct frame_reader *r, const void *data, size_t size,
		      frame_handler handler, void *userdata, struct fault *f)
{
	const uint8_t *p = data;
	int ret;

	while (size > 0) {
		size_t n;

		if (r->have_header < FRAME_HEADER_SIZE) {
			r->header[r->have_header++] = *p++;
			size--;
			if (r->have_header < FRAME_HEADER_SIZE)
				continue;
			ret = begin_body(r, f);
			if (ret < 0)
				return ret;
		}
		n = r->size - r->have;
		if (n > size)
			n = size;
		ret = grow(r, r->have + n);
		if (ret < 0)
			return ret;
		if (n > 0)
			memcpy(r->body + r->have, p, n);
		r->have += n;
		p += n;
		size -= n;
		if (r->have < r->size)
			continue;
		ret = deliver(r, handler, userdata);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int frame_reader_fd(struct frame_reader *r, int fd, frame_handler handler,
		    void *userdata, struct fault *f)
{
	uint8_t chunk[CHUNK];
	int i, ret;

	for (i = 0; i < READS_PER_CALL; i++) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0)
			return fault_errno(f, -errno, "socket",
					   "cannot be read");
		if (n == 0 && r->have_header > 0)
			return fault_set(f, -ECONNRESET, "socket",
					 "was closed inside a frame");
		if (n == 0)
			return -EPIPE;
		ret = frame_reader_feed(r, chunk, (size_t)n, handler, userdata,
					f);
		if (ret < 0)
			return ret;
	}
	return 0;
}

void frame_writer_init(struct frame_writer *w, enum frame_channel channel)
{
	*w = (struct frame_writer){ .channel = channel };
}

void frame_writer_done(struct frame_writer *w)
{
	free(w->buf);
	*w = (struct frame_writer){ .channel = w->channel };
}

/* Room for `n` more bytes at the end; moves or grows the buffer. */
static int make_room(struct frame_writer *w, size_t n)
{
	size_t held = w->end - w->start, room = w->room ? w->room : FIRST_ROOM;
	uint8_t *buf;

	if (held + n > FRAME_WRITER_MAX + FRAME_HEADER_SIZE + CONTROL_MAX)
		return -ENOBUFS;
	if (w->start > 0 && held > 0)
		memmove(w->buf, w->buf + w->start, held);
	w->start = 0;
	w->end = held;
	if (held + n <= w->room)
		return 0;
	while (room < held + n)
		room *= 2;
	buf = realloc(w->buf, room);
	if (!buf)
		return -ENOMEM;
	w->buf = buf;
	w->room = room;
	return 0;
}

int frame_writer_put(struct frame_writer *w, uint8_t type, const void *body,
		     size_t size)
{
	long limit = frame_limit(w->channel, type);
	uint32_t length = htobe32((uint32_t)size);
	int r;

	if (limit < 0)
		return -EPROTO;
	if (size > (size_t)limit)
		return -E2BIG;
	/* One frame always fits; a queue behind it is bounded. */
	if (w->end > w->start &&
	    w->end - w->start + size + FRAME_HEADER_SIZE > FRAME_WRITER_MAX)
		return -ENOBUFS;
	r = make_room(w, size + FRAME_HEADER_SIZE);
	if (r < 0)
		return r;
	memcpy(w->buf + w->end, &length, sizeof(length));
	w->buf[w->end + 4] = type;
	if (size)
		memcpy(w->buf + w->end + FRAME_HEADER_SIZE, body, size);
	w->end += size + FRAME_HEADER_SIZE;
	return 0;
}

bool frame_writer_empty(const struct frame_writer *w)
{
	return w->start == w->end;
}

size_t frame_writer_peek(const struct frame_writer *w, const uint8_t **ret_data)
{
	*ret_data = w->buf + w->start;
	return w->end - w->start;
}

void frame_writer_consumed(struct frame_writer *w, size_t n)
{
	w->start += n;
	if (w->start >= w->end)
		frame_writer_done(w);
}

int frame_writer_fd(struct frame_writer *w, int fd)
{
	while (!frame_writer_empty(w)) {
		const uint8_t *data;
		size_t size = frame_writer_peek(w, &data);
		/* A peer that is gone is an error, not the end of us. */
		ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 1;
		if (n < 0)
			return -errno;
		frame_writer_consumed(w, (size_t)n);
	}
	return 0;
}

int frame_pack_list(const void *const *items, const size_t *sizes, size_t n,
		    uint8_t **ret_bytes, size_t *ret_size)
{
	size_t total = 0, i;
	uint8_t *bytes, *at;

	for (i = 0; i < n; i++) {
		if (sizes[i] > UINT32_MAX - 4 - total)
			return -E2BIG;
		total += 4 + sizes[i];
	}
	bytes = malloc(total ? total : 1);
	if (!bytes)
		return -ENOMEM;
	at = bytes;
	for (i = 0; i < n; i++) {
		uint32_t length = htobe32((uint32_t)sizes[i]);

		memcpy(at, &length, sizeof(length));
		if (sizes[i])
			memcpy(at + 4, items[i], sizes[i]);
		at += 4 + sizes[i];
	}
	*ret_bytes = bytes;
	*ret_size = total;
	return 0;
}

int frame_unpack_next(const uint8_t *bytes, size_t size, size_t *at,
		      const uint8_t **ret_item, size_t *ret_item_size)
{
	uint32_t length;

	if (*at == size)
		return 0;
	if (*at > size || size - *at < sizeof(length))
		return -EBADMSG;
	memcpy(&length, bytes + *at, sizeof(length));
	length = be32toh(length);
	if (length > size - *at - 4)
		return -EBADMSG;
	*ret_item = bytes + *at + 4;
	*ret_item_size = length;
	*at += 4 + (size_t)length;
	return 1;
}
