"""Apply, prune and own sets of objects, as wrangler's apply does."""

import json

from . import resources
from .apicore import ApiError

OWNER = "objectset.rio.cattle.io/owner-name"
APPLIED = "objectset.rio.cattle.io/applied"


class ApplyError(Exception):
    pass


def _nulls(last, new):
    """A merge patch from what we applied last to what we want now."""
    patch = {}
    for key, value in new.items():
        before = last.get(key)
        patch[key] = (_nulls(before if isinstance(before, dict) else {},
                             value) if isinstance(value, dict) else value)
    for key in last.keys() - new.keys():
        patch[key] = None
    return patch


def collection(store, body, default_namespace="default"):
    """(collection path, name, gvk) of an object; ApplyError if unknown."""
    version, kind = body.get("apiVersion"), body.get("kind")
    meta = body.get("metadata") or {}
    if not version or not kind or not meta.get("name"):
        raise ApplyError("object lacks apiVersion, kind or metadata.name")
    resource = resources.by_kind(store, version, kind)
    if resource is None:
        raise ApplyError(f'no matches for kind "{kind}" in version '
                         f'"{version}"')
    path = resources.collection_path(
        resource, version, meta.get("namespace", default_namespace))
    return path, meta["name"], f"{version}, Kind={kind}"


def apply(client, store, body, owner, default_namespace="default"):
    """Create the object or bring it to `body`; returns its path."""
    where, name, _ = collection(store, body, default_namespace)
    annotations = body["metadata"].setdefault("annotations", {}) or {}
    body["metadata"]["annotations"] = annotations
    annotations[OWNER] = owner
    annotations[APPLIED] = json.dumps(body, sort_keys=True)
    path = f"{where}/{name}"
    present = client.get(path)
    if present is None:
        client.create(where, body)
        return path
    last = (present["metadata"].get("annotations") or {}).get(APPLIED)
    patch = _nulls(json.loads(last) if last else {}, body)
    client.merge(path, patch)
    return path


def remove(client, store, body, default_namespace="default"):
    try:
        where, name, _ = collection(store, body, default_namespace)
    except ApplyError:
        return
    client.delete(f"{where}/{name}")


def prune(client, store, gvks, owner, keep):
    """Delete what `owner` applied earlier and that is not in `keep`."""
    for gvk in gvks:
        version, _, kind = gvk.partition(", Kind=")
        resource = resources.by_kind(store, version, kind)
        if resource is None:
            continue
        for item in store.list(resource.key):
            meta = item["metadata"]
            if (meta.get("annotations") or {}).get(OWNER) != owner:
                continue
            path = resources.collection_path(
                resource, version, meta.get("namespace", ""))
            path = f"{path}/{meta['name']}"
            if path not in keep:
                try:
                    client.delete(path)
                except ApiError:
                    pass        # gone meanwhile, or next time
