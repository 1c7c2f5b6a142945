#include "agent/lease.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int held(const struct state_lease *have, usec now, struct fault *f)
{
	return fault_set(f, -EBUSY, "lease",
			 "held by %s (term %" PRIu64 ") for another %" PRIu64
			 " s",
			 have->holder, have->term,
			 (have->expires - now + USEC_PER_SEC - 1) /
				 USEC_PER_SEC);
}

int lease_decide(const struct state_lease *have, const struct order_lease *ask,
		 usec now, struct state_lease *ret_next, struct fault *f)
{
	bool taken = have->holder[0] && have->expires > now;
	bool ours = strcmp(have->holder, ask->holder) == 0 &&
		    have->term == ask->term;
	struct state_lease next = { .term = ask->term,
				    .duration = ask->duration,
				    .expires = now + ask->duration };

	switch (ask->verb) {
	case LEASE_ACQUIRE:
		if (taken && !ours)
			return held(have, now, f);
		if (!ours && ask->term <= have->term)
			return fault_set(f, -ESTALE, "lease",
					 "term %" PRIu64 " is not above "
					 "%" PRIu64 ", the last one",
					 ask->term, have->term);
		break;
	case LEASE_RENEW:
		if (!ours)
			return taken ? held(have, now, f) :
				       fault_set(f, -ESTALE, "lease",
						 "was lost; the last term is "
						 "%" PRIu64, have->term);
		break;
	case LEASE_RELEASE:
		if (!ours)
			return taken ? held(have, now, f) :
				       fault_set(f, -ESTALE, "lease",
						 "is not held by %s",
						 ask->holder);
		*ret_next = (struct state_lease){ .term = have->term };
		return 0;
	case LEASE_VERB_MAX:
		return fault_set(f, -EINVAL, "lease", "unknown verb");
	}
	(void)snprintf(next.holder, sizeof(next.holder), "%s", ask->holder);
	*ret_next = next;
	return 0;
}
