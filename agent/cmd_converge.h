/*
 * cmd_converge.h - the verb converge, by one of two ways.
 *
 * Reads the desired state, has it looked at or made so, prints the result.
 * Private to cmd_converge.c and cmd_converge_go.c.
 */
#pragma once

#include "agent/converge.h"

struct converge_way {
	/* The accepted state; NULL: this program cannot verify it. */
	int (*stored)(const char *state_dir, struct desired **ret_desired,
		      struct fault *f);
	/* As converge(); 1: nothing was done and it is for the other. */
	int (*converge)(const struct converge_params *p,
			struct desired *desired,
			struct converge_result *ret_result, struct fault *f);
};

/* As the verbs of cmd.h; CMD_ELSEWHERE where `way` does not suffice. */
int cmd_converge_by(int argc, char **argv, const struct converge_way *way);
