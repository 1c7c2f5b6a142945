/*
 * timezone_plan.h - is the node in the wanted time zone? Pure. The items
 * are "/etc/localtime" and, where that file exists, "/etc/timezone"; "cron"
 * only as long as it is being restarted.
 */
#pragma once

#include "agent/res/resource.h"
#include "agent/res/timezone_read.h"

#define TIMEZONE_CRON "cron"

int timezone_plan(const struct desired *want, const void *seen,
		  struct item_list *items, struct change_list *changes,
		  struct fault *f);
