#include "coordinator/memory_rule.h"

#include <stdio.h>

unsigned int memory_thousandths(const char *percent)
{
	unsigned int whole = 0;
	char tenth = '0';

	(void)sscanf(percent, "%u.%c", &whole, &tenth);
	return whole * 10 + (tenth >= '0' && tenth <= '9' ?
			     (unsigned int)(tenth - '0') : 0);
}

bool memory_is_short(uint64_t have, uint64_t whole, unsigned int thousandths)
{
	/* In KiB, so that no claim of a node overflows. */
	uint64_t lost = have < whole ? (whole - have) >> 10 : 0;

	return lost * 1000 > (whole >> 10) * thousandths;
}
