"""Kubernetes API semantics over the store: no sockets here.

request() takes what an HTTP request says and returns (code, object). Reads
and writes need quorum, as linearised reads and writes of etcd do.
"""

import copy
import datetime
import json
import re
import uuid

import yaml

from . import etcd as etcd_module
from . import rbac, resources
from .merge import merge_patch, json_patch, PatchError

NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z")
LOOSE = re.compile(r"[^/%]+\Z")     # RBAC names may hold colons
MICRO_TIME = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)\Z")
MAX_OBJECT = 3 << 20
MAX_EVENTS = 1000


class ApiError(Exception):
    def __init__(self, code, reason, message, details=None):
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message
        self.details = details

    def status(self):
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {},
                  "status": "Failure", "message": self.message,
                  "reason": self.reason, "details": self.details,
                  "code": self.code}
        return {key: value for key, value in status.items()
                if value is not None and value != ""}


class PageNotFound(ApiError):
    """Not even a group: the answer is text, not a Status."""

    def __init__(self):
        super().__init__(404, "NotFound", "404 page not found")

    def status(self):
        return self.message + "\n"


def utc_now():
    now = datetime.datetime.now(datetime.timezone.utc)
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def _details(resource, name):
    details = {"name": name, "group": resource.group,
               "kind": resource.plural}
    return {key: value for key, value in details.items() if value}


def not_found(resource, name):
    return ApiError(404, "NotFound", f'{resource.key} "{name}" not found',
                    _details(resource, name))


def conflict(resource, name, text):
    return ApiError(409, "Conflict", "Operation cannot be fulfilled on "
                    f'{resource.key} "{name}": {text}',
                    _details(resource, name))


def no_such_path():
    return ApiError(404, "NotFound", "the server could not find the "
                    "requested resource", {})


class Target:
    """A parsed resource path."""

    def __init__(self, resource, version, namespace, name, sub):
        self.resource, self.version = resource, version
        self.namespace, self.name, self.sub = namespace, name, sub
        self.api_version = resource.api_version(version)


