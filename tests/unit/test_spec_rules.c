/*
 * Every code of spec_rules(): one edit of a good spec that triggers it, and
 * a near miss that does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "spec/rules.h"
#include "spec/spec.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const char base[] =
	"apiVersion: garboard/v1\n"
	"cluster: prod\n"
	"coordinator: {addresses: [\"192.0.2.5:7643\"]}\n"
	"controlPlane: {endpoint: 192.0.2.9, port: 6443, extraSans: "
	"[k8s.example.net]}\n"
	"k3s:\n"
	"  version: v1.36.4+k3s1\n"
	"  sha256: {amd64: " "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb" "}\n"
	"  config: {secrets-encryption: true, protect-kernel-defaults: true}\n"
	"kubeVip: {version: v1.2.3}\n"
	"cilium:\n"
	"  version: 1.20.1\n"
	"  values: {hubble: {enabled: true}}\n"
	"network:\n"
	"  podCidr: 10.42.0.0/16\n"
	"  nodeCidrs: [192.0.2.0/24]\n"
	"  loadBalancerPool: {start: 192.0.2.200, stop: 192.0.2.230}\n"
	"  gatewayVip: 192.0.2.200\n"
	"baseline:\n"
	"  timezone: Etc/UTC\n"
	"  storage: longhorn\n"
	"  modules: [sch_fq]\n"
	"  sysctl: {vm.swappiness: 10}\n"
	"  modes: {modules: observe}\n"
	"  waivers: [modules/nfs]\n"
	"egress:\n"
	"  classes:\n"
	"    vpn:\n"
	"      pods: {label: {egress-class: vpn}, pool: {name: vpn, cidr: "
	"10.44.0.0/20}}\n"
	"      sources: [198.51.100.64/28]\n"
	"      mark: {value: 0x2000, mask: 0x3f00}\n"
	"      gateways: [n4, n1]\n"
	"      tunnel: wg0\n"
	"  tunnels:\n"
	"    wg0: {kind: wireguard, endpoints: [\"198.51.100.7:51820/udp\"], "
	"table: 51820, rulePriority: 18200}\n"
	"  uplinks: auto\n"
	"monitoring: {listen: none}\n"
	"nodes:\n"
	"  - {name: n1, address: 192.0.2.11, match: {mac: "
	"\"52:54:00:00:00:11\"}}\n"
	"  - {name: n2, address: 192.0.2.12, match: {mac: "
	"\"52:54:00:00:00:12\"}}\n"
	"  - {name: n3, address: 192.0.2.13, match: {serial: CZ1}}\n"
	"  - {name: n5, address: 192.0.2.15}\n"
	"  - {name: n4, address: 192.0.2.21, labels: {disk: "
	"ssd}, taints: [\"gw=x:NoSchedule\"]}\n";

static const struct edit {
	const char *code, *from, *bad, *good;
} edits[] = {
	{ "yaml-syntax", "cluster: prod", "cluster: [prod", "cluster: "
		"\"prod\"" },
	{ "yaml-syntax", "cluster: prod", "cluster: !!int prod", NULL },
	{ "yaml-syntax", "  timezone:", "\ttimezone:", NULL },
	{ "yaml-syntax", "cluster: prod", "cluster: prod\n---\na: 1", NULL },
	{ "yaml-limit", "{hubble: {enabled: true}}",
	  "{a: "
	  "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
	  "{a: [[[[[[1]]]]]]}" },
	{ "yaml-alias", "[192.0.2.0/24]\n", "&n [192.0.2.0/24]\n  x: *n\n",
	  "&n [192.0.2.0/24]\n" },
	{ "duplicate-key", "cluster: prod", "cluster: prod\ncluster: dev",
	  "cluster: prod\nclusterId: 0123456789abcdef0123456789abcdef" },
	{ "api-version", "garboard/v1", "garboard/v2", "\"garboard/v1\"" },
	{ "unknown-key", "timezone:", "timezones:", "timezone:" },
	{ "unknown-key", "sha256: {amd64", "sha256: {x86", "sha256: {arm64" },
	{ "wrong-type", "port: 6443", "port: [6443]", "port: 6444" },
	{ "wrong-type", "port: 6443", "port: \"6443\"", NULL },
	{ "wrong-type", "Etc/UTC", "true", NULL },
	{ "wrong-type", "modules: [sch_fq]", "modules: sch_fq", "modules: []" },
	{ "placeholder", "Etc/UTC", "\"\"", "Asia/Tokyo" },
	{ "placeholder", "disk: ssd", "disk: tbd", "disk: \"\"" },
	{ "placeholder", "[sch_fq]", "[sch_fq, ]\n  swap:", NULL },
	{ "template", "CZ1", "\"${SERIAL}\"", "CZ2" },
	{ "bad-text", "CZ1", "\"CZ 1;x\"", "CZ-1/2" },
	{ "bad-text", "k8s.example.net", "K8S.example.net", "2001:db8::1" },
	{ "bad-name", "cluster: prod", "cluster: Prod", "cluster: p-1" },
	{ "bad-id", "cluster: prod", "cluster: prod\nclusterId: 8f1c",
	  "cluster: prod\nclusterId: 0123456789abcdef0123456789abcdef" },
	{ "bad-mac", "\"52:54:00:00:00:11\"", "\"52:54:00:00:00\"",
	  "52:54:00:AA:00:11" },
	{ "bad-hash", "aaaabbbb", "aaabbbb", "0123abcd" },
	{ "bad-interface", "uplinks: auto", "uplinks: [this-is-too-long]",
	  "uplinks: [eth0.100]" },
	{ "bad-module", "[sch_fq]", "[../sch_fq]", "[sch-fq]" },
	{ "bad-sysctl", "vm.swappiness", "\"vm.*\"", "vm/swappiness" },
	{ "bad-sysctl", "vm.swappiness", "net.*.conf.lo.rp_filter",
	  "net.ipv4.conf.*.proxy_arp" },
	{ "bad-sysctl", "vm.swappiness", "net/ipv4/conf/*/x/y",
	  "net/ipv6/neigh/eth*.100/gc_stale_time" },
	{ "missing-key", "swappiness: 10", "swappiness: {optional: true}",
	  "swappiness: {exclude: true}" },
	{ "unused", "swappiness: 10", "swappiness: {exclude: true, value: 1}",
	  "swappiness: {exclude: false, value: 1}" },
	{ "bad-path", "listen: none", "textfile: a.prom", NULL },
	{ "bad-label", "disk: ssd", "disk: -ssd", "example.net/disk: s.s_d" },
	{ "bad-taint", "gw=x:NoSchedule", "gw=x", "gw:NoExecute" },
	{ "bad-value", "storage: longhorn", "storage: ceph", "storage: none" },
	{ "bad-value", "uplinks: auto", "uplinks: []", NULL },
	{ "bad-number", "port: 6443", "port: 65536", "port: 65535" },
	{ "bad-number", "port: 6443", "port: 06443", NULL },
	{ "bad-address", "endpoint: 192.0.2.9", "endpoint: 192.0.2", NULL },
	{ "bad-address", "k8s.example.net", "\"2001::db8::1\"", NULL },
	{ "bad-prefix", "10.42.0.0/16", "10.42.0.1/16", "10.45.0.0/16" },
	{ "bad-endpoint", "192.0.2.5:7643", "bastion.example.net:7643",
	  "[2001:db8::5]:7643" },
	{ "missing-key", "cluster: prod\n", "", NULL },
	{ "missing-key", "endpoint: 192.0.2.9, ", "", NULL },
	{ "missing-key", "kubeVip: {version: v1.2.3}\n", "", NULL },
	{ "missing-key", "match: {serial: CZ1}", "match: {}",
	  "match: {machineId: 0123456789abcdef0123456789abcdef}" },
	{ "servers-count", "  - {name: n3, address: 192.0.2.13, match: "
	                   "{serial: CZ1}}\n",
	  "", NULL },
	{ "servers-count", "  - {name: n5, address: 192.0.2.15}\n", "",
	  "  - {name: n5, address: 192.0.2.16}\n" },
	{ "founder", "nodes:\n", "nodes: []\nxnodes:\n", NULL },
	{ "single-mode", "{endpoint:", "{mode: single, endpoint:",
	  "{mode: ha, endpoint:" },
	{ "node-name", "name: n2", "name: n1", "name: n22" },
	{ "node-address", "192.0.2.12", "192.0.2.11", "192.0.2.112" },
	{ "node-match", "52:54:00:00:00:12", "52:54:00:00:00:11",
	  "52:54:00:00:00:1f" },
	{ "node-range", "192.0.2.13", "198.51.100.13", "192.0.2.14" },
	{ "label-reserved", "disk: ssd", "node-role.kubernetes.io/x: y",
	  "topology.kubernetes.io/zone: y" },
	{ "label-reserved", "disk: ssd", "garboard/cluster: y",
	  "node.kubernetes.io/x: y" },
	{ "duplicate-item", "[k8s.example.net]", "[a.b, c.d, a.b]",
	  "[a.b, c.d]" },
	{ "duplicate-item", "\"192.0.2.5:7643\"",
	  "\"192.0.2.5:7643\", 192.0.2.5:7643",
	  "\"192.0.2.5:7643\", 192.0.2.5:7644" },
	{ "duplicate-item", "[n4, n1]", "[n4, n4]", "[n4, n5]" },
	{ "restated", "k8s.example.net", "192.0.2.9", "192.0.2.10" },
	{ "restated", "k8s.example.net", "192.0.2.12", "192.0.2.99" },
	{ "endpoint-node", "192.0.2.9", "192.0.2.12", "192.0.2.8" },
	{ "endpoint-pool", "192.0.2.9", "192.0.2.215", "192.0.2.199" },
	{ "gateway-vip", "gatewayVip: 192.0.2.200", "gatewayVip: 192.0.2.9",
	  "gatewayVip: 192.0.2.201" },
	{ "gateway-vip", "gatewayVip: 192.0.2.200", "gatewayVip: 192.0.2.21",
	  NULL },
	{ "endpoint-subnet", "192.0.2.9", "198.51.100.9", "192.0.2.7" },
	{ "pool-inverted", "192.0.2.230", "192.0.2.199", "192.0.2.200" },
	{ "pool-inverted", "192.0.2.230", "2001:db8::1", NULL },
	{ "pool-node", "192.0.2.21,", "192.0.2.230,", "192.0.2.231," },
	{ "pool-overlap", "podCidr: 10.42.0.0/16", "podCidr: 192.0.2.192/26",
	  NULL },
	{ "pool-overlap", "{start: 192.0.2.200, stop: 192.0.2.230}",
	  "{start: 10.41.255.0, stop: 10.45.0.1}",
	  "{start: 192.0.2.201, stop: 192.0.2.231}" },
	{ "network-overlap", "10.42.0.0/16", "10.43.128.0/17",
	  "10.45.0.0/16" },
	{ "network-overlap", "10.42.0.0/16", "10.44.0.0/16", NULL },
	{ "k3s-version", "v1.36.4+k3s1", "v1.36", "v1.36.5-rc1+k3s2" },
	{ "k3s-version", "v1.36.4+k3s1", "latest", NULL },
	{ "kubevip-version", "v1.2.3}", "v1.0.9}", "v1.2.4}" },
	{ "kubevip-version", "v1.2.3}", "1.2.3}", "v2.0.0}" },
	{ "cilium-version", "1.20.1", "1.20", "1.21.0-rc.1" },
	{ "cilium-version", "1.20.1", "v1.20.1", NULL },
	{ "k3s-owned", "secrets-encryption: true", "tls-san: x",
	  "embedded-registry: true" },
	{ "k3s-owned", "secrets-encryption: true", "datastore-endpoint: x",
	  NULL },
	{ "k3s-unknown", "secrets-encryption", "secret-encryption", "debug" },
	{ "k3s-value", "secrets-encryption: true", "secrets-encryption: yes",
	  "secrets-encryption: \"true\"" },
	{ "k3s-value", "secrets-encryption: true", "kubelet-arg: [max-pods]",
	  "kubelet-arg: [max-pods=200]" },
	{ "cluster-dns", "secrets-encryption: true",
	  "cluster-dns: 10.42.0.10", "cluster-dns: 10.43.0.53" },
	{ "k3s-arg", "secrets-encryption: true", "kubelet-arg: [--node-ip=1]",
	  "kubelet-arg: [max-pods=200]" },
	{ "k3s-arg", "secrets-encryption: true",
	  "kube-apiserver-arg: [audit-log-path=/x]",
	  "kube-apiserver-arg: [audit-log-maxage=3]" },
	{ "unused", "  version: v1.36", "  manage: false\n  version: v1.36",
	  "  manage: true\n  version: v1.36" },
	{ "unused", "  version: 1.20.1", "  owner: external\n  version: 1.20.1",
	  "  owner: garboard\n  version: 1.20.1" },
	{ "cilium-clash", "{hubble: {enabled: true}}",
	  "{k8sServiceHost: 192.0.2.9}", "{k8sClientRateLimit: {qps: 10}}" },
	{ "cilium-clash", "{hubble: {enabled: true}}",
	  "{operator: {replicas: 3}}", "{operator: {rollOutPods: true}}" },
	{ "cilium-clash", "{hubble: {enabled: true}}",
	  "{bpf: {hostLegacyRouting: false}}", "{bpf: {lbMapMax: 65536}}" },
	{ "cilium-clash", "{hubble: {enabled: true}}", "{ipam: x}", NULL },
	{ "cilium-conflict", "{hubble: {enabled: true}}",
	  "{ciliumEndpointSlice: {enabled: true}}",
	  "{ciliumEndpointSlice: {enabled: false}}" },
	{ "cilium-conflict", "{hubble: {enabled: true}}",
	  "{gatewayAPI: {enabled: true}, l7Proxy: false}",
	  "{gatewayAPI: {enabled: true}}" },
	{ "cilium-ignored", "{hubble: {enabled: true}}",
	  "{nodePort: {enabled: true}}", "{nodePort: {range: \"1,2\"}}" },
	{ "timezone", "Etc/UTC", "../../etc/passwd", ""
		"America/Argentina/Ushuaia" },
	{ "timezone", "Etc/UTC", "Etc/../x", "Etc/GMT+3" },
	{ "timezone", "Etc/UTC", "posix/UTC", "PST8PDT" },
	{ "timezone", "Etc/UTC", "3", NULL },
	{ "timezone-differs", "labels: {disk: ssd}",
	  "baseline: {timezone: Asia/Tokyo}", "baseline: {storage: none}" },
	{ "redundant-override", "labels: {disk: ssd}",
	  "baseline: {timezone: Etc/UTC}",
	  "baseline: {sysctl: {vm.swappiness: 20}}" },
	{ "redundant-override", "labels: {disk: ssd}",
	  "baseline: {sysctl: {vm.swappiness: 10}}", NULL },
	{ "sysctl-duplicate", "{vm.swappiness: 10}",
	  "{vm.swappiness: 10, vm/swappiness: 20}",
	  "{net/ipv4/conf/a.b/forwarding: 1, net.ipv4.conf.a/c.forwarding: "
	  "1}" },
	{ "sysctl-forward", "vm.swappiness: 10", "net/ipv4/ip_forward: 0",
	  "net.ipv4.ip_forward: 1" },
	{ "sysctl-forward", "vm.swappiness: 10", "net.ipv4.conf.*.forwarding: 0",
	  "net.ipv4.conf.eth*.forwarding: 0" },
	{ "sysctl-block", "vm.swappiness: 10",
	  "net.ipv6.conf.all.disable_ipv6: 1",
	  "net.ipv6.conf.all.disable_ipv6: 0" },
	{ "rp-filter", "vm.swappiness: 10", "net.ipv4.conf.all.rp_filter: 1",
	  "net.ipv4.conf.all.rp_filter: 2" },
	{ "ipv6-forwarding", "vm.swappiness: 10",
	  "net.ipv6.conf.all.forwarding: 1",
	  "net.ipv6.conf.all.forwarding: 1, net.ipv6.conf.eno1.accept_ra: 2" },
	{ "kernel-defaults", "vm.swappiness: 10", "kernel.panic: 0",
	  "kernel.panic: 10" },
	{ "waiver-unknown", "[modules/nfs]", "[module/nfs]", "[modules]" },
	{ "waiver-unused", "[modules/nfs]", "[sysctl]", "[modules]" },
	{ "mount", "labels: {disk: ssd}",
	  "baseline: {mounts: [{device: /dev/disk/by-id/a, path: /mnt/nfs/a, fs: "
	  "ext4}]}",
	  "baseline: {mounts: [{device: /dev/disk/by-id/a, path: /mnt/nfsx, fs: "
	  "xfs}]}" },
	{ "not-yet-supported", "{listen: none}",
	  "{listen: none}\nrollout: {baseline: {canary: 1}}", NULL },
	{ "not-yet-supported", "  version: 1.20.1",
	  "  chart: file:./c.tgz\n  version: 1.20.1",
	  "  chart: repo\n  version: 1.20.1" },
	{ "not-yet-supported", "  version: v1.36",
	  "  registries: x.yaml\n  version: v1.36", NULL },
	{ "not-yet-supported", "{name: n2,", "{name: n2, role: worker,", NULL },
	{ "not-yet-supported", "  version: v1.36",
	  "  source: push\n  version: v1.36",
	  "  source: image\n  version: v1.36" },
	{ "class-name", "    vpn:\n      pods", "    gaming:\n      "
	                                        "pods", NULL },
	{ "class-name", "  classes:\n", "  classes:\n    internet: "
	                                "{}\n", NULL },
	{ "class-empty",
	  "      pods: {label: {egress-class: vpn}, pool: {name: vpn, cidr: "
	  "10.44.0.0/20}}\n"
	  "      sources: [198.51.100.64/28]\n"
	  "      mark: {value: 0x2000, mask: 0x3f00}\n", "",
	  "      mark: {value: 0x2000, mask: 0x3f00}\n" },
	{ "class-label", "{egress-class: vpn}", "{egress-class: vpn, a: b}",
	  "{\"egress-class\": \"vpn\"}" },
	{ "class-label", "{egress-class: vpn}", "{}", NULL },
	{ "class-tunnel", "tunnel: wg0", "tunnel: wg1", "tunnel: \"wg0\"" },
	{ "class-gateway", "[n4, n1]", "[n4, n9]", "[n4, n1]" },
	{ "class-gateway", "      gateways: [n4, n1]\n", "", NULL },
	{ "gateway-single", "[n4, n1]", "[n4]", "[n4, n5]" },
	{ "class-mark", "0x2000, mask: 0x3f00", "0x200, mask: 0x3f00",
	  "0x1000, mask: 0x1f00" },
	{ "class-mark", "0x2000, mask: 0x3f00", "0x2000, mask: 0x3000",
	  "0x3000, mask: 0x3f00" },
	{ "class-mark", "0x2000, mask: 0x3f00", "0x4000, mask: 0x4f00", NULL },
	{ "class-mark", "0x2000, mask: 0x3f00", "0x2000, mask: 0xff00", NULL },
	{ "class-mark", "0x2000, mask: 0x3f00", "0x2000, mask: 0xffffffff",
	  NULL },
	{ "class-mark", "0x2000, mask: 0x3f00", "0, mask: 0x3f00", NULL },
	{ "class-source", "198.51.100.64/28", "192.0.2.0/28",
	  "192.0.2.64/28" },
	{ "class-source", "198.51.100.64/28", "0.0.0.0/0", NULL },
	{ "class-source-range", "198.51.100.64/28", "10.42.9.0/24",
	  "10.45.9.0/24" },
	{ "class-source-range", "198.51.100.64/28", "10.43.0.10", NULL },
	{ "class-source-range", "198.51.100.64/28", "10.44.0.0/24", NULL },
	{ "class-source-range", "198.51.100.64/28", "192.0.2.9", "192.0.2.8" },
	{ "class-source-range", "198.51.100.64/28", "192.0.2.200",
	  "192.0.2.201" },
	{ "class-dns", "      tunnel: wg0\n",
	  "      tunnel: wg0\n      dns: [10.43.0.10]\n",
	  "      tunnel: wg0\n      dns: [10.64.0.1]\n" },
	{ "class-dns", "      tunnel: wg0\n",
	  "      tunnel: wg0\n      dns: [192.0.2.1]\n",
	  "      tunnel: wg0\n      dns: [192.0.3.1]\n" },
	{ "class-pool-range", "10.44.0.0/20", "10.44.0.0/27", "10.44.0.0/26" },
	{ "class-pool-range", "{name: vpn,", "{name: default,", NULL },
	{ "class-pool", ", pool: {name: vpn, cidr: 10.44.0.0/20}", "", NULL },
	{ "class-time", "      tunnel: wg0\n",
	  "      tunnel: wg0\n      dns: [10.64.0.1]\n", NULL },
	{ "tunnel-endpoint", ":51820/udp", ":51820/tcp", ":51820" },
	{ "tunnel-endpoint", "[\"198.51.100.7:51820/udp\"]", "[]", NULL },
	{ "tunnel-endpoint-range", "198.51.100.7:51820/udp",
	  "10.42.0.7:51820/udp", "192.0.2.7:51820/udp" },
	{ "tunnel-endpoint-range", "198.51.100.7:51820/udp",
	  "10.44.15.7:51820/udp", "10.44.16.7:51820/udp" },
	{ "tunnel-table", "table: 51820", "table: 254", "table: 51821" },
	{ "tunnel-table", "table: 51820", "table: 0", "table: 256000" },
	{ "tunnel-table", "table: 51820", "table: 200", "table: 1000" },
	{ "tunnel-table", "table: 51820", "table: 2005", "table: 2006" },
	{ "tunnel-table", "table: 51820", "table: 12", "table: 267" },
	{ "tunnel-priority", "18200", "9", "200" },
	{ "tunnel-priority", "18200", "0", "32666" },
	{ "tunnel-priority", "18200", "32766", NULL },
	{ "tunnel-priority", "18200", "40000", NULL },
	{ "tunnel-shared", "  tunnels:\n",
	  "  tunnels:\n    wg1: {kind: wireguard, endpoints: [\"1.1.1.1:1\"], "
	  "table: 51820, rulePriority: 17000}\n",
	  NULL },
	{ "tunnel-shared", "  tunnels:\n",
	  "  tunnels:\n    wg1: {kind: wireguard, endpoints: [\"1.1.1.1:1\"], "
	  "table: 51821, rulePriority: 18201}\n",
	  NULL },
	{ "tunnel-unused", "  tunnels:\n",
	  "  tunnels:\n    wg1: {kind: wireguard, endpoints: [\"1.1.1.1:1\"], "
	  "table: 51821, rulePriority: 17000}\n",
	  NULL },
	{ "uplink-device", "uplinks: auto", "uplinks: [lo]",
	  "uplinks: [lo0]" },
	{ "uplink-device", "uplinks: auto", "uplinks: [cilium_host]",
	  "uplinks: [eno1]" },
	{ "uplink-device", "uplinks: auto", "uplinks: [eno1, lxc12]", NULL },
	{ "uplink-tunnel", "uplinks: auto", "uplinks: [wg0]", "uplinks: "
		"[wg1]" },
};

