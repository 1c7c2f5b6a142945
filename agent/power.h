/*
 * power.h - reboots the node, a moment after it was asked to, so that the
 * answer is on its way first. Through systemd; never by the kernel's own
 * call, which would skip the stop of every service.
 */
#pragma once

#include "agent/res/resource.h"

/* -ENOTCONN: there is no D-Bus to ask. */
int power_reboot_soon(const struct resource_host *host, struct fault *f);