class Api:
    def __init__(self, store, etcd, params, authority):
        self.store, self.etcd, self.params = store, etcd, params
        self.authority = authority

    def request(self, user, method, path, query, content_type="", body=b""):
        """(code, object or text). Trouble of etcd becomes a Status."""
        try:
            self._require_quorum("api_read" if method == "GET"
                                 else "api_write")
            return self._dispatch(user, method, path, query, content_type,
                                  body)
        except ApiError as error:
            return error.code, error.status()
        except etcd_module.Unavailable:
            if method == "GET":
                return 504, ApiError(
                    504, "Timeout", "Timeout: request did not complete "
                    "within the allotted timeout", {}).status()
            return 500, ApiError(500, "", "etcdserver: request timed out"
                                 ).status()

    def _require_quorum(self, limit):
        if self.etcd is not None:
            self.etcd.require(self.params.seconds(limit))

    # paths

    def _parse(self, path):
        parts = [p for p in path.split("/") if p]
        if parts[:1] == ["api"] and len(parts) > 1:
            group, version, rest = "", parts[1], parts[2:]
        elif parts[:1] == ["apis"] and len(parts) > 2:
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            raise PageNotFound()
        if not any(r.group == group and version in r.versions
                   for r in resources.all_resources(self.store)):
            raise PageNotFound()
        namespace = None
        if rest[:1] == ["namespaces"] and len(rest) > 2 \
                and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        if not rest or len(rest) > 3:
            raise no_such_path()
        resource = resources.by_path(self.store, group, version, rest[0])
        if resource is None or (namespace is not None
                                and not resource.namespaced):
            raise no_such_path()
        name = rest[1] if len(rest) > 1 else None
        if name is not None and resource.namespaced and namespace is None:
            raise no_such_path()
        return Target(resource, version, namespace, name,
                      rest[2] if len(rest) > 2 else "")

    def _dispatch(self, user, method, path, query, content_type, body):
        found = self._discovery(method, path)
        if found is not None:
            return 200, found
        target = self._parse(path)
        rbac.check(self.store, user, method, target, ApiError)
        if len(body) > MAX_OBJECT:
            raise ApiError(413, "RequestEntityTooLarge",
                           f"limit is {MAX_OBJECT}")
        dry = "dryRun" in query
        if method == "GET":
            if target.name is None:
                return 200, self._list(target, query)
            return 200, self._get(target)
        if method == "POST" and target.name is None:
            return 201, self._create(target, _decode(body, content_type),
                                     dry)
        if method == "POST" and target.sub == "token" \
                and target.resource.kind == "ServiceAccount":
            self._get(target)
            return 201, {"kind": "TokenRequest", "status": {
                "token": self.authority.account_token(target.namespace,
                                                      target.name)}}
        if method == "POST" and target.sub == "eviction":
            return 201, self._delete(target, {}, dry)
        if method == "PUT" and target.name:
            return self._update(target, _decode(body, content_type), dry)
        if method == "PATCH" and target.name:
            return self._patch(target, content_type, body, dry, query)
        if method == "DELETE" and target.name:
            options = _decode(body, content_type) if body.strip() else {}
            return 200, self._delete(target, options, dry)
        if method == "DELETE":
            return 200, self._delete_collection(target, query, dry)
        raise ApiError(405, "MethodNotAllowed", "the server does not allow "
                       "this method on the requested resource")

    def _discovery(self, method, path):
        parts = [p for p in path.split("/") if p]
        if method != "GET":
            return None
        known = resources.all_resources(self.store)
        if parts == ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        if parts == ["apis"]:
            groups = {}
            for r in known:
                if r.group:
                    groups.setdefault(r.group, set()).update(r.versions)
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [
                {"name": group, "versions": [
                    {"groupVersion": f"{group}/{v}", "version": v}
                    for v in sorted(versions)]}
                for group, versions in sorted(groups.items())]}
        if len(parts) == 2 and parts[0] == "api":
            group, version = "", parts[1]
        elif len(parts) == 3 and parts[0] == "apis":
            group, version = parts[1], parts[2]
        else:
            return None
        served = [r for r in known
                  if r.group == group and version in r.versions]
        if not served:
            raise PageNotFound()
        return {"kind": "APIResourceList", "apiVersion": "v1",
                "groupVersion": served[0].api_version(version),
                "resources": [
                    {"name": r.plural, "kind": r.kind, "singularName": "",
                     "namespaced": r.namespaced, "verbs": [
                         "create", "delete", "get", "list", "patch",
                         "update"]} for r in served]}

    # reads

    def _get(self, target):
        found = self.store.get(target.resource.key, target.namespace or "",
                               target.name)
        if found is None:
            raise not_found(target.resource, target.name)
        return _shown(found, target)

    def _list(self, target, query):
        items = [_shown(item, target) for item in self.store.list(
            target.resource.key, target.namespace)]
        items = [item for item in items
                 if _labels_match(item, query.get("labelSelector", ""))
                 and _fields_match(item, query.get("fieldSelector", ""))]
        return {"kind": target.resource.kind + "List",
                "apiVersion": target.api_version,
                "metadata": {"resourceVersion": str(self.store.revision())},
                "items": items}

    # writes

    def _create(self, target, body, dry):
        self._check_body(target, body)
        meta = body["metadata"]
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = meta["generateName"] + uuid.uuid4().hex[:5]
        name = meta.get("name", "")
        self._check_name(target, name)
        with self.store.transaction():
            self._check_namespace(target)
            if self.store.get(target.resource.key, target.namespace or "",
                              name) is not None:
                raise ApiError(409, "AlreadyExists",
                               f'{target.resource.key} "{name}" already '
                               "exists", _details(target.resource, name))
            if meta.get("resourceVersion"):
                raise ApiError(500, "", "resourceVersion should not be set "
                               "on objects to be created")
            meta.update(uid=str(uuid.uuid4()), creationTimestamp=utc_now())
            if "spec" in body and target.resource.counts_generations():
                meta["generation"] = 1
            if target.resource.namespaced:
                meta["namespace"] = target.namespace
            self._admit(target, body)
            return self._save(target, name, body, dry)

    def _update(self, target, body, dry):
        self._check_body(target, body)
        if body["metadata"].get("name", target.name) != target.name:
            raise ApiError(400, "BadRequest", "the name of the object ("
                           f"{body['metadata']['name']}) does not match the "
                           f"name on the URL ({target.name})")
        if target.resource.kind == "Lease" and self.store.get(
                target.resource.key, target.namespace, target.name) is None:
            # PUT makes a Lease, whatever resourceVersion it carries.
            body["metadata"].update(name=target.name, resourceVersion="")
            return 201, self._create(target, body, dry)
        with self.store.transaction():
            old = self._get(target)
            version = body["metadata"].get("resourceVersion")
            if not version and (target.resource.custom
                                or target.resource.kind in (
                                    "Lease", "Addon", "HelmChart")):
                raise ApiError(
                    422, "Invalid", f"{target.resource.key} "
                    f'"{target.name}" is invalid: metadata.resourceVersion: '
                    "Invalid value: 0: must be specified for an update")
            return 200, self._replace(target, old, body, dry)

    def _replace(self, target, old, new, dry):
        """`new` in place of `old`: only inside a transaction."""
        version = new["metadata"].get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            raise conflict(
                target.resource, target.name, "the object has been modified; "
                "please apply your changes to the latest version and try "
                "again")
        uid = new["metadata"].get("uid")
        if uid and uid != old["metadata"]["uid"]:
            raise conflict(
                target.resource, target.name, "Precondition failed: UID in "
                f"precondition: {uid}, UID in object meta: "
                f"{old['metadata']['uid']}")
        if target.sub == "status":
            status, new = new.get("status"), copy.deepcopy(old)
            new["status"] = status
        elif target.resource.status_door() and "status" in old:
            new["status"] = old["status"]
        for field in ("uid", "creationTimestamp", "namespace", "generation"):
            if field in old["metadata"]:
                new["metadata"][field] = old["metadata"][field]
        new["metadata"]["name"] = target.name
        new["metadata"]["resourceVersion"] = old["metadata"][
            "resourceVersion"]
        if old.get("immutable") and old.get("data") != new.get("data"):
            raise ApiError(422, "Invalid", f'{target.resource.key} '
                           f'"{target.name}" is invalid: data: Forbidden: '
                           "field is immutable when `immutable` is set")
        self._admit(target, new)
        new["apiVersion"], new["kind"] = old["apiVersion"], old["kind"]
        if new == old:
            return new          # no change, no new resourceVersion
        if (new.get("spec") != old.get("spec")
                and target.resource.counts_generations()):
            new["metadata"]["generation"] = old["metadata"].get(
                "generation", 1) + 1
        return self._save(target, target.name, new, dry)

    def _patch(self, target, content_type, body, dry, query):
        kind = content_type.split(";")[0].strip()
        with self.store.transaction():
            old = self.store.get(target.resource.key,
                                 target.namespace or "", target.name)
            if kind.startswith("application/apply-patch"):
                if not query.get("fieldManager"):
                    raise ApiError(422, "Invalid", "PatchOptions is "
                                   "invalid: fieldManager: Required value: "
                                   "is required for apply patch")
                patch = _decode(body, "application/yaml")
                if old is None and not target.sub:
                    patch.setdefault("metadata", {}).setdefault(
                        "name", target.name)
                    return 201, self._create(target, patch, dry)
            elif kind in ("application/merge-patch+json",
                          "application/json-patch+json") or (
                    kind == "application/strategic-merge-patch+json"
                    and not target.resource.is_custom()):
                patch = _decode(body, "application/json")
            else:
                raise ApiError(415, "UnsupportedMediaType", "the body of "
                               "the request was in an unknown format")
            if old is None:
                raise not_found(target.resource, target.name)
            try:
                new = (json_patch(old, patch) if isinstance(patch, list)
                       else merge_patch(
                           old, patch, strategic="strategic" in kind
                           or "apply" in kind))
            except PatchError as error:
                raise ApiError(422, "Invalid", str(error))
            self._check_body(target, new)
            return 200, self._replace(target, old, new, dry)

    def _delete(self, target, options, dry):
        with self.store.transaction():
            old = self._get(target)
            conditions = (options or {}).get("preconditions") or {}
            for field in ("uid", "resourceVersion"):
                if conditions.get(field, old["metadata"][field]) != old[
                        "metadata"][field]:
                    raise ApiError(409, "Conflict", "Precondition failed: "
                                   f"{field}")
            if not dry:
                self._remove(target.resource, old)
        return {"kind": "Status", "apiVersion": "v1", "metadata": {},
                "status": "Success", "details": {
                    "name": target.name, "kind": target.resource.plural,
                    "uid": old["metadata"]["uid"]}}

    def _delete_collection(self, target, query, dry):
        with self.store.transaction():
            listed = self._list(target, query)
            for item in listed["items"] if not dry else ():
                self._remove(target.resource, item)
        return listed

    def _remove(self, resource, old):
        meta = old["metadata"]
        self.store.delete(resource.key, meta.get("namespace", ""),
                          meta["name"])
        if resource.kind == "Namespace":
            self.store.delete_namespace(meta["name"])

    # checks and defaults

    def _check_body(self, target, body):
        if not isinstance(body, dict):
            raise ApiError(400, "BadRequest", "not an object")
        if not isinstance(body.setdefault("metadata", {}), dict):
            raise ApiError(400, "BadRequest", "metadata is not an object")
        kind = body.setdefault("kind", target.resource.kind)
        version = body.setdefault("apiVersion", target.api_version)
        if kind != target.resource.kind or version != target.api_version:
            raise ApiError(400, "BadRequest", f"the object ({version}, "
                           f"{kind}) does not match the path")
        space = body["metadata"].get("namespace")
        if target.resource.namespaced and space not in (
                None, "", target.namespace):
            raise ApiError(400, "BadRequest", "the namespace of the "
                           "provided object does not match the namespace "
                           "sent on the request")

    def _check_name(self, target, name):
        pattern = (LOOSE if target.resource.group
                   == "rbac.authorization.k8s.io" else NAME)
        if not name or len(name) > 253 or not pattern.match(name):
            raise ApiError(422, "Invalid", f"{target.resource.kind} "
                           f'"{name}" is invalid: metadata.name: Invalid '
                           f'value: "{name}": a lowercase RFC 1123 '
                           "subdomain must consist of lower case "
                           "alphanumeric characters, '-' or '.'")

    def _check_namespace(self, target):
        if not target.resource.namespaced:
            return
        if target.namespace is None:
            raise no_such_path()
        if self.store.get("namespaces", "", target.namespace) is None:
            raise ApiError(404, "NotFound",
                           f'namespaces "{target.namespace}" not found')

    def _admit(self, target, body):
        kind, spec = target.resource.kind, body.get("spec") or {}
        if kind == "Lease":
            for field in ("acquireTime", "renewTime"):
                value = spec.get(field)
                if value is not None and not MICRO_TIME.match(str(value)):
                    raise ApiError(400, "BadRequest", "Lease in version "
                                   '"v1" cannot be handled as a Lease: '
                                   f'parsing time "{value}"')
            if spec.get("leaseDurationSeconds", 1) <= 0:
                raise ApiError(422, "Invalid", "spec.leaseDurationSeconds: "
                               "must be greater than 0")
        elif kind == "Secret" and "stringData" in body:
            import base64
            body.setdefault("data", {}).update(
                (key, base64.b64encode(value.encode()).decode())
                for key, value in body.pop("stringData").items())
        elif kind == "Namespace":
            body["status"] = {"phase": "Active"}
            body["metadata"].setdefault("labels", {})[
                "kubernetes.io/metadata.name"] = body["metadata"]["name"]
        elif kind == "CustomResourceDefinition":
            body["status"] = {"conditions": [
                {"type": "NamesAccepted", "status": "True"},
                {"type": "Established", "status": "True"}]}

    def _save(self, target, name, body, dry):
        if dry:
            return body
        saved = self.store.put(target.resource.key, target.namespace or "",
                               name, body)
        if target.resource.kind == "Event":
            self.store.query(
                "DELETE FROM object WHERE kind='events' AND revision < "
                "(SELECT MIN(revision) FROM (SELECT revision FROM object "
                "WHERE kind='events' ORDER BY revision DESC LIMIT ?))",
                MAX_EVENTS)
        return saved


