"""kube-controller-manager and scheduler, as far as tests look at them.

They run on the server that leads etcd: one at a time, as leases would have
it. Timers that need a clock keep it in memory: a new leader starts them
afresh.
"""

import hashlib
import json
import uuid

from . import etcd as etcd_module
from . import log, scheduling
from .apicore import ApiError, utc_now
from .params import now

NODES = "/api/v1/nodes"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
REMOVE = "etcd.k3s.cattle.io/remove"
REMOVED_NAME = "etcd.k3s.cattle.io/removed-node-name"
MEMBER = "etcd.k3s.cattle.io/node-name"


def template_hash(template):
    text = json.dumps(template, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def is_ready(obj):
    return any(c["type"] == "Ready" and c["status"] == "True"
               for c in obj.get("status", {}).get("conditions") or ())


def owned_by(pod, owner):
    return any(ref.get("uid") == owner["metadata"]["uid"]
               for ref in pod["metadata"].get("ownerReferences") or ())


def new_pod(owner, template, labels, node=None, tolerations=None):
    meta = owner["metadata"]
    spec = json.loads(json.dumps(template.get("spec") or {}))
    if node:
        spec["nodeName"] = node
    if tolerations is not None:
        spec["tolerations"] = tolerations
    template_meta = template.get("metadata") or {}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": f"{meta['name']}-{uuid.uuid4().hex[:5]}",
            "namespace": meta["namespace"],
            "labels": {**(template_meta.get("labels") or {}), **labels},
            "annotations": template_meta.get("annotations") or {},
            "ownerReferences": [{
                "apiVersion": owner["apiVersion"], "kind": owner["kind"],
                "name": meta["name"], "uid": meta["uid"],
                "controller": True}]},
        "spec": spec, "status": {"phase": "Pending"}}


def pods_path(namespace):
    return f"/api/v1/namespaces/{namespace}/pods"


