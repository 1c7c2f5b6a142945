/*
 * What one look of the running agent costs: opens every resource as the
 * agent does, with its watches, brings the node to SPEC, and then times
 * observe and plan of all of them, LOOPS times in one process.
 *
 *   look SPEC STATE_DIR LOOPS
 *
 * Prints "NAME min median max" in microseconds for each resource, then for
 * "all". Status 1 if a plan of an enforced resource is not empty: what is
 * measured is a look with nothing to do.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/res/resource.h"
#include "spec/derive.h"
#include "spec/spec.h"

#define LOOPS_MAX 100000

struct bench {
	struct resource_host host;
	struct desired *want;
	void *state[RESOURCE_MAX];
	double *t[RESOURCE_MAX + 1];	/* the last one: all of them */
	size_t planned;
};

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int load(struct bench *b, const char *path, struct fault *f)
{
	struct spec_problems problems = SPEC_PROBLEMS_INIT;
	struct spec *spec = NULL;
	int r;

	r = spec_load(path, SPEC_ONE_BOX, &problems, &spec, f);
	spec_problems_done(&problems);
	if (r == 0)
		r = spec_derive_node(spec, 0, &b->want, f);
	(void)spec_free(spec);
	return r;
}

static void look_again(void *userdata)
{
	(void)userdata;
}

static int look(struct bench *b, size_t i, bool apply, struct fault *f)
{
	const struct resource *res = resource_registry[i];
	struct item_list items = ITEM_LIST_INIT;
	struct change_list plan = CHANGE_LIST_INIT;
	void *seen = NULL;
	int r;

	r = res->observe(b->state[i], b->want, &seen, f);
	if (r == 0)
		r = res->plan(b->want, seen, &items, &plan, f);
	if (r == 0 && b->want->modes[i] == MODE_ENFORCE) {
		b->planned += plan.n;
		if (apply && plan.n)
			r = res->apply(b->state[i], b->want, seen, &plan,
				       &items, f);
	}
	if (seen)
		res->seen_free(seen);
	item_list_done(&items);
	change_list_done(&plan);
	return r;
}

static int start(struct bench *b, struct fault *f)
{
	size_t i;
	int r = 0;

	for (i = 0; i < RESOURCE_MAX && r >= 0; i++) {
		const struct resource *res = resource_registry[i];

		if (!res)
			continue;
		r = res->open(&b->host, &b->state[i], f);
		if (r >= 0 && res->watch)
			r = res->watch(b->state[i], b->want, look_again, b, f);
		if (r >= 0)
			r = look(b, i, true, f);
	}
	return r < 0 ? r : 0;
}

static int measure(struct bench *b, size_t loops, struct fault *f)
{
	size_t i, n;
	int r = 0;

	for (i = 0; i <= RESOURCE_MAX; i++)
		if (!(b->t[i] = calloc(loops, sizeof(*b->t[i]))))
			return -ENOMEM;
	b->planned = 0;
	for (n = 0; n < loops && r == 0; n++) {
		for (i = 0; i < RESOURCE_MAX && r == 0; i++) {
			double begin = now_us();

			if (!resource_registry[i])
				continue;
			r = look(b, i, false, f);
			b->t[i][n] = now_us() - begin;
			b->t[RESOURCE_MAX][n] += b->t[i][n];
		}
	}
	return r;
}

static void tell(struct bench *b, size_t loops)
{
	size_t i;

	for (i = 0; i <= RESOURCE_MAX; i++) {
		double *t = b->t[i];

		qsort(t, loops, sizeof(*t), compare);
		(void)printf("%-10s %.1f %.1f %.1f\n",
			     i < RESOURCE_MAX ? resource_name(i) : "all", t[0],
			     t[loops / 2], t[loops - 1]);
		free(t);
	}
}

static void finish(struct bench *b)
{
	size_t i;

	for (i = RESOURCE_MAX; i > 0; i--)
		if (b->state[i - 1])
			(void)resource_registry[i - 1]->free(b->state[i - 1]);
	(void)desired_free(b->want);
	(void)sd_event_unref(b->host.event);
}

int main(int argc, char **argv)
{
	struct bench b = { .host = { .root = "" } };
	struct fault f = FAULT_INIT;
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];
	size_t loops;
	int r;

	loops = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	if (!loops || loops > LOOPS_MAX)
		return 2;
	b.host.state_dir = argv[2];
	r = sd_event_new(&b.host.event);
	if (r >= 0)
		r = load(&b, argv[1], &f);
	if (r >= 0)
		r = start(&b, &f);
	if (r >= 0)
		r = measure(&b, loops, &f);
	if (r >= 0)
		tell(&b, loops);
	if (r < 0)
		(void)fprintf(stderr, "look: %d: %s\n", r,
			      fault_str(&f, text, sizeof(text)));
	if (b.planned)
		(void)fprintf(stderr, "look: there was something to do\n");
	finish(&b);
	return r < 0 || b.planned;
}
