/*
 * How long the kill-switch and the routing take with thousands of local
 * prefixes: the real engine in this process, without a loop.
 *
 *	policy SPEC STATE_DIR LOOPS PREFIXES...
 *
 * Prints, for each number of prefixes, "replace N min median p99 max" (the
 * whole policy of other prefixes, until the engine is settled) and "look N
 * ..." (nothing to do), in microseconds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/engine.h"
#include "common/log.h"
#include "spec/derive.h"
#include "spec/spec.h"

#define LOOPS_MAX 10000
#define PREFIXES_MAX 2040	/* a list holds 2,048 */

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static usec boottime(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (usec)t.tv_sec * USEC_PER_SEC + (usec)t.tv_nsec / 1000;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void tell(const char *name, unsigned long prefixes, double *t,
		 size_t n)
{
	qsort(t, n, sizeof(*t), compare);
	(void)printf("%s %lu %.1f %.1f %.1f %.1f\n", name, prefixes, t[0],
		     t[n / 2], t[n * 99 / 100], t[n - 1]);
}

static struct desired *load(const char *path)
{
	struct spec_problems problems = SPEC_PROBLEMS_INIT;
	struct desired *want = NULL;
	struct spec *spec = NULL;

	if (spec_load(path, SPEC_ONE_BOX, &problems, &spec, NULL) == 0)
		(void)spec_derive_node(spec, 0, &want, NULL);
	spec_problems_done(&problems);
	(void)spec_free(spec);
	return want;
}

/* Every second /25, so that none of them join; `turn` says which. */
static int add_prefixes(struct desired *want, unsigned long n,
			unsigned int turn)
{
	struct ip_prefix p;
	unsigned long i;
	char text[64];
	int r = 0;

	for (i = 0; i < n && r == 0; i++) {
		(void)snprintf(text, sizeof(text), "%lu.%lu.%lu.%u/25",
			       100 + i / 65536, i / 256 % 256, i % 256,
			       turn % 2 ? 128 : 0);
		r = ip_prefix_parse(text, &p);
		if (r == 0)
			r = prefix_list_add(&want->egress.local, &p);
	}
	return r;
}

static int settle(struct engine *e)
{
	int i;

	for (i = 0; i < 100; i++) {
		usec now = boottime();

		if (engine_pass(e, now) > now && engine_settled(e))
			return 0;
	}
	return -ETIMEDOUT;
}

static int replace(struct engine *e, const char *spec, unsigned long prefixes,
		   double *t, size_t loops)
{
	size_t i;
	int r = 0;

	for (i = 0; i <= loops && r == 0; i++) {
		struct desired *want = load(spec);
		double begin;

		r = want ? add_prefixes(want, prefixes, (unsigned int)i) :
			   -EINVAL;
		if (r < 0) {
			(void)desired_free(want);
			break;
		}
		begin = now_us();
		engine_set_desired(e, want);
		r = settle(e);
		/* The first is not of as many others. */
		if (i > 0)
			t[i - 1] = now_us() - begin;
	}
	return r;
}

static int look(struct engine *e, double *t, size_t loops)
{
	size_t i;
	int r = 0;

	for (i = 0; i < loops && r == 0; i++) {
		double begin = now_us();

		engine_look_again(e);
		r = settle(e);
		t[i] = now_us() - begin;
	}
	return r;
}

static int measure(struct engine *e, char **argv, double *t, size_t loops)
{
	int i, r = 0;

	for (i = 4; argv[i] && r == 0; i++) {
		unsigned long n = strtoul(argv[i], NULL, 10);

		r = n > PREFIXES_MAX ? -E2BIG :
				       replace(e, argv[1], n, t, loops);
		if (r < 0)
			return r;
		tell("replace", n, t, loops);
		r = look(e, t, loops);
		tell("look", n, t, loops);
	}
	return r;
}

int main(int argc, char **argv)
{
	size_t loops = argc > 4 ? strtoul(argv[3], NULL, 10) : 0;
	struct engine_params p = engine_params_default();
	struct resource_host host = { .root = "" };
	struct engine *e = NULL;
	double *t;
	int r;

	if (!loops || loops > LOOPS_MAX)
		return 2;
	host.state_dir = argv[2];
	log_set_level(LOG_LEVEL_ERROR);
	t = calloc(loops, sizeof(*t));
	r = t ? engine_new(&host, resource_registry, &p, &e) : -ENOMEM;
	if (r == 0) {
		engine_only(e, 1u << RESOURCE_KILLSWITCH |
			       1u << RESOURCE_ROUTING);
		r = measure(e, argv, t, loops);
	}
	(void)engine_free(e);
	free(t);
	if (r < 0)
		(void)fprintf(stderr, "policy: %s\n", strerror(-r));
	return r < 0;
}
