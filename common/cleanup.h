/*
 * cleanup.h - scope-bound release and explicit hand-over.
 *
 * Owns nothing. Variables marked with these attributes are released when
 * they leave scope; take_ptr() and take_fd() hand ownership to the caller
 * and leave an empty value behind (H19).
 */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Defines cleanup_<name>() for a pointer type released by `fn`. */
#define DEFINE_CLEANUP(name, type, fn)                                        \
	static inline void cleanup_##name(type **p)                           \
	{                                                                     \
		if (*p)                                                       \
			(void)fn(*p);                                         \
	}

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

DEFINE_CLEANUP(fclose, FILE, fclose)
DEFINE_CLEANUP(closedir, DIR, closedir)

#define _cleanup_free_ CLEANUP(cleanup_free)
#define _cleanup_close_ CLEANUP(cleanup_close)
#define _cleanup_fclose_ CLEANUP(cleanup_fclose)
#define _cleanup_closedir_ CLEANUP(cleanup_closedir)

static inline void *take_ptr_(void *pp)
{
	void **slot = pp, *value = *slot;

	*slot = NULL;
	return value;
}
#define take_ptr(p) ((__typeof__(p))take_ptr_(&(p)))

static inline int take_fd(int *fd)
{
	int value = *fd;

	*fd = -1;
	return value;
}
