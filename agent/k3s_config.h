/*
 * k3s_config.h - the whole config.yaml of k3s, from typed fields. Pure.
 *
 * One order renders to one text, byte for byte, so that an unchanged
 * configuration is recognised and restarts nothing (A44). Every scalar is
 * a quoted string but for true: k3s reads an unquoted 0600 as octal
 * (K3S-CONTRACT 1.1).
 */
#pragma once

#include "common/fault.h"
#include "common/strlist.h"
#include "proto/order.h"

#define K3S_CONFIG_MAX 65536
/* First line of what we wrote; a config.yaml without it is not ours. */
#define K3S_CONFIG_MARK "# Written by garboard-agent"

/* *ret_text is heap. -E2BIG. */
int k3s_config_render(const struct order_k3s_configure *c, char **ret_text,
		      struct fault *f);

/*
 * The first top-level key of a drop-in that would replace one of ours in
 * `config`; "key+" only appends. 1 and *ret_key (heap): there is one;
 * -EBADMSG: it is not YAML, so k3s would not start with it.
 */
int k3s_config_conflict(const char *config, const char *dropin, size_t size,
			char **ret_key, struct fault *f);

/* The unit text, ours alone (K3S-CONTRACT 2.1). */
const char *k3s_unit_text(bool agent);
