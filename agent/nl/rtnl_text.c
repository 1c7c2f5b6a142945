/* Comparison and text of the values of rtnl_msg.h. */
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include "agent/nl/rtnl_msg.h"
#include "common/put.h"

static bool addr_equal(const struct ip_addr *a, const struct ip_addr *b)
{
	return a->family == b->family &&
	       (!a->family || ip_addr_cmp(a, b) == 0);
}

static bool prefix_equal(const struct ip_prefix *a, const struct ip_prefix *b)
{
	return a->len == b->len &&
	       (a->len == 0 || ip_addr_cmp(&a->addr, &b->addr) == 0);
}

bool rtnl_route_equal(const struct rtnl_route *a, const struct rtnl_route *b)
{
	return !a->extra && !b->extra &&
	       a->dst.addr.family == b->dst.addr.family &&
	       prefix_equal(&a->dst, &b->dst) && a->table == b->table &&
	       a->protocol == b->protocol && a->type == b->type &&
	       a->scope == b->scope && a->metric == b->metric &&
	       a->oif == b->oif && addr_equal(&a->gateway, &b->gateway) &&
	       addr_equal(&a->prefsrc, &b->prefsrc);
}

bool rtnl_rule_equal(const struct rtnl_rule *a, const struct rtnl_rule *b)
{
	return !a->extra && !b->extra && a->family == b->family &&
	       prefix_equal(&a->src, &b->src) &&
	       prefix_equal(&a->dst, &b->dst) && a->mark == b->mark &&
	       a->mask == b->mask && strcmp(a->iif, b->iif) == 0 &&
	       a->priority == b->priority && a->table == b->table &&
	       a->action == b->action && a->protocol == b->protocol;
}

static const char *type_name(uint8_t type)
{
	switch (type) {
	case RTN_UNICAST:
		return "";
	case RTN_UNREACHABLE:
		return "unreachable ";
	case RTN_BLACKHOLE:
		return "blackhole ";
	case RTN_PROHIBIT:
		return "prohibit ";
	case RTN_THROW:
		return "throw ";
	case RTN_LOCAL:
		return "local ";
	}
	return "other ";
}

const char *rtnl_route_format(const struct rtnl_route *route, const char *dev,
			      char *buf)
{
	const char *end = buf + RTNL_TEXT_MAX;
	char ip[IP_TEXT_MAX], out[32];
	char *at = put_text(buf, end, type_name(route->type));

	at = put_text(at, end, route->dst.len ?
				       ip_prefix_format(&route->dst, ip) :
				       "default");
	if (route->gateway.family) {
		at = put_text(at, end, " via ");
		at = put_text(at, end, ip_addr_format(&route->gateway, ip));
	}
	if (route->oif && dev) {
		at = put_text(at, end, " dev ");
		at = put_text(at, end, dev);
	} else if (route->oif) {
		(void)snprintf(out, sizeof(out), " dev #%d", route->oif);
		at = put_text(at, end, out);
	}
	if (route->prefsrc.family) {
		at = put_text(at, end, " src ");
		at = put_text(at, end, ip_addr_format(&route->prefsrc, ip));
	}
	at = put_text(at, end, " metric ");
	at = put_u32(at, end, route->metric);
	(void)put_text(at, end, route->extra ? " (and more)" : "");
	return buf;
}

const char *rtnl_rule_format(const struct rtnl_rule *rule, char *buf)
{
	const char *end = buf + RTNL_TEXT_MAX;
	bool lookup = rule->action == FR_ACT_TO_TBL;
	char text[IP_TEXT_MAX];
	char *at = put_u32(buf, end, rule->priority);

	at = put_text(at, end, ": from ");
	at = put_text(at, end, rule->src.len ?
				       ip_prefix_format(&rule->src, text) :
				       "all");
	if (rule->dst.len) {
		at = put_text(at, end, " to ");
		at = put_text(at, end, ip_prefix_format(&rule->dst, text));
	}
	if (rule->mask) {
		(void)snprintf(text, sizeof(text), " fwmark 0x%x/0x%x",
			       rule->mark, rule->mask);
		at = put_text(at, end, text);
	}
	if (rule->iif[0]) {
		at = put_text(at, end, " iif ");
		at = put_text(at, end, rule->iif);
	}
	at = put_text(at, end, lookup ? " lookup " : " action ");
	at = put_u32(at, end, lookup ? rule->table : rule->action);
	(void)put_text(at, end, rule->extra ? " (and more)" : "");
	return buf;
}
