/*
 * packet.h - one imagined packet, and what its headers hold. Pure.
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ip.h"

#define PACKET_NETWORK_MAX 40
#define PACKET_TRANSPORT_MAX 8

struct packet {
	struct ip_addr dst;
	struct ip_addr src;		/* family 0: not known (yet) */
	uint32_t mark;
	uint8_t proto;			/* IPPROTO_*; 0: none in particular */
	uint16_t sport, dport;
	char in[IF_NAMESIZE];		/* "": sent by this node itself */
	int in_index;
	bool socket;			/* of a process, which runs as: */
	uint32_t uid;
};

/* Ways out: the device a packet is about to leave by. */
struct packet_out {
	char name[IF_NAMESIZE];
	bool bare;			/* ARPHRD_NONE */
};

/* The IPv4 or IPv6 header; its length. */
size_t packet_network(const struct packet *p,
		      uint8_t buf[PACKET_NETWORK_MAX]);
/* The first bytes of TCP, UDP, ICMP; 0: none in particular. */
size_t packet_transport(const struct packet *p,
			uint8_t buf[PACKET_TRANSPORT_MAX]);
