#include "agent/res/killswitch_tables.h"

#include <errno.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/if_ether.h>
#include <net/if_arp.h>

#include "common/put.h"

#define DNS_PORT 53
#define DNS_TLS_PORT 853
#define ND_FIRST 133		/* router solicitation */
#define ND_LAST 136		/* neighbour advertisement */
#define ND_HOP_LIMIT 255

#define ETH_TYPE 12
#define IP4_SADDR 12
#define IP4_DADDR 16
#define IP6_SADDR 8
#define IP6_DADDR 24
#define IP6_HOP_LIMIT 7
#define TH_SPORT 0
#define TH_DPORT 2

/* Destinations that never leave the link (KS-07). */
static const char *const link_scope[] = {
	"169.254.0.0/16", "224.0.0.0/24", "255.255.255.255/32",
	"fe80::/10",	  "ff02::/16",
};

/* A table in the making: the first error sticks, later steps do nothing. */
struct build {
	struct nft_table *t;
	int err;
};

static bool is_netdev(const struct nft_table *t)
{
	return t->family == NFPROTO_NETDEV;
}

bool killswitch_is_ours(const struct nft_table *head)
{
	size_t n = strlen(KILLSWITCH_EGRESS_PREFIX);

	if (head->family == NFPROTO_INET)
		return strcmp(head->name, KILLSWITCH_TABLE) == 0;
	return head->family == NFPROTO_NETDEV &&
	       strncmp(head->name, KILLSWITCH_EGRESS_PREFIX, n) == 0 &&
	       head->name[n] != '\0';
}

bool killswitch_class_empty(const struct desired_class *c)
{
	return c->pods.n == 0 && c->sources.n == 0 && c->mask == 0;
}

/* ---- uplinks ---- */

static bool is_tunnel(const struct desired_egress *egress, const char *name)
{
	size_t i;

	for (i = 0; i < egress->n_tunnels; i++)
		if (strcmp(egress->tunnels[i].name, name) == 0)
			return true;
	return false;
}

/* Whether `up` stands on top of `down`, as master or as VLAN. */
static bool stands_on(const struct rtnl_link *up,
		      const struct rtnl_link *down)
{
	return down->master == up->index ||
	       (up->lower == down->index && strcmp(up->kind, "vlan") == 0);
}

static void mark_uplinks(const struct desired_egress *egress,
			 const struct rtnl_links *links, bool *is_uplink)
{
	bool changed = true;
	size_t i, j;

	for (i = 0; i < links->n; i++)
		is_uplink[i] = links->v[i].hardware &&
			       !is_tunnel(egress, links->v[i].name);
	while (changed) {
		changed = false;
		for (i = 0; i < links->n; i++)
			for (j = 0; j < links->n && !is_uplink[i]; j++)
				if (is_uplink[j] &&
				    stands_on(&links->v[i], &links->v[j]))
					is_uplink[i] = changed = true;
	}
}

int killswitch_uplinks(const struct desired_egress *egress,
		       const struct rtnl_links *links,
		       struct strlist *ret_names)
{
	struct strlist names = STRLIST_INIT;
	bool *is_uplink;
	size_t i;
	int r = 0;

	if (egress->uplinks.n) {
		r = strlist_copy(&egress->uplinks, &names);
	} else {
		is_uplink = calloc(links->n + 1, sizeof(*is_uplink));
		if (!is_uplink)
			return -ENOMEM;
		mark_uplinks(egress, links, is_uplink);
		for (i = 0; i < links->n && r == 0; i++)
			if (is_uplink[i])
				r = strlist_add(&names, links->v[i].name);
		free(is_uplink);
	}
	if (r < 0) {
		strlist_done(&names);
		return r;
	}
	strlist_sort(&names);
	*ret_names = names;
	return 0;
}

/* ---- pieces of rules ---- */

static struct nft_rule *rule(struct build *b, const char *chain)
{
	struct nft_chain *c = nft_table_find_chain(b->t, chain);
	struct nft_rule *r = c ? nft_chain_rule(c) : NULL;

	if (!r && b->err == 0)
		b->err = -ENOMEM;
	return b->err == 0 ? r : NULL;
}

