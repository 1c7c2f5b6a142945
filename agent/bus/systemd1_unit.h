/*
 * systemd1_unit.h - the properties of a unit, out of a message. Inside
 * agent/bus only; unknown properties are skipped, missing ones stay zero.
 */
#pragma once

#include "agent/bus/systemd1.h"

#define SYSTEMD1_NAME "org.freedesktop.systemd1"
#define SYSTEMD1_PATH "/org/freedesktop/systemd1"
#define SYSTEMD1_MANAGER "org.freedesktop.systemd1.Manager"

/* The answer of Properties.GetAll. Negative errno for a malformed one. */
int systemd1_unit_parse(sd_bus_message *m, struct systemd1_unit *ret_unit);
/* "/org/freedesktop/systemd1/unit/..."; the caller frees it. */
int systemd1_unit_path(const char *unit, char **ret_path);
