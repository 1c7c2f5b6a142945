#include "spec/reserved.h"

#include <stddef.h>

#define MARK_MAGIC 0x0f00u	/* Cilium: what the other bits mean */
#define MARK_FREE 0x3000u	/* free while the magic is zero */
#define ENI_DEVICES 256		/* Cilium ENI: table 10 + interface index */

static const struct {
	uint64_t first, last;
	const char *who;
} tables[] = {	/* the first match names the owner */
	{ 0, 0, "the kernel's (unspecified)" },
	{ 200, 200, "Cilium's for IPsec" },
	{ 201, 201, "Cilium's for WireGuard" },
	{ 202, 202, "Cilium's for VTEP" },
	{ 253, 253, "the kernel's default table" },
	{ 254, 254, "the kernel's main table" },
	{ 255, 255, "the kernel's local table" },
	{ 11, 10 + ENI_DEVICES, "Cilium's (10 + interface index)" },
	{ 2004, 2005, "Cilium's for its proxy" },
	{ UINT32_MAX, UINT32_MAX, "not a table" },
};

const char *reserved_table(uint64_t table)
{
	size_t i;

	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (table >= tables[i].first && table <= tables[i].last)
			return tables[i].who;
	return table > UINT32_MAX ? "not a table" : NULL;
}

const char *reserved_priority(uint64_t priority)
{
	if (priority == 0)
		return "the kernel's for the local table";
	if (priority < 200)
		return "in the range that Cilium uses (below 200)";
	if (priority == 32766 || priority == 32767)
		return "the kernel's for main and default";
	if (priority > 32766 - RESERVED_PRIORITY_SPAN)
		return "too late: its rules would not come before the main "
		       "table";
	return NULL;
}

bool reserved_mark_free(uint64_t value, uint64_t mask)
{
	if ((mask & MARK_MAGIC) != MARK_MAGIC)
		return false;
	if (mask & ~(uint64_t)(MARK_MAGIC | MARK_FREE))
		return false;
	return value && (value & ~mask) == 0 && (value & MARK_MAGIC) == 0;
}
