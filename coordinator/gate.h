/*
 * gate.h - the provenance gate: is this the cluster we think it is, and
 * may it be founded (B96..B101, CO-02)?
 *
 * Pure judgement over evidence that somebody else gathered. Four ratings,
 * never two: what could not be observed is neither a match nor absent.
 * The gate decides before anything is changed; it changes nothing itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"
#include "proto/order.h"

enum gate_rating {
	GATE_MATCH,
	GATE_DIFFERENT,
	GATE_ABSENT,
	GATE_UNOBSERVABLE,
	GATE_RATING_MAX,
};

const char *gate_rating_name(enum gate_rating rating);

/* What one server of the spec shows. */
struct gate_server {
	const char *name;
	bool observed;			/* false: `why` says what hid it */
	const char *why;
	bool has_record;
	struct founding_record record;
	bool has_data;			/* an etcd WAL on its disk */
	char ca_sha256[65];		/* of the CA it serves, "" if none */
};

struct gate_input {
	bool has_record;		/* on the operator host */
	struct founding_record record;
	const char *cluster_id;		/* of this state directory, hex */
	const char *pin;		/* spec clusterId, NULL: none */
	const char *live_uid;		/* kube-system UID, NULL: not read */
	const char *founder;		/* first server of the spec */
	const struct gate_server *servers;
	size_t n_servers;
};

enum gate_verdict {
	GATE_MAY_FOUND,		/* nothing anywhere */
	GATE_RESUME_FOUNDING,	/* our intent, founding not finished */
	GATE_KNOWN,		/* our cluster, founded */
	GATE_STOP_DIFFERENT,	/* another cluster, or a second one */
	GATE_STOP_UNKNOWN,	/* cannot tell */
};

struct gate_evidence {
	char where[ORDER_NAME_MAX];	/* node, or "operator host" */
	const char *what;		/* static: "record", "etcd data", ... */
	enum gate_rating rating;
	char text[192];
};

#define GATE_EVIDENCE_MAX 512

struct gate_result {
	enum gate_verdict verdict;
	char founder[ORDER_NAME_MAX];	/* recorded, or the spec's first */
	char text[512];			/* the verdict as one sentence */
	struct gate_evidence *v;	/* each piece, also when it passes */
	size_t n;
};

/* -ENOMEM, -E2BIG. Release with gate_result_done(). */
int gate_judge(const struct gate_input *in, struct gate_result *ret_result);
void gate_result_done(struct gate_result *r);
