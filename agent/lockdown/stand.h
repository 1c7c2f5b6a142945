/*
 * stand.h - makes the policy stand in the kernel, or as much of it as the
 * kernel takes. Adds and replaces what is ours; removes nothing.
 */
#pragma once

#include "agent/lockdown/policy.h"

/*
 * Reports through the log. 0: all of it stands; negative: some layer does
 * not, the others do all the same.
 */
int stand(const struct policy *p);
