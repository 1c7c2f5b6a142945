#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "agent/armed.h"
#include "proto/bundle.h"
#include "agent/bus/bus.h"
#include "agent/cmd.h"
#include "agent/engine.h"
#include "agent/k3s.h"
#include "agent/ledger/watch.h"
#include "agent/lock.h"
#include "agent/orders.h"
#include "agent/session.h"
#include "agent/sockets.h"
#include "agent/state.h"
#include "agent/status.h"
#include "agent/trial.h"
#include "agent/uncovered.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/parse.h"
#include "common/trim.h"
#include "proto/keys.h"

#define LINK_USER "garboard"
#define TRIAL_SECONDS_MAX 3600
#define REST_AFTER (10 * USEC_PER_SEC)
/* With the engine's own periodic look, so that it wakes for both. */
#define REST_EVERY (60 * USEC_PER_SEC)

struct options {
	const char *state_dir, *run_dir, *bundle;
	usec trial;
};

/* Everything the running agent is; known to this file alone (H8). */
struct agent {
	sd_event *event;
	struct resource_host host;
	struct bus_listener *listener;
	struct node_state state;
	struct fault state_fault;
	int lock;
	bool has_bundle;
	struct bundle bundle;
	struct key *report_key, *seal_key;
	char fingerprint[KEY_FINGERPRINT_TEXT];
	struct engine *engine;
	struct ledger *ledger;
	struct k3s *k3s;
	struct trial *trial;
	struct uncovered *uncovered;
	struct session *session;
	struct status_sock *status;
};

static void on_news(void *userdata)
{
	struct agent *a = userdata;

	trial_look(a->trial);
	uncovered_look(a->uncovered);
	session_news(a->session);
}

static void on_paths(void *userdata)
{
	const struct agent *a = userdata;
	const struct uncovered_paths *p = uncovered_get(a->uncovered);
	size_t i;

	for (i = 0; i < p->n; i++)
		log_warning("not covered by the kill-switch: %s", p->v[i].text);
	if (p->n == 0)
		log_notice("no path is left that the kill-switch does not "
			   "cover");
	session_news(a->session);
}

static void on_bus(void *userdata, bool up)
{
	struct agent *a = userdata;

	/* What had to wait for D-Bus can be done now. */
	if (up)
		engine_look_again(a->engine);
}

static void fill_status(void *userdata, struct status_input *ret_input)
{
	struct agent *a = userdata;

	*ret_input = (struct status_input){
		.engine = a->engine,
		.state = &a->state,
		.k3s = a->k3s,
		.trial = a->trial,
		.uncovered = a->uncovered,
		.cluster = a->has_bundle ? a->bundle.cluster : "",
		.session = a->has_bundle ? session_state(a->session) :
					   "no bundle",
		.peer = session_peer_text(a->session),
		.fingerprint = a->fingerprint,
		.state_fault = a->state_fault.err ? a->state_fault.text : "",
	};
}

/*
 * Nothing desired (any more), but classes were armed once: only what keeps
 * them closed is kept, by its own record.
 */
static void keep_armed(struct agent *a)
{
	struct armed record = ARMED_INIT;
	struct fault f = FAULT_INIT;
	struct desired *d;
	int r = armed_load(a->state.dir, &record, &f);
	bool armed = r < 0 || record.found;

	armed_done(&record);
	d = armed ? trial_nothing_desired() : NULL;
	if (!d)
		return;
	log_warning("no desired state, but armed classes: they stay closed");
	engine_set_desired(a->engine, d);
}

static int on_signal(sd_event_source *s, const struct signalfd_siginfo *si,
		     void *userdata)
{
	struct agent *a = userdata;

	(void)s;
	if (si->ssi_signo == SIGHUP) {
		/* The console may have armed the first class. */
		if (!engine_desired(a->engine))
			keep_armed(a);
		engine_look_again(a->engine);
		trial_look(a->trial);
		if (a->ledger)
			ledger_beat(a->ledger);
		return 0;
	}
	return sd_event_exit(a->event, 0);
}

static int start_loop(struct agent *a)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	sigset_t blocked;
	size_t i;
	int r;

	(void)sigemptyset(&blocked);
	for (i = 0; i < 3; i++)
		(void)sigaddset(&blocked, signals[i]);
	(void)sigaddset(&blocked, SIGCHLD);	/* children come by pidfd */
	(void)sigaddset(&blocked, SIGPIPE);
	if (sigprocmask(SIG_BLOCK, &blocked, NULL) < 0)
		return -errno;
	r = sd_event_new(&a->event);
	for (i = 0; r >= 0 && i < 3; i++)
		r = sd_event_add_signal(a->event, NULL, signals[i], on_signal,
					a);
	if (r >= 0)
		r = sd_event_set_watchdog(a->event, true);
	return r < 0 ? r : 0;
}