static char *edited(const char *from, const char *to)
{
	const char *at = strstr(base, from);
	char *text = NULL;

	if (!at)
		fail_msg("\"%s\" is not in the base", from);
	else if (asprintf(&text, "%.*s%s%s", (int)(at - base), base, to,
			  at + strlen(from)) < 0)
		fail();
	return text;
}

static bool has_code(const struct spec_problems *p, const char *code)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (strcmp(p->v[i].code, code) == 0)
			return true;
	return false;
}

static void show(const struct spec_problems *p)
{
	char buf[SPEC_PROBLEM_LINE_MAX];
	size_t i;

	for (i = 0; i < p->n; i++)
		print_message("# %s\n",
			      spec_problem_format("test", &p->v[i], buf));
}

/* Loads and frees; problems are the caller's. */
static int load(const char *text, struct spec_problems *p)
{
	struct spec *spec = NULL;
	int r = spec_load_text("test", text, strlen(text), 0, p, &spec, NULL);

	assert_int_equal(r == 0, spec != NULL);
	assert_int_equal(r == 0, p->errors == 0);
	(void)spec_free(spec);
	return r;
}

static void base_is_clean(void **state)
{
	struct spec_problems p = SPEC_PROBLEMS_INIT;

	(void)state;
	if (load(base, &p) != 0 || p.n)
		show(&p);
	assert_int_equal(p.n, 0);
	spec_problems_done(&p);
}

