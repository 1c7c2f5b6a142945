"""The deploy controller: this server's own manifests directory (5.1)."""

import hashlib
import os
import uuid

import yaml

from . import log
from .apicore import ApiError, utc_now
from .apply import ApplyError, apply, collection, prune, remove

ADDONS = "/apis/k3s.cattle.io/v1/namespaces/kube-system/addons"
EVENTS = "/api/v1/namespaces/kube-system/events"
GVKS = "addon.k3s.cattle.io/gvks"
SUFFIXES = (".yaml", ".yml", ".json")
MAX_MANIFEST = 4 << 20

_DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {{name: {0}, namespace: kube-system}}
spec:
  replicas: 1
  selector: {{matchLabels: {{k8s-app: {0}}}}}
  template:
    metadata: {{labels: {{k8s-app: {0}}}}}
    spec:
      containers: [{{name: {0}, image: "rancher/mirrored-{0}:standin"}}]
"""
# k3s's own components, as far as their being Pending or absent matters.
PACKAGED = {
    "coredns": "coredns", "local-storage": "local-path-provisioner",
    "metrics-server": "metrics-server", "traefik": "traefik",
}


class Failed(Exception):
    """(event reason, text)"""

    def __init__(self, reason, text):
        super().__init__(text)
        self.reason = reason


class Deploy:
    def __init__(self, client, store, config):
        self.client, self.store, self.config = client, store, config
        self.root = config.path("manifests")
        self.force = True           # the first pass
        self._mtimes = {}

    def stage(self):
        """Rewrite the packaged files; a disabled one is not written."""
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        for name, component in PACKAGED.items():
            if name in self.config.disabled:
                continue
            path = os.path.join(self.root, name + ".yaml")
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
                                 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(_DEPLOYMENT.format(component))

    def turn(self):
        failed = False
        for path in self._files():
            name = os.path.basename(path).split(".")[0]
            try:
                if name in self.config.disabled:
                    self._disable(path, name)
                else:
                    self._process(path, name)
            except (Failed, ApiError, OSError) as error:
                failed = True
                log.error("Failed to process config: failed to process "
                          f"{path}: {error}")
        self.force = failed

    def _files(self):
        names, skip = [], set()
        for directory, subdirectories, files in os.walk(self.root):
            subdirectories.sort()
            for name in files:
                if name.endswith(".skip"):
                    skip.add(name.removesuffix(".skip"))
                elif name.endswith(SUFFIXES) and not name.startswith("."):
                    names.append(os.path.join(directory, name))
        return [n for n in sorted(names) if os.path.basename(n) not in skip]

    def _read(self, path):
        if os.path.getsize(path) > MAX_MANIFEST:
            raise OSError(f"{path}: too large")
        with open(path, "rb") as file:
            return file.read()

    def _process(self, path, name):
        mtime = os.stat(path).st_mtime_ns
        if not self.force and self._mtimes.get(path) == mtime:
            return
        addon = self._addon(path, name)
        try:
            content = self._read(path)
        except OSError as error:
            raise self._event(addon, "ReadManifestFailed",
                              f"Read manifest at {path!r} failed: {error}")
        checksum = hashlib.sha256(content).hexdigest()
        if not self.force and checksum == addon["spec"].get("checksum"):
            self._mtimes[path] = mtime
            return
        objects = self._parse(addon, path, content)
        self._event(addon, "ApplyingManifest",
                    f'Applying manifest at "{path}"', "Normal")
        gvks = self._apply(addon, path, name, objects)
        self._record(name, path, checksum, gvks)
        self._mtimes[path] = mtime
        self._event(addon, "AppliedManifest",
                    f'Applied manifest at "{path}"', "Normal")

    def _addon(self, path, name):
        addon = self.client.get(f"{ADDONS}/{name}")
        if addon is not None:
            return addon
        return self.client.create(ADDONS, {
            "apiVersion": "k3s.cattle.io/v1", "kind": "Addon",
            "metadata": {"name": name, "namespace": "kube-system"},
            "spec": {"source": path}})

    def _parse(self, addon, path, content):
        try:
            documents = [d for d in yaml.safe_load_all(content)
                         if d is not None]
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise self._event(addon, "ParseManifestFailed",
                              f'Parse manifest at "{path}" failed: {error}')
        objects = []
        for document in documents:
            if not isinstance(document, dict):
                raise self._event(
                    addon, "ParseManifestFailed", f'Parse manifest at '
                    f'"{path}" failed: not an object')
            if document.get("kind", "").endswith("List") \
                    and "items" in document:
                objects += document["items"]
            else:
                objects.append(document)
        return objects

    def _apply(self, addon, path, name, objects):
        keep, gvks, trouble = set(), [], None
        for body in objects:
            try:
                keep.add(apply(self.client, self.store, body, name))
                gvks.append(collection(self.store, body)[2])
            except (ApplyError, ApiError) as error:
                trouble = trouble or error
        if trouble:
            raise self._event(addon, "ApplyManifestFailed",
                              f'Applying manifest at "{path}" failed: '
                              f"{trouble}")
        old = (addon["metadata"].get("annotations") or {}).get(GVKS, "")
        prune(self.client, self.store,
              set(gvks) | set(filter(None, old.split(";"))), name, keep)
        return gvks

    def _record(self, name, path, checksum, gvks):
        self.client.merge(f"{ADDONS}/{name}", {
            "metadata": {"annotations": {GVKS: ";".join(sorted(set(gvks)))}},
            "spec": {"source": path, "checksum": checksum}})

    def _disable(self, path, name):
        for body in yaml.safe_load_all(self._read(path)):
            if isinstance(body, dict):
                remove(self.client, self.store, body)
        os.unlink(path)
        self.client.delete(f"{ADDONS}/{name}")

    def _event(self, addon, reason, text, level="Warning"):
        """Post the Event; returns the exception of the same content."""
        meta = addon["metadata"]
        stamp = utc_now()
        self.client.create(EVENTS, {
            "metadata": {"name": f"{meta['name']}.{uuid.uuid4().hex[:16]}",
                         "namespace": "kube-system"},
            "involvedObject": {
                "apiVersion": "k3s.cattle.io/v1", "kind": "Addon",
                "name": meta["name"], "namespace": "kube-system",
                "uid": meta["uid"],
                "resourceVersion": meta["resourceVersion"]},
            "reason": reason, "message": text[:1024], "type": level,
            "firstTimestamp": stamp, "lastTimestamp": stamp, "count": 1,
            "source": {"component": "deploy",
                       "host": self.config.node_name}})
        return Failed(reason, text)
