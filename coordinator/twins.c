#include "coordinator/twins.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"

struct claim {
	enum twin_kind kind;
	const char *value;
	size_t node;
};

struct claims {
	struct claim *v;
	size_t n, room;
};

const char *twin_kind_name(enum twin_kind kind)
{
	static const char *const names[] = {
		[TWIN_MACHINE_ID] = "machine-id",
		[TWIN_INITIATOR] = "iSCSI initiator name",
		[TWIN_MAC] = "MAC",
		[TWIN_PRODUCT_UUID] = "product UUID",
	};
	_Static_assert(sizeof(names) / sizeof(names[0]) == TWIN_KIND_MAX,
		       "every kind has a name");

	return kind < TWIN_KIND_MAX ? names[kind] : "value";
}

static int claim(struct claims *c, enum twin_kind kind, const char *value,
		 size_t node)
{
	struct claim *v = c->v;

	if (!value[0])
		return 0;
	if (c->n == c->room) {
		c->room = c->room ? 2 * c->room : 64;
		v = reallocarray(c->v, c->room, sizeof(*v));
		if (!v)
			return -ENOMEM;
		c->v = v;
	}
	v[c->n++] = (struct claim){ kind, value, node };
	return 0;
}

/* The second-lowest bit of the first byte: locally administered. */
static bool is_burnt_in(const char *mac)
{
	const char *digits = "0123456789abcdef";
	const char *d;

	if (!isxdigit((unsigned char)mac[0]) || !mac[1])
		return false;
	d = strchr(digits, tolower((unsigned char)mac[1]));
	return d && ((d - digits) & 2) == 0;
}

/* What vendors leave in place of a UUID. */
static bool is_filled_in(const char *uuid)
{
	return strspn(uuid, "0-") == strlen(uuid) ||
	       strspn(uuid, "fF-") == strlen(uuid) ||
	       strcasecmp(uuid, "03000200-0400-0500-0006-000700080009") == 0;
}

static int claim_all(struct claims *c, const struct identity *id, size_t node)
{
	size_t i;
	int r;

	r = claim(c, TWIN_MACHINE_ID, id->machine_id, node);
	if (r == 0)
		r = claim(c, TWIN_INITIATOR, id->initiator_name, node);
	if (r == 0 && !is_filled_in(id->product_uuid))
		r = claim(c, TWIN_PRODUCT_UUID, id->product_uuid, node);
	for (i = 0; r == 0 && i < id->macs.n; i++)
		if (is_burnt_in(id->macs.v[i]))
			r = claim(c, TWIN_MAC, id->macs.v[i], node);
	return r;
}

static int by_value(const void *a_, const void *b_)
{
	const struct claim *a = a_, *b = b_;
	int r;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	r = strcasecmp(a->value, b->value);
	if (r)
		return r;
	return a->node < b->node ? -1 : a->node > b->node;
}

static int by_node(const void *a_, const void *b_)
{
	const struct twin *a = a_, *b = b_;

	if (a->b != b->b)
		return a->b < b->b ? -1 : 1;
	return a->kind < b->kind ? -1 : a->kind > b->kind;
}

int twins_find(const struct identity *const *ids, size_t n,
	       struct twin **ret_twins, size_t *ret_n)
{
	_cleanup_free_ struct twin *twins = NULL;
	struct claims c = { 0 };
	size_t i, first = 0, found = 0;
	int r = 0;

	for (i = 0; r == 0 && i < n; i++)
		if (ids[i])
			r = claim_all(&c, ids[i], i);
	if (r == 0) {
		twins = calloc(c.n + 1, sizeof(*twins));
		r = twins ? 0 : -ENOMEM;
	}
	if (r == 0 && c.n)
		qsort(c.v, c.n, sizeof(*c.v), by_value);
	for (i = 1; r == 0 && i < c.n; i++) {
		const struct claim *a = &c.v[first], *b = &c.v[i];

		if (a->kind != b->kind || strcasecmp(a->value, b->value) != 0)
			first = i;
		else if (b->node != c.v[i - 1].node)
			twins[found++] = (struct twin){ a->node, b->node,
							b->kind, b->value };
	}
	free(c.v);
	if (r < 0)
		return r;
	if (found)
		qsort(twins, found, sizeof(*twins), by_node);
	*ret_twins = take_ptr(twins);
	*ret_n = found;
	return 0;
}
