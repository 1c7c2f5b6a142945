/*
 * put.h - short texts piece by piece, for what is made at every look.
 *
 * printf costs some hundred instructions a call, which is most of a look
 * that finds everything as it shall be. Here a text is put at `at`, cut
 * where `end` (one past the buffer) does not leave room, and always ended;
 * returned is where the next piece goes. `at` must be before `end`.
 */
#pragma once

#include <stdint.h>

char *put_text(char *at, const char *end, const char *text);
char *put_u32(char *at, const char *end, uint32_t value);
