#include "spec/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BLOCK 16384
#define ARENA_ALIGN sizeof(max_align_t)

struct block {
	struct block *next;
	size_t size, used;
	max_align_t data[];
};

struct spec_arena {
	struct block *blocks;	/* the first one has room */
};

struct spec_arena *spec_arena_new(void)
{
	return calloc(1, sizeof(struct spec_arena));
}

struct spec_arena *spec_arena_free(struct spec_arena *arena)
{
	struct block *b, *next;

	if (!arena)
		return NULL;
	for (b = arena->blocks; b; b = next) {
		next = b->next;
		free(b);
	}
	free(arena);
	return NULL;
}

void *spec_arena_alloc(struct spec_arena *arena, size_t n, size_t size)
{
	struct block *b = arena->blocks;
	size_t want, room;
	void *p;

	if (size && n > (SIZE_MAX / 2 - ARENA_ALIGN) / size)
		return NULL;
	want = (n * size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
	if (!b || b->size - b->used < want) {
		room = want > ARENA_BLOCK ? want : ARENA_BLOCK;
		b = calloc(1, sizeof(*b) + room);
		if (!b)
			return NULL;
		b->size = room;
		b->next = arena->blocks;
		arena->blocks = b;
	}
	p = (char *)b->data + b->used;
	b->used += want;
	return p;
}

char *spec_arena_text(struct spec_arena *arena, const char *text, size_t len)
{
	char *copy = spec_arena_alloc(arena, len + 1, 1);

	if (copy)
		memcpy(copy, text, len);
	return copy;
}
