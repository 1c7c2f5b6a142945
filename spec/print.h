/*
 * print.h - what `spec check` and `spec show` say, as text for the caller
 * to print. Nothing is printed here.
 */
#pragma once

#include <stddef.h>

#include "common/fault.h"
#include "spec/problem.h"
#include "spec/spec.h"

#define SPEC_ITEMS_MAX 8192

/* One effective value of a node and where it came from. */
struct spec_item {
	char *group;	/* "sysctl" */
	char *key;	/* "kernel.panic" */
	char *value;
	char *origin;	/* "default", "cluster.yaml:45:3", "derived from ..." */
};

struct spec_items {
	struct spec_item *v;
	size_t n;
};

#define SPEC_ITEMS_INIT ((struct spec_items){ NULL, 0 })

/* Every effective value of the node (0 for a one-box spec), in order. */
int spec_explain_node(const struct spec *spec, size_t node,
		      struct spec_items *ret_items, struct fault *f);
void spec_items_done(struct spec_items *items);

/* Texts are the caller's (free). */
int spec_print_problems(const char *file, const struct spec_problems *problems,
			char **ret_text);
int spec_print_table(const struct spec_items *items, char **ret_text);
int spec_print_json(const struct spec_items *items, char **ret_text);
