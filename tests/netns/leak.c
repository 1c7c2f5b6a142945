/*
 * Class senders on every path, a far side that counts, and faults: nothing
 * of the class may be seen in the clear, everything else must be (A26, A28).
 *
 * GARBOARD_LONG: every pair of faults. LEAK_SEED, LEAK_PAIRS: which pairs.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>

#include <cmocka.h>

#include "agent/res/killswitch.h"
#include "agent/res/routing.h"
#include "leak_faults.h"
#include "world.h"

#define HOLD 60			/* ticks that a fault stands */
#define PAIRS 16
#define EDGE 2			/* ticks under way as a span begins and ends */
#define DEADLINE_MS 10000
#define DISK_DEADLINE_MS 45000	/* the engine tries again within 30 s */

enum guard {
	GUARD_NONE,		/* nothing: the positive control */
	GUARD_UPDOWN,		/* the usual scripts */
	GUARD_OURS,
	GUARD_OURS_PLAIN,	/* as on kernels without table owners */
};

struct harness {
	enum guard guard;
	struct run ks, rt;	/* only look */
	struct desired *want;
	const char *now;	/* what is played */
};

struct outcome {
	uint64_t sent, through;
	uint64_t leaked, unrouted;	/* of these on unrouted streams */
	uint64_t net_sent, net_lost;
	uint64_t stream[CLASS_MAX];	/* leaked, each */
	double repair_ms, again_ms;	/* negative: nobody repairs */
	uint64_t open;		/* ticks from each command to its repair */
};

static double now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool is_ours(const struct harness *h)
{
	return h->guard == GUARD_OURS || h->guard == GUARD_OURS_PLAIN;
}

static enum scripts scripts_of(const struct harness *h)
{
	return h->guard == GUARD_UPDOWN ? SCRIPTS_UPDOWN : SCRIPTS_NONE;
}

static void start_agent(const struct harness *h)
{
	if (is_ours(h) && !agent_lives())
		agent_start(h->ks.dir, h->guard == GUARD_OURS_PLAIN);
}

static struct harness *begin(enum guard guard)
{
	struct harness *h = calloc(1, sizeof(*h));

	scene_make();
	h->guard = guard;
	h->want = scene_desired();
	run_open(&h->ks, &resource_killswitch, false);
	scene_disk(h->ks.dir);
	run_open(&h->rt, &resource_routing, false);
	h->rt.host.state_dir = h->ks.dir;
	run_reopen(&h->rt);
	start_agent(h);
	tunnel_start(scripts_of(h));
	tunnel_wait();
	traffic_start(scene_traffic());
	traffic_pass(HOLD);
	return h;
}

static void end(struct harness *h)
{
	traffic_stop();
	agent_end(SIGTERM);
	scene_disk_done();
	run_close(&h->ks);
	run_close(&h->rt);
	scene_done();
	h->want = desired_free(h->want);
	free(h);
}

static bool repaired(struct harness *h)
{
	return run_plan(&h->ks, h->want, NULL, NULL) == 0 &&
	       run_plan(&h->rt, h->want, NULL, NULL) == 0;
}

static void print_plan(struct run *r, const struct desired *want)
{
	struct change_list changes;
	size_t i;

	(void)run_plan(r, want, NULL, &changes);
	for (i = 0; i < changes.n; i++)
		print_message("# left: %s: \"%s\" -> \"%s\"\n",
			      changes.v[i].key, changes.v[i].have,
			      changes.v[i].want);
	change_list_done(&changes);
}

/* Milliseconds until both plans are empty; -1: nobody is there to do it. */
static double repair_time(struct harness *h, unsigned int flags)
{
	int deadline = flags & FILLS_DISK ? DISK_DEADLINE_MS : DEADLINE_MS;
	double begun = now_ms();

	if (!is_ours(h) || !agent_lives())
		return -1;
	while (!repaired(h)) {
		if (now_ms() - begun < deadline)
			continue;
		print_plan(&h->ks, h->want);
		print_plan(&h->rt, h->want);
		fail_msg("%s: not repaired in %d ms", h->now, deadline);
	}
	return now_ms() - begun;
}

static void subtract(const struct counts *a, const struct counts *b,
		     struct outcome *o)
{
	enum stream s;

	for (s = 0; s < STREAM_MAX; s++) {
		uint64_t sent = b->sent[s] - a->sent[s];
		uint64_t seen = b->seen[s] - a->seen[s];

		if (s >= CLASS_MAX) {
			o->net_sent += sent;
			o->net_lost += sent > seen ? sent - seen : 0;
			continue;
		}
		o->sent += sent + b->refused[s] - a->refused[s];
		o->through += b->through[s] - a->through[s];
		o->stream[s] = seen;
		o->leaked += seen;
		if (stream_is_unrouted(s))
			o->unrouted += seen;
	}
}

static unsigned int flags_of(const struct leak_fault *const *v, size_t n)
{
	unsigned int flags = 0;
	size_t i;

	for (i = 0; i < n; i++)
		flags |= v[i]->flags;
	return flags;
}

