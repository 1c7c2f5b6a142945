/*
 * bundle.h - the text of an enrolment bundle, for the verbs that make one.
 * With a token it is secret: wipe it after use (key_wipe()).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/clock.h"
#include "common/fault.h"

#define BUNDLE_MAX 4096

struct cli;
struct control;
struct signer;

struct bundle_text {
	char buf[BUNDLE_MAX];
	size_t n;
	bool full;
};

struct bundle_token {
	const char *node;	/* the name it gives; NULL: the machine's own */
	usec life;
};

/*
 * Addresses are those of --address, else of the spec, else as recorded by
 * init. `token` NULL: without one. All is borrowed.
 */
int bundle_compose(const struct cli *cli, const struct signer *s,
		   struct control *c, const struct bundle_token *token,
		   struct bundle_text *t, struct fault *f);
