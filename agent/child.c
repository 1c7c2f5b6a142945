#include "agent/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"

struct child {
	pid_t pid;
	int pipe;
	char *output;
	size_t size;
	bool ended, eof, late;
	int status;
	child_done done;
	void *userdata;
	sd_event_source *exit_source, *pipe_source, *timer;
};

int child_write(int out, const void *data, size_t size)
{
	const char *p = data;

	while (size > 0) {
		ssize_t n = write(out, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		size -= n;
	}
	return 0;
}

/* Never returns. The exit status is the errno of the work. */
static void be_child(child_work work, void *arg, int out)
{
	struct fault f = FAULT_INIT;
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];
	sigset_t none;
	int r;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* The node's work comes first. */
	(void)setpriority(PRIO_PROCESS, 0, 10);
	r = work(arg, out, &f);
	if (r < 0 && f.err)
		(void)child_write(out, text,
				  strlen(fault_str(&f, text, sizeof(text))));
	_exit(r < 0 ? -r & 0xff : 0);
}

struct child *child_free(struct child *c)
{
	if (!c)
		return NULL;
	(void)sd_event_source_disable_unref(c->exit_source);
	(void)sd_event_source_disable_unref(c->pipe_source);
	(void)sd_event_source_disable_unref(c->timer);
	if (c->pid > 0 && !c->ended) {
		(void)kill(c->pid, SIGKILL);
		(void)waitpid(c->pid, NULL, 0);
	}
	if (c->pipe >= 0)
		(void)close(c->pipe);
	free(c->output);
	free(c);
	return NULL;
}

static int result_of(const struct child *c)
{
	if (c->late)
		return -ETIMEDOUT;
	if (WIFSIGNALED(c->status))
		return -ECHILD;
	if (c->size >= CHILD_OUTPUT_MAX)
		return -E2BIG;
	return -WEXITSTATUS(c->status);
}

static void finish_if_over(struct child *c)
{
	child_done done = c->done;

	if (!c->ended || !c->eof)
		return;
	c->output[c->size] = '\0';
	done(c->userdata, result_of(c), c->output, c->size);
	(void)child_free(c);
}

static int on_exit_of_child(sd_event_source *s, const siginfo_t *si,
			    void *userdata)
{
	struct child *c = userdata;

	(void)s;
	c->ended = true;
	/* Back to the form of wait(2). */
	c->status = si->si_code == CLD_EXITED ? (si->si_status & 0xff) << 8 :
						si->si_status & 0x7f;
	finish_if_over(c);
	return 0;
}

static int on_output(sd_event_source *s, int fd, uint32_t revents,
		     void *userdata)
{
	struct child *c = userdata;
	ssize_t n;

	(void)revents;
	n = read(fd, c->output + c->size, CHILD_OUTPUT_MAX - c->size);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n > 0)
		c->size += n;
	if (n <= 0 || c->size >= CHILD_OUTPUT_MAX) {
		(void)sd_event_source_set_enabled(s, SD_EVENT_OFF);
		c->eof = true;
		/* A child that still writes is told by the closed pipe. */
		(void)close(c->pipe);
		c->pipe = -1;
		finish_if_over(c);
	}
	return 0;
}

static int on_deadline(sd_event_source *s, uint64_t due, void *userdata)
{
	struct child *c = userdata;

	(void)s;
	(void)due;
	c->late = true;
	(void)kill(c->pid, SIGKILL);
	return 0;
}

static int watch(struct child *c, sd_event *event, usec deadline)
{
	int r;

	r = sd_event_add_child(event, &c->exit_source, c->pid, WEXITED,
			       on_exit_of_child, c);
	if (r < 0)
		return r;
	r = sd_event_add_io(event, &c->pipe_source, c->pipe, EPOLLIN,
			    on_output, c);
	if (r < 0)
		return r;
	return sd_event_add_time_relative(event, &c->timer, CLOCK_BOOTTIME,
					  deadline, 0, on_deadline, c);
}

int child_start(sd_event *event, child_work work, void *arg, usec deadline,
		child_done done, void *userdata, struct child **ret_child,
		struct fault *f)
{
	struct child *c = calloc(1, sizeof(*c));
	int fds[2], r;

	if (!c)
		return fault_errno(f, -ENOMEM, "child", "cannot be started");
	c->pipe = -1;
	c->output = malloc(CHILD_OUTPUT_MAX + 1);
	if (!c->output || pipe2(fds, O_CLOEXEC) < 0) {
		r = c->output ? -errno : -ENOMEM;
		(void)child_free(c);
		return fault_errno(f, r, "child", "cannot be started");
	}
	c->done = done;
	c->userdata = userdata;
	c->pipe = fds[0];
	c->pid = fork();
	if (c->pid == 0)
		be_child(work, arg, fds[1]);
	r = c->pid < 0 ? -errno : 0;
	(void)close(fds[1]);
	if (r == 0)
		r = fcntl(c->pipe, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (r == 0)
		r = watch(c, event, deadline);
	if (r < 0) {
		(void)child_free(c);
		return fault_errno(f, r, "child", "cannot be started");
	}
	*ret_child = c;
	return 0;
}
