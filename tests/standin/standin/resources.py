"""The resources the API serves: a table, and what CRDs add to it."""

# (group, versions, plural, kind, namespaced)
_BUILTIN = (
    ("", ("v1",), "namespaces", "Namespace", False),
    ("", ("v1",), "nodes", "Node", False),
    ("", ("v1",), "configmaps", "ConfigMap", True),
    ("", ("v1",), "secrets", "Secret", True),
    ("", ("v1",), "events", "Event", True),
    ("", ("v1",), "pods", "Pod", True),
    ("", ("v1",), "services", "Service", True),
    ("", ("v1",), "endpoints", "Endpoints", True),
    ("", ("v1",), "serviceaccounts", "ServiceAccount", True),
    ("", ("v1",), "persistentvolumes", "PersistentVolume", False),
    ("", ("v1",), "persistentvolumeclaims", "PersistentVolumeClaim", True),
    ("apps", ("v1",), "daemonsets", "DaemonSet", True),
    ("apps", ("v1",), "deployments", "Deployment", True),
    ("apps", ("v1",), "statefulsets", "StatefulSet", True),
    ("apps", ("v1",), "replicasets", "ReplicaSet", True),
    ("batch", ("v1",), "jobs", "Job", True),
    ("policy", ("v1",), "poddisruptionbudgets", "PodDisruptionBudget", True),
    ("coordination.k8s.io", ("v1",), "leases", "Lease", True),
    ("discovery.k8s.io", ("v1",), "endpointslices", "EndpointSlice", True),
    ("storage.k8s.io", ("v1",), "storageclasses", "StorageClass", False),
    ("networking.k8s.io", ("v1",), "networkpolicies", "NetworkPolicy", True),
    ("scheduling.k8s.io", ("v1",), "priorityclasses", "PriorityClass",
     False),
    ("rbac.authorization.k8s.io", ("v1",), "clusterroles", "ClusterRole",
     False),
    ("rbac.authorization.k8s.io", ("v1",), "clusterrolebindings",
     "ClusterRoleBinding", False),
    ("rbac.authorization.k8s.io", ("v1",), "roles", "Role", True),
    ("rbac.authorization.k8s.io", ("v1",), "rolebindings", "RoleBinding",
     True),
    ("apiextensions.k8s.io", ("v1",), "customresourcedefinitions",
     "CustomResourceDefinition", False),
    ("k3s.cattle.io", ("v1",), "addons", "Addon", True),
    ("helm.cattle.io", ("v1",), "helmcharts", "HelmChart", True),
    ("helm.cattle.io", ("v1",), "helmchartconfigs", "HelmChartConfig", True),
)

# Kinds whose /status is a door of its own: the main door leaves it alone.
WITH_STATUS = {"Node", "Pod", "Namespace", "DaemonSet", "Deployment", "Job",
               "StatefulSet", "Service", "HelmChart",
               "CustomResourceDefinition"}

# Of the built-in kinds only these have metadata.generation.
WITH_GENERATION = {"DaemonSet", "Deployment", "StatefulSet", "ReplicaSet",
                   "Job", "Pod", "PodDisruptionBudget", "NetworkPolicy",
                   "CustomResourceDefinition"}


class Resource:
    def __init__(self, group, versions, plural, kind, namespaced,
                 custom=False):
        self.group, self.versions, self.plural = group, versions, plural
        self.kind, self.namespaced, self.custom = kind, namespaced, custom

    @property
    def key(self):
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version):
        return f"{self.group}/{version}" if self.group else version

    def is_custom(self):
        return self.custom or self.group.endswith(".cattle.io")

    def counts_generations(self):
        return self.is_custom() or self.kind in WITH_GENERATION

    def status_door(self):
        return self.kind in WITH_STATUS


BUILTIN = [Resource(*row) for row in _BUILTIN]
CRD_KEY = "customresourcedefinitions.apiextensions.k8s.io"


def _of_crd(crd):
    spec = crd.get("spec", {})
    names = spec.get("names", {})
    versions = tuple(v["name"] for v in spec.get("versions", ())
                     if v.get("served", True))
    return Resource(spec.get("group", ""), versions, names.get("plural", ""),
                    names.get("kind", ""),
                    spec.get("scope") == "Namespaced", custom=True)


def all_resources(store):
    return BUILTIN + [_of_crd(crd) for crd in store.list(CRD_KEY)]


def by_path(store, group, version, plural):
    for resource in BUILTIN:
        if resource.plural == plural and resource.group == group:
            return resource if version in resource.versions else None
    crd = store.get(CRD_KEY, "", f"{plural}.{group}")
    resource = _of_crd(crd) if crd else None
    return resource if resource and version in resource.versions else None


def by_kind(store, api_version, kind):
    group, _, version = api_version.rpartition("/")
    for resource in all_resources(store):
        if (resource.group == group and resource.kind == kind
                and version in resource.versions):
            return resource
    return None


def collection_path(resource, api_version, namespace):
    root = "/apis/" if "/" in api_version else "/api/"
    space = f"/namespaces/{namespace}" if resource.namespaced else ""
    return f"{root}{api_version}{space}/{resource.plural}"
