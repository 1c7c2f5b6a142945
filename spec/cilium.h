/*
 * cilium.h - the values of the Cilium chart that the coordinator renders
 * (its manifests.h) and that a spec may therefore not say itself.
 * Internal to spec/.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "spec/spec.h"

struct cilium_own {
	const char *path;		/* "ipam.operator": all below, too */
	const char *why;
	bool (*when)(const struct spec *spec);	/* NULL: always */
};

const struct cilium_own *cilium_owned(size_t *ret_n);

bool cilium_has_classes(const struct spec *spec);	/* with pods */
bool cilium_has_pool(const struct spec *spec);
