/*
 * ip.h - IPv4 and IPv6 addresses, prefixes and endpoints as plain values.
 *
 * Text form is that of inet_pton(3): no zone, no leading zeros, no names.
 * A prefix with host bits set is refused: it is nearly always a typing
 * error, and two texts for one prefix would read as drift.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IP_TEXT_MAX 64

struct ip_addr {
	uint8_t family;		/* AF_INET, AF_INET6; 0: unset */
	uint8_t bytes[16];	/* network order; the first 4 for IPv4 */
};

struct ip_prefix {
	struct ip_addr addr;
	uint8_t len;		/* bits */
};

enum ip_proto {
	IP_PROTO_TCP = 6,
	IP_PROTO_UDP = 17,
};

struct ip_endpoint {
	struct ip_addr addr;
	uint16_t port;		/* host order */
	uint8_t proto;		/* enum ip_proto; 0 where it is implied */
};

int ip_addr_parse(const char *text, struct ip_addr *ret_addr);
/* "10.0.0.0/8"; a bare address is a full-length prefix. */
int ip_prefix_parse(const char *text, struct ip_prefix *ret_prefix);
/* "192.0.2.5:7643" or "[2001:db8::1]:7643", then "/tcp" or "/udp" at will. */
int ip_endpoint_parse(const char *text, struct ip_endpoint *ret_endpoint);

/* Each returns `buf`, which has IP_TEXT_MAX bytes. */
const char *ip_addr_format(const struct ip_addr *a, char *buf);
const char *ip_prefix_format(const struct ip_prefix *p, char *buf);
const char *ip_endpoint_format(const struct ip_endpoint *e, char *buf);

unsigned int ip_addr_bits(const struct ip_addr *a);	/* 32 or 128 */
int ip_addr_cmp(const struct ip_addr *a, const struct ip_addr *b);
int ip_prefix_cmp(const struct ip_prefix *a, const struct ip_prefix *b);
bool ip_prefix_contains(const struct ip_prefix *p, const struct ip_addr *a);
bool ip_prefix_covers(const struct ip_prefix *outer,
		      const struct ip_prefix *inner);
bool ip_prefix_overlaps(const struct ip_prefix *a, const struct ip_prefix *b);
