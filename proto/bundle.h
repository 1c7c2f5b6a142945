/*
 * bundle.h - the enrolment bundle that an image builder bakes in.
 *
 * /etc/garboard/bundle/bundle is flat text, one "key value" a line:
 *   format garboard-bundle-1     cluster-id HEX32     cluster NAME
 *   trust-root HEX64             coordinator ADDR:PORT (repeated)
 *   token TEXT                   (optional, one-time)
 * Blank lines and lines starting with # are skipped. An unknown or repeated
 * key refuses the whole bundle (a typing error must not weaken trust), and
 * so does a file that others than root may write. The agent reads it as
 * root; garboard-link reads the copy that systemd hands it as a credential,
 * so the file itself need not be readable by anybody else.
 */
#pragma once

#include <stdint.h>

#include "common/fault.h"
#include "common/strlist.h"

#define BUNDLE_SIZE_MAX 65536
#define BUNDLE_TOKEN_MAX 256
#define BUNDLE_ADDRESSES_MAX 16

struct bundle {
	uint8_t cluster_id[16];
	uint8_t trust_root[32];		/* Ed25519 public */
	char cluster[64];
	char token[BUNDLE_TOKEN_MAX];	/* "": waits for approval */
	struct strlist coordinators;	/* "addr:port" */
};

/* Pure. Faults name the line. -EINVAL, -E2BIG, -ENOMEM. */
int bundle_parse(const char *text, struct bundle *ret_bundle, struct fault *f);

/* `path` is the bundle file. -ENOENT without a fault; -EPERM. */
int bundle_read(const char *path, struct bundle *ret_bundle, struct fault *f);

void bundle_done(struct bundle *b);
