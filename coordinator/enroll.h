/*
 * enroll.h - machines that want to become nodes.
 *
 * Owns the connections without a client certificate, tokens and the queue
 * of requests that wait for approval. Promises: a request counts only when
 * it is signed by the key inside; a token is stored hashed and works for
 * one key; the node is in the store before its certificate leaves; an
 * approved machine that still waits on its connection is answered at once.
 * Decisions are enroll_rules.h. Issues nothing itself (signer.h).
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/fault.h"

#define ENROLL_WAITING_MAX 1024	/* open connections; the oldest goes */
#define ENROLL_TOKEN_TEXT 44	/* "gbt-" and 40 hex digits */
#define ENROLL_TOKEN_LIFE_MAX (UINT64_C(366) * 86400 * USEC_PER_SEC)

struct conn;
struct enroll;
struct fleet;
struct journal;
struct signer;
struct store;

/* All are borrowed. NULL: no memory. */
struct enroll *enroll_new(sd_event *event, struct fleet *fleet,
			  struct store *store, struct signer *signer,
			  struct journal *journal);
struct enroll *enroll_free(struct enroll *e);	/* returns NULL */

/* Takes over a connection without a certificate. */
int enroll_attach(struct enroll *e, struct conn *c, struct fault *f);

/* ---- the operator's side ---- */

/*
 * Makes a one-time token; its text is returned once and not kept. `node`
 * is the name it is bound to, "" for the machine's own.
 */
int enroll_token(struct store *store, const char *node, usec life,
		 char ret_text[ENROLL_TOKEN_TEXT + 1], struct fault *f);

/* Requests that wait, as objects with "fingerprint" and the rest. */
int enroll_list(struct enroll *e, json_t **ret_list, struct fault *f);
/*
 * `fingerprint`: 16 hex digits. `name` "" takes the machine's own. -ENOENT,
 * -EINVAL for a name that cannot be, -EEXIST for one that is taken.
 */
int enroll_approve(struct enroll *e, const char *fingerprint,
		   const char *name, struct fault *f);
int enroll_reject(struct enroll *e, const char *fingerprint, struct fault *f);
