/*
 * The kill-switch log of a node that others work on: gaps with their bounds
 * and their writer, and what is unknown after a kill.
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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/engine.h"
#include "agent/ledger/ledger.h"
#include "agent/ledger/report.h"
#include "agent/ledger/watch.h"
#include "agent/res/killswitch.h"
#include "agent/res/routing.h"
#include "common/file.h"
#include "world.h"

#define BOOT "cccccccc-0000-4000-8000-000000000003"
#define DEADLINE (60 * USEC_PER_SEC)

static const struct resource *const registry[RESOURCE_MAX] = {
	[RESOURCE_KILLSWITCH] = &resource_killswitch,
	[RESOURCE_ROUTING] = &resource_routing,
};

struct node {
	sd_event *event;
	struct resource_host host;
	struct engine *engine;
	struct ledger *ledger;
};

struct fixture {
	char dir[64], stood[96];
	struct node node;
	struct ledger_report *report;
	usec after;		/* find() looks for what began then */
};

/* ---- a node ---- */

static struct desired *wanted(void)
{
	struct desired *d = sample_desired(true);
	struct ip_prefix p = sample_prefix("10.44.0.5");

	assert_int_equal(prefix_list_add(&d->egress.classes[0].sources, &p),
			 0);
	return d;
}

static void start(struct fixture *x)
{
	struct engine_params p = engine_params_default();
	struct ledger_params lp = ledger_params_default();
	struct node *n = &x->node;

	lp.gather = 20 * USEC_PER_MSEC;
	assert_true(sd_event_new(&n->event) >= 0);
	/* So that others can take the tables away. */
	n->host = (struct resource_host){ .event = n->event, .root = "",
					  .state_dir = x->dir,
					  .no_table_owner = true };
	assert_int_equal(engine_new(&n->host, registry, &p, &n->engine), 0);
	assert_int_equal(ledger_new(n->event, x->dir, BOOT, x->stood, &lp,
				    &n->ledger), 0);
	engine_on_look(n->engine, ledger_looked, n->ledger);
	engine_set_desired(n->engine, wanted());
	assert_int_equal(engine_attach(n->engine), 0);
	engine_look_again(n->engine);
}

static void stop(struct fixture *x)
{
	x->node.engine = engine_free(x->node.engine);
	x->node.ledger = ledger_free(x->node.ledger);
	x->node.event = sd_event_unref(x->node.event);
}

/* Reads the log anew; false when there is none. */
static bool read_log(struct fixture *x)
{
	char path[LEDGER_PATH_MAX], *text = NULL;
	const char *line, *end;
	size_t size = 0;

	if (x->report) {
		ledger_report_done(x->report);
		free(x->report);
	}
	x->report = calloc(1, sizeof(*x->report));
	assert_non_null(x->report);
	if (file_read(ledger_path(x->dir, path), LEDGER_SIZE_MAX, &text, &size,
		      NULL) < 0)
		return false;
	for (line = text; line < text + size; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + size - line));
		if (!end)
			break;	/* the other process is at it */
		assert_int_equal(ledger_report_feed(x->report, line,
						    (size_t)(end - line),
						    false), 0);
	}
	free(text);
	return true;
}

static bool all_stands(struct fixture *x)
{
	size_t i;

	if (!read_log(x) || !x->report->has_last ||
	    x->report->last.n_layers < 3)
		return false;
	for (i = 0; i < x->report->last.n_layers; i++)
		if (x->report->last.layers[i].state != LEDGER_STANDS)
			return false;
	return true;
}

static struct ledger_segment *find(struct fixture *x, enum ledger_kind kind,
				   const char *layer)
{
	struct ledger_boot *b;
	size_t i;

	if (!x->report->n_boots)
		return NULL;
	b = &x->report->boots[x->report->n_boots - 1];
	for (i = b->n; i > 0; i--)
		if (b->v[i - 1].kind == kind && b->v[i - 1].from >= x->after &&
		    strstr(kind == LEDGER_NOBODY ? b->v[i - 1].cause :
						   b->v[i - 1].missing,
			   layer))
			return &b->v[i - 1];
	return NULL;
}

static bool gap_is_over(struct fixture *x)
{
	return all_stands(x) && find(x, LEDGER_SOME, "");
}

static void run_until(struct fixture *x, bool (*done)(struct fixture *x))
{
	usec deadline = clock_boottime() + DEADLINE;

	while (!done(x)) {
		if (clock_boottime() > deadline)
			fail_msg("the log does not come to it");
		assert_true(sd_event_run(x->node.event,
					 50 * USEC_PER_MSEC) >= 0);
	}
}

