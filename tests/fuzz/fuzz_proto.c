/*
 * Any bytes as what a stranger can send: envelopes, orders, reports, frames,
 * statements, bundles, certificates and requests for them. No crash and no
 * leak; what was decoded encodes to the very same bytes, and every text in
 * it is one that a terminal and a JSON document can take.
 *
 * The first byte chooses the reader. build.mk says how to run it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "proto/bundle.h"
#include "proto/envelope.h"
#include "proto/frame.h"
#include "proto/order.h"
#include "proto/pki.h"
#include "proto/seal.h"
#include "proto/statement.h"
#include "proto/up.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(const uint8_t *data, size_t size, uint8_t *again,
		 size_t again_size)
{
	if (size != again_size || memcmp(data, again, size) != 0)
		abort();
	free(again);
}

static void as_order(const uint8_t *data, size_t size)
{
	struct order *o = NULL;
	struct fault f = FAULT_INIT;
	uint8_t *again = NULL;
	size_t n = 0;

	if (order_decode(data, size, &o, &f) < 0)
		return;
	if (order_encode(o, &again, &n, &f) < 0)
		abort();
	same(data, size, again, n);
	(void)order_free(o);
}

static void as_up(const uint8_t *data, size_t size)
{
	struct up *u = NULL;
	struct fault f = FAULT_INIT;
	uint8_t *again = NULL;
	size_t n = 0;

	if (up_decode(data, size, &u, &f) < 0)
		return;
	if (up_encode(u, &again, &n, &f) < 0)
		abort();
	same(data, size, again, n);
	(void)up_free(u);
}

static void as_envelope(const uint8_t *data, size_t size)
{
	static const struct envelope_expect expect = {
		.direction = ENVELOPE_DOWN,
	};
	struct envelope e;

	if (envelope_peek(data, size, &e) == ENVELOPE_OK &&
	    e.payload + e.header.length > data + size)
		abort();
	if (envelope_verify(data, size, &expect, &e) == ENVELOPE_OK)
		abort();
}

static int on_frame(void *userdata, uint8_t type, const uint8_t *body,
		    size_t size)
{
	uint8_t sum = type;
	size_t i;

	for (i = 0; i < size; i++)
		sum ^= body[i];
	*(volatile uint8_t *)userdata = sum;
	return sum == 0x5a ? -ECANCELED : 0;
}

/* In chunks of a size that the input chooses, as a socket would give it. */
static void as_frames(const uint8_t *data, size_t size)
{
	struct frame_reader r;
	struct fault f = FAULT_INIT;
	uint8_t sum = 0;
	size_t chunk, n;

	if (size < 2)
		return;
	frame_reader_init(&r, data[0] % 3);
	chunk = 1 + data[1];
	for (data += 2, size -= 2; size > 0; data += n, size -= n) {
		n = size < chunk ? size : chunk;
		if (frame_reader_feed(&r, data, n, on_frame, &sum, &f) < 0)
			break;
	}
	frame_reader_done(&r);
}

static void as_list(const uint8_t *data, size_t size)
{
	const uint8_t *item = NULL;
	size_t at = 0, n = 0;
	uint8_t sum = 0;

	while (frame_unpack_next(data, size, &at, &item, &n) == 1)
		(void)on_frame(&sum, 0, item, n);
}

static void as_statement(const uint8_t *data, size_t size)
{
	static const uint8_t cluster[16], root[KEY_PUBLIC_SIZE];
	struct statement s;
	struct fault f = FAULT_INIT;

	if (statement_verify(data, size, cluster, root, &s, &f) == 0)
		abort();
}

static void as_bundle(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)data, size);
	struct bundle b;
	struct fault f = FAULT_INIT;

	if (text && bundle_parse(text, &b, &f) == 0)
		bundle_done(&b);
}

static void as_certificate(const uint8_t *data, size_t size)
{
	struct pki_identity id;
	struct fault f = FAULT_INIT;
	uint8_t digest[KEY_SHA256_SIZE];
	char *pem = NULL;

	(void)pki_read_der(data, size, &id, &f);
	if (pki_der_to_pem(data, size, &pem, NULL) == 0)
		(void)pki_read_pem(pem, &id, NULL);
	free(pem);
	(void)pki_check_csr(data, size, digest, NULL);
}

static void as_text(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)data, size);
	_cleanup_free_ char *twice = NULL;

	if (!text)
		return;
	fault_sanitize(text);
	twice = strdup(text);
	if (!twice)
		return;
	fault_sanitize(twice);
	if (strcmp(text, twice) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const readers[])(const uint8_t *data, size_t size) = {
		as_order, as_up, as_envelope, as_frames, as_list,
		as_statement, as_bundle, as_certificate, as_text,
	};

	if (size == 0)
		return 0;
	readers[data[0] % (sizeof(readers) / sizeof(readers[0]))](data + 1,
								  size - 1);
	return 0;
}
