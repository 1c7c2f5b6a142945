#include "proto/statement.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#define CONTEXT "garboard statement v1"

enum offset {
	AT_CLUSTER = 4,
	AT_KEY = 20,
	AT_EPOCH = 52,
	AT_SIGNATURE = 60,
};
static_assert(AT_SIGNATURE + KEY_SIGNATURE_SIZE == STATEMENT_SIZE, "layout");

static const uint8_t magic[4] = { 'G', 'B', 'K', '1' };

int statement_sign(const struct statement *s, const struct key *trust_root,
		   uint8_t ret_bytes[STATEMENT_SIZE], struct fault *f)
{
	uint8_t bytes[STATEMENT_SIZE];
	uint64_t epoch = htobe64(s->epoch);
	int r;

	memcpy(bytes, magic, sizeof(magic));
	memcpy(bytes + AT_CLUSTER, s->cluster_id, sizeof(s->cluster_id));
	memcpy(bytes + AT_KEY, s->order_key, sizeof(s->order_key));
	memcpy(bytes + AT_EPOCH, &epoch, sizeof(epoch));
	r = key_sign(trust_root, CONTEXT, bytes, AT_SIGNATURE,
		     bytes + AT_SIGNATURE, f);
	if (r == 0)
		memcpy(ret_bytes, bytes, sizeof(bytes));
	return r;
}

int statement_verify(const void *bytes, size_t size,
		     const uint8_t cluster_id[16],
		     const uint8_t trust_root[KEY_PUBLIC_SIZE],
		     struct statement *ret_statement, struct fault *f)
{
	const uint8_t *at = bytes;
	struct statement s;

	if (size != STATEMENT_SIZE || memcmp(at, magic, sizeof(magic)) != 0)
		return fault_set(f, -EBADMSG, "order-key statement",
				 "is malformed");
	if (memcmp(at + AT_CLUSTER, cluster_id, sizeof(s.cluster_id)) != 0)
		return fault_set(f, -EXDEV, "order-key statement",
				 "is of another cluster");
	if (!key_verify(trust_root, CONTEXT, at, AT_SIGNATURE,
			at + AT_SIGNATURE))
		return fault_set(f, -EKEYREJECTED, "order-key statement",
				 "is not signed by the trust root");
	memcpy(s.cluster_id, at + AT_CLUSTER, sizeof(s.cluster_id));
	memcpy(s.order_key, at + AT_KEY, sizeof(s.order_key));
	memcpy(&s.epoch, at + AT_EPOCH, sizeof(s.epoch));
	s.epoch = be64toh(s.epoch);
	*ret_statement = s;
	return 0;
}

bool statement_supersedes(const struct statement *seen,
			  const struct statement *next)
{
	if (next->epoch != seen->epoch)
		return next->epoch > seen->epoch;
	return memcmp(next->order_key, seen->order_key,
		      sizeof(next->order_key)) == 0;
}
