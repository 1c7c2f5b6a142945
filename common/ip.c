#include "common/ip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"
#include "common/put.h"

unsigned int ip_addr_bits(const struct ip_addr *a)
{
	return a->family == AF_INET6 ? 128 : 32;
}

int ip_addr_parse(const char *text, struct ip_addr *ret_addr)
{
	struct ip_addr a = { 0 };

	a.family = strchr(text, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(a.family, text, a.bytes) != 1)
		return -EINVAL;
	*ret_addr = a;
	return 0;
}

/* True when all bits of `a` from `from` on are zero. */
static bool bits_clear(const struct ip_addr *a, unsigned int from)
{
	unsigned int i;

	for (i = from; i < ip_addr_bits(a); i++)
		if (a->bytes[i / 8] & (0x80u >> (i % 8)))
			return false;
	return true;
}

int ip_prefix_parse(const char *text, struct ip_prefix *ret_prefix)
{
	char buf[IP_TEXT_MAX];
	struct ip_prefix p;
	uint64_t len;
	char *slash;
	int r;

	if (strlen(text) >= sizeof(buf))
		return -EINVAL;
	(void)strcpy(buf, text);
	slash = strchr(buf, '/');
	if (slash)
		*slash++ = '\0';
	r = ip_addr_parse(buf, &p.addr);
	if (r < 0)
		return r;
	len = ip_addr_bits(&p.addr);
	if (slash)
		r = parse_u64(slash, len, &len);
	if (r < 0 || !bits_clear(&p.addr, (unsigned int)len))
		return -EINVAL;
	p.len = (uint8_t)len;
	*ret_prefix = p;
	return 0;
}

static int endpoint_split(char *buf, char **ret_host, char **ret_port,
			  char **ret_proto)
{
	char *colon, *slash = strrchr(buf, '/');

	*ret_proto = NULL;
	if (slash) {
		*slash = '\0';
		*ret_proto = slash + 1;
	}
	colon = strrchr(buf, ':');
	if (!colon)
		return -EINVAL;
	*colon = '\0';
	*ret_port = colon + 1;
	*ret_host = buf;
	if (buf[0] == '[') {
		if (colon == buf + 1 || colon[-1] != ']')
			return -EINVAL;
		colon[-1] = '\0';
		*ret_host = buf + 1;
	} else if (strchr(buf, ':')) {
		return -EINVAL;
	}
	return 0;
}

int ip_endpoint_parse(const char *text, struct ip_endpoint *ret_endpoint)
{
	char buf[IP_TEXT_MAX], *host = NULL, *port = NULL, *proto = NULL;
	struct ip_endpoint e = { 0 };
	int r;

	if (strlen(text) >= sizeof(buf))
		return -EINVAL;
	(void)strcpy(buf, text);
	r = endpoint_split(buf, &host, &port, &proto);
	if (r == 0)
		r = ip_addr_parse(host, &e.addr);
	if (r == 0)
		r = parse_port(port, &e.port);
	if (r < 0)
		return r;
	if (proto && strcmp(proto, "tcp") == 0)
		e.proto = IP_PROTO_TCP;
	else if (proto && strcmp(proto, "udp") == 0)
		e.proto = IP_PROTO_UDP;
	else if (proto)
		return -EINVAL;
	*ret_endpoint = e;
	return 0;
}

static void format_ipv4(const uint8_t *bytes, char *buf)
{
	const char *end = buf + IP_TEXT_MAX;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		buf = put_text(buf, end, i ? "." : "");
		buf = put_u32(buf, end, bytes[i]);
	}
}

const char *ip_addr_format(const struct ip_addr *a, char *buf)
{
	if (a->family == AF_INET)
		format_ipv4(a->bytes, buf);
	else if (a->family != AF_INET6 ||
		 !inet_ntop(a->family, a->bytes, buf, IP_TEXT_MAX))
		(void)snprintf(buf, IP_TEXT_MAX, "unset");
	return buf;
}

const char *ip_prefix_format(const struct ip_prefix *p, char *buf)
{
	const char *end = buf + IP_TEXT_MAX;
	char *at = buf + strlen(ip_addr_format(&p->addr, buf));

	at = put_text(at, end, "/");
	(void)put_u32(at, end, p->len);
	return buf;
}

const char *ip_endpoint_format(const struct ip_endpoint *e, char *buf)
{
	char addr[IP_TEXT_MAX];
	const char *proto = "";

	if (e->proto == IP_PROTO_TCP)
		proto = "/tcp";
	else if (e->proto == IP_PROTO_UDP)
		proto = "/udp";
	(void)snprintf(buf, IP_TEXT_MAX,
		       e->addr.family == AF_INET6 ? "[%.45s]:%u%s" :
						    "%.45s:%u%s",
		       ip_addr_format(&e->addr, addr), e->port, proto);
	return buf;
}

int ip_addr_cmp(const struct ip_addr *a, const struct ip_addr *b)
{
	if (a->family != b->family)
		return a->family < b->family ? -1 : 1;
	return memcmp(a->bytes, b->bytes, ip_addr_bits(a) / 8);
}

int ip_prefix_cmp(const struct ip_prefix *a, const struct ip_prefix *b)
{
	int r = ip_addr_cmp(&a->addr, &b->addr);

	return r ? r : (int)a->len - (int)b->len;
}

bool ip_prefix_contains(const struct ip_prefix *p, const struct ip_addr *a)
{
	unsigned int i;

	if (p->addr.family != a->family)
		return false;
	for (i = 0; i < p->len; i++)
		if ((p->addr.bytes[i / 8] ^ a->bytes[i / 8]) &
		    (0x80u >> (i % 8)))
			return false;
	return true;
}

bool ip_prefix_covers(const struct ip_prefix *outer,
		      const struct ip_prefix *inner)
{
	return outer->len <= inner->len &&
	       ip_prefix_contains(outer, &inner->addr);
}

bool ip_prefix_overlaps(const struct ip_prefix *a, const struct ip_prefix *b)
{
	return ip_prefix_covers(a, b) || ip_prefix_covers(b, a);
}
