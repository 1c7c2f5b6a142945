/*
 * build.h - one walk that makes the desired state of a node and says where
 * each value came from, so that what is shown is what is sent. Internal to
 * spec/.
 */
#pragma once

#include "common/fault.h"
#include "proto/desired.h"
#include "spec/print.h"
#include "spec/spec.h"

struct build {
	const struct spec *spec;
	const struct spec_node *node;	/* NULL for one box */
	struct desired *d;
	struct spec_items *items;	/* NULL: nobody asks */
	int err;			/* the first one; then nothing is done */
};

#define BUILD_DEFAULT ((struct spec_pos){ 0, 0 })

/* Remembers the first failure. */
void build_failed(struct build *b, int err);

/* A line of the explanation; `pos` line 0 means default. */
void build_say(struct build *b, const char *group, const char *key,
	       const char *value, struct spec_pos pos);
/* The same for a value that follows from another, in words. */
void build_say_derived(struct build *b, const char *group, const char *key,
		       const char *value, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

void build_baseline(struct build *b);
void build_egress(struct build *b);
void build_cluster(struct build *b);

/* Whether the node holds a tunnel of the class. */
bool build_is_gateway(const struct build *b, const struct spec_class *c);