static void match_family(const struct build *b, struct nft_rule *r, int af)
{
	uint16_t ether = htons(af == AF_INET6 ? ETH_P_IPV6 : ETH_P_IP);
	uint8_t proto = af == AF_INET6 ? NFPROTO_IPV6 : NFPROTO_IPV4;

	if (is_netdev(b->t)) {
		nft_rule_meta(r, NFT_META_PROTOCOL);
		nft_rule_cmp(r, NFT_CMP_EQ, &ether, sizeof(ether));
	} else {
		nft_rule_meta(r, NFT_META_NFPROTO);
		nft_rule_cmp(r, NFT_CMP_EQ, &proto, sizeof(proto));
	}
}

static void match_source(const struct build *b, struct nft_rule *r, int af,
			 const char *set)
{
	match_family(b, r, af);
	nft_rule_payload(r, NFT_PAYLOAD_NETWORK_HEADER,
			 af == AF_INET6 ? IP6_SADDR : IP4_SADDR,
			 af == AF_INET6 ? 16 : 4);
	nft_rule_lookup(r, set);
}

/*
 * By the bytes on the wire: a raw socket may call IP whatever it likes, and
 * the kernel believes it (FACTS S3).
 */
static void match_source_on_wire(struct nft_rule *r, int af, const char *set)
{
	uint16_t ether = htons(af == AF_INET6 ? ETH_P_IPV6 : ETH_P_IP);

	nft_rule_payload(r, NFT_PAYLOAD_LL_HEADER, ETH_TYPE, sizeof(ether));
	nft_rule_cmp(r, NFT_CMP_EQ, &ether, sizeof(ether));
	nft_rule_payload(r, NFT_PAYLOAD_NETWORK_HEADER,
			 af == AF_INET6 ? IP6_SADDR : IP4_SADDR,
			 af == AF_INET6 ? 16 : 4);
	nft_rule_lookup(r, set);
}

static void match_destination(const struct build *b, struct nft_rule *r,
			      int af, const char *set)
{
	match_family(b, r, af);
	nft_rule_payload(r, NFT_PAYLOAD_NETWORK_HEADER,
			 af == AF_INET6 ? IP6_DADDR : IP4_DADDR,
			 af == AF_INET6 ? 16 : 4);
	nft_rule_lookup(r, set);
}

/* By name: the index of a tunnel changes each time it is made. */
static void match_device(struct nft_rule *r, const char *name)
{
	char padded[IF_NAMESIZE] = { 0 };

	(void)memcpy(padded, name, strnlen(name, sizeof(padded) - 1));
	nft_rule_meta(r, NFT_META_OIFNAME);
	nft_rule_cmp(r, NFT_CMP_EQ, padded, sizeof(padded));
}

/* A wire under the tunnel's name would lead past it: only the bare sort. */
static void match_tunnel(struct nft_rule *r, const char *name)
{
	static const uint16_t bare = ARPHRD_NONE;

	match_device(r, name);
	nft_rule_meta(r, NFT_META_OIFTYPE);
	nft_rule_cmp(r, NFT_CMP_EQ, &bare, sizeof(bare));
}

static void match_protocol(struct nft_rule *r, uint8_t protocol)
{
	nft_rule_meta(r, NFT_META_L4PROTO);
	nft_rule_cmp(r, NFT_CMP_EQ, &protocol, sizeof(protocol));
}

static void match_port(struct nft_rule *r, uint32_t offset, uint16_t port)
{
	uint16_t be = htons(port);

	nft_rule_payload(r, NFT_PAYLOAD_TRANSPORT_HEADER, offset, sizeof(be));
	nft_rule_cmp(r, NFT_CMP_EQ, &be, sizeof(be));
}

static void drop(struct nft_rule *r)
{
	nft_rule_counter(r);
	nft_rule_verdict(r, NF_DROP, NULL);
}

static void pass(struct nft_rule *r)
{
	nft_rule_verdict(r, NFT_RETURN, NULL);
}

/* ---- sets ---- */

static void set_name(char *buf, const char *kind, int af, const char *class)
{
	const char *end = buf + NFT_MODEL_NAME_MAX;

	buf = put_text(buf, end, kind);
	buf = put_text(buf, end, af == AF_INET6 ? "6" : "4");
	buf = put_text(buf, end, class[0] ? "_" : "");
	(void)put_text(buf, end, class);
}

static void fill(struct build *b, struct nft_set *s,
		 const struct prefix_list *list)
{
	size_t i;

	for (i = 0; i < list->n && b->err == 0; i++)
		b->err = nft_set_add(s, &list->v[i]);
}

