#include "agent/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/facts.h"
#include "agent/hardware.h"
#include "agent/k3s.h"
#include "agent/uncovered.h"
#include "common/cleanup.h"
#include "proto/desired_wire.h"
#include "proto/keys.h"

static int fill_resource(enum resource_id id, const struct engine_resource *r,
			 struct up_resource *out)
{
	size_t i;
	int err;

	out->id = id;
	out->mode = r->mode;
	out->worst = r->looked ? item_list_worst(r->items) :
				 ITEM_UNOBSERVABLE;
	out->total = (uint32_t)r->items->n;
	out->repairs = r->repairs;
	out->contended = r->contended;
	out->proof_age = r->proof_age;
	(void)snprintf(out->writer, sizeof(out->writer), "%s", r->writer);
	if (r->fault->err)
		(void)fault_str(r->fault, out->fault, sizeof(out->fault));
	for (i = 0; i < r->items->n; i++) {
		const struct item *it = &r->items->v[i];

		if (it->state == ITEM_IN_SYNC)
			continue;
		err = up_resource_add(out, it->key, it->state, it->have,
				      it->want, it->reason);
		if (err == -E2BIG)	/* the total tells that some are cut */
			break;
		if (err < 0)
			return err;
	}
	return 0;
}

static int fill_uncovered(const struct uncovered_paths *p,
			  struct strlist *list)
{
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < p->n; i++)
		r = strlist_add(list, p->v[i].text);
	return r;
}

int report_make(const struct engine *engine, const struct k3s *k3s,
		const struct uncovered *uncovered,
		uint64_t counter, usec now, struct up **ret_up)
{
	const struct desired *d = engine_desired(engine);
	struct engine_report er;
	struct up *up = up_new(UP_REPORT);
	size_t i;
	int r = 0;

	if (!up)
		return -ENOMEM;
	engine_report(engine, now, &er);
	up->report.counter = counter;
	up->report.generation = er.generation;
	up->report.settled = er.desired && er.settled;
	/* Nothing desired, nothing judged: an empty report is incomplete. */
	for (i = 0; r == 0 && er.desired && i < RESOURCE_MAX; i++)
		if (er.v[i].present)
			r = fill_resource(i, &er.v[i],
					  &up->report.resources
						   [up->report.n_resources++]);
	if (r == 0 && k3s)
		r = k3s_status_copy(k3s, &up->report.k3s);
	if (r == 0 && d && d->egress.n_classes > 0)
		r = facts_tunnels(&d->egress, &up->report.tunnels);
	if (r == 0)
		r = fill_uncovered(uncovered_get(uncovered),
				   &up->report.uncovered);
	if (r < 0) {
		(void)up_free(up);
		return r;
	}
	up->report.carries_endpoint = d && facts_carries(&d->cluster.endpoint);
	*ret_up = up;
	return 0;
}

static int add_desired(const struct desired *d, struct up_hello *hello)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size;
	int r;

	if (!d || !d->generation)	/* a file's, or none: not an order's */
		return 0;
	hello->generation = d->generation;
	r = desired_encode(d, &bytes, &size, NULL);
	if (r == 0)
		r = key_sha256(bytes, size, hello->desired_sha256);
	hello->has_desired = r == 0;
	return r;
}

int report_hello(const struct engine *engine, const struct node_state *state,
		 const char *root, const uint8_t nonce[UP_NONCE_SIZE],
		 struct up **ret_up)
{
	struct up *up = up_new(UP_HELLO);
	size_t i;
	int r;

	if (!up)
		return -ENOMEM;
	memcpy(up->hello.nonce, nonce, UP_NONCE_SIZE);
	up->hello.epoch = state->epoch;
	up->hello.sequence = state->sequence;
	r = add_desired(engine_desired(engine), &up->hello);
	if (r == 0)
		r = facts_identity(root, &up->hello.identity);
	hardware_read(root, &up->hello.hardware);
	for (i = 0; r == 0 && desired_features[i]; i++)
		r = strlist_add(&up->hello.features, desired_features[i]);
	if (r < 0) {
		(void)up_free(up);
		return r;
	}
	*ret_up = up;
	return 0;
}
