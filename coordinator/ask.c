#include "coordinator/ask.h"

#include <errno.h>
#include <string.h>

#include "coordinator/control_client.h"
#include "proto/order.h"
#include "proto/up.h"

static int judge(const char *node, enum order_kind kind, struct up *u,
		 struct up **ret_result, struct fault *f)
{
	const char *what = order_row(kind)->name;
	int r = 0;

	if (u->kind != UP_RESULT)
		r = fault_set(f, -EPROTO, node, "%s was answered by a %s",
			      what, up_row(u->kind)->name);
	else if (u->result.code == RESULT_FAILED)
		r = fault_set(f, -EREMOTEIO, node, "%s failed: %s", what,
			      u->result.text);
	else if (u->result.code != RESULT_DONE)
		r = fault_set(f, -EPERM, node, "%s was refused: %s", what,
			      u->result.text);
	if (r == 0 && ret_result)
		*ret_result = u;
	else
		(void)up_free(u);
	return r;
}

int ask(struct control *c, const char *node, const struct order *order,
	usec timeout, struct up **ret_result, struct fault *f)
{
	struct up *u = NULL;
	int r;

	r = control_order(c, node, order, clock_boottime() + timeout, &u, f);
	if (r < 0)
		return r;
	return judge(node, order->kind, u, ret_result, f);
}

int ask_all(struct control *c, struct ask *v, size_t n, usec timeout,
	    struct fault *f)
{
	usec deadline = clock_boottime() + timeout;
	uint32_t tickets[CONTROL_ORDERS_MAX];
	size_t i;
	int first = 0;

	if (n > CONTROL_ORDERS_MAX)
		return fault_set(f, -E2BIG, "orders",
				 "more than %d at once", CONTROL_ORDERS_MAX);
	for (i = 0; i < n; i++) {
		v[i].fault = FAULT_INIT;
		v[i].err = control_order_begin(c, v[i].node, v[i].order,
					       deadline, &tickets[i],
					       &v[i].fault);
	}
	for (i = 0; i < n; i++) {
		struct up *u = NULL;

		if (v[i].err == 0)
			v[i].err = control_order_finish(c, tickets[i],
							deadline, &u,
							&v[i].fault);
		if (v[i].err == 0)
			v[i].err = judge(v[i].node, v[i].order->kind, u,
					 &v[i].result, &v[i].fault);
		if (v[i].err < 0 && first == 0) {
			first = v[i].err;
			(void)fault_set(f, first, v[i].fault.object, "%s",
					v[i].fault.text);
		}
	}
	return first;
}

void ask_done(struct ask *v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		v[i].order = order_free(v[i].order);
		v[i].result = up_free(v[i].result);
	}
}
