/*
 * smbios.h - how much memory the firmware says is installed (B08). Pure:
 * the bytes of /sys/firmware/dmi/tables/DMI, which are the firmware's and
 * may be wrong in any way, and are never trusted to fit.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * The sum of the memory devices (type 17) of arrays that are system memory
 * (type 16), in bytes; non-volatile ones do not count. 0: it does not say.
 */
uint64_t smbios_memory(const uint8_t *table, size_t size);
