/*
 * swap_plan.h - what is to be done about swap. Pure. One item per active
 * swap ("/dev/sda2"), or "swap" when there is none; "UNIT (persisted)" for
 * each unit that has to be masked, and for each mask of ours that goes;
 * "systemd" only as long as it reloads its units.
 */
#pragma once

#include "agent/res/resource.h"
#include "agent/res/swap_read.h"

#define SWAP_NOW "swap"
#define SWAP_RELOAD "systemd"
#define SWAP_PERSISTED " (persisted)"

int swap_plan(const struct desired *want, const void *seen,
	      struct item_list *items, struct change_list *changes,
	      struct fault *f);
