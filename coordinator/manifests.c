#include "coordinator/manifests.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "coordinator/yaml_out.h"

/* Only what leader election in control-plane mode needs (contract 6.1). */
static const char kube_vip_rbac[] =
	"apiVersion: v1\n"
	"kind: ServiceAccount\n"
	"metadata:\n"
	"  name: kube-vip\n"
	"  namespace: kube-system\n"
	"  labels: {garboard/cluster: \"%1$s\"}\n"
	"---\n"
	"apiVersion: rbac.authorization.k8s.io/v1\n"
	"kind: ClusterRole\n"
	"metadata:\n"
	"  name: system:kube-vip-role\n"
	"  labels: {garboard/cluster: \"%1$s\"}\n"
	"rules:\n"
	"  - apiGroups: [\"\"]\n"
	"    resources: [nodes]\n"
	"    verbs: [list, get, watch]\n"
	"  - apiGroups: [coordination.k8s.io]\n"
	"    resources: [leases]\n"
	"    verbs: [list, get, watch, update, create]\n"
	"---\n"
	"apiVersion: rbac.authorization.k8s.io/v1\n"
	"kind: ClusterRoleBinding\n"
	"metadata:\n"
	"  name: system:kube-vip-binding\n"
	"  labels: {garboard/cluster: \"%1$s\"}\n"
	"roleRef:\n"
	"  apiGroup: rbac.authorization.k8s.io\n"
	"  kind: ClusterRole\n"
	"  name: system:kube-vip-role\n"
	"subjects:\n"
	"  - kind: ServiceAccount\n"
	"    name: kube-vip\n"
	"    namespace: kube-system\n";

static const char kube_vip_head[] =
	"---\n"
	"apiVersion: apps/v1\n"
	"kind: DaemonSet\n"
	"metadata:\n"
	"  name: %1$s\n"
	"  namespace: kube-system\n"
	"  labels: {app.kubernetes.io/name: kube-vip, garboard/cluster: "
	"\"%2$s\"}\n"
	"spec:\n"
	"  selector:\n"
	"    matchLabels: {name: %1$s}\n"
	"  updateStrategy:\n"
	"    type: RollingUpdate\n"
	"    rollingUpdate: {maxUnavailable: 1}\n"
	"  template:\n"
	"    metadata:\n"
	"      labels: {name: %1$s, app.kubernetes.io/name: kube-vip}\n"
	"    spec:\n"
	"      hostNetwork: true\n"
	"      serviceAccountName: kube-vip\n"
	"      # Both: a node without a CNI carries not-ready:NoSchedule, and the\n"
	"      # CNI waits for this address.\n"
	"      tolerations:\n"
	"        - {operator: Exists, effect: NoSchedule}\n"
	"        - {operator: Exists, effect: NoExecute}\n"
	"      affinity:\n"
	"        nodeAffinity:\n"
	"          requiredDuringSchedulingIgnoredDuringExecution:\n"
	"            nodeSelectorTerms:\n"
	"              - matchExpressions:\n"
	"                  - {key: node-role.kubernetes.io/control-plane, "
	"operator: Exists}\n";

static const char kube_vip_container[] =
	"      containers:\n"
	"        - name: kube-vip\n"
	"          image: ghcr.io/kube-vip/kube-vip:%1$s\n"
	"          imagePullPolicy: IfNotPresent\n"
	"          args: [manager]\n"
	"          securityContext:\n"
	"            capabilities: {add: [NET_ADMIN, NET_RAW], drop: [ALL]}\n"
	"          env:\n"
	"            # Its own server: the service address has nobody behind it\n"
	"            # before Cilium, and the VIP would be circular.\n"
	"            - {name: KUBERNETES_SERVICE_HOST, value: \"127.0.0.1\"}\n"
	"            - {name: KUBERNETES_SERVICE_PORT, value: \"%3$u\"}\n"
	"            - {name: vip_arp, value: \"true\"}\n"
	"            - {name: port, value: \"%3$u\"}\n"
	"            - name: vip_nodename\n"
	"              valueFrom: {fieldRef: {fieldPath: spec.nodeName}}\n"
	"            - {name: vip_interface, value: \"%4$s\"}\n"
	"            - {name: vip_subnet, value: \"%5$u\"}\n"
	"            - {name: cp_enable, value: \"true\"}\n"
	"            - {name: cp_namespace, value: kube-system}\n"
	"            - {name: svc_enable, value: \"false\"}\n"
	"            - {name: vip_leaderelection, value: \"true\"}\n"
	"            - {name: vip_leasename, value: plndr-cp-lock}\n"
	"            - {name: vip_leaseduration, value: \"%6$u\"}\n"
	"            - {name: vip_renewdeadline, value: \"10\"}\n"
	"            - {name: vip_retryperiod, value: \"2\"}\n"
	"            - {name: address, value: \"%2$s\"}\n";

