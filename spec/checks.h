/*
 * checks.h - the checks of check_*.c, each named in the table of rules.c.
 * Internal to spec/.
 */
#pragma once

#include "spec/rules.h"
#include "spec/spec.h"

#define CHECK(name) \
	void check_##name(const struct spec *spec, struct spec_report *r)

/* check_cluster.c */
CHECK(missing);
CHECK(servers_count);
CHECK(founder);
CHECK(single_mode);
CHECK(node_name);
CHECK(node_address);
CHECK(node_match);
CHECK(node_range);
CHECK(label_reserved);
CHECK(duplicate_item);
CHECK(san);
CHECK(restated);

/* check_network.c */
CHECK(endpoint_node);
CHECK(endpoint_pool);
CHECK(endpoint_gateway);
CHECK(endpoint_subnet);
CHECK(pool_inverted);
CHECK(pool_node);
CHECK(network_overlap);
CHECK(pool_overlap);

/* check_k3s.c */
CHECK(k3s_version);
CHECK(kubevip_version);
CHECK(cilium_version);
CHECK(k3s_owned);
CHECK(k3s_unknown);
CHECK(k3s_value);
CHECK(k3s_arg);
CHECK(cluster_dns);
CHECK(unused);
CHECK(cilium_clash);
CHECK(cilium_conflict);
CHECK(cilium_ignored);

/* check_baseline.c */
CHECK(timezone);
CHECK(timezone_differs);
CHECK(redundant_override);
CHECK(sysctl_duplicate);
CHECK(sysctl_forward);
CHECK(sysctl_block);
CHECK(rp_filter);
CHECK(ipv6_forwarding);
CHECK(kernel_defaults);
CHECK(waiver_unknown);
CHECK(waiver_unused);

/* check_later.c */
CHECK(limits);
CHECK(mount);
CHECK(later);
CHECK(later_error);

/* check_egress.c */
CHECK(class_name);
CHECK(class_empty);
CHECK(class_label);
CHECK(class_tunnel);
CHECK(class_gateway);
CHECK(gateway_single);
CHECK(class_mark);
CHECK(class_source);
CHECK(class_source_range);
CHECK(class_dns);
CHECK(class_pool_range);
CHECK(class_pool);
CHECK(class_time);
CHECK(tunnel_endpoint);
CHECK(tunnel_endpoint_range);
CHECK(tunnel_table);
CHECK(tunnel_priority);
CHECK(tunnel_shared);
CHECK(tunnel_unused);
CHECK(uplink_tunnel);
CHECK(uplink_device);
