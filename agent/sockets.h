/*
 * sockets.h - the listening sockets of the agent: link.sock, status.sock.
 *
 * From systemd by name (garboard-agent-link.socket, -status.socket), else
 * made here in `run_dir`. status.sock may be connected to by everybody,
 * since only a read-only document comes from it; link.sock by `user` and
 * root, which is checked again for each peer (link_sock.h).
 */
#pragma once

#include "common/fault.h"

int sockets_get(const char *run_dir, const char *user, int *ret_link,
		int *ret_status, struct fault *f);
