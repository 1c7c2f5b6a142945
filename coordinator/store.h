/*
 * store.h - what the coordinator remembers, in one SQLite file.
 *
 * Owns STATE/store.db: the cluster, its nodes with what they last said,
 * enrolment tokens (hashed only), requests waiting for approval, the order
 * sequence, the founding record, secrets (sealed before they come here) and
 * the run log. It keeps values and makes no decision. Every read is
 * bounded, every write is one transaction and on disk when the call
 * returns. Never logs. The schema has a number and a row per migration; a
 * file from a newer program is refused (-EOPNOTSUPP), never guessed at.
 *
 * Errors: -ENOENT no such row, -EEXIST the row is there, -EBUSY somebody
 * else holds the file, -EIO otherwise; the fault has SQLite's words. Times
 * are wall clock microseconds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/fault.h"

#define STORE_NAME_MAX 64
#define STORE_NODES_MAX 16384
#define STORE_PENDING_MAX 1024
#define STORE_PENDING_LIFE (3600 * USEC_PER_SEC)	/* undecided, when full */
#define STORE_TOKENS_MAX 16384
#define STORE_BLOB_MAX (1024 * 1024)
#define STORE_VALUE_MAX 4096
#define STORE_EVENTS_MAX 100000	/* the oldest go first */
#define STORE_SCHEMA 2

struct store;

int store_open(const char *path, struct store **ret_store, struct fault *f);
struct store *store_free(struct store *s);	/* returns NULL */
static inline void store_freep(struct store **s)
{
	(void)store_free(*s);
}

int store_schema(struct store *s, unsigned int *ret_version);

/* Several writes as one; `commit` false undoes them. No nesting. */
int store_begin(struct store *s, struct fault *f);
int store_end(struct store *s, bool commit, struct fault *f);

/* A part of a transaction that can be undone alone. */
int store_part_begin(struct store *s, struct fault *f);
int store_part_end(struct store *s, bool commit, struct fault *f);

/* ---- named values: "cluster", "cluster-id", "listen", ... ---- */
int store_value_get(struct store *s, const char *name, char **ret_text,
		    struct fault *f);
int store_value_put(struct store *s, const char *name, const char *text,
		    struct fault *f);

/* ---- order sequence ---- */
/*
 * Reserves `count` numbers of the current epoch, on disk before it returns,
 * so that a crash can skip numbers but never use one twice.
 */
int store_sequence_reserve(struct store *s, uint64_t count,
			   uint64_t *ret_epoch, uint64_t *ret_first,
			   struct fault *f);
/* A later epoch starts at sequence 1; -EINVAL for an earlier or equal one. */
int store_epoch_start(struct store *s, uint64_t epoch, struct fault *f);

/* ---- nodes ---- */
enum store_node_state {
	STORE_NODE_ACTIVE,
	STORE_NODE_REVOKED,
	STORE_NODE_STATE_MAX,
};

struct store_blob {		/* owned; data NULL: none */
	uint8_t *data;
	size_t size;
};

struct store_node {
	uint8_t id[16];
	char name[STORE_NAME_MAX];
	uint8_t report_key[32];
	uint8_t seal_key[32];
	char machine_id[STORE_NAME_MAX];
	uint8_t certificate[32];	/* SHA-256 of the leaf in force */
	enum store_node_state state;
	usec enrolled_at;
	usec seen_at;			/* 0: never */
	usec reported_at;
	uint8_t up_boot[16];		/* last accepted envelope from it */
	uint64_t up_epoch;
	uint64_t up_sequence;
	struct store_blob hello;	/* Up payloads, as verified */
	struct store_blob report;
};

void store_node_done(struct store_node *n);
/* -EEXIST: the id, the key or the name of an active node is taken. */
int store_node_add(struct store *s, const struct store_node *n,
		   struct fault *f);
/* Everything but id and enrolled_at. */
int store_node_update(struct store *s, const struct store_node *n,
		      struct fault *f);
/* Calls back in order of name; a non-zero return stops and is returned. */
typedef int (*store_node_fn)(struct store_node *takes, void *arg);
int store_nodes(struct store *s, store_node_fn fn, void *arg, struct fault *f);

/* ---- enrolment tokens; `hash` is SHA-256 of the token's text ---- */
struct store_token {
	uint8_t hash[32];
	char node[STORE_NAME_MAX];	/* "" or the name it is bound to */
	usec created_at;
	usec expires_at;
	bool used;
	uint8_t used_by[32];		/* report key */
};

int store_token_add(struct store *s, const struct store_token *t,
		    struct fault *f);
int store_token_get(struct store *s, const uint8_t hash[32],
		    struct store_token *ret_token, struct fault *f);
int store_token_use(struct store *s, const uint8_t hash[32],
		    const uint8_t report_key[32], struct fault *f);
/* Tokens that can still be used. */
int store_tokens_open(struct store *s, usec now, size_t *ret_count,
		      struct fault *f);

/* ---- requests waiting for approval, by report key ---- */
struct store_pending {
	uint8_t report_key[32];
	char hostname[STORE_NAME_MAX];
	char machine_id[STORE_NAME_MAX];
	char address[STORE_NAME_MAX];	/* the peer's, for people */
	char reason[256];		/* why it was not taken at once */
	char approved_name[STORE_NAME_MAX];	/* "" until approved */
	bool rejected;
	usec first_at, last_at;
};

/* Inserts, or renews what the node said; never an operator's decision. */
int store_pending_put(struct store *s, const struct store_pending *p,
		      struct fault *f);
int store_pending_get(struct store *s, const uint8_t report_key[32],
		      struct store_pending *ret_pending, struct fault *f);
int store_pending_decide(struct store *s, const uint8_t report_key[32],
			 const char *approved_name, bool rejected,
			 struct fault *f);
int store_pending_remove(struct store *s, const uint8_t report_key[32],
			 struct fault *f);
typedef int (*store_pending_fn)(const struct store_pending *p, void *arg);
int store_pendings(struct store *s, store_pending_fn fn, void *arg,
		   struct fault *f);

/* ---- founding record ---- */
struct store_founding {
	char cluster_uid[STORE_NAME_MAX];
	uint8_t ca_sha256[32];
	bool has_ca;
	char founder[STORE_NAME_MAX];
	uint64_t intent;
};

int store_founding_get(struct store *s, struct store_founding *ret_record,
		       struct fault *f);
int store_founding_put(struct store *s, const struct store_founding *r,
		       struct fault *f);

/* ---- secrets, sealed to the coordinator's own key by the signer ---- */
int store_secret_put(struct store *s, const char *name,
		     const uint8_t ephemeral[32], const void *box, size_t size,
		     struct fault *f);
int store_secret_get(struct store *s, const char *name, uint8_t *ret_ephemeral,
		     struct store_blob *ret_box, struct fault *f);

/* ---- run log ---- */
struct store_event {
	uint64_t id;
	usec at;
	char stage[STORE_NAME_MAX];
	char node[STORE_NAME_MAX];
	char text[1024];
};

int store_event_add(struct store *s, const struct store_event *e,
		    struct fault *f);
/* The last `limit` events, oldest first. */
typedef int (*store_event_fn)(const struct store_event *e, void *arg);
int store_events(struct store *s, size_t limit, store_event_fn fn, void *arg,
		 struct fault *f);
