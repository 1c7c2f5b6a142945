"""Who may do what: system:masters everything, accounts by their bindings."""

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch",
         "DELETE": "delete"}
GROUP = "rbac.authorization.k8s.io"


class User:
    def __init__(self, name, groups=()):
        self.name, self.groups = name, tuple(groups)


ADMIN = User("system:admin", ("system:masters",))
TRUSTED = ("system:masters", "system:nodes", "k3s:internal")


def _verb(method, target):
    if method == "GET":
        return "get" if target.name else "list"
    return VERBS.get(method, method.lower())


def _names_user(binding, user):
    for subject in binding.get("subjects") or ():
        if subject.get("kind") == "ServiceAccount":
            name = (f"system:serviceaccount:{subject.get('namespace', '')}:"
                    f"{subject.get('name')}")
            if name == user.name:
                return True
        elif subject.get("name") == user.name \
                or subject.get("name") in user.groups:
            return True
    return False


def _has(wanted, listed):
    return "*" in (listed or ()) or wanted in (listed or ())


def _allows(role, verb, target):
    plural = target.resource.plural
    full = f"{plural}/{target.sub}" if target.sub else plural
    for rule in (role or {}).get("rules") or ():
        names = rule.get("resourceNames")
        if (_has(verb, rule.get("verbs"))
                and _has(target.resource.group, rule.get("apiGroups"))
                and _has(full, rule.get("resources"))
                and (not names or target.name in names)):
            return True
    return False


def _roles(store, user, namespace):
    for binding in store.list(f"clusterrolebindings.{GROUP}"):
        if _names_user(binding, user):
            name = binding.get("roleRef", {}).get("name", "")
            if name == "cluster-admin":
                yield {"rules": [{"verbs": ["*"], "apiGroups": ["*"],
                                  "resources": ["*"]}]}
            yield store.get(f"clusterroles.{GROUP}", "", name)
    for binding in store.list(f"rolebindings.{GROUP}", namespace or ""):
        if _names_user(binding, user):
            ref = binding.get("roleRef", {})
            cluster = ref.get("kind") == "ClusterRole"
            yield store.get(
                f"clusterroles.{GROUP}" if cluster else f"roles.{GROUP}",
                "" if cluster else namespace or "", ref.get("name", ""))


def check(store, user, method, target, error):
    """Raises error(403, ...) unless the user may do it."""
    if any(group in TRUSTED for group in user.groups):
        return
    verb = _verb(method, target)
    if any(_allows(role, verb, target)
           for role in _roles(store, user, target.namespace)):
        return
    where = (f' in the namespace "{target.namespace}"' if target.namespace
             else " at the cluster scope")
    raise error(403, "Forbidden", f"{target.resource.key} "
                f'"{target.name or ""}" is forbidden: User "{user.name}" '
                f'cannot {verb} resource "{target.resource.plural}" in API '
                f'group "{target.resource.group}"{where}')
