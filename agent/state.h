/*
 * state.h - what the root process of a node remembers on disk.
 *
 * Owns /var/lib/garboard (0700): who we are, which order was last acted on
 * and under which statement, the accepted desired state, the last results,
 * how often we started, who founded the cluster, who holds the lease, which
 * k3s was verified. Every change is on disk when the function returns; the
 * member is changed only then. A broken file is replaced by its previous
 * copy, and that is reported by state_load().
 *
 * No logging, no network. Times are microseconds of CLOCK_BOOTTIME.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/strlist.h"
#include "proto/envelope.h"
#include "proto/order.h"
#include "proto/statement.h"
#include "proto/up.h"

#define STATE_RESULTS_MAX 64
#define STATE_RESULT_SIZE_MAX (512 * 1024)

struct state_lease {
	char holder[ORDER_TEXT_MAX];	/* "": free */
	uint64_t term;			/* highest seen, also when free */
	usec duration;
	usec expires;
};

struct state_install {			/* of /usr/local/bin/k3s */
	uint8_t sha256[32];
	char version[ORDER_NAME_MAX];	/* "": never verified */
};

struct node_state {
	char *dir;
	char boot_id[64];		/* text form */
	uint8_t boot[16];
	bool enrolled;
	bool revoked;
	uint8_t node_id[16];
	char node_name[ORDER_NAME_MAX];
	struct strlist addresses;	/* of coordinators; empty: the bundle's */
	uint64_t epoch, sequence;	/* of the last order acted on */
	bool has_statement;
	uint8_t statement[STATEMENT_SIZE];
	uint64_t starts;		/* this one included */
	bool has_founding;
	struct founding_record founding;
	struct state_lease lease;
	struct state_install install;
};

/*
 * Reads everything. 0 also when nothing is there yet; 1: something was
 * broken and its previous copy was used, or it is gone (`f` says what; the
 * agent goes on). -EACCES and the like: the directory is unusable.
 */
int state_load(const char *dir, usec now, struct node_state *ret_state,
	       struct fault *f);
void state_done(struct node_state *s);

int state_count_start(struct node_state *s, struct fault *f);
int state_set_identity(struct node_state *s, const uint8_t node_id[16],
		       const char *name, struct fault *f);
int state_set_revoked(struct node_state *s, struct fault *f);
int state_set_addresses(struct node_state *s, const struct strlist *addresses,
			struct fault *f);
/* A new statement starts its epoch at sequence 0. */
int state_set_statement(struct node_state *s,
			const uint8_t bytes[STATEMENT_SIZE],
			const struct statement *st, struct fault *f);
int state_set_order(struct node_state *s, uint64_t epoch, uint64_t sequence,
		    struct fault *f);
int state_set_founding(struct node_state *s, const struct founding_record *r,
		       struct fault *f);
int state_set_lease(struct node_state *s, const struct state_lease *lease,
		    struct fault *f);
int state_set_install(struct node_state *s, const struct state_install *i,
		      struct fault *f);

/* The accepted SetDesired envelope. Read: 0, 1 (previous copy), -ENOENT. */
int state_put_desired(struct node_state *s, const void *bytes, size_t size,
		      struct fault *f);
int state_get_desired(const struct node_state *s, char **ret_bytes,
		      size_t *ret_size, struct fault *f);

/*
 * Results by order: `digest` is that of the order's payload, so that other
 * bytes under the same number are told apart (-EEXIST on get).
 */
int state_put_result(struct node_state *s, uint64_t epoch, uint64_t sequence,
		     const uint8_t digest[32], const void *bytes, size_t size,
		     struct fault *f);
int state_get_result(const struct node_state *s, uint64_t epoch,
		     uint64_t sequence, const uint8_t digest[32],
		     uint8_t **ret_bytes, size_t *ret_size, struct fault *f);

/* Forgets who we are: id, keys, statement, desired, results. */
int state_reset_identity(struct node_state *s, struct fault *f);