const char *manifest_kube_vip_name(const struct kube_vip_params *p,
				   size_t group, char buf[64])
{
	if (p->n_groups == 1) {
		(void)snprintf(buf, 64, "kube-vip");
	} else {
		char *c;

		(void)snprintf(buf, 64, "kube-vip-%s",
			       p->groups[group].interface);
		/* Interface names allow what object names do not. */
		for (c = buf; *c; c++)
			if (*c == '.' || *c == '_' || *c == '@')
				*c = '-';
			else if (*c >= 'A' && *c <= 'Z')
				*c = (char)(*c - 'A' + 'a');
	}
	return buf;
}

static void print_group(FILE *out, const struct kube_vip_params *p, size_t i)
{
	const struct vip_group *g = &p->groups[i];
	char name[64], addr[IP_TEXT_MAX];
	size_t n;

	(void)fprintf(out, kube_vip_head, manifest_kube_vip_name(p, i, name),
		      p->cluster);
	if (p->n_groups > 1) {
		(void)fprintf(out,
			      "                  - {key: kubernetes.io/hostname, "
			      "operator: In, values: [");
		for (n = 0; n < g->nodes.n; n++)
			(void)fprintf(out, "%s\"%s\"", n ? ", " : "",
				      g->nodes.v[n]);
		(void)fprintf(out, "]}\n");
	}
	(void)fprintf(out, kube_vip_container, p->version,
		      ip_addr_format(&p->endpoint, addr), p->port,
		      g->interface, ip_addr_bits(&p->endpoint),
		      KUBE_VIP_LEASE_SECONDS);
}

int manifest_kube_vip(const struct kube_vip_params *p, char **ret_text,
		      struct fault *f)
{
	char *text = NULL;
	size_t size = 0, i;
	FILE *out;

	if (p->n_groups == 0)
		return fault_set(f, -EINVAL, "kube-vip",
				 "no server has an interface whose subnet "
				 "holds the endpoint");
	out = open_memstream(&text, &size);
	if (!out)
		return -ENOMEM;
	(void)fprintf(out, kube_vip_rbac, p->cluster);
	for (i = 0; i < p->n_groups; i++)
		print_group(out, p, i);
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
	return 0;
}

static int pool_values(const struct cilium_params *p, json_t *values)
{
	json_t *pools = json_pack("{s{s{s[s] si}}}", "default", "ipv4",
				  "cidrs", p->pod_cidr, "maskSize", 24);
	json_t *ipam;
	size_t i;
	int r = pools ? 0 : -ENOMEM;

	for (i = 0; r == 0 && i < p->n_pools; i++)
		r = json_object_set_new(
			pools, p->pools[i].name,
			json_pack("{s{s[s] si}}", "ipv4", "cidrs",
				  p->pools[i].cidr, "maskSize", 26));
	ipam = json_pack("{ss s{so}}", "mode", "multi-pool", "operator",
			 "autoCreateCiliumPodIPPools", pools);
	if (r < 0 || !ipam) {
		json_decref(ipam);
		return -ENOMEM;
	}
	/* Multi-pool works with direct routing only (contract 7.6). */
	if (json_object_set_new(values, "ipam", ipam) < 0 ||
	    json_object_set_new(values, "routingMode",
				json_string("native")) < 0 ||
	    json_object_set_new(values, "autoDirectNodeRoutes",
				json_true()) < 0 ||
	    json_object_set_new(values, "ipv4NativeRoutingCIDR",
				json_string(p->pod_cidr)) < 0)
		return -ENOMEM;
	return 0;
}

