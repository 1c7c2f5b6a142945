/*
 * up_table.h - the tables behind up.h. Inside proto/ only.
 */
#pragma once

#include "proto/up.h"
#include "proto/wire.h"

extern const struct wire_message *const up_arms[UP_KIND_MAX];
