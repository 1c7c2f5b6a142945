#include "agent/upward.h"

#include <string.h>

int upward_seal(struct upward *u, const void *payload, size_t size,
		uint8_t **ret_bytes, size_t *ret_size, struct fault *f)
{
	struct envelope_header h = {
		.direction = ENVELOPE_UP,
		.epoch = u->state->starts,
		.sequence = u->counter + 1,
	};
	int r;

	memcpy(h.cluster_id, u->cluster_id, sizeof(h.cluster_id));
	memcpy(h.node_id, u->state->node_id, sizeof(h.node_id));
	memcpy(h.binding, u->state->boot, sizeof(h.binding));
	r = envelope_sign(&h, u->report_key, payload, size, ret_bytes,
			  ret_size, f);
	if (r == 0)
		u->counter++;
	return r;
}
