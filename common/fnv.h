/*
 * fnv.h - FNV-1a of 64 bits: tells a damaged text from a whole one, where
 * nobody forges it. Each step is a bijection of the sum, so one changed byte
 * always changes the result.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FNV_BASIS UINT64_C(14695981039346656037)

/* Goes on from `sum`: FNV_BASIS, or what was returned for the bytes before. */
uint64_t fnv_add(uint64_t sum, const void *bytes, size_t size);
