/*
 * wipe.h - starting over on one server whose first try failed: whether it
 * may, and the order that does it (DESIGN 9; K3S-CONTRACT 3.2, trap 11).
 *
 * A server that any other server's etcd counts, as a voter, a learner or
 * one that was only added, is never wiped: its data would be missing where
 * it is counted. The agent refuses a k3s that is up besides.
 */
#pragma once

#include <stdbool.h>

#include "common/fault.h"
#include "common/ip.h"
#include "coordinator/kube_read.h"

struct control;
struct spec;

/* Pure. -EPERM, with the way out, where the list has the server. */
int wipe_check(const struct kube_members *list, const char *name,
	       const struct ip_addr *address, struct fault *f);

/*
 * With `check` only the guards. -EPERM: refused, -EAGAIN: it cannot be told
 * whether the server is a member; nothing was changed in both. -ENOENT: no
 * such server in the spec.
 */
int wipe_node(const struct spec *spec, struct control *control,
	      const char *name, bool check, struct fault *f);
