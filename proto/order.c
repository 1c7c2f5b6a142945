#include "proto/order.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "garboard.pb-c.h"
#include "proto/wire_shared.h"

#define ANY (ORDER_WHEN_ENROLLED | ORDER_WHEN_UNENROLLED)
#define MEMBER ORDER_WHEN_ENROLLED

/* The limit leaves room for the fields around the bulk of each. */
static const struct order_row rows[] = {
	[ORDER_SET_DESIRED] = { "SetDesired", 512 * 1024, MEMBER, true },
	[ORDER_BLOB] = { "Blob", ORDER_CHUNK_MAX + 1024, MEMBER, true },
	[ORDER_K3S_INSTALL] = { "K3sInstall", 1024, MEMBER, true },
	[ORDER_K3S_CONFIGURE] = { "K3sConfigure", 256 * 1024, MEMBER, true },
	[ORDER_K3S_START] = { "K3sStart", 1024, MEMBER, true },
	[ORDER_K3S_STOP] = { "K3sStop", 64, MEMBER, true },
	[ORDER_K3S_RESET] = { "K3sReset", 256, MEMBER, true },
	[ORDER_PUT_MANIFEST] = { "PutManifest", ORDER_MANIFEST_MAX + 1024,
				 MEMBER, true },
	[ORDER_READ_FACTS] = { "ReadFacts", 64, MEMBER, false },
	[ORDER_READ_CREDENTIAL] = { "ReadCredential", 256, MEMBER, false },
	[ORDER_LEASE] = { "Lease", 1024, MEMBER, true },
	[ORDER_PROBE] = { "Probe", 64, MEMBER, false },
	[ORDER_REBOOT] = { "Reboot", 1024, MEMBER, true },
	[ORDER_DISARM] = { "Disarm", 1024, MEMBER, true },
	[ORDER_ARM] = { "Arm", 1024, MEMBER, true },
	[ORDER_TRUST_UPDATE] = { "TrustUpdate", 128 * 1024, ANY, true },
	[ORDER_OPEN_STREAM] = { "OpenStream", 256, MEMBER, false },
	[ORDER_RECORD_FOUNDING] = { "RecordFounding", 1024, MEMBER, true },
};
static_assert(sizeof(rows) / sizeof(rows[0]) == ORDER_KIND_MAX,
	      "every order has a row");

static const struct wire_oneof order_oneof = {
	"Order", &garboard__v1__order__descriptor, wire_order_arms,
	ORDER_KIND_MAX,
};

const struct order_row *order_row(enum order_kind kind)
{
	return kind < ORDER_KIND_MAX ? &rows[kind] : NULL;
}

struct order *order_new(enum order_kind kind)
{
	struct order *o = calloc(1, sizeof(*o));

	if (o)
		o->kind = kind;
	return o;
}

/* Where the union begins: the value of every arm. */
static void *body(const struct order *o)
{
	return (char *)(uintptr_t)o + offsetof(struct order, desired);
}

struct order *order_free(struct order *o)
{
	if (o)
		wire_done(wire_order_arms[o->kind], body(o));
	free(o);
	return NULL;
}
DEFINE_CLEANUP(order, struct order, order_free)

int order_decode(const void *bytes, size_t size, struct order **ret_order,
		 struct fault *f)
{
	CLEANUP(cleanup_order) struct order *o = NULL;
	size_t arm = 0;
	int r;

	r = wire_oneof_peek(&order_oneof, bytes, size, &arm, f);
	if (r < 0)
		return r;
	if (size > rows[arm].limit)
		return fault_set(f, -E2BIG, rows[arm].name,
				 "is larger than %zu bytes", rows[arm].limit);
	o = order_new((enum order_kind)arm);
	if (!o)
		return -ENOMEM;
	r = wire_oneof_decode(&order_oneof, bytes, size, arm, body(o), f);
	if (r < 0)
		return r;
	*ret_order = take_ptr(o);
	return 0;
}

int order_encode(const struct order *o, uint8_t **ret_bytes, size_t *ret_size,
		 struct fault *f)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size = 0;
	int r;

	if (o->kind >= ORDER_KIND_MAX)
		return fault_set(f, -EINVAL, "Order", "is of no kind");
	r = wire_oneof_encode(&order_oneof, o->kind, body(o), &bytes,
			      &size, f);
	if (r < 0)
		return r;
	if (size > rows[o->kind].limit)
		return fault_set(f, -E2BIG, rows[o->kind].name,
				 "is larger than %zu bytes",
				 rows[o->kind].limit);
	*ret_bytes = take_ptr(bytes);
	*ret_size = size;
	return 0;
}
