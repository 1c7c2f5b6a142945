#include "coordinator/ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"

#define ARGS_MAX 40
#define COMMAND_MAX 8192
#define WORDS_MAX 512		/* of its standard error: the end is kept */
#define SSH_FAILED 255		/* ssh(1): an error of its own */
#define NOT_FOUND 127

/* ---- what is allowed as a host ---- */

static bool is_login(const char *text, size_t n)
{
	if (n == 0 || n > 32 || text[0] == '-')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_.-",
			    text[i]) &&
		    !(text[i] >= 'A' && text[i] <= 'Z'))
			return false;
	return true;
}

bool ssh_check_host(const char *text)
{
	const char *at = strchr(text, '@'), *host = at ? at + 1 : text;
	bool colon = strchr(host, ':') != NULL;

	if (at && !is_login(text, (size_t)(at - text)))
		return false;
	if (!*host || strlen(host) > 253 || *host == '-' || *host == '.')
		return false;
	for (const char *p = host; *p; p++) {
		bool digit = *p >= '0' && *p <= '9';
		bool letter = (*p >= 'a' && *p <= 'z') ||
			      (*p >= 'A' && *p <= 'Z');

		if (!digit && !letter && *p != '.' && *p != '-' &&
		    (colon ? *p != ':' && *p != '%' : *p != '_'))
			return false;
	}
	return true;
}

/* ---- the child ---- */

struct child {
	pid_t pid;
	int in, out, err;	/* our ends; -1: closed */
	char *text;		/* standard output */
	size_t n;
	char words[WORDS_MAX + 1];	/* the end of standard error */
	size_t n_words;
	size_t piece, sent;
};

static void child_done(struct child *c)
{
	cleanup_close(&c->in);
	cleanup_close(&c->out);
	cleanup_close(&c->err);
	if (c->pid > 0) {
		(void)kill(c->pid, SIGKILL);
		(void)waitpid(c->pid, NULL, 0);
	}
	free(c->text);
}

/* Only async-signal-safe calls: between fork and exec. */
static void child_exec(const int fds[3], char *const *args)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* Ctrl-C is the parent's, which ends this one. */
	(void)setpgid(0, 0);
	for (int i = 0; i < 3; i++)
		if (dup2(fds[i], i) < 0 || fcntl(i, F_SETFD, 0) < 0)
			_exit(NOT_FOUND);
	(void)close_range(3, ~0u, 0);
	(void)execvp(args[0], args);
	_exit(NOT_FOUND);
}

static size_t make_args(const struct ssh_target *t, const char *command,
			const char **args)
{
	static const char *const fixed[] = {
		"ssh", "-T", "-x", "-a",
		"-o", "BatchMode=yes",
		"-o", "StrictHostKeyChecking=yes",
		"-o", "ClearAllForwardings=yes",
		"-o", "PermitLocalCommand=no",
		"-o", "RemoteCommand=none",
		"-o", "ConnectTimeout=20",
		"-o", "ServerAliveInterval=10",
		"-o", "ServerAliveCountMax=3",
	};
	size_t n = 0;

	for (; n < sizeof(fixed) / sizeof(fixed[0]); n++)
		args[n] = fixed[n];
	if (t->config) {
		args[n++] = "-F";
		args[n++] = t->config;
	}
	if (t->port) {
		args[n++] = "-p";
		args[n++] = t->port;
	}
	args[n++] = "--";
	args[n++] = t->host;
	args[n++] = command;
	args[n] = NULL;
	return n;
}

/* Socket pairs, since a closed one can be written to without a signal. */
static int start(struct child *c, char *const *args, struct fault *f)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 };
	const int type = SOCK_STREAM | SOCK_CLOEXEC;
	int r = 0;

	if (socketpair(AF_UNIX, type, 0, in) < 0 ||
	    socketpair(AF_UNIX, type, 0, out) < 0 ||
	    socketpair(AF_UNIX, type, 0, err) < 0)
		r = -errno;
	if (r == 0) {
		c->pid = fork();
		if (c->pid == 0)
			child_exec((int[]){ in[1], out[1], err[1] }, args);
		r = c->pid < 0 ? -errno : 0;
	}
	cleanup_close(&in[1]);
	cleanup_close(&out[1]);
	cleanup_close(&err[1]);
	c->in = in[0];
	c->out = out[0];
	c->err = err[0];
	return r < 0 ? fault_errno(f, r, "ssh", "cannot be started") : 0;
}

/* ---- its streams ---- */

static void feed(struct child *c, const struct ssh_input *input)
{
	ssize_t n;

	while (c->piece < SSH_PIECES && c->sent == input->v[c->piece].size) {
		c->piece++;
		c->sent = 0;
	}
	if (c->piece == SSH_PIECES) {
		(void)close(take_fd(&c->in));
		return;
	}
	n = send(c->in, (const char *)input->v[c->piece].data + c->sent,
		 input->v[c->piece].size - c->sent,
		 MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n > 0)
		c->sent += (size_t)n;
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		(void)close(take_fd(&c->in));	/* its status says why */
}

static int drink(struct child *c, struct fault *f)
{
	ssize_t n = recv(c->out, c->text + c->n, SSH_OUTPUT_MAX - c->n,
			 MSG_DONTWAIT);

	if (n == 0) {
		if (c->n == SSH_OUTPUT_MAX)
			return fault_set(f, -E2BIG, "ssh",
					 "more output than expected");
		(void)close(take_fd(&c->out));
	}
	if (n > 0)
		c->n += (size_t)n;
	return 0;
}