static int setup(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	world_make();
	(void)snprintf(x->dir, sizeof(x->dir), "/tmp/garboard-ledger-XXXXXX");
	assert_non_null(mkdtemp(x->dir));
	(void)snprintf(x->stood, sizeof(x->stood), "%s/stood", x->dir);
	world_tunnel();
	sh("ip addr add 10.64.0.2/32 dev wg0");
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *x = *state;

	if (x->node.event)
		stop(x);
	if (x->report) {
		ledger_report_done(x->report);
		free(x->report);
	}
	sh("rm -rf %s", x->dir);
	free(x);
	world_done();
	return 0;
}

/* ---- gaps ---- */

/* Beside the loop, as others are, between `from` and the end of it all. */
static struct ledger_segment *gap_after(struct fixture *x, const char *cmd,
					const char *layer)
{
	struct ledger_segment *s;

	x->after = clock_boottime();
	sh("(%s) >/dev/null 2>&1 &", cmd);
	run_until(x, gap_is_over);
	s = find(x, LEDGER_SOME, layer);
	if (!s)
		fail_msg("no gap of %s", layer);
	assert_true(s->to > s->from);
	assert_true(s->to <= clock_boottime());
	return s;
}

static void foreign_deletion_is_a_gap_with_its_writer(void **state)
{
	struct fixture *x = *state;
	struct ledger_segment *s;

	start(x);
	run_until(x, all_stands);
	s = gap_after(x, "nft delete table inet garboard", "inet");
	assert_string_equal(s->missing, "inet");
	assert_non_null(strstr(s->stands, "netdev:up0"));
	assert_non_null(strstr(s->stands, "routing"));
	assert_int_equal(strncmp(s->cause, "nft[", 4), 0);
	assert_int_equal(s->gaps, 1);
}

static void a_deleted_rule_is_a_gap_of_routing(void **state)
{
	struct fixture *x = *state;
	struct ledger_segment *s;

	start(x);
	run_until(x, all_stands);
	s = gap_after(x, "ip rule del priority 18202", "routing");
	assert_string_equal(s->missing, "routing");
	/* The kernel names nobody for it, and neither do we. */
	assert_string_equal(s->cause, "");
}

/* ---- nobody looks ---- */

static bool two_starts(struct fixture *x)
{
	return all_stands(x) && find(x, LEDGER_NOBODY, "without a word");
}

static int verb(struct fixture *x)
{
	const char *build = getenv("BUILD");

	return sh_status("%s/garboard-agent killswitch-log --state-dir %s "
			 ">%s/out 2>&1", build ? build : "build", x->dir,
			 x->dir);
}

static void after_a_kill_it_is_unknown(void **state)
{
	struct fixture *x = *state;
	struct ledger_segment *s;
	usec last, killed, deadline = clock_boottime() + DEADLINE;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		start(x);
		for (;;)
			(void)sd_event_run(x->node.event, UINT64_MAX);
	}
	while (!all_stands(x)) {
		assert_true(clock_boottime() < deadline);
		(void)usleep(20000);
	}
	last = x->report->last.at;
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	killed = clock_boottime();
	/* What stands on the node goes on standing, but nobody saw it. */
	start(x);
	run_until(x, two_starts);
	s = find(x, LEDGER_NOBODY, "ended without a word");
	assert_non_null(s);
	assert_int_equal(s->from, last);
	assert_true(s->to >= killed);
	stop(x);
	assert_true(read_log(x));
	assert_int_equal(x->report->last.event, LEDGER_STOP);
	assert_int_equal(x->report->n_broken, 0);
	assert_int_equal(verb(x), 0);
	sh("tail -1 %s/out | grep -q '^summary: 1 boots'", x->dir);
	sh("printf torn >>%s/killswitch.log", x->dir);
	assert_int_equal(verb(x), 5);
	sh("grep -q '^BROKEN record in line .*: it is cut off' %s/out",
	   x->dir);
}

static void the_time_before_lockdown_was_open(void **state)
{
	struct fixture *x = *state;
	struct ledger_segment *s;
	usec now = clock_boottime();
	char line[128];

	assert_int_equal(ledger_stood_format(now, clock_realtime(), true,
					     line, sizeof(line)), 0);
	assert_int_equal(file_write(x->stood, 0600, line, strlen(line), NULL),
			 0);
	start(x);
	run_until(x, all_stands);
	s = find(x, LEDGER_NONE, "inet");
	assert_non_null(s);
	assert_int_equal(s->from, 0);
	assert_int_equal(s->to, now);
	assert_non_null(find(x, LEDGER_NOBODY, "before the agent looked"));
	stop(x);
	/* A second agent of the same boot does not tell it again. */
	start(x);
	run_until(x, all_stands);
	assert_int_equal(x->report->n_boots, 1);
	assert_int_equal(x->report->kinds[LEDGER_NONE], now);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(foreign_deletion_is_a_gap_with_its_writer),
		T(a_deleted_rule_is_a_gap_of_routing),
		T(after_a_kill_it_is_unknown),
		T(the_time_before_lockdown_was_open),
	};

	world_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
