#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "agent/bus/bus.h"
#include "agent/converge.h"
#include "agent/converge_look.h"
#include "agent/lockdown_keep.h"
#include "common/log.h"

/* A daemon that is there answers; on a busy machine it may take seconds. */
#define BUS_PATIENCE (15 * USEC_PER_SEC)

static int wait_for_bus(sd_event *event, struct bus *bus)
{
	usec until = clock_boottime() + BUS_PATIENCE;
	int r = 0;

	if (access(CONVERGE_BUS_SOCKET, F_OK) < 0)
		return 0;	/* a machine without D-Bus: go on without */
	while (r >= 0 && !bus_is_up(bus) && clock_boottime() < until)
		r = sd_event_run(event, until - clock_boottime());
	return r < 0 ? r : 0;
}

static int drive(struct engine *e, sd_event *event, usec deadline)
{
	usec until = clock_boottime() + deadline;
	int r = 0;

	for (;;) {
		usec now = clock_boottime(), next = engine_pass(e, now);

		if (engine_settled(e) || now >= until)
			return 0;
		if (next > until)
			next = until;
		r = sd_event_run(event, next > now ? next - now : 0);
		if (r < 0)
			return r;
	}
}

static int second_go(const struct converge_params *p, struct desired *desired,
		     uint32_t mask, struct resource_host *host,
		     struct engine **ret_engine, struct fault *f)
{
	struct engine_params ep = converge_params(p->check);
	struct engine *e = NULL;
	int err;

	err = bus_new(host->event, NULL, &host->bus, f);
	if (err == 0)
		err = wait_for_bus(host->event, host->bus);
	if (err == 0 && !bus_is_up(host->bus))
		host->bus = bus_free(host->bus);
	if (err == 0)
		err = engine_new(host, p->registry, &ep, &e);
	if (err < 0) {
		(void)desired_free(desired);
		return err;
	}
	engine_only(e, mask);
	engine_set_desired(e, desired);
	*ret_engine = e;
	return drive(e, host->event, p->deadline);
}

static void block_sigchld(void)
{
	sigset_t block;

	(void)sigemptyset(&block);
	(void)sigaddset(&block, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &block, NULL);
}

/* Before anything is applied, and after: tunnels may have new addresses. */
static void keep_lockdown(const struct converge_params *p,
			  const struct desired *d)
{
	struct fault f = FAULT_INIT;

	if (p->check || !(p->only & UINT32_C(1) << RESOURCE_KILLSWITCH))
		return;
	if (lockdown_keep(p->state_dir, d, &f) < 0)
		log_error("the file of garboard-lockdown: %s", f.text);
}

/* `first` has looked; its desired state moves on if there is more to do. */
static int go_on(const struct converge_params *p, struct engine *first,
		 struct resource_host *host, struct converge_result *r,
		 struct fault *f)
{
	struct engine *second = NULL;
	uint32_t mask = converge_left(first, p);
	int err = 0;

	keep_lockdown(p, engine_desired(first));
	if (mask) {
		block_sigchld();
		err = converge_remember(first, r);
		if (err == 0)
			err = sd_event_new(&host->event);
		if (err >= 0)
			err = second_go(p, engine_take_desired(first), mask,
					host, &second, f);
	}
	if (second)
		keep_lockdown(p, engine_desired(second));
	if (err == 0)
		err = converge_conclude(first, second, mask, p->check, r);
	(void)engine_free(second);
	(void)bus_free(host->bus);
	(void)sd_event_unref(host->event);
	return err;
}

int converge(const struct converge_params *p, struct desired *desired,
	     struct converge_result *ret_result, struct fault *f)
{
	struct resource_host host = { .root = p->root,
				      .state_dir = p->state_dir,
				      .oneshot = true };
	/* The first engine opens its resources without a loop and a bus. */
	struct resource_host bare = host;
	struct converge_result r = { 0 };
	struct engine *e = NULL;
	int err;

	err = converge_first(&bare, p, desired, &e, f);
	if (err < 0)
		return err;
	err = go_on(p, e, &host, &r, f);
	(void)engine_free(e);
	if (err < 0) {
		converge_result_done(&r);
		return fault_errno(f, err, "converge", "cannot go on");
	}
	*ret_result = r;
	return 0;
}
