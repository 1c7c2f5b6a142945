#include "spec/k3s_config.h"

#include <string.h>

#define OWNED(name, why) { name, K3S_OWNED, false, why }
#define SERVER(name, kind) { name, kind, false, NULL }
#define BOTH(name, kind) { name, kind, true, NULL }

static const char from_nodes[] = "it derives from nodes";
static const char etcd[] = "the datastore is embedded etcd, always";
static const char token[] = "the coordinator makes the token and delivers it "
                            "sealed";
static const char flannel[] = "Cilium is the network; flannel is off";
static const char network[] = "it derives from network";
static const char endpoint[] = "it derives from controlPlane";
static const char paths[] = "the paths of k3s are one fact for all nodes";
static const char credential[] = "Garboard reads the credential there; its "
                                 "form is fixed";
static const char parts[] = "Garboard brings its own, or needs it";

/*
 * K3S-CONTRACT 1.2; ours first, then what may be passed through, which is
 * at most what an agent accepts (proto/order.h; a unit test compares).
 */
static const struct k3s_key keys[] = {
	OWNED("cluster-init", "the founder is the first server, once"),
	OWNED("cluster-reset", "it is no setting; see the manual on recovery"),
	OWNED("cluster-reset-restore-path", "it is no setting; see the manual "
	                                    "on recovery"),
	OWNED("server", "joiners go to a living voter's own address"),
	OWNED("token", token),
	OWNED("token-file", token),
	OWNED("agent-token", token),
	OWNED("agent-token-file", token),
	OWNED("tls-san", "write controlPlane.extraSans"),
	OWNED("tls-san-security", "the list of names is complete by itself"),
	OWNED("bind-address", endpoint),
	OWNED("advertise-address", endpoint),
	OWNED("advertise-port", endpoint),
	OWNED("https-listen-port", endpoint),
	OWNED("node-ip", "write nodes[].address"),
	OWNED("node-external-ip", from_nodes),
	OWNED("node-internal-dns", from_nodes),
	OWNED("node-external-dns", from_nodes),
	OWNED("node-name", "write nodes[].name"),
	OWNED("with-node-id", "a node keeps its name"),
	OWNED("node-label", "write nodes[].labels"),
	OWNED("node-taint", "write nodes[].taints"),
	OWNED("flannel-backend", flannel),
	OWNED("flannel-iface", flannel),
	OWNED("flannel-conf", flannel),
	OWNED("flannel-cni-conf", flannel),
	OWNED("flannel-ipv6-masq", flannel),
	OWNED("flannel-external-ip", flannel),
	OWNED("vpn-auth", flannel),
	OWNED("vpn-auth-file", flannel),
	OWNED("disable", parts),
	OWNED("disable-kube-proxy", parts),
	OWNED("disable-network-policy", parts),
	OWNED("disable-helm-controller", parts),
	OWNED("disable-apiserver", parts),
	OWNED("disable-controller-manager", parts),
	OWNED("disable-scheduler", parts),
	OWNED("disable-agent", parts),
	OWNED("disable-cloud-controller", parts),
	OWNED("data-dir", paths),
	OWNED("config", paths),
	OWNED("private-registry", "registries are not yet supported"),
	OWNED("datastore-endpoint", etcd),
	OWNED("datastore-cafile", etcd),
	OWNED("datastore-certfile", etcd),
	OWNED("datastore-keyfile", etcd),
	OWNED("disable-etcd", etcd),
	OWNED("write-kubeconfig", credential),
	OWNED("write-kubeconfig-mode", credential),
	OWNED("write-kubeconfig-group", credential),
	OWNED("write-kubeconfig-name", credential),
	OWNED("cluster-cidr", network),
	OWNED("service-cidr", network),
	OWNED("rootless", "k3s runs as root here"),
	OWNED("docker", "k3s runs its own containerd"),
	OWNED("etcd-s3-access-key", "a spec holds no secrets; use "
	                            "etcd-s3-config-secret"),
	OWNED("etcd-s3-secret-key", "a spec holds no secrets; use "
	                            "etcd-s3-config-secret"),
	SERVER("cluster-dns", K3S_TEXT),
	SERVER("cluster-domain", K3S_TEXT),
	SERVER("egress-selector-mode", K3S_TEXT),
	SERVER("embedded-registry", K3S_BOOL),
	SERVER("etcd-arg", K3S_ARGS),
	SERVER("etcd-disable-snapshots", K3S_BOOL),
	SERVER("etcd-expose-metrics", K3S_BOOL),
	SERVER("etcd-snapshot-compress", K3S_BOOL),
	SERVER("etcd-snapshot-retention", K3S_TEXT),
	SERVER("etcd-snapshot-schedule-cron", K3S_TEXT),
	SERVER("helm-controller-arg", K3S_ARGS),
	SERVER("kube-apiserver-arg", K3S_ARGS),
	SERVER("kube-cloud-controller-manager-arg", K3S_ARGS),
	SERVER("kube-controller-manager-arg", K3S_ARGS),
	SERVER("kube-scheduler-arg", K3S_ARGS),
	SERVER("secrets-encryption", K3S_BOOL),
	SERVER("secrets-encryption-provider", K3S_TEXT),
	SERVER("service-node-port-range", K3S_TEXT),
	SERVER("supervisor-metrics", K3S_BOOL),
	SERVER("system-default-registry", K3S_TEXT),
	BOTH("debug", K3S_BOOL),
	BOTH("kubelet-arg", K3S_ARGS),
	BOTH("pause-image", K3S_TEXT),
	BOTH("protect-kernel-defaults", K3S_BOOL),
	BOTH("selinux", K3S_BOOL),
	BOTH("v", K3S_TEXT),
};

/* Arguments of components that would undo or restate a fact of the spec. */
static const char *const owned_args[] = {
	"advertise-address", "allocate-node-cidrs", "anonymous-auth",
	"authorization-mode", "bind-address", "cluster-cidr", "etcd-servers",
	"hostname-override", "kubeconfig", "node-ip", "secure-port",
	"service-cluster-ip-range", "tls-cert-file", "tls-private-key-file",
};

const struct k3s_key *k3s_config_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

const struct k3s_key *k3s_config_keys(size_t *ret_n)
{
	*ret_n = sizeof(keys) / sizeof(keys[0]);
	return keys;
}

bool k3s_arg_owned(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(owned_args) / sizeof(owned_args[0]); i++)
		if (strcmp(owned_args[i], name) == 0)
			return true;
	return false;
}
