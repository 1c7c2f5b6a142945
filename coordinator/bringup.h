/*
 * bringup.h - the verbs up, plan and verify: the provenance gate first,
 * then the stages.
 *
 * Ties spec, control client, gate and sequencer together; holds no logic
 * of any stage. Each call prints to `out` by its style and returns an exit
 * code (DESIGN section 10), with the cause of a failure in `f`.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "common/fault.h"
#include "coordinator/progress.h"

struct control;
struct spec;

enum bringup_exit {
	BRINGUP_DONE = 0,
	BRINGUP_FAILED = 1,
	BRINGUP_USAGE = 2,
	BRINGUP_PENDING = 3,	/* changes pending; with `exit_code` only */
	BRINGUP_REFUSED = 4,	/* a guard; nothing was changed */
	BRINGUP_INCOMPLETE = 5,	/* something could not be observed */
};

struct bringup_options {
	bool check;		/* change nothing */
	bool exit_code;		/* pending changes are exit 3 */
	const char *limit;	/* one node */
	const char *only;	/* one stage */
	const char *plan;	/* the digest that was approved; NULL: any */
	double scale;		/* of all waits; 0 or 1: real time */
	enum progress_style style;
};

int bringup_up(const struct spec *spec, struct control *control,
	       const struct bringup_options *options, FILE *out,
	       struct fault *f);

/* Every property of a healthy cluster, counted; changes nothing. */
int bringup_verify(const struct spec *spec, struct control *control,
		   const struct bringup_options *options, FILE *out,
		   struct fault *f);

/*
 * The admin kubeconfig, server = endpoint; owned by the caller, who wipes
 * it. Reads the credential through the first server where none is kept.
 */
int bringup_kubeconfig(const struct spec *spec, struct control *control,
		       char **ret_text, struct fault *f);

/*
 * The manifests of kube-vip, Cilium and the egress policy, as they are put;
 * tunnels' addresses in it are those that their nodes report now.
 */
int bringup_manifests(const struct spec *spec, struct control *control,
		      FILE *out, struct fault *f);

/* The evidence of the gate and its verdict, also when it passes. */
int bringup_doctor(const struct spec *spec, struct control *control,
		   const struct bringup_options *options, FILE *out,
		   struct fault *f);