static json_t *own_values(const struct cilium_params *p)
{
	char host[IP_TEXT_MAX];
	json_t *v = json_pack(
		"{sb ss si s{si} s{s{si}}}", "kubeProxyReplacement", 1,
		"k8sServiceHost", ip_addr_format(&p->endpoint, host),
		"k8sServicePort", p->port, "operator", "replicas",
		p->servers < 2 ? 1 : 2, "updateStrategy", "rollingUpdate",
		"maxUnavailable", 1);
	int r = v ? 0 : -ENOMEM;

	if (r == 0 && p->n_pools > 0)
		r = pool_values(p, v);
	else if (r == 0)
		r = json_object_set_new(
			v, "ipam",
			json_pack("{ss s{s[s]}}", "mode", "cluster-pool",
				  "operator", "clusterPoolIPv4PodCIDRList",
				  p->pod_cidr));
	/* Keeps pod packets in sight of netfilter (DESIGN section 5). */
	if (r == 0 && p->egress)
		r = json_object_set_new(v, "bpf",
					json_pack("{sb sb}", "hostLegacyRouting",
						  1, "masquerade", 1)) < 0 ||
		    json_object_set_new(v, "egressGateway",
					json_pack("{sb}", "enabled", 1)) < 0 ||
		    /* Agents that run on with the old mode would not show. */
		    json_object_set_new(v, "rollOutCiliumPods",
					json_true()) < 0;
	if (r == 0)
		return v;
	json_decref(v);
	return NULL;
}

/* Adds the leaves of `own` to `into`; a different leaf there is a clash. */
static int merge(json_t *into, const json_t *own, const char *path,
		 struct fault *f)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)own, key, value) {
		json_t *have = json_object_get(into, key);
		char full[256];
		int r = 0;

		(void)snprintf(full, sizeof(full), "%s.%s", path, key);
		if (!have)
			r = json_object_set(into, key, value) < 0 ? -ENOMEM : 0;
		else if (json_is_object(have) && json_is_object(value))
			r = merge(have, value, full, f);
		else if (!json_equal(have, value))
			r = fault_set(f, -EEXIST, full,
				      "is set by Garboard from the rest of the "
				      "spec; remove it from cilium.values");
		if (r < 0)
			return r;
	}
	return 0;
}

int manifest_cilium_values(const struct cilium_params *p, json_t **ret_values,
			   struct fault *f)
{
	json_t *own, *values;
	int r;

	if (!p->endpoint.family)
		return fault_set(f, -EINVAL, "cilium",
				 "k8sServiceHost would be empty (A57)");
	own = own_values(p);
	values = p->values ? json_deep_copy(p->values) : json_object();
	if (!own || !values)
		r = -ENOMEM;
	else
		r = merge(values, own, "cilium.values", f);
	json_decref(own);
	if (r < 0) {
		json_decref(values);
		return r;
	}
	*ret_values = values;
	return 0;
}

int manifest_cilium(const struct cilium_params *p, char **ret_text,
		    struct fault *f)
{
	_cleanup_free_ char *values_text = NULL;
	json_t *values = NULL;
	int r = manifest_cilium_values(p, &values, f);

	if (r < 0)
		return r;
	r = yaml_out_indented(values, 4, &values_text);
	json_decref(values);
	if (r < 0)
		return r;
	r = asprintf(ret_text,
		     "apiVersion: helm.cattle.io/v1\n"
		     "kind: HelmChart\n"
		     "metadata:\n"
		     "  name: cilium\n"
		     "  namespace: kube-system\n"
		     "  labels: {garboard/cluster: \"%s\"}\n"
		     "spec:\n"
		     "%s%s%s"
		     "  version: \"%s\"\n"
		     "  targetNamespace: kube-system\n"
		     "  bootstrap: true\n"
		     "  backOffLimit: 5\n"
		     "  failurePolicy: abort\n"
		     "  valuesContent: |\n%s",
		     p->cluster,
		     p->chart ? "  chart: \"" :
				"  repo: https://helm.cilium.io/\n"
				"  chart: cilium\n",
		     p->chart ? p->chart : "", p->chart ? "\"\n" : "",
		     p->version, values_text);
	return r < 0 ? -ENOMEM : 0;
}
