/*
 * reserved.h - numbers that are taken by the kernel, Cilium or Kubernetes
 * (REQUIREMENTS, constants; RT-05).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Rules that one tunnel may add from its declared priority on. */
#define RESERVED_PRIORITY_SPAN 100

/* Whose it is ("Cilium's for IPsec"), or NULL when it is free. */
const char *reserved_table(uint64_t table);
const char *reserved_priority(uint64_t priority);

/* Whether a class may use this mark: the magic bits masked and zero. */
bool reserved_mark_free(uint64_t value, uint64_t mask);