static struct outcome play(struct harness *h,
			   const struct leak_fault *const *v, size_t n)
{
	unsigned int flags = flags_of(v, n);
	struct outcome o = { 0 };
	struct counts a, b;
	uint64_t begun;

	traffic_rest(&a);
	traffic_go();
	traffic_pass(5);
	begun = traffic_ticks();
	fault_act(v, n);
	/* What cannot be written stays to be done; the rest must not wait. */
	o.repair_ms = flags & FILLS_DISK ? -1 : repair_time(h, flags);
	o.open = traffic_ticks() - begun;
	traffic_pass(HOLD);
	/* Where nobody was there to repair it has been open ever since. */
	if (o.repair_ms >= 0)
		begun = traffic_ticks();
	else
		o.open = 0;
	fault_undo(v, n, scripts_of(h));
	start_agent(h);
	o.again_ms = repair_time(h, flags);
	o.open += traffic_ticks() - begun;
	traffic_pass(HOLD);
	traffic_rest(&b);
	traffic_go();
	subtract(&a, &b, &o);
	return o;
}

/* ---- the table ---- */

static void print_head(const char *what)
{
	print_message("# %s\n# %-48s %8s %7s %8s %9s %6s %9s %9s\n", what,
		      "fault", "sent", "leaked", "tunnel", "internet",
		      "lost", "repair/ms", "again/ms");
}

static void print_row(const char *name, const struct outcome *o)
{
	char where[256] = "";
	size_t used = 0;
	enum stream s;

	for (s = 0; s < CLASS_MAX; s++)
		if (o->stream[s])
			used += (size_t)snprintf(where + used,
						 sizeof(where) - used,
						 " %s:%llu", stream_name(s),
						 (unsigned long long)
							 o->stream[s]);
	print_message("# %-48s %8llu %7llu %8llu %9llu %6llu %9.1f %9.1f%s\n",
		      name, (unsigned long long)o->sent,
		      (unsigned long long)o->leaked,
		      (unsigned long long)o->through,
		      (unsigned long long)o->net_sent,
		      (unsigned long long)o->net_lost, o->repair_ms,
		      o->again_ms, where);
}

/* ---- verdicts ---- */

/*
 * Frames that are never routed are held by the tables alone. Where the
 * fault takes the tables from a node that nobody repairs, or that cannot
 * own them, these are exposed until the repair: told, and bounded.
 */
static bool may_expose(const struct harness *h, unsigned int flags)
{
	bool owned = h->guard == GUARD_OURS && !(flags & STRIPS_AGENT);

	if (flags & MOVES_UPLINK)
		return true;
	return (flags & STRIPS_NFT) && !owned;
}

/*
 * The bound of what may be exposed: not a packet before the command, none
 * after the repair.
 */
static bool beyond_repair(const struct outcome *o)
{
	enum stream s;

	for (s = 0; s < CLASS_MAX; s++)
		if (o->stream[s] > o->open + EDGE)
			return true;
	return false;
}

static unsigned int judge(const struct harness *h, const char *name,
			  unsigned int flags, const struct outcome *o)
{
	unsigned int bad = 0;
	bool routing_gone = (flags & STRIPS_ROUTING) && may_expose(h, flags);

	if (o->leaked > o->unrouted && !routing_gone) {
		print_message("# FAILED: %s: routed class packets left\n",
			      name);
		bad++;
	}
	if (o->unrouted && !may_expose(h, flags)) {
		print_message("# FAILED: %s: class frames left\n", name);
		bad++;
	}
	if (o->leaked && beyond_repair(o)) {
		print_message("# FAILED: %s: more left than was sent in the "
			      "%llu ticks until the repair\n", name,
			      (unsigned long long)o->open);
		bad++;
	}
	if (o->net_lost && !(flags & BREAKS_NET)) {
		print_message("# FAILED: %s: internet was interrupted\n",
			      name);
		bad++;
	}
	return bad;
}

static unsigned int one_fault(struct harness *h, const struct leak_fault *f,
			      uint64_t *leaked)
{
	struct outcome o;

	h->now = f->name;
	o = play(h, &f, 1);

	*leaked += o.leaked;
	print_row(f->name, &o);
	return is_ours(h) ? judge(h, f->name, f->flags, &o) : 0;
}

static unsigned int every_fault(struct harness *h, uint64_t *leaked)
{
	unsigned int bad = 0;
	size_t i;

	for (i = 0; i < leak_faults_count(); i++)
		if (is_ours(h) ||
		    (!leak_faults[i].agent && !leak_faults[i].agent_act))
			bad += one_fault(h, &leak_faults[i], leaked);
	return bad;
}

static unsigned int one_pair(struct harness *h, size_t a, size_t b)
{
	const struct leak_fault *v[2] = { &leak_faults[a], &leak_faults[b] };
	struct outcome o;
	char name[128];

	(void)snprintf(name, sizeof(name), "%s + %s", v[0]->name, v[1]->name);
	h->now = name;
	o = play(h, v, 2);
	print_row(name, &o);
	return judge(h, name, flags_of(v, 2), &o);
}

