/*
 * agent/bus against a private dbus-daemon and a made-up systemd1 behind it,
 * whose jobs end as the name of their unit says.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/bus/bus.h"
#include "agent/bus/systemd1.h"
#include "agent/bus/timedate1.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define MANAGER "org.freedesktop.systemd1.Manager"
#define ROOT "/org/freedesktop/systemd1"
#define LONG (10 * USEC_PER_SEC)

static char dir[] = "/tmp/garboard-bus-XXXXXX";
static char address[128];
static pid_t broker, manager;

/* ---- the made-up systemd1, in a process of its own ---- */

static const char *active = "inactive";

static int end_job(sd_bus *b, sd_bus_message *m, const char *unit,
		   const char *result)
{
	static uint32_t id;
	char path[64];

	(void)snprintf(path, sizeof(path), ROOT "/job/%u", ++id);
	sd_bus_reply_method_return(m, "o", path);
	if (!result)
		return 1;
	active = strcmp(result, "done") == 0 ? "active" : "failed";
	sd_bus_emit_signal(b, ROOT "/unit/ok_2eservice",
			   "org.freedesktop.DBus.Properties",
			   "PropertiesChanged", "sa{sv}as",
			   "org.freedesktop.systemd1.Unit", 0, 0);
	sd_bus_emit_signal(b, ROOT, MANAGER, "JobRemoved", "uoss", id, path,
			   unit, result);
	return 1;
}

static int start_unit(sd_bus *b, sd_bus_message *m)
{
	const char *unit, *mode;

	if (sd_bus_message_read(m, "ss", &unit, &mode) < 0)
		return 0;
	if (strcmp(unit, "none.service") == 0)
		return sd_bus_reply_method_errorf(
			m, "org.freedesktop.systemd1.NoSuchUnit",
			"Unit %s not found.", unit);
	if (strcmp(unit, "never.service") == 0)
		return end_job(b, m, unit, NULL);
	if (strcmp(unit, "bad.service") == 0)
		return end_job(b, m, unit, "failed");
	if (strcmp(unit, "slow.service") == 0)
		return end_job(b, m, unit, "timeout");
	return end_job(b, m, unit, "done");
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *e)
{
	sd_bus *b = sd_bus_message_get_bus(m);
	const char *zone;

	(void)userdata;
	(void)e;
	if (sd_bus_message_is_method_call(m, MANAGER, "StartUnit"))
		return start_unit(b, m);
	if (sd_bus_message_is_method_call(m, NULL, "GetAll"))
		return sd_bus_reply_method_return(
			m, "a{sv}", 5, "Id", "s", "ok.service", "LoadState",
			"s", "loaded", "ActiveState", "s", active, "Odd",
			"as", 1, "x", "NRestarts", "u", 3);
	if (sd_bus_message_is_method_call(m, MANAGER, NULL))
		return sd_bus_reply_method_return(m, NULL);
	if (!sd_bus_message_is_method_call(m, NULL, "SetTimezone"))
		return 0;
	if (sd_bus_message_read(m, "sb", &zone, NULL) < 0)
		return 0;
	if (strcmp(zone, "Etc/UTC") == 0)
		return sd_bus_reply_method_return(m, NULL);
	return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_INVALID_ARGS,
					  "Invalid time zone '%s'", zone);
}

static void be_manager(int ready)
{
	sd_bus *b = NULL;
	int r;

	r = sd_bus_new(&b);
	r = r < 0 ? r : sd_bus_set_address(b, address);
	r = r < 0 ? r : sd_bus_set_bus_client(b, 1);
	r = r < 0 ? r : sd_bus_start(b);
	r = r < 0 ? r : sd_bus_add_filter(b, NULL, on_message, NULL);
	r = r < 0 ? r : sd_bus_request_name(b, "org.freedesktop.systemd1", 0);
	r = r < 0 ? r : sd_bus_request_name(b, "org.freedesktop.timedate1", 0);
	if (r < 0 || write(ready, "r", 1) != 1)
		_exit(1);
	while ((r = sd_bus_process(b, NULL)) >= 0)
		if (r == 0)
			(void)sd_bus_wait(b, UINT64_MAX);
	_exit(0);
}

