/*
 * k3s_server.h - brings k3s up on one server, for the founder and joiners.
 *
 * Install (binary by its hash), configure (typed fields, sealed token),
 * start without blocking, wait for READY with a deadline. When k3s does not
 * come up the fault carries its own last lines (A65, CO-09, CL-02).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/fault.h"
#include "common/ip.h"
#include "coordinator/steps/step.h"
#include "proto/order.h"

struct k3s_status;

struct k3s_server {
	size_t node;			/* index into the spec */
	enum start_mode mode;		/* FOUND, JOIN or RESUME */
	struct ip_addr join_address;	/* family 0 for the founder */
	const struct founding_record *intent;	/* FOUND */
};

/*
 * 0: the unit is active. -ETIMEDOUT, -EREMOTEIO with the cause. Creates
 * and keeps the join token on first use (A40).
 */
int k3s_server_bring(const struct step_env *env, const struct k3s_server *s,
		     struct fault *f);

/*
 * Whether the configuration that was last sent to this server is that of
 * the spec: 1 yes, 0 no, and 1 where nothing was ever sent from here.
 */
int k3s_server_configured(const struct step_env *env, size_t node,
			  struct fault *f);

bool k3s_server_active(const struct k3s_status *s);