/* Two names for one device at once: the looker itself loses track. */
static bool makes_sense(size_t a, size_t b)
{
	return a != b && !(leak_faults[a].flags & leak_faults[b].flags &
			   MOVES_UPLINK);
}

static unsigned int all_pairs(struct harness *h)
{
	unsigned int bad = 0;
	size_t a, b;

	for (a = 0; a < leak_faults_count(); a++)
		for (b = a + 1; b < leak_faults_count(); b++)
			if (makes_sense(a, b))
				bad += one_pair(h, a, b);
	return bad;
}

static unsigned long number(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : otherwise;
}

static unsigned int some_pairs(struct harness *h)
{
	unsigned int seed = (unsigned int)number("LEAK_SEED",
						 (unsigned long)time(NULL));
	unsigned long n = number("LEAK_PAIRS", PAIRS);
	unsigned int bad = 0;

	print_message("# LEAK_SEED=%u\n", seed);
	while (n--) {
		size_t a = (size_t)rand_r(&seed) % leak_faults_count();
		size_t b = (size_t)rand_r(&seed) % leak_faults_count();

		if (makes_sense(a, b))
			bad += one_pair(h, a, b);
	}
	return bad;
}

/* ---- the tests ---- */

/* Nothing stands: every stream is seen, so none of them is blind. */
static void control_every_path_leaks(void **state)
{
	struct harness *h = begin(GUARD_NONE);
	struct outcome o = { 0 };
	struct counts a, b;
	uint64_t leaked = 0;
	enum stream s;

	(void)state;
	traffic_rest(&a);
	traffic_go();
	traffic_pass(HOLD);
	traffic_rest(&b);
	traffic_go();
	subtract(&a, &b, &o);
	print_head("no kill-switch (control)");
	print_row("no fault", &o);
	for (s = 0; s < CLASS_MAX; s++)
		if (!o.stream[s])
			fail_msg("the detector does not see %s",
				 stream_name(s));
	assert_int_equal(o.net_lost, 0);
	(void)every_fault(h, &leaked);
	assert_true(leaked > 0);
	end(h);
}

static void usual_scripts_leak(void **state)
{
	struct harness *h = begin(GUARD_UPDOWN);
	uint64_t leaked = 0;

	(void)state;
	print_head("up and down scripts with ip and nft (comparison)");
	(void)every_fault(h, &leaked);
	assert_true(leaked > 0);
	end(h);
}

static void faults_in(enum guard guard, const char *what)
{
	struct harness *h = begin(guard);
	uint64_t leaked = 0;
	unsigned int bad;

	print_head(what);
	traffic_wait_through(HOST4);
	traffic_wait_through(HOST6);
	faults_many(getenv("GARBOARD_LONG"));
	bad = every_fault(h, &leaked);
	faults_many(false);
	print_head("pairs in the same instant");
	bad += getenv("GARBOARD_LONG") ? all_pairs(h) : some_pairs(h);
	end(h);
	assert_int_equal(bad, 0);
}

static void a28_no_fault_opens_it(void **state)
{
	(void)state;
	faults_in(GUARD_OURS, "garboard-agent, owned tables");
}

/*
 * Everything in the same instant, and nobody there to repair: what nothing
 * can hold. It is told, it is seen to be all (the control of the bound), and
 * it ends with the agent.
 */
static void everything_at_once_is_open_until_the_agent_is_back(void **state)
{
	static const char *const names[] = { "agent kill -9",
					     "our ip rules deleted",
					     "nft flush ruleset" };
	struct harness *h = begin(GUARD_OURS);
	const struct leak_fault *v[3];
	struct outcome o;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		v[i] = leak_fault_find(names[i]);
	h->now = "agent kill -9 + our ip rules + nft flush ruleset";
	o = play(h, v, 3);
	print_head("rules and tables at once, agent dead");
	print_row(h->now, &o);
	assert_true(o.leaked > o.unrouted);
	assert_false(beyond_repair(&o));
	/* It is closed again, for the same traffic. */
	o = play(h, NULL, 0);
	print_row("nothing more, after it", &o);
	assert_int_equal(o.leaked, 0);
	assert_int_equal(o.net_lost, 0);
	end(h);
}

/* As on kernels before 6.9. */
static void a28_no_fault_opens_plain_tables(void **state)
{
	(void)state;
	faults_in(GUARD_OURS_PLAIN, "garboard-agent, plain tables");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_every_path_leaks),
		cmocka_unit_test(usual_scripts_leak),
		cmocka_unit_test(a28_no_fault_opens_it),
		cmocka_unit_test(a28_no_fault_opens_plain_tables),
		cmocka_unit_test(
			everything_at_once_is_open_until_the_agent_is_back),
	};

	world_require();
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		(void)printf("1..0 # SKIP needs mount namespaces\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
