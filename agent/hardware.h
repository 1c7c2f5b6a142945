/*
 * hardware.h - what is observed of the machine and never set: its memory,
 * the room below /var/lib, its firmware (B07, B08). What cannot be read is
 * 0 or ""; the coordinator judges. `root` is "" in production.
 */
#pragma once

#include "proto/up.h"

void hardware_read(const char *root, struct hardware *ret_hardware);
