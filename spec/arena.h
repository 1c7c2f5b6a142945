/*
 * arena.h - memory that lives exactly as long as one spec.
 *
 * Everything a spec points to is taken from its arena and released at once,
 * so that half-parsed values need no undo. Memory is zeroed. Not for
 * anything that grows without a bound: the file's own size limits it.
 */
#pragma once

#include <stddef.h>

struct spec_arena;

struct spec_arena *spec_arena_new(void);
struct spec_arena *spec_arena_free(struct spec_arena *arena);	/* NULL */

/* NULL when there is no memory or n * size overflows. */
void *spec_arena_alloc(struct spec_arena *arena, size_t n, size_t size);
char *spec_arena_text(struct spec_arena *arena, const char *text, size_t len);