static void fill_link_scope(struct build *b, struct nft_set *s)
{
	struct ip_prefix p;
	size_t i;

	for (i = 0; i < sizeof(link_scope) / sizeof(link_scope[0]); i++) {
		if ((strchr(link_scope[i], ':') != NULL) !=
		    (s->family == AF_INET6))
			continue;
		if (b->err == 0)
			b->err = ip_prefix_parse(link_scope[i], &p);
		if (b->err == 0)
			b->err = nft_set_add(s, &p);
	}
}

static void fill_dns(struct build *b, struct nft_set *s,
		     const struct desired_class *c)
{
	size_t i;

	for (i = 0; i < c->n_dns && b->err == 0; i++) {
		struct ip_prefix p = {
			.addr = c->dns[i],
			.len = (uint8_t)ip_addr_bits(&c->dns[i]),
		};

		b->err = nft_set_add(s, &p);
	}
}

/* A new set; those that stay empty are taken away again by end_set(). */
static struct nft_set *begin_set(struct build *b, const char *kind, int af,
				 const char *class)
{
	char name[NFT_MODEL_NAME_MAX];
	struct nft_set *s;

	if (b->err < 0)
		return NULL;
	set_name(name, kind, af, class);
	s = nft_table_set(b->t, name, (uint8_t)af);
	if (!s)
		b->err = -ENOMEM;
	return s;
}

static void end_set(struct build *b, struct nft_set *s)
{
	nft_set_seal(s);
	if (s->n == 0)
		b->t->n_sets--;
}

static void class_sets(struct build *b, const struct desired_class *c, int af)
{
	struct nft_set *s = begin_set(b, "src", af, c->name);

	if (!s)
		return;
	fill(b, s, &c->pods);
	fill(b, s, &c->sources);
	end_set(b, s);
	if (is_netdev(b->t) || !c->gateway)
		return;
	s = begin_set(b, "dns", af, c->name);
	if (!s)
		return;
	fill_dns(b, s, c);
	end_set(b, s);
}

static void local_set(struct build *b, const struct desired_egress *egress,
		      int af)
{
	struct nft_set *s = begin_set(b, "local", af, "");

	if (!s)
		return;
	fill(b, s, &egress->local);
	fill_link_scope(b, s);
	end_set(b, s);
}

static bool has_set(const struct build *b, const char *kind, int af,
		    const char *class, char *name)
{
	set_name(name, kind, af, class);
	return nft_table_find_set(b->t, name) != NULL;
}

/* ---- the chain of a class ---- */

static const int families[] = { AF_INET, AF_INET6 };
#define FAMILIES (sizeof(families) / sizeof(families[0]))

static void pass_loopback(struct build *b, const char *chain)
{
	struct nft_rule *r = rule(b, chain);

	if (r) {
		match_device(r, "lo");
		pass(r);
	}
}

static void pass_tunnel(struct build *b, const char *chain, const char *name)
{
	struct nft_rule *r = rule(b, chain);

	if (r) {
		match_tunnel(r, name);
		pass(r);
	}
}

static void pass_resolvers(struct build *b, const char *chain,
			   const struct desired_class *c, const char *tunnel)
{
	char set[NFT_MODEL_NAME_MAX];
	struct nft_rule *r;
	size_t i;

	for (i = 0; i < FAMILIES; i++) {
		if (!has_set(b, "dns", families[i], c->name, set))
			continue;
		r = rule(b, chain);
		if (!r)
			return;
		match_tunnel(r, tunnel);
		match_destination(b, r, families[i], set);
		pass(r);
	}
}

/* What is sent to the endpoint: address, protocol and port (KS-10). */
static struct nft_rule *endpoint_rule(struct build *b, const char *chain,
				      const struct ip_endpoint *e)
{
	bool v6 = e->addr.family == AF_INET6;
	struct nft_rule *r = rule(b, chain);

	if (!r)
		return NULL;
	match_family(b, r, e->addr.family);
	nft_rule_payload(r, NFT_PAYLOAD_NETWORK_HEADER,
			 v6 ? IP6_DADDR : IP4_DADDR, v6 ? 16 : 4);
	nft_rule_cmp(r, NFT_CMP_EQ, e->addr.bytes, v6 ? 16 : 4);
	match_protocol(r, e->proto == IP_PROTO_TCP ? IPPROTO_TCP : IPPROTO_UDP);
	match_port(r, TH_DPORT, e->port);
	return r;
}

