"""What the Cilium chart renders, as far as it matters (section 7)."""

import zlib

GROUP = "cilium.io"
CRDS = (
    ("v2", "CiliumNode", "ciliumnodes", False),
    ("v2", "CiliumIdentity", "ciliumidentities", False),
    ("v2", "CiliumEndpoint", "ciliumendpoints", True),
    ("v2", "CiliumNetworkPolicy", "ciliumnetworkpolicies", True),
    ("v2", "CiliumClusterwideNetworkPolicy",
     "ciliumclusterwidenetworkpolicies", False),
    ("v2", "CiliumEgressGatewayPolicy", "ciliumegressgatewaypolicies",
     False),
    ("v2", "CiliumLoadBalancerIPPool", "ciliumloadbalancerippools", False),
    ("v2", "CiliumNodeConfig", "ciliumnodeconfigs", True),
    ("v2alpha1", "CiliumL2AnnouncementPolicy",
     "ciliuml2announcementpolicies", False),
    ("v2alpha1", "CiliumPodIPPool", "ciliumpodippools", False),
)
EVERYTHING = [{"operator": "Exists"}]


class RenderError(Exception):
    """The chart's own refusal; helm exits non-zero with it."""


def crds():
    for version, kind, plural, namespaced in CRDS:
        versions = [{"name": version, "served": True, "storage": True}]
        if kind == "CiliumLoadBalancerIPPool":
            versions.append({"name": "v2alpha1", "served": True,
                             "storage": False})
        yield {"apiVersion": "apiextensions.k8s.io/v1",
               "kind": "CustomResourceDefinition",
               "metadata": {"name": f"{plural}.{GROUP}"},
               "spec": {"group": GROUP,
                        "scope": "Namespaced" if namespaced else "Cluster",
                        "names": {"plural": plural, "kind": kind,
                                  "singular": kind.lower()},
                        "versions": versions}}


def gateway_api_present(client):
    return client.get("/apis/apiextensions.k8s.io/v1/"
                      "customresourcedefinitions/"
                      "gatewayclasses.gateway.networking.k8s.io") is not None


def lookup(values, path, default):
    for step in path.split("."):
        if not isinstance(values, dict) or step not in values:
            return default
        values = values[step]
    return values


def _flag(values, path, default=False):
    return str(lookup(values, path, default)).lower() == "true"


def _validate(values, get):
    kpr = str(lookup(values, "kubeProxyReplacement", "false")).lower()
    if kpr not in ("true", "false"):
        raise RenderError("execution error at (cilium/templates/"
                          "validate.yaml): kubeProxyReplacement must be "
                          f"explicitly set to a valid value (true or "
                          f"false), got {kpr}")
    if values.get("k8sServiceHost") and values.get("k8sServiceHostRef"):
        raise RenderError("k8sServiceHost and k8sServiceHostRef are "
                          "mutually exclusive")
    if values.get("k8sServiceHost") == "auto" and get(
            "/api/v1/namespaces/kube-public/configmaps/cluster-info") is None:
        raise RenderError("k8sServiceHost=auto: configmap "
                          "kube-public/cluster-info not found")
    if _flag(values, "gatewayAPI.enabled") and not _flag(
            values, "l7Proxy", True):
        raise RenderError("gatewayAPI requires l7Proxy")
    if _flag(values, "egressGateway.enabled") and not (
            _flag(values, "bpf.masquerade")
            and kpr == "true"):
        raise RenderError("egressGateway requires bpf.masquerade and "
                          "kubeProxyReplacement")
    pools = lookup(values, "ipam.operator.clusterPoolIPv4PodCIDRList",
                   ["10.0.0.0/8"])
    return kpr, pools if isinstance(pools, list) else [pools]


def _env(values):
    env = [{"name": "K8S_NODE_NAME", "valueFrom": {
        "fieldRef": {"fieldPath": "spec.nodeName"}}}]
    host = values.get("k8sServiceHost")
    if host:
        env += [{"name": "KUBERNETES_SERVICE_HOST", "value": str(host)},
                {"name": "KUBERNETES_SERVICE_PORT",
                 "value": str(values.get("k8sServicePort", ""))}]
    return env


def _pod_pools(values):
    """autoCreateCiliumPodIPPools as the text the operator parses."""
    pools = lookup(values, "ipam.operator.autoCreateCiliumPodIPPools", {})
    return "\n".join(
        f"{name}=ipv4-cidrs:{','.join(lookup(pool, 'ipv4.cidrs', []))};"
        f"ipv4-mask-size:{lookup(pool, 'ipv4.maskSize', 24)}"
        for name, pool in sorted((pools or {}).items()))


def pod_pools(config):
    """CiliumPodIPPool objects from the operator's configuration."""
    for line in config.get("auto-create-cilium-pod-ip-pools",
                           "").splitlines():
        name, _, text = line.partition("=")
        fields = dict(part.split(":", 1) for part in text.split(";"))
        yield {"apiVersion": "cilium.io/v2alpha1",
               "kind": "CiliumPodIPPool", "metadata": {"name": name},
               "spec": {"ipv4": {
                   "cidrs": fields["ipv4-cidrs"].split(","),
                   "maskSize": int(fields["ipv4-mask-size"])}}}