static int load_key(struct agent *a, const char *name, enum key_type type,
		    struct key **ret_key, struct fault *f)
{
	char path[512];
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s", a->state.dir, name);
	r = key_load_or_make(path, type, ret_key, f);
	return r < 0 ? r : 0;
}

static int load_state(struct agent *a, const struct options *o,
		      struct fault *f)
{
	uint8_t public_key[KEY_PUBLIC_SIZE];
	int r;

	r = state_load(o->state_dir, clock_boottime(), &a->state,
		       &a->state_fault);
	if (r < 0)
		return fault_set(f, r, a->state_fault.object, "%s",
				 a->state_fault.text);
	if (r > 0)
		log_warning("state: %s: %s", a->state_fault.object,
			    a->state_fault.text);
	r = lock_take(a->state.dir, &a->lock, f);
	if (r == 0)
		r = state_count_start(&a->state, f);
	if (r == 0)
		r = load_key(a, "report.key", KEY_ED25519, &a->report_key, f);
	if (r == 0)
		r = load_key(a, "seal.key", KEY_X25519, &a->seal_key, f);
	if (r < 0)
		return r;
	key_public(a->report_key, public_key);
	key_fingerprint(public_key, a->fingerprint);
	r = bundle_read(o->bundle, &a->bundle, f);
	if (r == -ENOENT)
		log_notice("no bundle at %s: this node is kept as desired, "
			   "but belongs to no cluster", o->bundle);
	a->has_bundle = r == 0;
	return r == -ENOENT ? 0 : r;
}

static void restore(struct agent *a)
{
	struct fault f = FAULT_INIT;
	int r = orders_restore_desired(&a->state, a->engine, &f);

	if (r != 1 && f.err) {
		log_error("the desired state on disk: %s%s", f.text,
			  r < 0 ? "; what stands on the node goes on standing" :
				  "; the one before it is used");
		a->state_fault = f;
	}
	if (!engine_desired(a->engine))
		keep_armed(a);
}

static int start_trial(struct agent *a, usec time, struct fault *f)
{
	struct trial_env env = { .event = a->event, .state = &a->state,
				 .engine = a->engine, .time = time };
	int r = trial_new(&env, &a->trial, f);

	/* The file of the next boot, before anything is applied. */
	trial_look(a->trial);
	return r;
}

/* Without a log a node is no less closed. */
static void start_ledger(struct agent *a)
{
	struct ledger_params p = ledger_params_default();
	int r = ledger_new(a->event, a->state.dir, a->state.boot_id,
			   LEDGER_STOOD, &p, &a->ledger);

	if (r < 0)
		log_warning("kill-switch log: %s", strerror(-r));
	else
		engine_on_look(a->engine, ledger_looked, a->ledger);
}

static int start_engine(struct agent *a, const struct options *o,
			struct fault *f)
{
	struct engine_params p = engine_params_default();
	int r;

	a->host = (struct resource_host){ .event = a->event,
					  .root = "",
					  .state_dir = a->state.dir };
	r = bus_new(a->event, NULL, &a->host.bus, f);
	if (r == 0)
		r = engine_new(&a->host, resource_registry, &p, &a->engine);
	if (r == 0)
		r = k3s_new(&a->host, on_news, a, &a->k3s);
	if (r == 0)
		r = bus_listen(a->host.bus, on_bus, a, &a->listener);
	if (r < 0)
		return fault_errno(f, r, "engine", "not started");
	k3s_set_install(a->k3s, &a->state.install);
	engine_on_change(a->engine, on_news, a);
	start_ledger(a);
	restore(a);
	r = start_trial(a, o->trial, f);
	if (r == 0)
		r = uncovered_new(a->event, a->engine, a->state.dir, on_paths,
				  a, &a->uncovered, f);
	if (r < 0)
		return r;
	r = engine_attach(a->engine);
	return r < 0 ? fault_errno(f, r, "engine", "not started") : 0;
}

