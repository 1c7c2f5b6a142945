/*
 * What a command costs, start to exit, children and all:
 *
 *   cost RUNS PREPARE CMD ARGS...
 *
 * PREPARE is given to sh before each run and not measured. Prints one line:
 * smallest and median of wall-clock time and median of processor time, in
 * microseconds, the largest resident set of any one of its processes in kB,
 * and the last exit status. Their output goes nowhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUNS_MAX 10000
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

static double tv_us(const struct timeval *t)
{
	return (double)t->tv_sec * 1e6 + (double)t->tv_usec;
}

static int run(char *const *argv, const posix_spawn_file_actions_t *quiet,
	       struct rusage *ret_used, int *ret_status)
{
	extern char **environ;
	pid_t pid;
	int r = posix_spawnp(&pid, argv[0], quiet, NULL, argv, environ);

	if (r != 0)
		return -r;
	if (wait4(pid, ret_status, 0, ret_used) != pid)
		return -errno;
	return WIFEXITED(*ret_status) && WEXITSTATUS(*ret_status) != NOT_FOUND ?
		       0 : -ECHILD;
}

int main(int argc, char **argv)
{
	posix_spawn_file_actions_t quiet;
	char shell[] = "/bin/sh", option[] = "-c";
	double *wall, *cpu, start;
	struct rusage used;
	long rss = 0;
	size_t runs = argc > 3 ? strtoul(argv[1], NULL, 10) : 0, i;
	int status = 0, r = 0;

	if (!runs || runs > RUNS_MAX)
		return 2;
	wall = calloc(runs, sizeof(*wall));
	cpu = calloc(runs, sizeof(*cpu));
	if (!wall || !cpu)
		return 1;
	(void)posix_spawn_file_actions_init(&quiet);
	for (int fd = 0; fd < 3; fd++)
		(void)posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null",
						       O_RDWR, 0);
	for (i = 0; i < runs && r == 0; i++) {
		char *prepare[] = { shell, option, argv[2], NULL };

		r = run(prepare, &quiet, &used, &status);
		start = now_us();
		if (r == 0)
			r = run(argv + 3, &quiet, &used, &status);
		wall[i] = now_us() - start;
		cpu[i] = tv_us(&used.ru_utime) + tv_us(&used.ru_stime);
		rss = used.ru_maxrss > rss ? used.ru_maxrss : rss;
	}
	if (r < 0) {
		(void)fprintf(stderr, "cost: %s: %s\n", argv[3], strerror(-r));
		return 1;
	}
	qsort(wall, runs, sizeof(*wall), compare);
	qsort(cpu, runs, sizeof(*cpu), compare);
	(void)printf("%.0f %.0f %.0f %ld %d\n", wall[0], wall[runs / 2],
		     cpu[runs / 2], rss, WEXITSTATUS(status));
	return 0;
}
