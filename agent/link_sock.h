/*
 * link_sock.h - the agent's end of /run/garboard/link.sock.
 *
 * One peer at a time: garboard-link, told by SO_PEERCRED to be the allowed
 * user or root; anybody else is closed at once. A newer connection replaces
 * an older one (the link was restarted). Frames are bounded per type before
 * anything is allocated; a frame that breaks the rules closes the peer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "common/fault.h"

#define LINK_SOCKET "/run/garboard/link.sock"

struct link_sock;

struct link_sock_owner {
	uid_t uid;		/* of garboard-link; root may as well */
	void (*connected)(void *userdata, bool up);
	/* A whole frame; negative closes the peer. */
	int (*frame)(void *userdata, uint8_t type, const uint8_t *body,
		     size_t size);
	void *userdata;
};

/* Takes `listen_fd` on success. */
int link_sock_new(sd_event *event, int listen_fd,
		  const struct link_sock_owner *owner,
		  struct link_sock **ret_sock);
struct link_sock *link_sock_free(struct link_sock *s);

/* Queues a frame. -ENOTCONN without a peer; -ENOBUFS: it does not read. */
int link_sock_send(struct link_sock *s, uint8_t type, const void *body,
		   size_t size);
bool link_sock_is_connected(const struct link_sock *s);