static int start_session(struct agent *a, int fd, struct fault *f)
{
	const struct passwd *pw = getpwnam(LINK_USER);
	struct session_env env = {
		.params = session_params_default(),
		.host = &a->host,
		.state = &a->state,
		.bundle = &a->bundle,
		.engine = a->engine,
		.k3s = a->k3s,
		.trial = a->trial,
		.uncovered = a->uncovered,
		.report_key = a->report_key,
		.seal_key = a->seal_key,
		.link_uid = pw ? pw->pw_uid : 0,
	};

	return session_new(&env, fd, &a->session, f);
}

static int start_sockets(struct agent *a, const struct options *o,
			 struct fault *f)
{
	_cleanup_close_ int link = -1, status = -1;
	int r;

	r = sockets_get(o->run_dir, LINK_USER, &link, &status, f);
	if (r < 0)
		return r;
	r = status_sock_new(a->event, status, fill_status, a, &a->status);
	if (r < 0)
		return fault_errno(f, r, "status", "not served");
	status = -1;
	if (!a->has_bundle)
		return 0;
	r = start_session(a, link, f);
	if (r == 0)
		link = -1;
	return r;
}

static void agent_done(struct agent *a)
{
	(void)status_sock_free(a->status);
	(void)session_free(a->session);
	(void)uncovered_free(a->uncovered);
	(void)trial_free(a->trial);
	(void)k3s_free(a->k3s);
	(void)bus_unlisten(a->listener);
	/* Last, and it leaves everything standing (H41). */
	(void)engine_free(a->engine);
	(void)ledger_free(a->ledger);
	(void)bus_free(a->host.bus);
	(void)key_free(a->report_key);
	(void)key_free(a->seal_key);
	if (a->has_bundle)
		bundle_done(&a->bundle);
	state_done(&a->state);
	if (a->lock >= 0)
		(void)close(a->lock);
	(void)sd_event_unref(a->event);
}

static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "state-dir", required_argument, NULL, 's' },
		{ "run-dir", required_argument, NULL, 'r' },
		{ "bundle", required_argument, NULL, 'b' },
		{ "trial", required_argument, NULL, 't' },
		{ "debug", no_argument, NULL, 'd' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t seconds;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1)
		switch (c) {
		case 't':
			if (parse_u64(optarg, TRIAL_SECONDS_MAX,
				      &seconds) < 0 || seconds == 0)
				return -EINVAL;
			o->trial = seconds * USEC_PER_SEC;
			break;
		case 's':
			o->state_dir = optarg;
			break;
		case 'r':
			o->run_dir = optarg;
			break;
		case 'b':
			o->bundle = optarg;
			break;
		case 'd':
			log_set_level(LOG_LEVEL_DEBUG);
			break;
		default:
			return -EINVAL;
		}
	return optind == argc ? 0 : -EINVAL;
}

/* What only the start or a burst needed is given back, now and again. */
static int on_rest(sd_event_source *source, uint64_t now, void *userdata)
{
	(void)now;
	(void)userdata;
	trim_memory();
	(void)sd_event_source_set_time_relative(source, REST_EVERY);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void rest_later(sd_event *event)
{
	/* Failure costs memory, nothing else. */
	(void)sd_event_add_time_relative(event, NULL, CLOCK_BOOTTIME, REST_AFTER,
					 REST_AFTER, on_rest, NULL);
}

int cmd_run(int argc, char **argv)
{
	struct options o = { CMD_STATE_DIR, "/run/garboard", CMD_BUNDLE,
			     TRIAL_TIME };
	struct agent a = { .lock = -1 };
	struct fault f = FAULT_INIT;
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];
	int r;

	if (parse_options(argc, argv, &o) < 0)
		return cmd_usage("run");
	key_init();
	r = start_loop(&a);
	if (r == 0)
		r = load_state(&a, &o, &f);
	if (r == 0)
		r = start_engine(&a, &o, &f);
	if (r == 0)
		r = start_sockets(&a, &o, &f);
	if (r == 0) {
		/* Before any job is started: units may be ordered after us. */
		(void)sd_notify(0, "READY=1");
		log_info("garboard-agent %s runs (start %llu)",
			 GARBOARD_VERSION,
			 (unsigned long long)a.state.starts);
		rest_later(a.event);
		r = sd_event_loop(a.event);
		(void)sd_notify(0, "STOPPING=1");
	}
	if (r < 0 && !f.err)
		(void)fault_errno(&f, r, "garboard-agent", "cannot go on");
	if (r < 0)
		log_error("%s", fault_str(&f, text, sizeof(text)));
	agent_done(&a);
	return r < 0 ? CMD_FAILED : CMD_OK;
}
