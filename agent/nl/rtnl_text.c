/* Comparison and text of the values of rtnl_msg.h. */
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include "agent/nl/rtnl_msg.h"

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
	char dst[IP_TEXT_MAX], via[IP_TEXT_MAX], src[IP_TEXT_MAX];
	char out[IF_NAMESIZE + 16] = "";

	if (route->dst.len)
		(void)ip_prefix_format(&route->dst, dst);
	else
		(void)snprintf(dst, sizeof(dst), "default");
	if (route->oif && dev)
		(void)snprintf(out, sizeof(out), " dev %.15s", dev);
	else if (route->oif)
		(void)snprintf(out, sizeof(out), " dev #%d", route->oif);
	(void)snprintf(buf, RTNL_TEXT_MAX, "%s%.49s%s%.45s%s%s%.45s metric %u%s",
		       type_name(route->type), dst,
		       route->gateway.family ? " via " : "",
		       route->gateway.family ?
			       ip_addr_format(&route->gateway, via) : "",
		       out, route->prefsrc.family ? " src " : "",
		       route->prefsrc.family ?
			       ip_addr_format(&route->prefsrc, src) : "",
		       route->metric, route->extra ? " (and more)" : "");
	return buf;
}

const char *rtnl_rule_format(const struct rtnl_rule *rule, char *buf)
{
	char from[IP_TEXT_MAX] = "all", to[IP_TEXT_MAX] = "";
	char mark[32] = "", iif[IF_NAMESIZE + 8] = "";

	if (rule->src.len)
		(void)ip_prefix_format(&rule->src, from);
	if (rule->dst.len)
		(void)ip_prefix_format(&rule->dst, to);
	if (rule->mask)
		(void)snprintf(mark, sizeof(mark), " fwmark 0x%x/0x%x",
			       rule->mark, rule->mask);
	if (rule->iif[0])
		(void)snprintf(iif, sizeof(iif), " iif %.15s", rule->iif);
	(void)snprintf(buf, RTNL_TEXT_MAX, "%u: from %.49s%s%.49s%s%s %s %u%s",
		       rule->priority, from, to[0] ? " to " : "", to, mark,
		       iif,
		       rule->action == FR_ACT_TO_TBL ? "lookup" : "action",
		       rule->action == FR_ACT_TO_TBL ? rule->table :
						       rule->action,
		       rule->extra ? " (and more)" : "");
	return buf;
}
