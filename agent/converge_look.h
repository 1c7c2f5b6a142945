/*
 * converge_look.h - what converge_look() and converge() have in common: the
 * first look, what it leaves to be done, and the conclusion.
 *
 * Private to converge.c and converge_go.c.
 */
#pragma once

#include "agent/converge.h"

#define CONVERGE_BUS_SOCKET "/run/dbus/system_bus_socket"

struct engine_params converge_params(bool check);

/* Takes `desired`. `bare` has neither loop nor bus, and is borrowed. */
int converge_first(const struct resource_host *bare,
		   const struct converge_params *p, struct desired *desired,
		   struct engine **ret_engine, struct fault *f);

/*
 * The resources that need the second go, a bit each: all of them if there
 * is something to do, else those of which D-Bus could tell more.
 */
uint32_t converge_left(const struct engine *e,
		       const struct converge_params *p);

/* What is planned is kept as it was found. */
int converge_remember(const struct engine *e, struct converge_result *r);

/* The resources in `mask` by what `second` saw, the others by `first`. */
int converge_conclude(const struct engine *first, const struct engine *second,
		      uint32_t mask, bool check, struct converge_result *r);
