/*
 * ssh.h - one script on one machine, through the system's ssh client.
 *
 * Owns the child process and its pipes. Promises: the host is checked before
 * it is anybody's argument; the user's own configuration of ssh counts, but
 * never weakens what is set here (no question is asked, an unknown or changed
 * host key is refused, nothing is forwarded, no local command is run); what
 * is secret goes in by standard input, never by argument or environment. It
 * knows nothing of clusters and logs nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/clock.h"
#include "common/fault.h"

#define SSH_HOST_MAX 320
#define SSH_OUTPUT_MAX 65536	/* of a script; more is -E2BIG */
#define SSH_PIECES 3

struct ssh_target {
	const char *host;	/* [USER@]HOST, passed ssh_check_host() */
	const char *config;	/* ssh -F; NULL: the user's own */
	const char *port;	/* NULL: as configured */
	bool sudo;		/* the login is not root: through sudo -n */
};

/* What the script reads; the pieces are borrowed and sent in order. */
struct ssh_input {
	struct {
		const void *data;
		size_t size;
	} v[SSH_PIECES];
};

/*
 * A name, an IPv4 or a bare IPv6 address, with an optional login before '@'.
 * Nothing in it can be an option of ssh or mean anything to a shell.
 */
bool ssh_check_host(const char *text);

/*
 * Runs `script` with sh there; it must not contain a single quote. Returns
 * its exit status (0 to 254) with *ret_output, NUL-terminated, what it wrote
 * (free); what it said on standard error, its last lines at least, becomes
 * the fault's text when the status is not 0.
 * -EHOSTUNREACH: ssh itself failed; the fault has its words and the remedy.
 * -ENOENT: no ssh client here. -EINTR, -ETIMEDOUT: it was ended.
 */
int ssh_run(const struct ssh_target *target, const char *script,
	    const struct ssh_input *input, int interrupt_fd, usec deadline,
	    char **ret_output, struct fault *f);
