#include "spec/rules.h"

#include <stdarg.h>
#include <stdio.h>

#include "spec/checks.h"

#define FOUND_READING NULL

struct spec_report {
	struct spec_problems *problems;
	const struct spec_rule *rule;
};

#define READ(code, ids, text) { code, SPEC_ERROR, ids, text, FOUND_READING }
#define ERROR(code, ids, text, fn) { code, SPEC_ERROR, ids, text, check_##fn }
#define WARN(code, ids, text, fn) { code, SPEC_WARNING, ids, text, check_##fn }

static const struct spec_rule rules[] = {
	READ("yaml-syntax", "",
	     "The file is one YAML document of maps, lists and scalars, "
	     "without tags."),
	READ("yaml-limit", "",
	     "At most 1 MiB, 65536 values, 4096 keys in a map, 32 levels."),
	READ("yaml-alias", "B36",
	     "Every value is written where it counts; aliases are refused."),
	READ("duplicate-key", "", "A key appears once in its map."),
	READ("api-version", "", "apiVersion is garboard/v1."),
	READ("unknown-key", "B35", "Every key is one that is read."),
	READ("wrong-type", "",
	     "Text, numbers, booleans, lists and maps stand where they "
	     "belong."),
	READ("placeholder", "A02 B05 B28 B29 B30 B31 B32",
	     "No value is empty or a placeholder (TBD, CHANGE-ME, <...> and "
	     "their kind)."),
	READ("template", "B37",
	     "No value still waits to be filled in by another tool."),
	ERROR("too-many", "", "Lists stay below their limits.", limits),
	READ("bad-text", "B33", "A value has the characters of its kind only."),
	READ("bad-name", "", "Names are lower-case DNS labels."),
	READ("bad-id", "", "Identifiers are hex digits of the right length."),
	READ("bad-mac", "", "MAC addresses are six hex bytes with colons."),
	READ("bad-hash", "", "Hashes are 64 lower-case hex digits."),
	READ("bad-interface", "", "Interface names are at most 15 characters."),
	READ("bad-module", "",
	     "Kernel modules are named without path or suffix."),
	READ("bad-sysctl", "",
	     "Sysctl keys are whole keys; a wildcard stands for links only."),
	READ("bad-path", "B04", "Paths are absolute and plain."),
	READ("bad-label", "", "Labels are labels of Kubernetes."),
	READ("bad-taint", "", "Taints are KEY[=VALUE]:EFFECT."),
	READ("bad-value", "", "A value out of a closed set is one of the set."),
	READ("bad-number", "", "Numbers are whole and within their limits."),
	ERROR("bad-address", "A45",
	      "Addresses are IPv4 or IPv6 addresses, not names.", san),
	READ("bad-prefix", "B85",
	     "Prefixes have no bits set behind their length."),
	READ("bad-endpoint", "TL-07", "Endpoints are ADDRESS:PORT, not names."),

	ERROR("missing-key", "A45 A57",
	      "What the cluster cannot be made without is written "
	      "down.", missing),
	ERROR("servers-count", "A35",
	      "The number of servers is odd and at least 3.", servers_count),
	ERROR("founder", "A33 A34",
	      "There is a server, and the first one is the founder.", founder),
	ERROR("single-mode", "A35",
	      "mode: single is one server without a shared "
	      "address.", single_mode),
	ERROR("node-name", "B10",
	      "Each node has a name of its own.", node_name),
	ERROR("node-address", "A45",
	      "Each node has an address of its own.", node_address),
	ERROR("node-match", "B10",
	      "No two nodes match the same machine.", node_match),
	ERROR("node-range", "A45 B86",
	      "Every node's address lies in network.nodeCidrs.", node_range),
	ERROR("label-reserved", "",
	      "Labels that the kubelet refuses, or that Garboard sets, are not "
	      "written.", label_reserved),
	ERROR("duplicate-item", "B36", "A list names each thing once.",
	      duplicate_item),
	WARN("restated", "A39 A42 B36 B38",
	     "A name that derives is not written again.", restated),
	ERROR("endpoint-node", "B76 A56",
	      "The endpoint is the address of no node.", endpoint_node),
	ERROR("endpoint-pool", "B76",
	      "The endpoint lies outside the load balancer's "
	      "pool.", endpoint_pool),
	ERROR("gateway-vip", "B76",
	      "gatewayVip is neither the endpoint nor a "
	      "node.", endpoint_gateway),
	ERROR("endpoint-subnet", "B76",
	      "The endpoint lies in the subnet of the nodes.", endpoint_subnet),
	ERROR("pool-inverted", "B76",
	      "The pool starts before it stops.", pool_inverted),
	ERROR("pool-node", "B76",
	      "No node's address lies in the pool.", pool_node),
	ERROR("network-overlap", "B85 B86",
	      "Pods, services, nodes and pools have ranges of their "
	      "own.", network_overlap),
	ERROR("pool-overlap", "B85 B86",
	      "The load balancer's range is neither pods' nor services'.",
	      pool_overlap),

	ERROR("k3s-version", "A32",
	      "k3s is pinned to one release.", k3s_version),
	ERROR("kubevip-version", "A49",
	      "kube-vip is v1.2.3 or later, exactly.", kubevip_version),
	ERROR("cilium-version", "A59",
	      "Cilium is pinned to one release.", cilium_version),
	ERROR("k3s-owned", "A36 A37 A38 A46 B38",
	      "Keys that Garboard sets are not in k3s.config.", k3s_owned),
	ERROR("k3s-unknown", "B35",
	      "k3s.config holds only keys of the allow-list.", k3s_unknown),
	ERROR("k3s-value", "B33",
	      "Values of k3s.config have the type of their key.", k3s_value),
	ERROR("cluster-dns", "B38",
	      "cluster-dns is an address in network.serviceCidr.", cluster_dns),
	ERROR("k3s-arg", "A36 B38",
	      "Component arguments do not undo what the spec says.", k3s_arg),
	ERROR("unused", "B35",
	      "Nothing is written that nothing reads.", unused),
	ERROR("cilium-clash", "A56 A57 A58 A60 A61",
	      "cilium.values does not say what Garboard says.", cilium_clash),
	ERROR("cilium-conflict", "B38",
	      "cilium.values fit together and fit the "
	      "classes.", cilium_conflict),
	ERROR("cilium-ignored", "B35 B60",
	      "cilium.values holds nothing that the chart "
	      "ignores.", cilium_ignored),

	ERROR("timezone", "A01 A02 TZ-01",
	      "The timezone has the form of a zone's name.", timezone),
	WARN("timezone-differs", "A01 A05",
	     "All nodes are in one zone.", timezone_differs),
	WARN("redundant-override", "A05 B36",
	     "A node's override says something else than the "
	     "baseline.", redundant_override),
	ERROR("sysctl-duplicate", "B36",
	      "One key, one notation, one value.", sysctl_duplicate),
	ERROR("sysctl-forward", "A09", "Forwarding stays on.", sysctl_forward),
	ERROR("sysctl-block", "A31",
	      "No sysctl is used as a kill-switch.", sysctl_block),
	ERROR("rp-filter", "RT-05",
	      "Strict reverse path filtering is not set for all.", rp_filter),
	WARN("ipv6-forwarding", "A09",
	     "IPv6 forwarding comes with accept_ra 2.", ipv6_forwarding),
	ERROR("kernel-defaults", "A09",
	      "protect-kernel-defaults and the sysctls "
	      "agree.", kernel_defaults),
	ERROR("waiver-unknown", "B35",
	      "A waiver names a resource.", waiver_unknown),
	ERROR("waiver-unused", "B35",
	      "A waiver is for a resource in observe.", waiver_unused),
	ERROR("mount", "B03 B04",
	      "Mounts are local: a stable name of a device, a path that is "
	      "not the system's, each once.", mount),
	WARN("not-yet-supported", "",
	     "What is written is carried out; this part is not, yet.", later),
	ERROR("not-yet-supported", "",
	      "The same, where leaving it out would do something "
	      "else.", later_error),

	ERROR("class-name", "A15 A26",
	      "The classes are internet, which is not declared, and "
	      "vpn.", class_name),
	ERROR("class-empty", "A24 A25",
	      "A class says whom it holds.", class_empty),
	ERROR("class-label", "B83",
	      "Pods are chosen by the one label egress-class.", class_label),
	ERROR("class-tunnel", "A19",
	      "The class's tunnel is declared.", class_tunnel),
	ERROR("class-gateway", "A27",
	      "Gateways are nodes of the spec.", class_gateway),
	WARN("gateway-single", "A27",
	     "A class has two gateways.", gateway_single),
	ERROR("class-mark", "RT-05",
	      "A mark uses free bits and masks the magic ones.", class_mark),
	ERROR("class-source", "A22",
	      "A source is not a node's own address.", class_source),
	ERROR("class-source-range", "A22 A24",
	      "A source holds nothing of the cluster itself.",
	      class_source_range),
	ERROR("class-dns", "KS-08",
	      "A resolver of a class is behind its tunnel.", class_dns),
	ERROR("class-pool-range", "",
	      "A pool of a class is IPv4, at least a /26, and not named "
	      "default.", class_pool_range),
	WARN("class-pool", "B60",
	     "Pods of a class have a pool of their own.", class_pool),
	WARN("class-time", "TL-07",
	     "Time does not wait for DNS that waits for the "
	     "tunnel.", class_time),
	ERROR("tunnel-endpoint", "A20",
	      "A tunnel has endpoints of its protocol.", tunnel_endpoint),
	ERROR("tunnel-endpoint-range", "A20",
	      "A tunnel's endpoint is outside the cluster's own ranges.",
	      tunnel_endpoint_range),
	ERROR("tunnel-table", "A16 A18 RT-05",
	      "The table is nobody else's.", tunnel_table),
	ERROR("tunnel-priority", "A17 RT-05",
	      "The priority is nobody else's and comes before "
	      "main.", tunnel_priority),
	ERROR("tunnel-shared", "A16 A17",
	      "Tunnels share neither table nor priorities.", tunnel_shared),
	ERROR("tunnel-unused", "B35",
	      "A tunnel is used by a class.", tunnel_unused),
	ERROR("uplink-tunnel", "A21",
	      "An uplink is not a tunnel.", uplink_tunnel),
	ERROR("uplink-device", "A26",
	      "An uplink leads out of the node.", uplink_device),
};

const struct spec_rule *spec_rules(size_t *ret_n)
{
	*ret_n = sizeof(rules) / sizeof(rules[0]);
	return rules;
}

void spec_rules_run(const struct spec *spec, struct spec_problems *problems)
{
	size_t i;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct spec_report report = { problems, &rules[i] };

		if (rules[i].check)
			rules[i].check(spec, &report);
	}
}

void spec_report(struct spec_report *report, struct spec_pos pos,
		 const char *fmt, ...)
{
	char text[SPEC_PROBLEM_TEXT_MAX];
	va_list ap;

	if (!spec_given(pos))
		pos = (struct spec_pos){ 1, 1 };
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	spec_problem_add(report->problems, report->rule->severity, pos,
			 report->rule->code, "%s", text);
}
