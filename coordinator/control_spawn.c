#include "coordinator/control_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "coordinator/serve.h"
#include "coordinator/server.h"

#define READY_TIMEOUT_MS 15000
#define END_TIMEOUT_MS 2000
#define ARGS_MAX (8 + 2 * SERVER_LISTEN_MAX)

/* Only async-signal-safe calls: between fork and exec. */
static void child_exec(int fd, char *const *args)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* Ctrl-C is the parent's; this one ends with the descriptor. */
	(void)setpgid(0, 0);
	/* dup2() onto itself would keep close-on-exec. */
	if (dup2(fd, 3) < 0 || fcntl(3, F_SETFD, 0) < 0)
		_exit(127);
	(void)close_range(4, ~0u, 0);
	(void)execv("/proc/self/exe", args);
	_exit(127);
}

static int wait_ready(int fd, int interrupt_fd, struct fault *f)
{
	struct pollfd p[2] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = interrupt_fd, .events = POLLIN },
	};
	char byte = 0;
	int n;

	do {
		n = poll(p, 2, READY_TIMEOUT_MS);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return fault_errno(f, -errno, "serve", "cannot wait");
	if (n > 0 && p[1].revents)
		return fault_set(f, -EINTR, "serve", "interrupted");
	if (n == 0)
		return fault_set(f, -ETIMEDOUT, "serve",
				 "the coordinator did not start in time");
	if (read(fd, &byte, 1) != 1 || byte != SERVE_READY)
		return fault_set(f, -ECHILD, "serve",
				 "the coordinator could not start; its cause "
				 "is above");
	return 0;
}

int control_spawn(const char *state, const char *const *listen_at,
		  size_t n_listen, int interrupt_fd,
		  struct spawned *ret_child, struct fault *f)
{
	const char *args[ARGS_MAX] = {
		"garboard", "serve", "--for-parent", "3", "--state", state,
	};
	struct spawned child = SPAWNED_NONE;
	size_t n = 6;
	int pair[2], r;

	for (size_t i = 0; i < n_listen && n + 2 < ARGS_MAX; i++) {
		args[n++] = "--listen";
		args[n++] = listen_at[i];
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return fault_errno(f, -errno, "serve", "no socket pair");
	child.pid = fork();
	if (child.pid == 0)
		child_exec(pair[1], (char *const *)args);
	r = -errno;
	(void)close(pair[1]);
	child.fd = pair[0];
	if (child.pid < 0) {
		(void)close(pair[0]);
		return fault_errno(f, r, "serve", "cannot fork");
	}
	r = wait_ready(child.fd, interrupt_fd, f);
	if (r < 0) {
		control_spawned_done(&child);
		return r;
	}
	*ret_child = child;
	return 0;
}

void control_spawned_done(struct spawned *child)
{
	struct pollfd p = { .events = POLLIN };

	if (child->fd < 0)
		return;
	(void)close(child->fd);
	/* It may go on for another client; waited for only if it ends now. */
	p.fd = pidfd_open(child->pid, 0);
	if (p.fd >= 0) {
		(void)poll(&p, 1, END_TIMEOUT_MS);
		(void)close(p.fd);
	}
	(void)waitpid(child->pid, NULL, WNOHANG);
	*child = SPAWNED_NONE;
}
