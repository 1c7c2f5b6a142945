#include "proto/up.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "garboard.pb-c.h"
#include "proto/up_table.h"
#include "proto/wire_shared.h"

#define ANY (ORDER_WHEN_ENROLLED | ORDER_WHEN_UNENROLLED)

static const struct up_row rows[] = {
	[UP_HELLO] = { "Hello", 32 * 1024, ORDER_WHEN_ENROLLED },
	/* Also from a member: that is how its certificate is renewed. */
	[UP_ENROL] = { "EnrolRequest", 32 * 1024, ANY },
	[UP_REPORT] = { "Report", 512 * 1024, ORDER_WHEN_ENROLLED },
	[UP_RESULT] = { "OrderResult", 256 * 1024, ORDER_WHEN_ENROLLED },
	[UP_HEARTBEAT] = { "Heartbeat", 64, ORDER_WHEN_ENROLLED },
};
static_assert(sizeof(rows) / sizeof(rows[0]) == UP_KIND_MAX,
	      "every message has a row");

static const struct wire_oneof up_oneof = {
	"Up", &garboard__v1__up__descriptor, up_arms, UP_KIND_MAX,
};

const struct up_row *up_row(enum up_kind kind)
{
	return kind < UP_KIND_MAX ? &rows[kind] : NULL;
}

struct up *up_new(enum up_kind kind)
{
	struct up *u = calloc(1, sizeof(*u));

	if (u)
		u->kind = kind;
	return u;
}

/* Where the union begins: the value of every arm. */
static void *body(const struct up *u)
{
	return (char *)(uintptr_t)u + offsetof(struct up, hello);
}

struct up *up_free(struct up *u)
{
	if (u)
		wire_done(up_arms[u->kind], body(u));
	free(u);
	return NULL;
}
DEFINE_CLEANUP(up, struct up, up_free)

void identity_done(struct identity *i)
{
	wire_done(&wire_identity, i);
}

void k3s_status_done(struct k3s_status *s)
{
	wire_done(&wire_k3s_status, s);
}

int up_resource_add(struct up_resource *r, const char *key, uint8_t state,
		    const char *have, const char *want, const char *reason)
{
	struct up_item one = {
		.key = strdup(key), .state = state,
		.have = strdup(have ? have : ""),
		.want = strdup(want ? want : ""),
		.reason = strdup(reason ? reason : ""),
	};
	struct up_item *v = NULL;

	if (r->n_items < UP_ITEMS_MAX)
		v = reallocarray(r->items, r->n_items + 1, sizeof(*v));
	if (v)
		r->items = v;
	if (!v || !one.key || !one.have || !one.want || !one.reason) {
		free(one.key);
		free(one.have);
		free(one.want);
		free(one.reason);
		return r->n_items >= UP_ITEMS_MAX ? -E2BIG : -ENOMEM;
	}
	v[r->n_items++] = one;
	return 0;
}

int up_decode(const void *bytes, size_t size, struct up **ret_up,
	      struct fault *f)
{
	CLEANUP(cleanup_up) struct up *u = NULL;
	size_t arm = 0;
	int r;

	r = wire_oneof_peek(&up_oneof, bytes, size, &arm, f);
	if (r < 0)
		return r;
	if (size > rows[arm].limit)
		return fault_set(f, -E2BIG, rows[arm].name,
				 "is larger than %zu bytes", rows[arm].limit);
	u = up_new((enum up_kind)arm);
	if (!u)
		return -ENOMEM;
	r = wire_oneof_decode(&up_oneof, bytes, size, arm, body(u), f);
	if (r < 0)
		return r;
	*ret_up = take_ptr(u);
	return 0;
}

/*
 * A node in deep trouble has more to tell than fits. Halve the lists of
 * items until it does: `total` and `worst` still tell the whole.
 */
static int encode_shorter(const struct up *u, uint8_t **ret_bytes,
			  size_t *ret_size, struct fault *f)
{
	_cleanup_free_ struct up *copy = malloc(sizeof(*copy));
	bool cut = true;
	size_t i;
	int r;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, u, sizeof(*copy));
	while (cut) {
		cut = false;
		for (i = 0; i < copy->report.n_resources; i++) {
			cut |= copy->report.resources[i].n_items > 0;
			copy->report.resources[i].n_items /= 2;
		}
		r = wire_oneof_encode(&up_oneof, UP_REPORT, body(copy),
				      ret_bytes, ret_size, f);
		if (r < 0 || *ret_size <= rows[UP_REPORT].limit)
			return r;
		free(*ret_bytes);
		*ret_bytes = NULL;
	}
	return -E2BIG;
}

int up_encode(const struct up *u, uint8_t **ret_bytes, size_t *ret_size,
	      struct fault *f)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size = 0;
	int r;

	if (u->kind >= UP_KIND_MAX)
		return fault_set(f, -EINVAL, "Up", "is of no kind");
	r = wire_oneof_encode(&up_oneof, u->kind, body(u), &bytes, &size, f);
	if (r == 0 && size > rows[u->kind].limit && u->kind == UP_REPORT) {
		free(bytes);
		bytes = NULL;
		r = encode_shorter(u, &bytes, &size, f);
	}
	if (r < 0)
		return r;
	if (size > rows[u->kind].limit)
		return fault_set(f, -E2BIG, rows[u->kind].name,
				 "is larger than %zu bytes",
				 rows[u->kind].limit);
	*ret_bytes = take_ptr(bytes);
	*ret_size = size;
	return 0;
}

bool k3s_line_is_cause(const char *line)
{
	return strstr(line, "level=fatal") ||
	       strstr(line, "Shutdown request received: \\\"");
}
