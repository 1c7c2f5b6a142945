/* The pure half of egress.h: objects in, objects and texts out. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "coordinator/egress.h"

#define EXCLUDED_MAX 1024

const char *egress_name(const char *class_name, char buf[EGRESS_NAME_MAX])
{
	(void)snprintf(buf, EGRESS_NAME_MAX, "%s-egress-steering", class_name);
	return buf;
}

const char *egress_label(const char *class_name, char buf[EGRESS_NAME_MAX])
{
	(void)snprintf(buf, EGRESS_NAME_MAX, "garboard/egress-%s", class_name);
	return buf;
}

static bool holds_resolver(const struct egress_params *p,
			   const struct ip_prefix *prefix)
{
	size_t i;

	for (i = 0; i < p->n_dns; i++)
		if (ip_prefix_contains(prefix, &p->dns[i]))
			return true;
	return false;
}

/*
 * The range without the class's resolvers, as the fewest prefixes. They may
 * be private addresses and go through the tunnel all the same.
 */
static int exclude(json_t *list, const struct egress_params *p,
		   const struct ip_prefix *range)
{
	struct ip_prefix half = *range;
	char text[IP_TEXT_MAX];
	int r;

	if (!holds_resolver(p, range)) {
		if (json_array_size(list) == EXCLUDED_MAX)
			return -E2BIG;
		return json_array_append_new(list, json_string(ip_prefix_format(
							 range, text))) < 0 ?
			       -ENOMEM : 0;
	}
	if (range->len == ip_addr_bits(&range->addr))
		return 0;
	half.len++;
	r = exclude(list, p, &half);
	half.addr.bytes[range->len / 8] |= (uint8_t)(0x80u >> (range->len % 8));
	return r < 0 ? r : exclude(list, p, &half);
}

/* IPv4 alone: pods of the spec have no other addresses (network.podCidr). */
static int excluded(const struct egress_params *p, json_t **ret_list)
{
	json_t *list = json_array();
	size_t i;
	int r = list ? 0 : -ENOMEM;

	for (i = 0; r == 0 && i < p->local->n; i++)
		if (p->local->v[i].addr.family == AF_INET)
			r = exclude(list, p, &p->local->v[i]);
	if (r < 0) {
		json_decref(list);
		return r;
	}
	*ret_list = list;
	return 0;
}

/* One text of all of them; annotations are maps of strings. */
static json_t *addresses_text(const struct strlist *addresses)
{
	char text[2048] = "";
	size_t i, n = 0;

	for (i = 0; i < addresses->n && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s",
				      i ? "," : "", addresses->v[i]);
	return json_string(text);
}

int egress_policy(const struct egress_params *p, json_t **ret_object,
		  struct fault *f)
{
	char name[EGRESS_NAME_MAX], label[EGRESS_NAME_MAX];
	json_t *local = NULL, *o;
	int r = excluded(p, &local);

	if (r < 0)
		return fault_set(f, r, "egress policy",
				 "its exclusions cannot be written");
	o = json_pack("{ss ss s{ss s{ss} s{so}} s{s[{s{s{ss}}}] s[s] so "
		      "s{s{s{ss}} ss}}}",
		      "apiVersion", "cilium.io/v2", "kind",
		      "CiliumEgressGatewayPolicy", "metadata", "name",
		      egress_name(p->class_name, name), "labels",
		      "garboard/cluster", p->cluster, "annotations",
		      EGRESS_ADDRESSES, addresses_text(p->addresses), "spec",
		      "selectors", "podSelector", "matchLabels",
		      "egress-class", p->class_name, "destinationCIDRs",
		      "0.0.0.0/0", "excludedCIDRs", local, "egressGateway",
		      "nodeSelector", "matchLabels",
		      egress_label(p->class_name, label), "true", "interface",
		      p->tunnel);
	if (!o)
		return -ENOMEM;
	*ret_object = o;
	return 0;
}

bool egress_within(const json_t *want, const json_t *have)
{
	const char *key;
	json_t *value;
	size_t i;

	if (json_is_object(want)) {
		json_object_foreach((json_t *)(uintptr_t)want, key, value)
			if (!egress_within(value, json_object_get(have, key)))
				return false;
		return json_is_object(have);
	}
	if (!json_is_array(want))
		return json_equal(want, have);
	if (json_array_size(want) != json_array_size(have))
		return false;
	json_array_foreach(want, i, value)
		if (!egress_within(value, json_array_get(have, i)))
			return false;
	return true;
}

/* ---- the mode that runs ---- */

static const struct mode_key {
	const char *key, *want;
	bool pool;		/* only where a class has a pool of its own */
	const char *unset;	/* what the agent does without the key */
	const char *follows, *remedy;
} mode_keys[] = {
	{ "enable-host-legacy-routing", "true", false, "false",
	  "pods' packets go around netfilter (KS-13)",
	  "bpf.hostLegacyRouting: true" },
	{ "datapath-mode", "veth", false, "veth",
	  "pods' packets go around netfilter", "bpf.datapathMode: veth" },
	{ "enable-bpf-masquerade", "true", false, "false",
	  "the egress policy is not carried out", "bpf.masquerade: true" },
	{ "enable-egress-gateway", "true", false, "false",
	  "the egress policy is not carried out",
	  "egressGateway.enabled: true" },
	{ "ipam", "multi-pool", true, "cluster-pool",
	  "pods of the class have no addresses of their own, and no node "
	  "can know them before Cilium does", "ipam.mode: multi-pool" },
	{ "routing-mode", "native", true, "tunnel",
	  "packets between nodes are encapsulated, where the class is not "
	  "seen", "routingMode: native" },
};

/* "wg+" is a prefix, as in Cilium. */
static bool names_device(const char *list, const char *device)
{
	const char *at = list, *end;

	for (; *at; at = end) {
		size_t n;

		at += strspn(at, " ,");
		n = strcspn(at, " ,");
		end = at + n;
		if (n && at[n - 1] == '+' ? strncmp(at, device, n - 1) == 0 :
					    n == strlen(device) &&
						    strncmp(at, device, n) == 0)
			return true;
	}
	return false;
}

int egress_sight(const json_t *config, bool pool, const char *tunnel,
		 char *why, size_t size)
{
	const char *devices = json_string_value(
		json_object_get(config, "devices"));
	size_t i;

	for (i = 0; i < sizeof(mode_keys) / sizeof(mode_keys[0]); i++) {
		const struct mode_key *m = &mode_keys[i];
		const char *have = json_string_value(
			json_object_get(config, m->key));

		if ((m->pool && !pool) ||
		    strcmp(have ? have : m->unset, m->want) == 0)
			continue;
		(void)snprintf(why, size, "%s is %.60s: %s; the chart wants "
			       "%s, then its agents a restart", m->key,
			       have ? have : "not set", m->follows, m->remedy);
		return 0;
	}
	if (devices && *devices && !names_device(devices, tunnel)) {
		(void)snprintf(why, size, "devices is %.100s, without %s: "
			       "Cilium does not translate what leaves by the "
			       "tunnel; name it in cilium.values.devices",
			       devices, tunnel);
		return 0;
	}
	return 1;
}
