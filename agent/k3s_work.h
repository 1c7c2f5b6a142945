/*
 * k3s_work.h - what is done about k3s in child processes (child.h).
 *
 * Verifying and placing the binary, and reading the journal. Arguments are
 * plain values, valid for the child's life; answers are text on `out`.
 */
#pragma once

#include <stdint.h>

#include "agent/k3s_paths.h"
#include "common/fault.h"

/*
 * The binary at `from` must have this SHA-256 and be executable. With `to`,
 * it is copied there (0755, by temporary name) while it is verified, so
 * that what was verified is what is placed.
 */
struct k3s_verify {
	char from[K3S_PATH_MAX];
	char to[K3S_PATH_MAX];		/* "": verify in place */
	uint8_t sha256[32];
};

int k3s_work_verify(void *arg, int out, struct fault *f);
/* Only the hash, of any file (struct k3s_verify without `to`). */
int k3s_work_digest(void *arg, int out, struct fault *f);

/* The unit's last lines of this boot, one a line, fatal ones first. */
struct k3s_journal {
	char secret_file[K3S_PATH_MAX];	/* its content is redacted */
};

int k3s_work_journal(void *arg, int out, struct fault *f);
