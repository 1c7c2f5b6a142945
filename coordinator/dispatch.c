#include "coordinator/fleet_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/envelope.h"

#define DEADLINE_ACCURACY (10 * USEC_PER_MSEC)

struct fleet_order {
	struct fleet_node *node;
	struct fleet_order *next;
	uint64_t epoch, sequence;
	bool sent;		/* in the session in force */
	bool ever;		/* in any session */
	sd_event_source *deadline;
	fleet_answer answer;
	void *userdata;
	size_t size;
	uint8_t payload[];
};

static void unlink_order(struct fleet_order *o)
{
	struct fleet_order **at = &o->node->orders;

	while (*at && *at != o)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = o->next;
	o->node->n_orders--;
}

static void order_release(struct fleet_order *o)
{
	unlink_order(o);
	(void)sd_event_source_disable_unref(o->deadline);
	free(o);
}

void fleet_order_cancel(struct fleet_order *o)
{
	order_release(o);
}

static void fail(struct fleet_order *o, int err, const char *reason)
{
	fleet_answer answer = o->answer;
	void *userdata = o->userdata;
	struct fault why = FAULT_INIT;

	(void)fault_set(&why, err, o->node->row.name, "%s", reason);
	order_release(o);
	answer(userdata, err, NULL, 0, &why);
}

void dispatch_fail_all(struct fleet_node *n, int err, const char *reason)
{
	while (n->orders)
		fail(n->orders, err, reason);
}

void dispatch_rewind(struct fleet_node *n)
{
	for (struct fleet_order *o = n->orders; o; o = o->next)
		o->sent = false;
}

void dispatch_run(struct fleet *fleet, struct fleet_node *n)
{
	struct fault f = FAULT_INIT;
	struct fleet_order *o;
	int r;

	(void)fleet;
	if (!n->session || !session_ready(n->session))
		return;
	for (o = n->orders; o; o = o->next) {
		if (o->sent)
			continue;
		r = session_send_order(n->session, o->epoch, o->sequence,
				       o->payload, o->size, &f);
		if (r == -EAGAIN || r == -ENOBUFS || r == -ESHUTDOWN)
			return;	/* the session calls again, or ends */
		if (r < 0) {
			fail(o, r, f.text);
			return;
		}
		o->sent = o->ever = true;
	}
}

void dispatch_result(struct fleet *fleet, struct fleet_node *n,
		     uint64_t epoch, uint64_t sequence, const uint8_t *result,
		     size_t size)
{
	struct fleet_order *o;

	(void)fleet;
	for (o = n->orders; o; o = o->next) {
		fleet_answer answer = o->answer;
		void *userdata = o->userdata;

		if (!o->ever || o->epoch != epoch || o->sequence != sequence)
			continue;
		order_release(o);
		answer(userdata, 0, result, size, NULL);
		return;
	}
	/* Nobody waits any more: its deadline passed or it was cancelled. */
}

static int on_deadline(sd_event_source *source, uint64_t usec_, void *userdata)
{
	struct fleet_order *o = userdata;

	(void)source, (void)usec_;
	if (o->ever)
		fail(o, -ETIMEDOUT,
		     "no answer in time; what was ordered may still happen");
	else if (o->node->held[0])
		fail(o, -EACCES, o->node->held);
	else
		fail(o, -ENOTCONN,
		     "is not connected; nothing was sent: look at "
		     "garboard-agent status on the node");
	return 0;
}

static void append(struct fleet_node *n, struct fleet_order *o)
{
	struct fleet_order **at = &n->orders;

	while (*at)
		at = &(*at)->next;
	*at = o;
	n->n_orders++;
}

static int may_order(const struct fleet_node *n, size_t size, struct fault *f)
{
	if (n->row.state != STORE_NODE_ACTIVE)
		return fault_set(f, -EACCES, n->row.name, "is revoked");
	if (n->held[0])
		return fault_set(f, -EACCES, n->row.name, "is held: %s",
				 n->held);
	if (size > ENVELOPE_PAYLOAD_MAX)
		return fault_set(f, -E2BIG, n->row.name,
				 "an order of %zu bytes", size);
	if (n->n_orders >= FLEET_ORDERS_PER_NODE)
		return fault_set(f, -ENOBUFS, n->row.name,
				 "%zu orders wait already", n->n_orders);
	return 0;
}

int fleet_order(struct fleet *fleet, struct fleet_node *n,
		const void *payload, size_t size, usec deadline,
		fleet_answer answer, void *userdata,
		struct fleet_order **ret_order, struct fault *f)
{
	struct fleet_order *o;
	int r;

	r = may_order(n, size, f);
	if (r < 0)
		return r;
	o = calloc(1, sizeof(*o) + size);
	if (!o)
		return fault_set(f, -ENOMEM, n->row.name, "out of memory");
	memcpy(o->payload, payload, size);
	o->size = size;
	o->node = n;
	o->answer = answer;
	o->userdata = userdata;
	r = fleet_sequence(fleet, &o->epoch, &o->sequence, f);
	if (r < 0) {
		free(o);
		return r;
	}
	r = sd_event_add_time(fleet->event, &o->deadline, CLOCK_BOOTTIME,
			      deadline, DEADLINE_ACCURACY, on_deadline, o);
	if (r < 0) {
		free(o);
		return fault_errno(f, r, n->row.name, "no timer");
	}
	append(n, o);
	*ret_order = o;
	dispatch_run(fleet, n);
	return 0;
}
