#include "coordinator/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "coordinator/control.h"
#include "coordinator/enroll.h"
#include "coordinator/journal.h"
#include "coordinator/server.h"
#include "coordinator/signer.h"
#include "coordinator/store.h"
#include "coordinator/stream.h"
#include "proto/tls.h"

#define PATH_ROOM 4096

struct serve {
	int lock;
	char *cluster;
	sd_event *event;
	struct store *store;
	struct signer *signer;
	struct journal *journal;
	struct tls_ctx *tls;
	struct fleet *fleet;
	struct enroll *enroll;
	struct streams *streams;
	struct server *server;
	struct control_server *control;
	sd_event_source *parent;
	bool orphan;	/* the parent is gone; clients may remain */
};

static void state_path(const struct serve_options *o, const char *name,
		       char *buf)
{
	(void)snprintf(buf, PATH_ROOM, "%s/%s", o->state, name);
}

/* Undone in the reverse order of making. */
static void serve_done(struct serve *s)
{
	(void)control_server_free(s->control);
	(void)server_free(s->server);
	(void)streams_free(s->streams);
	(void)enroll_free(s->enroll);
	(void)fleet_free(s->fleet);
	(void)tls_ctx_free(s->tls);
	(void)journal_free(s->journal);
	(void)signer_free(s->signer);
	(void)store_free(s->store);
	(void)sd_event_source_disable_unref(s->parent);
	(void)sd_event_unref(s->event);
	free(s->cluster);
	if (s->lock >= 0)
		(void)close(s->lock);
}

static int take_lock(struct serve *s, const struct serve_options *o,
		     struct fault *f)
{
	char path[PATH_ROOM];

	state_path(o, SERVE_LOCK, path);
	s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (s->lock < 0)
		return fault_errno(f, -errno, path,
				   "is this the state directory of a cluster "
				   "(garboard init makes one)?");
	if (flock(s->lock, LOCK_EX | LOCK_NB) < 0)
		return fault_set(f, errno == EWOULDBLOCK ? -EALREADY : -errno,
				 o->state,
				 "a coordinator runs for this state directory "
				 "already");
	return 0;
}

/* Idle agents cost a descriptor each; the soft default of 1024 is few. */
static void raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int add_signals(struct serve *s, struct fault *f)
{
	sigset_t set;
	int r;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return fault_errno(f, -errno, "serve", "cannot block signals");
	(void)signal(SIGPIPE, SIG_IGN);
	/* Without a handler the event loop ends. */
	if ((r = sd_event_add_signal(s->event, NULL, SIGINT, NULL, NULL)) < 0 ||
	    (r = sd_event_add_signal(s->event, NULL, SIGTERM, NULL, NULL)) < 0)
		return fault_errno(f, r, "serve", "cannot watch signals");
	return 0;
}

static void on_idle(void *userdata)
{
	struct serve *s = userdata;

	if (s->orphan)
		(void)sd_event_exit(s->event, 0);
}

static int on_parent(sd_event_source *source, int fd, uint32_t revents,
		     void *userdata)
{
	struct serve *s = userdata;

	(void)fd, (void)revents;
	s->orphan = true;
	(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
	if (control_server_clients(s->control) == 0)
		return sd_event_exit(s->event, 0);
	return 0;
}

static int make_parts(struct serve *s, const struct serve_options *o,
		      struct fault *f)
{
	char path[PATH_ROOM];
	int r;

	state_path(o, SERVE_STORE, path);
	r = store_open(path, &s->store, f);
	if (r < 0)
		return r;
	r = store_value_get(s->store, "cluster", &s->cluster, f);
	if (r < 0)
		return fault_set(f, r, o->state, "was not initialised to its "
						 "end: run garboard init");
	if ((r = signer_open(o->state, &s->signer, f)) < 0 ||
	    (r = signer_tls(s->signer, &s->tls, f)) < 0)
		return r;
	s->journal = journal_new(s->event, s->store);
	if (!s->journal)
		return fault_set(f, -ENOMEM, o->state, "out of memory");
	r = fleet_new(s->event, s->store, s->signer, s->journal, &o->fleet,
		      &s->fleet, f);
	if (r < 0)
		return r;
	s->enroll = enroll_new(s->event, s->fleet, s->store, s->signer,
			       s->journal);
	if (!s->enroll)
		return fault_set(f, -ENOMEM, o->state, "out of memory");
	state_path(o, "run", path);
	return streams_new(s->event, path, s->fleet, s->journal, &s->streams,
			   f);
}

static int listen_recorded(struct serve *s, struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	char *at, *save = NULL;
	int r;

	r = store_value_get(s->store, "listen", &text, f);
	if (r == -ENOENT)
		return server_listen(s->server, SERVE_LISTEN_DEFAULT, f);
	if (r < 0)
		return r;
	for (at = strtok_r(text, " ", &save); at && r >= 0;
	     at = strtok_r(NULL, " ", &save))
		r = server_listen(s->server, at, f);
	return r;
}

static int start_listening(struct serve *s, const struct serve_options *o,
			   struct fault *f)
{
	struct server_parts parts = {
		.tls = s->tls,
		.fleet = s->fleet,
		.enroll = s->enroll,
		.streams = s->streams,
		.journal = s->journal,
	};
	struct control_parts control = {
		.cluster = s->cluster,
		.store = s->store,
		.signer = s->signer,
		.fleet = s->fleet,
		.enroll = s->enroll,
		.streams = s->streams,
		.journal = s->journal,
	};
	char path[PATH_ROOM];
	int r;

	r = server_new(s->event, &parts, &s->server, f);
	for (size_t i = 0; r >= 0 && i < o->n_listen; i++)
		r = server_listen(s->server, o->listen[i], f);
	if (r >= 0 && o->n_listen == 0)
		r = listen_recorded(s, f);
	if (r < 0)
		return r;
	state_path(o, CONTROL_SOCKET, path);
	r = control_server_new(s->event, path, &control, &s->control, f);
	if (r < 0)
		return r;
	control_server_on_idle(s->control, on_idle, s);
	return 0;
}

static int say_ready(struct serve *s, const struct serve_options *o,
		     struct fault *f)
{
	const char ready = SERVE_READY;
	int r;

	if (o->parent_fd < 0) {
		(void)sd_notify(0, "READY=1");
		journal_note(s->journal, "serve", NULL,
			     "cluster %s: listening on port %d", s->cluster,
			     server_port(s->server));
		return 0;
	}
	r = sd_event_add_io(s->event, &s->parent, o->parent_fd, EPOLLIN,
			    on_parent, s);
	if (r < 0)
		return fault_errno(f, r, "serve", "cannot watch the parent");
	if (write(o->parent_fd, &ready, 1) != 1)
		return fault_set(f, -EPIPE, "serve", "the parent is gone");
	return 0;
}

int serve_run(const struct serve_options *o, struct fault *f)
{
	struct serve s = { .lock = -1 };
	int r;

	raise_files();
	r = take_lock(&s, o, f);
	if (r >= 0) {
		r = sd_event_default(&s.event);
		if (r < 0)
			(void)fault_errno(f, r, "serve", "no event loop");
	}
	if (r >= 0)
		r = add_signals(&s, f);
	if (r >= 0)
		r = make_parts(&s, o, f);
	if (r >= 0)
		r = start_listening(&s, o, f);
	if (r >= 0)
		r = say_ready(&s, o, f);
	if (r >= 0) {
		r = sd_event_loop(s.event);
		if (r < 0)
			(void)fault_errno(f, r, "serve", "event loop");
		else
			r = 0;	/* the number of the signal */
	}
	serve_done(&s);
	return r;
}
