/*
 * k3s_wipe.h - takes from a node what makes it a member of a cluster, so
 * that it can start over: k3s's server state and credentials, and the
 * configuration, token and unit that Garboard wrote.
 *
 * Kept on purpose: images and containerd's store (caches, and owned by
 * others than root), local volumes, drop-ins and registries.yaml of the
 * operator, and the node's password, which the cluster knows it by.
 * Nothing is followed through a symbolic link or across a mount point.
 * Idempotent; what is not there is done. Sources: K3S-CONTRACT 2.4, 2.5.
 */
#pragma once

#include <stdbool.h>

#include "agent/k3s_paths.h"
#include "common/fault.h"

struct k3s_wipe {
	char root[K3S_PATH_MAX];
};

/* Work for child.h; k3s must be stopped. The unit goes last. */
int k3s_wipe_work(void *arg, int out, struct fault *f);

/*
 * Whether a line of /proc/PID/mountinfo is a mount of a pod or a container:
 * a stop of k3s leaves them running (2.1), and only a reboot ends them all.
 */
bool k3s_wipe_is_pods(const char *line);