static void every_rule_bites(void **state)
{
	size_t i, bad = 0;

	(void)state;
	for (i = 0; i < N(edits); i++) {
		_cleanup_free_ char *text = edited(edits[i].from, edits[i].bad);
		struct spec_problems p = SPEC_PROBLEMS_INIT;

		(void)load(text, &p);
		if (!has_code(&p, edits[i].code)) {
			print_message("# %zu: no [%s] for \"%s\"\n", i,
				      edits[i].code, edits[i].bad);
			show(&p);
			bad++;
		}
		spec_problems_done(&p);
	}
	assert_int_equal(bad, 0);
}

static void near_misses_pass(void **state)
{
	size_t i, bad = 0;

	(void)state;
	for (i = 0; i < N(edits); i++) {
		_cleanup_free_ char *text =
			edited(edits[i].from,
			       edits[i].good ? edits[i].good : edits[i].from);
		struct spec_problems p = SPEC_PROBLEMS_INIT;

		(void)load(text, &p);
		if (p.errors || has_code(&p, edits[i].code)) {
			if (strcmp(edits[i].code, "mount") != 0 || p.errors) {
				print_message("# %zu: near miss \"%s\"\n", i,
					      edits[i].good);
				show(&p);
				bad++;
			}
		}
		spec_problems_done(&p);
	}
	assert_int_equal(bad, 0);
}