static void match_root(struct nft_rule *r, uint32_t op)
{
	static const uint32_t root;

	nft_rule_meta(r, NFT_META_SKUID);
	nft_rule_cmp(r, op, &root, sizeof(root));
}

/*
 * The tunnel's own packets, where a class has the uplink's address among
 * its sources. OpenVPN's come from a socket that root opened. WireGuard's
 * come from the kernel and have none: whoever has one and is not root is
 * dropped first, and what was forwarded came in by a device.
 */
static void pass_endpoint(struct build *b, const char *chain,
			  const struct ip_endpoint *e, enum tunnel_kind kind)
{
	static const uint32_t none;
	struct nft_rule *r = endpoint_rule(b, chain, e);

	if (r && kind == TUNNEL_WIREGUARD) {
		match_root(r, NFT_CMP_NEQ);
		drop(r);
		r = endpoint_rule(b, chain, e);
	} else if (r) {
		match_root(r, NFT_CMP_EQ);
	}
	if (r && kind == TUNNEL_WIREGUARD) {
		nft_rule_meta(r, NFT_META_IIF);
		nft_rule_cmp(r, NFT_CMP_EQ, &none, sizeof(none));
	}
	if (r)
		pass(r);
}

static void pass_endpoints(struct build *b, const char *chain,
			   const struct desired_egress *egress,
			   const struct desired_class *c)
{
	const struct desired_tunnel *t;
	size_t i;

	if (!c->gateway || c->tunnel >= egress->n_tunnels || !c->sources.n)
		return;
	t = &egress->tunnels[c->tunnel];
	for (i = 0; i < t->n_endpoints; i++)
		pass_endpoint(b, chain, &t->endpoints[i], t->kind);
}

static void drop_dns(struct build *b, const char *chain)
{
	static const struct {
		uint8_t protocol;
		uint16_t port;
	} v[] = {
		{ IPPROTO_UDP, DNS_PORT },
		{ IPPROTO_TCP, DNS_PORT },
		{ IPPROTO_UDP, DNS_TLS_PORT },
		{ IPPROTO_TCP, DNS_TLS_PORT },
	};
	struct nft_rule *r;
	size_t i;

	for (i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		r = rule(b, chain);
		if (!r)
			return;
		match_protocol(r, v[i].protocol);
		match_port(r, TH_DPORT, v[i].port);
		drop(r);
	}
}

static void pass_local(struct build *b, const char *chain)
{
	char set[NFT_MODEL_NAME_MAX];
	struct nft_rule *r;
	size_t i;

	for (i = 0; i < FAMILIES; i++) {
		set_name(set, "local", families[i], "");
		r = rule(b, chain);
		if (!r)
			return;
		match_destination(b, r, families[i], set);
		pass(r);
	}
}

static void pass_neighbours(struct build *b, const char *chain)
{
	static const uint8_t first = ND_FIRST, last = ND_LAST;
	static const uint8_t hop_limit = ND_HOP_LIMIT;
	struct nft_rule *r = rule(b, chain);

	if (!r)
		return;
	match_family(b, r, AF_INET6);
	nft_rule_payload(r, NFT_PAYLOAD_NETWORK_HEADER, IP6_HOP_LIMIT, 1);
	nft_rule_cmp(r, NFT_CMP_EQ, &hop_limit, 1);
	match_protocol(r, IPPROTO_ICMPV6);
	nft_rule_payload(r, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1);
	nft_rule_cmp(r, NFT_CMP_GTE, &first, 1);
	nft_rule_cmp(r, NFT_CMP_LTE, &last, 1);
	pass(r);
}

static void pass_dhcp(struct build *b, const char *chain)
{
	static const struct {
		int af;
		uint16_t client, server;
	} v[] = {
		{ AF_INET, 68, 67 },
		{ AF_INET6, 546, 547 },
	};
	struct nft_rule *r;
	size_t i;

	for (i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		r = rule(b, chain);
		if (!r)
			return;
		match_family(b, r, v[i].af);
		match_protocol(r, IPPROTO_UDP);
		match_port(r, TH_SPORT, v[i].client);
		match_port(r, TH_DPORT, v[i].server);
		pass(r);
	}
}

