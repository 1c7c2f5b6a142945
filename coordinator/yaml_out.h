/*
 * yaml_out.h - a JSON tree as block-style YAML text, by libyaml's emitter.
 *
 * Strings are always double-quoted, so that no reader takes "1.20" or "no"
 * for anything else (K3S-CONTRACT 1.1). Keys keep their order.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* *ret_text is owned by the caller (free). -EINVAL for a NULL tree. */
int yaml_out(const json_t *tree, char **ret_text);

/* The same with `indent` blanks before each line. */
int yaml_out_indented(const json_t *tree, unsigned int indent,
		      char **ret_text);
