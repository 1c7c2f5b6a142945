/*
 * armed.h - the egress classes this node has ever been told to close.
 *
 * Once armed, a class stays armed: what the desired state no longer names
 * is kept from this record, and only armed_disarm() (a signed order, or
 * root on the console) takes it out (DESIGN 5.1). The kill-switch and the
 * routing both enforce armed_merge(desired, record), never the desired
 * state alone. The record is state_dir/ours/killswitch, text, replaced
 * atomically (record.h). When it is damaged, the copy before it counts, and is
 * to be saved again; without one that is an error, never an empty record.
 */
#pragma once

#include <stdbool.h>

#include "agent/kept.h"
#include "common/fault.h"
#include "common/strlist.h"
#include "proto/desired.h"

struct armed {
	bool found;		/* there is a record */
	bool previous;		/* it is the copy before a damaged one */
	struct desired *d;	/* only d->egress is used; owned */
	struct strlist disarmed;	/* classes taken out on purpose */
};

#define ARMED_INIT ((struct armed){ .found = false })

void armed_done(struct armed *a);

/* Absent: success with found false. Damaged: -EBADMSG. */
int armed_load(const char *state_dir, struct armed *ret_armed,
	       struct fault *f);
/* The same, for who loads it again and again. */
int armed_load_kept(struct kept *kept, const char *state_dir,
		    struct armed *ret_armed, struct fault *f);
int armed_save(const char *state_dir, const struct armed *a,
	       struct fault *f);

/*
 * What is to be enforced, and the next record: the desired classes but the
 * disarmed ones, and the recorded classes that the desired state lost, with
 * their tunnels. Lists that belong to no class (local, uplinks) come from
 * the desired state if it has any class, else from the record. -ENOMEM.
 */
int armed_merge(const struct desired_egress *want, const struct armed *record,
		struct armed *ret_next);

/* Text of the record, for comparison; owned by the caller. */
int armed_format(const struct armed *a, char **ret_text);
int armed_parse(const char *text, struct armed *ret_armed, struct fault *f);

const struct desired_class *armed_class(const struct desired_egress *egress,
					const char *name);

/* -ENOENT when no such class was ever armed. Look again afterwards. */
int armed_disarm(const char *state_dir, const char *name, struct fault *f);
int armed_arm(const char *state_dir, const char *name, struct fault *f);
