/*
 * memory_rule.h - when memory counts as missing (B07, B08). Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* "5%" is 50, "2.5%" is 25; more decimals do not count. */
unsigned int memory_thousandths(const char *percent);
/* Of `whole` bytes more than so many thousandths are not there. */
bool memory_is_short(uint64_t have, uint64_t whole, unsigned int thousandths);