def _shown(item, target):
    """The stored object in the version that was asked for."""
    item["apiVersion"] = target.api_version
    return item


def _decode(body, content_type):
    try:
        if "yaml" in content_type:
            return json.loads(json.dumps(yaml.safe_load(body), default=str))
        return json.loads(body)
    except (ValueError, yaml.YAMLError) as error:
        raise ApiError(400, "BadRequest", f"cannot parse the body: {error}")


def _split_selector(text):
    """Commas separate requirements, but not inside `in (a,b)`."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text)
            if part.strip()]


def _labels_match(item, selector):
    labels = item["metadata"].get("labels") or {}
    for part in _split_selector(selector):
        inside = re.match(r"(\S+)\s+(in|notin)\s+\(([^)]*)\)\Z", part)
        if inside:
            values = [v.strip() for v in inside[3].split(",")]
            if (labels.get(inside[1]) in values) != (inside[2] == "in"):
                return False
        elif "!=" in part:
            key, _, value = part.partition("!=")
            if labels.get(key.strip()) == value.strip():
                return False
        elif "=" in part:
            key, _, value = part.replace("==", "=").partition("=")
            if labels.get(key.strip()) != value.strip():
                return False
        elif (part.lstrip("!") in labels) == part.startswith("!"):
            return False
    return True


def _fields_match(item, selector):
    for part in _split_selector(selector):
        negative = "!=" in part
        path, _, want = (part.partition("!=") if negative
                         else part.replace("==", "=").partition("="))
        value = item
        for step in path.strip().split("."):
            value = value.get(step, {}) if isinstance(value, dict) else {}
        value = "" if value in ({}, None) else str(value)
        if (value == want.strip()) == negative:
            return False
    return True
