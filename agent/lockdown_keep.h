/*
 * lockdown_keep.h - keeps the file of garboard-lockdown up to date.
 *
 * It is written before a policy is applied, so that a power cut in between
 * finds the next boot closed for both; and whenever the armed record or a
 * tunnel's known address has changed. While a desired state is on trial
 * (trial.h) the file holds what was before and what is on trial; after it
 * the confirmed policy and the one before. What was disarmed on purpose is
 * in none of them.
 */
#pragma once

#include "common/fault.h"
#include "proto/desired.h"

/*
 * `d` is what is desired now, NULL for nothing; a kill-switch that is not
 * enforced adds no class. 0: the file is as it should be, or nothing was
 * ever armed. 1: it was written. Otherwise it is as it was.
 */
int lockdown_keep(const char *state_dir, const struct desired *d,
		  struct fault *f);