/* B116: a rule without an example is not tested at all. */
static void every_code_has_an_example(void **state)
{
	const struct spec_rule *rules;
	size_t n, i, k, bad = 0;

	(void)state;
	rules = spec_rules(&n);
	assert_true(n > 70);
	for (i = 0; i < n; i++) {
		for (k = 0; k < N(edits); k++)
			if (strcmp(edits[k].code, rules[i].code) == 0)
				break;
		/* Limits are large; they have their own test. */
		if (k == N(edits) && strcmp(rules[i].code, "too-many") != 0) {
			print_message("# no example for %s\n", rules[i].code);
			bad++;
		}
		assert_non_null(rules[i].text);
	}
	assert_int_equal(bad, 0);
}

static void severities(void **state)
{
	static const struct {
		const char *from, *to;
		int r;
	} t[] = {
		{ "k8s.example.net", "192.0.2.9", 0 },
		{ "{listen: none}", "{listen: none}\n"
				    "rollout: {baseline: {canary: 1}}", 0 },
		{ "  version: 1.20.1",
		  "  chart: file:./c.tgz\n  version: 1.20.1", -22 },
		{ "table: 51820", "table: 254", -22 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		_cleanup_free_ char *text = edited(t[i].from, t[i].to);
		struct spec_problems p = SPEC_PROBLEMS_INIT;

		assert_int_equal(load(text, &p), t[i].r);
		assert_true(p.n > 0);
		spec_problems_done(&p);
	}
}

/* A35: "odd" alone is not believed; the message does the sum. */
static void quorum_arithmetic(void **state)
{
	_cleanup_free_ char *text = edited(
		"  - {name: n5, address: 192.0.2.15}\n", "");
	struct spec_problems p = SPEC_PROBLEMS_INIT;

	(void)state;
	assert_int_equal(load(text, &p), -22);
	assert_string_equal(p.v[0].code, "servers-count");
	assert_non_null(strstr(p.v[0].text, "4 servers: a quorum is 4/2+1 = 3, "
					    "so 1 may be lost"));
	spec_problems_done(&p);
}

static void too_many(void **state)
{
	struct spec_problems p = SPEC_PROBLEMS_INIT;
	_cleanup_free_ char *text = NULL;
	char *list = NULL;
	size_t size = 0, i;
	FILE *out = open_memstream(&list, &size);

	(void)state;
	assert_non_null(out);
	fprintf(out, "modules: [");
	for (i = 0; i < DESIRED_MODULES_MAX; i++)
		fprintf(out, "m%zu, ", i);
	fprintf(out, "last]");
	fclose(out);
	text = edited("modules: [sch_fq]", list);
	free(list);
	assert_int_equal(load(text, &p), -22);
	assert_true(has_code(&p, "too-many"));
	spec_problems_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base_is_clean),
		cmocka_unit_test(every_rule_bites),
		cmocka_unit_test(near_misses_pass),
		cmocka_unit_test(every_code_has_an_example),
		cmocka_unit_test(severities),
		cmocka_unit_test(quorum_arithmetic),
		cmocka_unit_test(too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
