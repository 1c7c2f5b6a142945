#include "agent/stamps.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* File times come from the clock tick: 10 ms at the least (HZ=100). */
#define YOUNG_NS INT64_C(50000000)
#define NS_PER_S INT64_C(1000000000)

struct stamp {
	char *path;
	int err;		/* of stat(2), and then nothing else counts */
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime, ctime;
};

static int64_t nanoseconds(const struct timespec *t)
{
	return (int64_t)t->tv_sec * NS_PER_S + t->tv_nsec;
}

static struct stamp take(const char *path)
{
	struct stamp st = { 0 };
	struct stat sb;

	if (stat(path, &sb) < 0) {
		st.err = errno;
		return st;
	}
	st.dev = sb.st_dev;
	st.ino = sb.st_ino;
	st.size = sb.st_size;
	st.mtime = sb.st_mtim;
	st.ctime = sb.st_ctim;
	return st;
}

static bool same(const struct stamp *a, const struct stamp *b)
{
	if (a->err || b->err)
		return a->err == b->err;
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       nanoseconds(&a->mtime) == nanoseconds(&b->mtime) &&
	       nanoseconds(&a->ctime) == nanoseconds(&b->ctime);
}

void stamps_done(struct stamps *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		free(s->v[i].path);
	free(s->v);
	*s = STAMPS_INIT;
}

int stamps_note(struct stamps *s, const char *path)
{
	struct stamp st = take(path), *v;
	struct timespec now;

	if (s->n >= STAMPS_MAX)
		return -E2BIG;
	v = reallocarray(s->v, s->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	s->v = v;
	st.path = strdup(path);
	if (!st.path)
		return -ENOMEM;
	v[s->n++] = st;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (!st.err && nanoseconds(&st.ctime) > nanoseconds(&now) - YOUNG_NS)
		s->young = true;
	return 0;
}

void stamps_end(struct stamps *s)
{
	s->complete = true;
}

bool stamps_fresh(const struct stamps *s)
{
	size_t i;

	if (!s->complete || s->young)
		return false;
	for (i = 0; i < s->n; i++) {
		struct stamp now = take(s->v[i].path);

		if (!same(&now, &s->v[i]))
			return false;
	}
	return true;
}
