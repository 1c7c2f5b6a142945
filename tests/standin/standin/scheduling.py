"""Which pod may run on which node: selectors, affinity, taints."""

# What the DaemonSet controller adds to every pod. not-ready is here only as
# NoExecute: a node without CNI carries it as NoSchedule too (6.1).
DAEMON_TOLERATIONS = [
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists",
     "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists",
     "effect": "NoExecute"},
    {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists",
     "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists",
     "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/pid-pressure", "operator": "Exists",
     "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists",
     "effect": "NoSchedule"},
]
NETWORK = {"key": "node.kubernetes.io/network-unavailable",
           "operator": "Exists", "effect": "NoSchedule"}

# Admission gives every pod these two for 300 s; the end is not simulated.
DEFAULT_TOLERATIONS = DAEMON_TOLERATIONS[:2]


def daemon_tolerations(pod_spec):
    extra = [NETWORK] if pod_spec.get("hostNetwork") else []
    return (pod_spec.get("tolerations") or []) + DAEMON_TOLERATIONS + extra


def taints(node):
    spec = node.get("spec") or {}
    found = list(spec.get("taints") or ())
    if spec.get("unschedulable"):
        found.append({"key": "node.kubernetes.io/unschedulable",
                      "effect": "NoSchedule"})
    return found


def tolerates(tolerations, taint):
    for toleration in tolerations or ():
        if toleration.get("effect") not in (None, "", taint["effect"]):
            continue
        key, operator = toleration.get("key"), toleration.get("operator")
        if operator == "Exists":
            if not key or key == taint["key"]:
                return True
        elif key == taint["key"] and (toleration.get("value") or "") == (
                taint.get("value") or ""):
            return True
    return False


def _expression(labels, expression):
    key, values = expression["key"], expression.get("values") or []
    operator = expression["operator"]
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator == "In":
        return labels.get(key) in values
    if operator == "NotIn":
        return labels.get(key) not in values
    return False


def _term(node, term):
    labels = node["metadata"].get("labels") or {}
    fields = {"metadata.name": node["metadata"]["name"]}
    return (all(_expression(labels, e)
                for e in term.get("matchExpressions") or ())
            and all(_expression(fields, e)
                    for e in term.get("matchFields") or ()))


def selects(pod_spec, node):
    """nodeSelector and required node affinity."""
    labels = node["metadata"].get("labels") or {}
    for key, value in (pod_spec.get("nodeSelector") or {}).items():
        if labels.get(key) != value:
            return False
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get(
        "requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms")
    return not terms or any(_term(node, term) for term in terms)


def fits(pod_spec, node, tolerations=None):
    if tolerations is None:
        tolerations = (pod_spec.get("tolerations")
                       or []) + DEFAULT_TOLERATIONS
    return selects(pod_spec, node) and all(
        tolerates(tolerations, taint) for taint in taints(node)
        if taint["effect"] in ("NoSchedule", "NoExecute"))


def exclusive(pod_spec):
    """At most one such pod on a node: host ports, pod anti-affinity."""
    anti = (pod_spec.get("affinity") or {}).get("podAntiAffinity") or {}
    if anti.get("requiredDuringSchedulingIgnoredDuringExecution"):
        return True
    return any(port.get("hostPort") for container
               in pod_spec.get("containers") or ()
               for port in container.get("ports") or ())
