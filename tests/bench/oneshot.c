/*
 * Times two commands from start to exit, turn about, so that whatever else
 * the machine does falls on both:
 *
 *   oneshot RUNS CMD ARGS... -- CMD ARGS...
 *
 * Prints per command "min median max" of wall-clock time and the median of
 * processor time, in microseconds, then the ratios of the medians of both:
 * on a busy machine the second is the one to trust. Their output goes
 * nowhere; their exit status is not judged, but a command that cannot be
 * started ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUNS_MAX 100000
#define NOT_FOUND 127

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

struct sample {
	double *wall, *cpu;
};

static double tv_us(const struct timeval *t)
{
	return (double)t->tv_sec * 1e6 + (double)t->tv_usec;
}

static int run(char **argv, const posix_spawn_file_actions_t *quiet,
	       double *ret_wall, double *ret_cpu)
{
	extern char **environ;
	double start = now_us();
	struct rusage used;
	int r, status;
	pid_t pid;

	r = posix_spawn(&pid, argv[0], quiet, NULL, argv, environ);
	if (r != 0)
		return -r;
	if (wait4(pid, &status, 0, &used) != pid)
		return -errno;
	if (!WIFEXITED(status) || WEXITSTATUS(status) == NOT_FOUND)
		return -ECHILD;
	*ret_wall = now_us() - start;
	*ret_cpu = tv_us(&used.ru_utime) + tv_us(&used.ru_stime);
	return 0;
}

static void tell(const struct sample *s, size_t n)
{
	qsort(s->wall, n, sizeof(*s->wall), compare);
	qsort(s->cpu, n, sizeof(*s->cpu), compare);
	(void)printf("%.0f %.0f %.0f %.0f\n", s->wall[0], s->wall[n / 2],
		     s->wall[n - 1], s->cpu[n / 2]);
}

int main(int argc, char **argv)
{
	posix_spawn_file_actions_t quiet;
	char **cmd[2] = { argv + 2, NULL };
	struct sample s[2];
	size_t runs, i, k;
	int r = 0, a;

	for (a = 2; a < argc && !cmd[1]; a++)
		if (strcmp(argv[a], "--") == 0) {
			argv[a] = NULL;
			cmd[1] = argv + a + 1;
		}
	runs = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	if (!cmd[1] || !cmd[1][0] || !cmd[0][0] || !runs || runs > RUNS_MAX)
		return 2;
	(void)posix_spawn_file_actions_init(&quiet);
	for (a = 0; a < 3; a++)
		(void)posix_spawn_file_actions_addopen(&quiet, a, "/dev/null",
						       O_RDWR, 0);
	for (k = 0; k < 2; k++) {
		s[k].wall = calloc(runs, sizeof(double));
		s[k].cpu = calloc(runs, sizeof(double));
		if (!s[k].wall || !s[k].cpu)
			return 1;
	}
	for (i = 0; i < runs * 2 && r == 0; i++)
		r = run(cmd[i % 2], &quiet, &s[i % 2].wall[i / 2],
			&s[i % 2].cpu[i / 2]);
	if (r < 0) {
		(void)fprintf(stderr, "oneshot: %s: %s\n", *cmd[(i - 1) % 2],
			      strerror(-r));
		return 1;
	}
	tell(&s[0], runs);
	tell(&s[1], runs);
	(void)printf("%.2f %.2f\n",
		     s[0].wall[runs / 2] / s[1].wall[runs / 2],
		     s[0].cpu[runs / 2] / s[1].cpu[runs / 2]);
	return 0;
}
