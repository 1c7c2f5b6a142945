#include "common/trim.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Only segments that are never written: what was relocated (also RELRO,
 * read-only by now) lies in writable segments and would be lost.
 */
static int trim_object(struct dl_phdr_info *info, size_t size, void *userdata)
{
	uintptr_t page = *(const uintptr_t *)userdata;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + p->p_vaddr;
		uintptr_t to = from + p->p_memsz;

		if (p->p_type != PT_LOAD || (p->p_flags & PF_W))
			continue;
		from &= ~(page - 1);
		to = (to + page - 1) & ~(page - 1);
		/* Failure costs memory, nothing else. */
		(void)madvise((void *)from, to - from, MADV_DONTNEED);
	}
	return 0;
}

void trim_memory(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)malloc_trim(0);
	(void)dl_iterate_phdr(trim_object, &page);
}
