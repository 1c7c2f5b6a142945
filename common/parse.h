/*
 * parse.h - strict text to value. The whole string must match; blanks,
 * signs where none belong, and overflow are -EINVAL or -ERANGE. Outputs
 * are written only on success.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decimal, or hexadecimal after "0x". */
int parse_u64(const char *text, uint64_t max, uint64_t *ret_value);
int parse_u32(const char *text, uint32_t *ret_value);
int parse_port(const char *text, uint16_t *ret_port);

/* 32 lower-case hex digits and the like; exactly 2 * size digits. */
int parse_hex(const char *text, uint8_t *ret_bytes, size_t size);

/* Writes 2 * size digits and a NUL. */
void format_hex(const uint8_t *bytes, size_t size, char *ret_text);

/*
 * RFC 1123 label in lower case: at most 63 of [a-z0-9-], alphanumeric at
 * both ends. Names of nodes, clusters and classes.
 */
bool parse_is_label(const char *text);