static void class_chain(struct build *b, const struct desired_egress *egress,
			const struct desired_class *c, const char *chain)
{
	const char *tunnel = NULL;
	struct nft_rule *r;

	if (c->gateway && c->tunnel < egress->n_tunnels)
		tunnel = egress->tunnels[c->tunnel].name;
	if (!is_netdev(b->t)) {
		pass_loopback(b, chain);
		if (tunnel)
			pass_resolvers(b, chain, c, tunnel);
	}
	pass_endpoints(b, chain, egress, c);
	drop_dns(b, chain);
	if (!is_netdev(b->t) && tunnel)
		pass_tunnel(b, chain, tunnel);
	pass_local(b, chain);
	pass_neighbours(b, chain);
	pass_dhcp(b, chain);
	r = rule(b, chain);
	if (r)
		drop(r);
}

/* ---- base chains ---- */

static void base_chain(struct build *b, const char *name, uint32_t hook,
		       const char *device)
{
	struct nft_chain *c = nft_table_chain(b->t, name);

	if (!c) {
		b->err = -ENOMEM;
		return;
	}
	c->base = true;
	c->hook = hook;
	c->policy = NF_ACCEPT;
	(void)memcpy(c->type, "filter", sizeof("filter"));
	if (device)
		(void)memcpy(c->device, device,
			     strnlen(device, sizeof(c->device) - 1));
}

/* Sends what belongs to the class from one base chain to its own. */
static void select_class(struct build *b, const char *base,
			 const struct desired_class *c, const char *chain)
{
	char set[NFT_MODEL_NAME_MAX];
	struct nft_rule *r;
	size_t i;

	for (i = 0; i < FAMILIES; i++) {
		if (!has_set(b, "src", families[i], c->name, set))
			continue;
		r = rule(b, base);
		if (!r)
			return;
		match_source(b, r, families[i], set);
		nft_rule_verdict(r, NFT_JUMP, chain);
		r = is_netdev(b->t) ? rule(b, base) : NULL;
		if (!r)
			continue;
		match_source_on_wire(r, families[i], set);
		nft_rule_verdict(r, NFT_JUMP, chain);
	}
	if (c->mask == 0)
		return;
	r = rule(b, base);
	if (!r)
		return;
	nft_rule_meta(r, NFT_META_MARK);
	nft_rule_mask(r, &c->mask, sizeof(c->mask));
	nft_rule_cmp(r, NFT_CMP_EQ, &c->mark, sizeof(c->mark));
	nft_rule_verdict(r, NFT_JUMP, chain);
}

static void add_class(struct build *b, const struct desired_egress *egress,
		      const struct desired_class *c)
{
	static const char *const bases[] = { "output", "forward",
					     "postrouting", "egress" };
	char chain[NFT_MODEL_NAME_MAX];
	size_t i;

	if (killswitch_class_empty(c) || b->err < 0)
		return;
	for (i = 0; i < FAMILIES; i++)
		class_sets(b, c, families[i]);
	(void)snprintf(chain, sizeof(chain), "class_%.63s", c->name);
	if (b->err == 0 && !nft_table_chain(b->t, chain))
		b->err = -ENOMEM;
	if (b->err < 0)
		return;
	class_chain(b, egress, c, chain);
	for (i = 0; i < sizeof(bases) / sizeof(bases[0]); i++)
		if (nft_table_find_chain(b->t, bases[i]))
			select_class(b, bases[i], c, chain);
}

int killswitch_table(const struct desired_egress *egress, const char *device,
		     struct nft_table *ret_table)
{
	struct nft_table t = { 0 };
	struct build b = { .t = &t };
	size_t i;

	t.family = device ? NFPROTO_NETDEV : NFPROTO_INET;
	(void)snprintf(t.name, sizeof(t.name), "%s%.15s",
		       device ? KILLSWITCH_EGRESS_PREFIX : KILLSWITCH_TABLE,
		       device ? device : "");
	if (device) {
		base_chain(&b, "egress", NF_NETDEV_EGRESS, device);
	} else {
		base_chain(&b, "output", NF_INET_LOCAL_OUT, NULL);
		base_chain(&b, "forward", NF_INET_FORWARD, NULL);
		base_chain(&b, "postrouting", NF_INET_POST_ROUTING, NULL);
	}
	for (i = 0; i < FAMILIES; i++)
		local_set(&b, egress, families[i]);
	for (i = 0; i < egress->n_classes; i++)
		add_class(&b, egress, &egress->classes[i]);
	if (b.err < 0) {
		nft_table_done(&t);
		return b.err;
	}
	*ret_table = t;
	return 0;
}
