/* fuzz_spec.h - the target, for libFuzzer and for the bounded unit test. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
