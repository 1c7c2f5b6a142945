/*
 * wire_shared.h - tables of messages that several others contain.
 * Inside proto/ only.
 */
#pragma once

#include "proto/wire.h"

extern const struct wire_message wire_desired;		/* struct desired */
extern const struct wire_message wire_sealed;		/* struct sealed */
extern const struct wire_message wire_founding;		/* founding_record */
extern const struct wire_message wire_identity;		/* struct identity */
extern const struct wire_message wire_k3s_status;	/* struct k3s_status */
extern const struct wire_message *const wire_order_arms[];	/* ORDER_KIND_MAX */
