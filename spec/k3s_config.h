/*
 * k3s_config.h - what k3s.config may hold: an allow-list, because k3s only
 * warns about a key it does not know (K3S-CONTRACT 1.1), and the keys that
 * Garboard sets itself, with the place in the spec they derive from.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum k3s_kind {
	K3S_OWNED,	/* refused by name; `why` says what to write instead */
	K3S_BOOL,
	K3S_TEXT,
	K3S_LIST,
	K3S_ARGS,	/* list of name=value for a component */
};

struct k3s_key {
	const char *name;
	enum k3s_kind kind;
	bool worker;		/* k3s agents take it too */
	const char *why;
};

const struct k3s_key *k3s_config_find(const char *name);
/* The whole table, for the manual. */
const struct k3s_key *k3s_config_keys(size_t *ret_n);

/* A component argument ("advertise-address") that follows from the spec. */
bool k3s_arg_owned(const char *name);
