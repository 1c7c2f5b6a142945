#include "agent/link/streams.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/link/stream.h"
#include "common/cleanup.h"

#define TEXT_MAX 512

struct streams {
	sd_event *event;
	struct tls_ctx *const *tls;
	usec deadline;
	streams_result result;
	void *userdata;
	struct stream *v[STREAMS_MAX];
};

int streams_new(sd_event *event, struct tls_ctx *const *tls, usec deadline,
		streams_result result, void *userdata,
		struct streams **ret_streams)
{
	struct streams *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->event = event;
	s->tls = tls;
	s->deadline = deadline;
	s->result = result;
	s->userdata = userdata;
	*ret_streams = s;
	return 0;
}

void streams_close(struct streams *s)
{
	size_t i;

	for (i = 0; i < STREAMS_MAX; i++)
		s->v[i] = stream_free(s->v[i]);
}

struct streams *streams_free(struct streams *s)
{
	if (s)
		streams_close(s);
	free(s);
	return NULL;
}

/* stream_id 16, i32 errno (0 or positive), text */
static void on_result(void *userdata, const uint8_t id[STREAM_ID_SIZE], int r,
		      const char *text)
{
	struct streams *s = userdata;
	uint8_t body[STREAM_ID_SIZE + 4 + TEXT_MAX];
	uint32_t code = htobe32((uint32_t)(r < 0 ? -r : 0));
	size_t n = strnlen(text, TEXT_MAX);

	memcpy(body, id, STREAM_ID_SIZE);
	memcpy(body + STREAM_ID_SIZE, &code, sizeof(code));
	memcpy(body + STREAM_ID_SIZE + 4, text, n);
	s->result(s->userdata, body, STREAM_ID_SIZE + 4 + n);
}

static void on_closed(void *userdata, struct stream *stream)
{
	struct streams *s = userdata;
	size_t i;

	for (i = 0; i < STREAMS_MAX; i++)
		if (s->v[i] == stream)
			s->v[i] = stream_free(stream);
}

void streams_refuse(struct streams *s, const uint8_t *body, size_t size,
		    const char *why)
{
	if (size >= STREAM_ID_SIZE)
		on_result(s, body, -ENOTCONN, why);
}

static int parse(const uint8_t *body, size_t size, struct stream_target *t)
{
	char text[IP_TEXT_MAX];
	size_t n = size - STREAM_ID_SIZE - 2;

	if (size < STREAM_ID_SIZE + 3 || n >= sizeof(text))
		return -EBADMSG;
	memcpy(t->id, body, STREAM_ID_SIZE);
	t->local.port = (uint16_t)(body[STREAM_ID_SIZE] << 8 |
				   body[STREAM_ID_SIZE + 1]);
	memcpy(text, body + STREAM_ID_SIZE + 2, n);
	text[n] = '\0';
	if (t->local.port == 0 || ip_addr_parse(text, &t->local.addr) < 0)
		return -EBADMSG;
	return 0;
}

int streams_dial(struct streams *s, const uint8_t *body, size_t size,
		 const struct ip_endpoint *coordinator)
{
	struct stream_owner owner = {
		.result = on_result, .closed = on_closed, .userdata = s,
	};
	struct stream_target target = { .coordinator = *coordinator };
	struct fault f = FAULT_INIT;
	size_t i;
	int r;

	r = parse(body, size, &target);
	if (r < 0)
		return r;
	for (i = 0; i < STREAMS_MAX && s->v[i]; i++)
		continue;
	if (i == STREAMS_MAX) {
		on_result(s, target.id, -EMFILE, "too many streams");
		return 0;
	}
	r = stream_new(s->event, &target, s->tls, s->deadline, &owner,
		       &s->v[i], &f);
	if (r < 0)
		on_result(s, target.id, r, f.text);
	return 0;
}