static void hear(struct child *c)
{
	char buf[WORDS_MAX];
	ssize_t n = recv(c->err, buf, sizeof(buf), MSG_DONTWAIT);
	size_t drop;

	if (n == 0)
		(void)close(take_fd(&c->err));
	if (n <= 0)
		return;
	drop = c->n_words + (size_t)n > WORDS_MAX ?
		       c->n_words + (size_t)n - WORDS_MAX : 0;
	if (drop > c->n_words)
		drop = c->n_words;
	memmove(c->words, c->words + drop, c->n_words - drop);
	c->n_words -= drop;
	memcpy(c->words + c->n_words, buf, (size_t)n);
	c->n_words += (size_t)n;
	c->words[c->n_words] = '\0';
}

static int pump(struct child *c, const struct ssh_input *input,
		int interrupt_fd, usec deadline, struct fault *f)
{
	int r = 0;

	while (r == 0 && (c->out >= 0 || c->err >= 0)) {
		struct pollfd p[4] = {
			{ .fd = c->in, .events = POLLOUT },
			{ .fd = c->out, .events = POLLIN },
			{ .fd = c->err, .events = POLLIN },
			{ .fd = interrupt_fd, .events = POLLIN },
		};
		usec now = clock_boottime();

		if (now >= deadline)
			return fault_set(f, -ETIMEDOUT, "ssh",
					 "no end in time; it was ended here "
					 "and may still run there");
		if (poll(p, 4, (int)((deadline - now) / 1000) + 1) < 0) {
			if (errno == EINTR)
				continue;
			return fault_errno(f, -errno, "ssh", "cannot wait");
		}
		if (p[3].revents)
			return fault_set(f, -EINTR, "ssh", "interrupted");
		if (p[0].revents)
			feed(c, input);
		if (p[1].revents)
			r = drink(c, f);
		if (p[2].revents)
			hear(c);
	}
	return r;
}

/* ---- what became of it ---- */

static int explain(const struct ssh_target *t, const char *words,
		   struct fault *f)
{
	static const struct {
		const char *pattern, *remedy;
	} known[] = {
		{ "Host key verification failed",
		  "its key is not known here, or is another one: compare the "
		  "fingerprint on its console, then connect once by hand" },
		{ "REMOTE HOST IDENTIFICATION HAS CHANGED",
		  "its key is another one: find out why before anything else" },
		{ "Permission denied",
		  "put your public key into its authorized_keys, and the "
		  "private one into your agent; no password is asked for" },
		{ "Could not resolve hostname", "is the name right?" },
		{ "Connection refused", "does sshd run there, on that port?" },
		{ "timed out", "is it on, and may this host reach it?" },
		{ "No route to host", "is it on, and may this host reach it?" },
	};
	const char *remedy = "does `ssh` to it work without a question?";

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strstr(words, known[i].pattern)) {
			remedy = known[i].remedy;
			break;
		}
	return fault_set(f, -EHOSTUNREACH, t->host, "ssh: %s; %s",
			 *words ? words : "failed without a word", remedy);
}

/* One line of the end of what it said. */
static void tidy(char *words)
{
	size_t n = strlen(words);

	while (n > 0 && (words[n - 1] == '\n' || words[n - 1] == '\r'))
		words[--n] = '\0';
	for (char *p = words; *p; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	fault_sanitize(words);
}

static int finish(struct child *c, const struct ssh_target *t,
		  char **ret_output, struct fault *f)
{
	int status;
	pid_t r;

	do {
		r = waitpid(c->pid, &status, 0);
	} while (r < 0 && errno == EINTR);
	c->pid = -1;
	tidy(c->words);
	if (r < 0 || !WIFEXITED(status) || WEXITSTATUS(status) == SSH_FAILED)
		return explain(t, c->words, f);
	if (WEXITSTATUS(status) == NOT_FOUND && !*c->words)
		return fault_set(f, -ENOENT, "ssh",
				 "there is no ssh client here: apt-get "
				 "install openssh-client");
	if (WEXITSTATUS(status) != 0)
		(void)fault_set(f, -EREMOTEIO, t->host, "%s",
				*c->words ? c->words : "failed without a word");
	c->text[c->n] = '\0';
	*ret_output = take_ptr(c->text);
	return WEXITSTATUS(status);
}

int ssh_run(const struct ssh_target *target, const char *script,
	    const struct ssh_input *input, int interrupt_fd, usec deadline,
	    char **ret_output, struct fault *f)
{
	struct child c CLEANUP(child_done) = { .pid = -1, .in = -1, .out = -1,
					       .err = -1 };
	static const struct ssh_input nothing = { .v = { { NULL, 0 } } };
	const char *args[ARGS_MAX];
	char command[COMMAND_MAX];
	int n, r;

	n = snprintf(command, sizeof(command), "exec %ssh -c '%s'",
		     target->sudo ? "sudo -n " : "", script);
	if (strchr(script, '\'') || n < 0 || (size_t)n >= sizeof(command) ||
	    !ssh_check_host(target->host))
		return fault_set(f, -EINVAL, target->host, "cannot be run");
	c.text = malloc(SSH_OUTPUT_MAX + 1);
	if (!c.text)
		return fault_set(f, -ENOMEM, "ssh", "out of memory");
	(void)make_args(target, command, args);
	r = start(&c, (char *const *)args, f);
	if (r == 0)
		r = pump(&c, input ? input : &nothing, interrupt_fd, deadline,
			 f);
	return r < 0 ? r : finish(&c, target, ret_output, f);
}
