#include "agent/smbios.h"

#include <stdbool.h>
#include <string.h>

/* DSP0134, System Management BIOS Reference Specification. */
#define TYPE_ARRAY 16
#define TYPE_DEVICE 17
#define TYPE_END 127
#define HEADER 4		/* type, length, handle */
#define ARRAYS_MAX 64
#define USE_SYSTEM_MEMORY 3
#define SIZE_UNKNOWN 0xffff
#define SIZE_EXTENDED 0x7fff
#define SIZE_IN_KIB 0x8000
#define TECHNOLOGY_DRAM 3	/* above it: the non-volatile kinds */

struct table {
	const uint8_t *at, *end;
};

static unsigned int u16(const uint8_t *p)
{
	return p[0] | (unsigned int)p[1] << 8;
}

static uint64_t u32(const uint8_t *p)
{
	return u16(p) | (uint64_t)u16(p + 2) << 16;
}

/* The next structure, behind which come its texts and two zeros. */
static const uint8_t *next(struct table *t)
{
	const uint8_t *s = t->at, *p;

	if (t->end - s < HEADER || s[1] < HEADER || t->end - s < s[1] ||
	    s[0] == TYPE_END)
		return NULL;
	for (p = s + s[1]; t->end - p >= 2 && (p[0] || p[1]); p++)
		continue;
	t->at = t->end - p >= 2 ? p + 2 : t->end;
	return s;
}

static uint64_t device_size(const uint8_t *s)
{
	unsigned int size;

	if (s[1] < 0x0e)
		return 0;
	if (s[1] > 0x28 && s[0x28] > TECHNOLOGY_DRAM)
		return 0;
	size = u16(s + 0x0c);
	if (size == 0 || size == SIZE_UNKNOWN)
		return 0;
	if (size == SIZE_EXTENDED)
		return s[1] >= 0x20 ?
		       (u32(s + 0x1c) & 0x7fffffff) << 20 : 0;
	if (size & SIZE_IN_KIB)
		return (uint64_t)(size & ~SIZE_IN_KIB) << 10;
	return (uint64_t)size << 20;
}

uint64_t smbios_memory(const uint8_t *table, size_t size)
{
	unsigned int arrays[ARRAYS_MAX];
	struct table t = { table, table + size };
	size_t n_arrays = 0, i;
	bool any_array = false;
	const uint8_t *s;
	uint64_t sum = 0;

	while ((s = next(&t))) {
		if (s[0] != TYPE_ARRAY || s[1] < 6)
			continue;
		any_array = true;
		if (s[5] == USE_SYSTEM_MEMORY && n_arrays < ARRAYS_MAX)
			arrays[n_arrays++] = u16(s + 2);
	}
	t.at = table;
	while ((s = next(&t))) {
		if (s[0] != TYPE_DEVICE || s[1] < 0x0e)
			continue;
		for (i = 0; i < n_arrays; i++)
			if (arrays[i] == u16(s + 4))
				break;
		if (!any_array || i < n_arrays)
			sum += device_size(s);
	}
	return sum;
}
