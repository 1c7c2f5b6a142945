/*
 * kubeconfig.h - the admin kubeconfig of one cluster, built field by field.
 *
 * Cluster and context are "k3s-<name>", the user "k3s-<name>-admin", the
 * server is the endpoint; nothing is ever called "default" (B20). The text
 * holds a private key: write it 0600, wipe it after use.
 */
#pragma once

#include <stdint.h>

#include "common/fault.h"
#include "common/ip.h"
#include "coordinator/cluster.h"

/* *ret_text is owned by the caller; explicit_bzero() before free(). */
int kubeconfig_render(const char *cluster, const struct ip_addr *server,
		      uint16_t port, const struct cluster_credential *cred,
		      char **ret_text, struct fault *f);