static pid_t spawn(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		return 0;
	}
	assert_true(pid > 0);
	return pid;
}

/* Both are there when this returns: each says so through a pipe. */
static void start_bus(void)
{
	char config[160], fd_text[32], byte;
	int ready[2];

	(void)snprintf(config, sizeof(config), "--config-file=%s/conf", dir);
	assert_int_equal(pipe(ready), 0);
	(void)snprintf(fd_text, sizeof(fd_text), "--print-address=%d",
		       ready[1]);
	broker = spawn();
	if (broker == 0) {
		(void)!freopen("/dev/null", "w", stderr);
		execlp("dbus-daemon", "dbus-daemon", config, "--nofork",
		       fd_text, NULL);
		_exit(127);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	assert_int_equal(pipe(ready), 0);
	manager = spawn();
	if (manager == 0)
		be_manager(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

static void stop(pid_t *pid)
{
	if (*pid <= 0)
		return;
	(void)kill(*pid, SIGKILL);
	(void)waitpid(*pid, NULL, 0);
	*pid = 0;
}

static void stop_bus(void)
{
	char path[128];

	stop(&broker);
	stop(&manager);
	(void)snprintf(path, sizeof(path), "%s/socket", dir);
	(void)unlink(path);
}

/* ---- the tests ---- */

struct fixture {
	sd_event *event;
	struct bus *bus;
	struct bus_listener *listener;
	int ups, downs;
};

static void on_bus(void *userdata, bool up)
{
	struct fixture *x = userdata;

	if (up)
		x->ups++;
	else
		x->downs++;
}

static bool run_until(struct fixture *x, bool (*done)(void *), void *userdata)
{
	usec end = clock_boottime() + LONG;

	while (!done(userdata)) {
		if (clock_boottime() > end)
			return false;
		assert_true(sd_event_run(x->event, 100 * USEC_PER_MSEC) >= 0);
	}
	return true;
}

static bool is_up(void *userdata)
{
	return bus_is_up(userdata);
}

static bool is_down(void *userdata)
{
	return !bus_is_up(userdata);
}

static int set_up(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	assert_non_null(x);
	assert_int_equal(sd_event_new(&x->event), 0);
	assert_int_equal(bus_new(x->event, address, &x->bus, NULL), 0);
	assert_int_equal(bus_listen(x->bus, on_bus, x, &x->listener), 0);
	*state = x;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *x = *state;

	x->listener = bus_unlisten(x->listener);
	x->bus = bus_free(x->bus);
	sd_event_unref(x->event);
	free(x);
	stop_bus();
	return 0;
}

struct outcome {
	int calls, r;
	char text[128];
	struct systemd1_job *job, *victim;
};

static void on_done(void *userdata, int r, const char *text)
{
	struct outcome *o = userdata;

	o->calls++;
	o->r = r;
	o->job = NULL;
	(void)snprintf(o->text, sizeof(o->text), "%s", text);
	o->victim = systemd1_cancel(o->victim);
}

static bool is_done(void *userdata)
{
	return ((struct outcome *)userdata)->calls > 0;
}

static void down_is_a_state(void **state)
{
	struct fixture *x = *state;
	struct fault f = FAULT_INIT;
	struct outcome o = { 0 };

	assert_false(bus_is_up(x->bus));
	assert_false(bus_is_up(NULL));
	assert_int_equal(systemd1_call(x->bus, SYSTEMD1_START, "ok.service",
				       LONG, on_done, &o, &o.job, &f),
			 -ENOTCONN);
	assert_string_equal(f.text, "is not there yet");
	start_bus();
	assert_true(run_until(x, is_up, x->bus));
	assert_int_equal(x->ups, 1);
	assert_int_equal(x->downs, 0);
}

static void jobs_end_as_they_end(void **state)
{
	static const struct {
		enum systemd1_verb verb;
		const char *unit;
		usec deadline;
		int r;
		const char *text;
	} t[] = {
		{ SYSTEMD1_START, "ok.service", LONG, 0, "" },
		{ SYSTEMD1_START, "bad.service", LONG, -EIO, "failed" },
		{ SYSTEMD1_START, "slow.service", LONG, -ETIMEDOUT,
		  "timeout" },
		{ SYSTEMD1_START, "none.service", LONG, -ENOENT,
		  "Unit none.service not found." },
		{ SYSTEMD1_START, "never.service", 50 * USEC_PER_MSEC,
		  -ETIMEDOUT, "not done by its deadline" },
		{ SYSTEMD1_RESET_FAILED, "ok.service", LONG, 0, "" },
		{ SYSTEMD1_ENABLE, "ok.service", LONG, 0, "" },
		{ SYSTEMD1_DAEMON_RELOAD, NULL, LONG, 0, "" },
	};
	struct fixture *x = *state;
	size_t i;

	start_bus();
	assert_true(run_until(x, is_up, x->bus));
	for (i = 0; i < N(t); i++) {
		struct outcome o = { 0 };

		assert_int_equal(systemd1_call(x->bus, t[i].verb, t[i].unit,
					       t[i].deadline, on_done, &o,
					       &o.job, NULL), 0);
		assert_int_equal(o.calls, 0);
		assert_true(run_until(x, is_done, &o));
		assert_int_equal(o.r, t[i].r);
		assert_string_equal(o.text, t[i].text);
	}
}

static void names_are_checked(void **state)
{
	static const char *const good[] = {
		"k3s.service", "modprobe@br_netfilter.service",
		"iscsid.socket", "dev-sda.device",
	};
	static const char *const bad[] = {
		"", "k3s", ".service", "a b.service", "../x.service",
		"modprobe@.service", "x.exe", "a/b.service", "@x.service",
	};
	size_t i;

	(void)state;
	for (i = 0; i < N(good); i++)
		assert_true(systemd1_unit_name_is_valid(good[i]));
	for (i = 0; i < N(bad); i++)
		assert_false(systemd1_unit_name_is_valid(bad[i]));
	assert_false(systemd1_unit_name_is_valid(NULL));
}

struct seen {
	struct systemd1_watch *watch;
	struct systemd1_unit unit;
	const char *want;	/* NULL: unknown */
};

static bool unit_is(void *userdata)
{
	struct seen *s = userdata;

	if (systemd1_watch_get(s->watch, &s->unit) < 0)
		return !s->want;
	return s->want && strcmp(s->unit.active_state, s->want) == 0;
}

static void a_watch_follows(void **state)
{
	struct fixture *x = *state;
	struct outcome o = { 0 };
	struct seen s = { .want = "inactive" };

	assert_int_equal(systemd1_watch_new(x->bus, "ok.service", NULL, NULL,
					    &s.watch, NULL), 0);
	assert_int_equal(systemd1_watch_get(s.watch, &s.unit), -EAGAIN);
	start_bus();
	assert_true(run_until(x, unit_is, &s));
	assert_string_equal(s.unit.load_state, "loaded");
	assert_int_equal(s.unit.n_restarts, 3);
	assert_int_equal(systemd1_call(x->bus, SYSTEMD1_START, "ok.service",
				       LONG, on_done, &o, &o.job, NULL), 0);
	s.want = "active";
	assert_true(run_until(x, unit_is, &s));
	s.watch = systemd1_watch_free(s.watch);
	o.job = systemd1_cancel(o.job);
}

static void the_bus_restarts(void **state)
{
	struct fixture *x = *state;
	struct outcome o = { 0 };
	struct seen s = { .want = "inactive" };

	start_bus();
	assert_true(run_until(x, is_up, x->bus));
	assert_int_equal(systemd1_watch_new(x->bus, "ok.service", NULL, NULL,
					    &s.watch, NULL), 0);
	assert_true(run_until(x, unit_is, &s));
	assert_int_equal(systemd1_call(x->bus, SYSTEMD1_START,
				       "never.service", LONG, on_done, &o,
				       &o.job, NULL), 0);
	stop_bus();
	assert_true(run_until(x, is_done, &o));
	assert_int_equal(o.r, -ENOTCONN);
	assert_true(run_until(x, is_down, x->bus));
	assert_int_equal(systemd1_watch_get(s.watch, &s.unit), -EAGAIN);
	start_bus();
	assert_true(run_until(x, unit_is, &s));
	assert_int_equal(x->ups, 2);
	assert_int_equal(x->downs, 1);
	s.watch = systemd1_watch_free(s.watch);
}

/* A callback cancels the other outstanding job, and none is called after. */
static void cancelled_inside_a_callback(void **state)
{
	struct fixture *x = *state;
	struct outcome a = { 0 }, b = { 0 }, c = { 0 };

	start_bus();
	assert_true(run_until(x, is_up, x->bus));
	assert_int_equal(systemd1_call(x->bus, SYSTEMD1_START,
				       "never.service", LONG, on_done, &b,
				       &b.job, NULL), 0);
	assert_int_equal(systemd1_call(x->bus, SYSTEMD1_START, "ok.service",
				       LONG, on_done, &a, &a.job, NULL), 0);
	a.victim = b.job;
	assert_true(run_until(x, is_done, &a));
	assert_int_equal(systemd1_call(x->bus, SYSTEMD1_START,
				       "never.service", 50 * USEC_PER_MSEC,
				       on_done, &c, &c.job, NULL), 0);
	assert_true(run_until(x, is_done, &c));
	assert_int_equal(b.calls, 0);
}

static void a_blocking_read(void **state)
{
	struct fixture *x = *state;
	struct systemd1_unit unit;
	struct bus *plain = NULL;

	start_bus();
	assert_true(run_until(x, is_up, x->bus));
	assert_int_equal(systemd1_unit_read(x->bus, "ok.service", LONG, &unit,
					    NULL), 0);
	assert_string_equal(unit.load_state, "loaded");
	assert_int_equal(bus_new(NULL, address, &plain, NULL), 0);
	assert_int_equal(systemd1_unit_read(plain, "ok.service", LONG, &unit,
					    NULL), 0);
	plain = bus_free(plain);
}

static void time_zones(void **state)
{
	static const struct {
		const char *zone;
		int r;
	} t[] = { { "Etc/UTC", 0 }, { "Mars/Olympus", -EINVAL } };
	struct timedate1_call *call = NULL;
	struct fixture *x = *state;
	size_t i;

	start_bus();
	assert_true(run_until(x, is_up, x->bus));
	for (i = 0; i < N(t); i++) {
		struct outcome o = { 0 };

		assert_int_equal(timedate1_set_timezone(x->bus, t[i].zone,
							LONG, on_done, &o,
							&call, NULL), 0);
		assert_true(run_until(x, is_done, &o));
		assert_int_equal(o.r, t[i].r);
	}
	{
		struct outcome o = { 0 };

		stop(&manager);
		assert_int_equal(timedate1_set_timezone(x->bus, "Etc/UTC",
							LONG, on_done, &o,
							&call, NULL), 0);
		assert_true(run_until(x, is_done, &o));
		assert_int_equal(o.r, -ENOENT);
	}
}

static void write_config(void)
{
	char path[64];
	FILE *out;

	(void)snprintf(address, sizeof(address), "unix:path=%s/socket", dir);
	(void)snprintf(path, sizeof(path), "%s/conf", dir);
	out = fopen(path, "we");
	assert_non_null(out);
	(void)fprintf(out,
		      "<busconfig><type>custom</type><listen>%s</listen>"
		      "<auth>EXTERNAL</auth><policy context=\"default\">"
		      "<allow send_destination=\"*\"/>"
		      "<allow receive_sender=\"*\"/><allow own=\"*\"/>"
		      "</policy></busconfig>\n", address);
	(void)fclose(out);
}

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	write_config();
	return 0;
}

static int drop_dir(void **state)
{
	char cmd[64];

	(void)state;
	(void)snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(down_is_a_state),
		T(jobs_end_as_they_end),
		cmocka_unit_test(names_are_checked),
		T(a_watch_follows),
		T(the_bus_restarts),
		T(cancelled_inside_a_callback),
		T(a_blocking_read),
		T(time_zones),
	};

	return cmocka_run_group_tests_name("bus", tests, make_dir, drop_dir);
}
