#include "agent/explain/packet.h"

#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <string.h>

#define HOP_LIMIT 64

size_t packet_network(const struct packet *p, uint8_t buf[PACKET_NETWORK_MAX])
{
	(void)memset(buf, 0, PACKET_NETWORK_MAX);
	if (p->dst.family == AF_INET6) {
		buf[0] = 0x60;
		buf[6] = p->proto;
		buf[7] = HOP_LIMIT;
		(void)memcpy(buf + 8, p->src.bytes, 16);
		(void)memcpy(buf + 24, p->dst.bytes, 16);
		return 40;
	}
	buf[0] = 0x45;
	buf[8] = HOP_LIMIT;
	buf[9] = p->proto;
	(void)memcpy(buf + 12, p->src.bytes, 4);
	(void)memcpy(buf + 16, p->dst.bytes, 4);
	return 20;
}

size_t packet_transport(const struct packet *p,
			uint8_t buf[PACKET_TRANSPORT_MAX])
{
	(void)memset(buf, 0, PACKET_TRANSPORT_MAX);
	if (p->proto == 0)
		return 0;
	if (p->proto == IPPROTO_ICMP) {
		buf[0] = 8;
	} else if (p->proto == IPPROTO_ICMPV6) {
		buf[0] = ICMP6_ECHO_REQUEST;
	} else {
		buf[0] = (uint8_t)(p->sport >> 8);
		buf[1] = (uint8_t)p->sport;
		buf[2] = (uint8_t)(p->dport >> 8);
		buf[3] = (uint8_t)p->dport;
	}
	return PACKET_TRANSPORT_MAX;
}