def agent_refuses(config):
    """'' or why an agent with this configuration ends at its start."""
    if config.get("ipam") == "multi-pool" \
            and config.get("routing-mode") == "tunnel":
        return "multi-pool IPAM is not supported with tunnel routing"
    return ""


def _config(values, kpr, pools):
    return {
        "auto-create-cilium-pod-ip-pools": _pod_pools(values),
        "kube-proxy-replacement": kpr,
        "ipam": str(lookup(values, "ipam.mode", "cluster-pool")),
        "cluster-pool-ipv4-cidr": " ".join(map(str, pools)),
        "routing-mode": str(values.get("routingMode", "tunnel")),
        "enable-host-legacy-routing": str(_flag(
            values, "bpf.hostLegacyRouting")).lower(),
        "enable-bpf-masquerade": str(_flag(values,
                                           "bpf.masquerade")).lower(),
        "enable-egress-gateway": str(_flag(
            values, "egressGateway.enabled")).lower(),
        "enable-gateway-api": str(_flag(values,
                                        "gatewayAPI.enabled")).lower(),
        "enable-l2-announcements": str(_flag(
            values, "l2announcements.enabled")).lower(),
    }


def _meta(name, namespace=None):
    meta = {"name": name, "labels": {
        "app.kubernetes.io/managed-by": "Helm",
        "app.kubernetes.io/part-of": "cilium"}}
    if namespace:
        meta["namespace"] = namespace
    return meta


def _accounts(namespace):
    for name in ("cilium", "cilium-operator", "cilium-envoy"):
        yield {"apiVersion": "v1", "kind": "ServiceAccount",
               "metadata": _meta(name, namespace)}
        yield {"apiVersion": "rbac.authorization.k8s.io/v1",
               "kind": "ClusterRole", "metadata": _meta(name),
               "rules": [{"apiGroups": ["*"], "resources": ["*"],
                          "verbs": ["*"]}]}
        yield {"apiVersion": "rbac.authorization.k8s.io/v1",
               "kind": "ClusterRoleBinding", "metadata": _meta(name),
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io",
                           "kind": "ClusterRole", "name": name},
               "subjects": [{"kind": "ServiceAccount", "name": name,
                             "namespace": namespace}]}


def _daemon_set(name, image, values, env, namespace):
    containers = [{"name": f"{name}-agent" if name == "cilium" else name,
                   "image": image, "env": env}]
    spec = {"serviceAccountName": name, "hostNetwork": True,
            "tolerations": EVERYTHING, "containers": containers}
    if name == "cilium":
        spec["initContainers"] = [{"name": "config", "image": image,
                                   "env": env}]
    annotations = {}
    if _flag(values, "rollOutCiliumPods"):
        annotations["cilium.io/cilium-configmap-checksum"] = str(
            zlib.crc32(repr(sorted(values.items(), key=str)).encode()))
    strategy = lookup(values, "updateStrategy",
                      {"type": "RollingUpdate"})
    return {"apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": _meta(name, namespace),
            "spec": {"selector": {"matchLabels": {"k8s-app": name}},
                     "updateStrategy": strategy,
                     "template": {"metadata": {
                         "labels": {"k8s-app": name},
                         "annotations": annotations}, "spec": spec}}}


def _operator(values, env, version, namespace):
    labels = {"name": "cilium-operator", "io.cilium/app": "operator"}
    tolerations = lookup(values, "operator.tolerations", [
        {"key": key, "operator": "Exists"} for key in (
            "node-role.kubernetes.io/control-plane",
            "node-role.kubernetes.io/master",
            "node.kubernetes.io/not-ready",
            "node.cloudprovider.kubernetes.io/uninitialized",
            "node.cilium.io/agent-not-ready")])
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": _meta("cilium-operator", namespace),
            "spec": {"replicas": int(lookup(values, "operator.replicas", 2)),
                     "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": {
                         "serviceAccountName": "cilium-operator",
                         "hostNetwork": True, "tolerations": tolerations,
                         "containers": [{
                             "name": "cilium-operator", "env": env,
                             "image": "quay.io/cilium/operator-generic:v"
                             + version, "ports": [
                                 {"hostPort": 9234,
                                  "containerPort": 9234}]}]}}}}


def render(values, version, namespace, get):
    """The objects of the release; RenderError as the chart refuses."""
    kpr, pools = _validate(values, get)
    env = _env(values)
    yield from _accounts(namespace)
    yield {"apiVersion": "v1", "kind": "ConfigMap",
           "metadata": _meta("cilium-config", namespace),
           "data": _config(values, kpr, pools)}
    yield _daemon_set("cilium", f"quay.io/cilium/cilium:v{version}", values,
                      env, namespace)
    if _flag(values, "envoy.enabled", True):
        yield _daemon_set("cilium-envoy", "quay.io/cilium/cilium-envoy:v1",
                          values, env, namespace)
    yield _operator(values, env, version, namespace)
    if _flag(values, "gatewayAPI.enabled") and get(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
            "gatewayclasses.gateway.networking.k8s.io") is not None:
        yield {"apiVersion": "gateway.networking.k8s.io/v1",
               "kind": "GatewayClass", "metadata": _meta("cilium"),
               "spec": {"controllerName":
                        "io.cilium/gateway-controller"}}