class Controllers:
    def __init__(self, client, etcd, store, params):
        self.client, self.etcd = client, etcd
        self.store, self.params = store, params
        self._renewed = {}      # node -> (lease renewTime, when first seen)

    def turn(self):
        if self.etcd is not None and not self.etcd.is_leader():
            self._renewed.clear()
            return
        self._members()
        nodes = self.client.items(NODES)
        for node in nodes:
            self._node(node)
        pods = self.client.items("/api/v1/pods")
        self._collect(pods, {n["metadata"]["name"] for n in nodes})
        for daemon_set in self.client.items("/apis/apps/v1/daemonsets"):
            self._daemon_set(daemon_set, nodes, pods)
        for deployment in self.client.items("/apis/apps/v1/deployments"):
            self._deployment(deployment, pods)
        self._schedule(nodes)

    # nodes

    def _silent(self, name):
        lease = self.client.get("/apis/coordination.k8s.io/v1/namespaces/"
                                f"kube-node-lease/leases/{name}")
        stamp = ((lease or {}).get("spec") or {}).get("renewTime")
        if self._renewed.get(name, ("", 0))[0] != stamp:
            self._renewed[name] = (stamp, now())
        return (now() - self._renewed[name][1]
                > self.params.seconds("node_grace"))

    def _node(self, node):
        name = node["metadata"]["name"]
        silent, ready = self._silent(name), is_ready(node)
        if silent and ready:
            stamp = utc_now()
            self.client.strategic(f"{NODES}/{name}/status", {"status": {
                "conditions": [{
                    "type": "Ready", "status": "Unknown",
                    "reason": "NodeStatusUnknown", "message":
                    "Kubelet stopped posting node status.",
                    "lastTransitionTime": stamp}]}})
            ready = False
        old = (node.get("spec") or {}).get("taints") or []
        mine = (NOT_READY, UNREACHABLE)
        taints = [t for t in old if t["key"] not in mine]
        if not ready:
            key = UNREACHABLE if silent else NOT_READY
            taints += [{"key": key, "effect": "NoSchedule"},
                       {"key": key, "effect": "NoExecute"}]
        if taints != old:
            self.client.merge(f"{NODES}/{name}", {"spec": {
                "taints": taints or None}})

    def _members(self):
        """A removed Node or the annotation removes the etcd member."""
        if self.etcd is None:
            return
        nodes = self.client.items(NODES)
        seen = self.store.get_meta("member_of_node", {})
        fresh = {}
        for node in nodes:
            meta = node["metadata"]
            notes = meta.get("annotations") or {}
            member = notes.get(MEMBER)
            if member:
                fresh[meta["name"]] = member
            if notes.get(REMOVE) == "true" and member \
                    and notes.get(REMOVED_NAME) != member:
                self._remove_member(member)
                self.client.merge(f"{NODES}/{meta['name']}", {"metadata": {
                    "annotations": {REMOVED_NAME: member}}})
        names = {node["metadata"]["name"] for node in nodes}
        for name in set(seen) - names:
            self._remove_member(seen[name])
            self.client.delete("/api/v1/namespaces/kube-system/secrets/"
                               f"{name}.node-password.k3s")
        # A Node that registers again keeps its entry until annotated.
        fresh.update((name, member) for name, member in seen.items()
                     if name in names and name not in fresh)
        if fresh != seen:
            self.store.set_meta("member_of_node", fresh)

    def _remove_member(self, name):
        for member in etcd_module.members(self.store):
            if member.name == name:
                log.info(f"Removing name={name} id={member.id} from etcd")
                self.etcd.remove(member.id)

    # pods

    def _collect(self, pods, node_names):
        """Pods of vanished owners and nodes go; evictions too."""
        owners = {o["metadata"]["uid"] for kind in (
            "apps/v1/daemonsets", "apps/v1/deployments", "batch/v1/jobs")
            for o in self.client.items(f"/apis/{kind}")}
        for pod in list(pods):
            meta = pod["metadata"]
            references = meta.get("ownerReferences") or ()
            node = (pod.get("spec") or {}).get("nodeName")
            gone = any(r["kind"] in ("DaemonSet", "Deployment", "Job")
                       and r["uid"] not in owners for r in references)
            if gone or (node and node not in node_names):
                self.client.delete(
                    f"{pods_path(meta['namespace'])}/{meta['name']}")
                pods.remove(pod)

    def _create_pod(self, pod):
        return self.client.create(pods_path(pod["metadata"]["namespace"]),
                                  pod)

    def _delete_pod(self, pod):
        meta = pod["metadata"]
        self.client.delete(f"{pods_path(meta['namespace'])}/{meta['name']}")

    def _daemon_set(self, owner, nodes, pods):
        template = owner["spec"].get("template") or {}
        pod_spec = template.get("spec") or {}
        current = template_hash(template)
        tolerations = scheduling.daemon_tolerations(pod_spec)
        mine = [p for p in pods if owned_by(p, owner)]
        by_node = {p["spec"].get("nodeName"): p for p in mine}
        wanted = [n["metadata"]["name"] for n in nodes
                  if scheduling.fits(pod_spec, n, tolerations)]
        for name in wanted:
            if name not in by_node:
                by_node[name] = self._create_pod(new_pod(
                    owner, template, {
                        "controller-revision-hash": current,
                        "pod-template-generation": str(
                            owner["metadata"]["generation"])},
                    name, tolerations))
        selected = {n["metadata"]["name"] for n in nodes
                    if scheduling.selects(pod_spec, n)}
        for name in set(by_node) - selected:
            self._delete_pod(by_node.pop(name))
        self._roll(owner, by_node, current)
        self._daemon_status(owner, by_node, wanted, current)

    def _roll(self, owner, by_node, current):
        """RollingUpdate with maxUnavailable 1; OnDelete waits."""
        strategy = (owner["spec"].get("updateStrategy") or {}).get(
            "type", "RollingUpdate")
        old = [p for p in by_node.values() if p["metadata"]["labels"].get(
            "controller-revision-hash") != current]
        if strategy != "RollingUpdate" or not old:
            return
        unready = [p for p in by_node.values() if not is_ready(p)]
        broken = [p for p in old if p in unready]
        if broken or not unready:
            self._delete_pod((broken or old)[0])

    def _daemon_status(self, owner, by_node, wanted, current):
        mine = [by_node[name] for name in wanted if name in by_node]
        ready = sum(is_ready(p) for p in mine)
        updated = sum(p["metadata"]["labels"].get(
            "controller-revision-hash") == current for p in mine)
        self._status(owner, "daemonsets", {
            "desiredNumberScheduled": len(wanted),
            "currentNumberScheduled": len(mine),
            "numberMisscheduled": 0, "numberReady": ready,
            "numberAvailable": ready, "updatedNumberScheduled": updated,
            "numberUnavailable": len(wanted) - ready,
            "observedGeneration": owner["metadata"]["generation"]})

    def _deployment(self, owner, pods):
        template = owner["spec"].get("template") or {}
        current = template_hash(template)
        replicas = owner["spec"].get("replicas", 1)
        mine = [p for p in pods if owned_by(p, owner)]
        fresh = [p for p in mine if p["metadata"]["labels"].get(
            "pod-template-hash") == current]
        for pod in mine:
            if pod not in fresh:
                self._delete_pod(pod)
        for _ in range(replicas - len(fresh)):
            fresh.append(self._create_pod(new_pod(
                owner, template, {"pod-template-hash": current})))
        for pod in fresh[replicas:]:
            self._delete_pod(pod)
        ready = sum(is_ready(p) for p in fresh[:replicas])
        self._status(owner, "deployments", {
            "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": ready, "availableReplicas": ready,
            "unavailableReplicas": replicas - ready,
            "observedGeneration": owner["metadata"]["generation"],
            "conditions": [{"type": "Available", "status":
                            "True" if ready >= replicas else "False"}]})

    def _status(self, owner, plural, status):
        if owner.get("status") == status:
            return
        meta = owner["metadata"]
        try:
            self.client.merge(
                f"/apis/apps/v1/namespaces/{meta['namespace']}/{plural}/"
                f"{meta['name']}/status", {"status": status})
        except ApiError as error:
            if error.code != 404:
                raise

    def _schedule(self, nodes):
        pods = self.client.items("/api/v1/pods")
        for pod in pods:
            if pod["spec"].get("nodeName") or pod.get("status", {}).get(
                    "phase") != "Pending":
                continue
            hosts = [n["metadata"]["name"] for n in nodes
                     if scheduling.fits(pod["spec"], n)
                     and not self._occupied(pod, n, pods)]
            meta = pod["metadata"]
            path = f"{pods_path(meta['namespace'])}/{meta['name']}"
            if hosts:
                # The emptiest node first.
                load = {h: sum(p["spec"].get("nodeName") == h
                               for p in pods) for h in hosts}
                pod["spec"]["nodeName"] = min(hosts, key=lambda h: (load[h],
                                                                    h))
                self.client.merge(path, {"spec": {
                    "nodeName": pod["spec"]["nodeName"]}})
            elif not pod["status"].get("conditions"):
                self.client.merge(path + "/status", {"status": {
                    "phase": "Pending", "conditions": [{
                        "type": "PodScheduled", "status": "False",
                        "reason": "Unschedulable", "message":
                        f"0/{len(nodes)} nodes are available"}]}})

    @staticmethod
    def _occupied(pod, node, pods):
        if not scheduling.exclusive(pod["spec"]):
            return False
        uids = {r["uid"] for r in pod["metadata"].get("ownerReferences", ())}
        return any(p["spec"].get("nodeName") == node["metadata"]["name"]
                   and uids & {r["uid"] for r in
                               p["metadata"].get("ownerReferences", ())}
                   for p in pods)
