#include "coordinator/manifests.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


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

int manifest_cilium(const struct cilium_params *p, char **ret_text)
{
	int r;

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
		     p->version, p->values);
	return r < 0 ? -ENOMEM : 0;
}
