"""The kubelet: registers the Node, reports it, runs its pods.

Pods are simulated by pods.py; kube-vip alone is a real process. What must
survive a restart of k3s is kept under the run directory, which a reboot
clears.
"""

import json
import os
import platform
import shutil

from . import VERSION, pods
from .apicore import ApiError, utc_now
from .kubevip import micro_time
from .params import now

NODES = "/api/v1/nodes"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
ETCD = "node-role.kubernetes.io/etcd"


def _first_line(path, default=""):
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().strip()
    except OSError:
        return default


def _os_image():
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "Linux"


def parse_taint(text):
    """key[=value]:Effect"""
    key, _, effect = text.rpartition(":")
    key, _, value = key.partition("=")
    taint = {"key": key, "effect": effect}
    if value:
        taint["value"] = value
    return taint


class Kubelet:
    """`context` holds what pods need: see pods.Context."""

    def __init__(self, config, params, client, context, member=None,
                 is_server=True):
        self.config, self.params, self.client = config, params, client
        self.context, self.member = context, member
        self.is_server = is_server
        self.name = config.node_name
        self.runtimes = {}
        self._reported = float("-inf")
        self.records = params.path("run", "pods")
        os.makedirs(self.records, mode=0o700, exist_ok=True)

    # the Node

    def register(self):
        labels = {"kubernetes.io/hostname": self.name,
                  "kubernetes.io/os": "linux",
                  "kubernetes.io/arch": "amd64",
                  "node.kubernetes.io/instance-type": "k3s"}
        if self.is_server:
            labels[CONTROL_PLANE] = "true"
        notes = {"k3s.io/hostname": self.name,
                 "k3s.io/internal-ip": self.config.node_ip}
        if self.member:
            labels[ETCD] = "true"
            notes["etcd.k3s.cattle.io/node-name"] = self.member
            notes["etcd.k3s.cattle.io/node-address"] = self.config.node_ip
        for label in self.config["node-label"]:
            key, _, value = label.partition("=")
            labels[key] = value
        if self.client.get(f"{NODES}/{self.name}") is None:
            taints = [parse_taint(t) for t in self.config["node-taint"]]
            taints.append({"key": "node.kubernetes.io/not-ready",
                           "effect": "NoSchedule"})
            # Labels and taints of the configuration: registration only.
            self.client.create(NODES, {
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": self.name, "labels": labels,
                             "annotations": notes},
                "spec": {"providerID": f"k3s://{self.name}",
                         "taints": taints}})
        else:
            roles = {k: v for k, v in labels.items()
                     if k in (CONTROL_PLANE, ETCD)}
            self.client.merge(f"{NODES}/{self.name}", {"metadata": {
                "labels": roles, "annotations": notes}})

    def cni_ready(self):
        """Flannel is built in; otherwise somebody must leave a file."""
        if self.config["flannel-backend"] != "none":
            return True
        try:
            return any(name.endswith((".conf", ".conflist", ".json"))
                       for name in os.listdir(self.params.path("cni")))
        except OSError:
            return False

    def _conditions(self):
        ready = self.cni_ready()
        conditions = [
            ("MemoryPressure", "False", "KubeletHasSufficientMemory", ""),
            ("DiskPressure", "False", "KubeletHasNoDiskPressure", ""),
            ("PIDPressure", "False", "KubeletHasSufficientPID", ""),
            ("Ready", "True", "KubeletReady",
             "kubelet is posting ready status") if ready else
            ("Ready", "False", "KubeletNotReady",
             "container runtime network not ready: NetworkReady=false "
             "reason:NetworkPluginNotReady message:Network plugin returns "
             "error: cni plugin not initialized")]
        if self.config["flannel-backend"] != "none":
            conditions.append(("NetworkUnavailable", "False",
                               "FlannelIsUp", "Flannel is running"))
        return conditions

    def _status(self):
        stamp = utc_now()
        uname = os.uname()
        return {
            "addresses": [
                {"type": "InternalIP", "address": self.config.node_ip},
                {"type": "Hostname", "address": self.name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "capacity": {"cpu": str(os.cpu_count()), "pods": "110"},
            "allocatable": {"cpu": str(os.cpu_count()), "pods": "110"},
            "nodeInfo": {
                "kubeletVersion": VERSION, "kubeProxyVersion": "",
                "machineID": _first_line("/etc/machine-id"),
                "systemUUID": _first_line("/etc/machine-id"),
                "bootID": _first_line("/proc/sys/kernel/random/boot_id"),
                "kernelVersion": uname.release, "osImage": _os_image(),
                "operatingSystem": "linux", "architecture": "amd64",
                "containerRuntimeVersion": "containerd://standin"},
            "conditions": [
                {"type": kind, "status": status, "reason": reason,
                 "message": message, "lastHeartbeatTime": stamp,
                 "lastTransitionTime": stamp}
                for kind, status, reason, message in self._conditions()]}

    def _report(self):
        node = self.client.get(f"{NODES}/{self.name}")
        if node is None:
            return False        # deleted: registered again at next start
        have = {c["type"]: c["status"] for c in
                node.get("status", {}).get("conditions") or ()}
        if any(have.get(kind) != status
               for kind, status, _, _ in self._conditions()):
            self.client.strategic(f"{NODES}/{self.name}/status",
                                  {"status": self._status()})
        if now() - self._reported >= self.params.seconds("node_status"):
            self._renew_lease()
            self._reported = now()
        return True

    def _renew_lease(self):
        leases = ("/apis/coordination.k8s.io/v1/namespaces/"
                  "kube-node-lease/leases")
        spec = {"holderIdentity": self.name, "leaseDurationSeconds": 40,
                "renewTime": micro_time()}
        lease = {"metadata": {"name": self.name}, "spec": spec}
        if self.client.ensure(leases, lease) is None:
            self.client.merge(f"{leases}/{self.name}", {"spec": spec})

    # pods

    def turn(self):
        if not self._report():
            return
        wanted = {pod["metadata"]["uid"]: pod for pod in self.client.items(
            f"/api/v1/pods?fieldSelector=spec.nodeName%3D{self.name}")}
        self._adopt(wanted)
        for uid in set(self.runtimes) - set(wanted):
            self.runtimes.pop(uid).kill()
            self._forget(uid)
        for uid, pod in wanted.items():
            runtime = self.runtimes.get(uid)
            if runtime is None:
                runtime = self.runtimes[uid] = pods.new(
                    self.context, pod, self._record(uid))
            runtime.pod = pod
            self._run(uid, runtime)

    def _run(self, uid, runtime):
        try:
            runtime.turn()
        finally:
            self._remember(uid, runtime)
        meta, status = runtime.pod["metadata"], runtime.status()
        if runtime.pod.get("status") == status:
            return
        try:
            self.client.merge(
                f"/api/v1/namespaces/{meta['namespace']}/pods/"
                f"{meta['name']}/status", {"status": status})
        except ApiError as error:
            if error.code != 404:
                raise

    def _path(self, uid):
        return os.path.join(self.records, uid + ".json")

    def _record(self, uid):
        try:
            with open(self._path(uid), encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return {}

    def _remember(self, uid, runtime):
        record = runtime.record()
        if record != runtime.saved:
            with open(self._path(uid), "w", encoding="utf-8") as file:
                json.dump(record, file)
            runtime.saved = record

    def _forget(self, uid):
        shutil.rmtree(os.path.join(self.records, uid), ignore_errors=True)
        try:
            os.unlink(self._path(uid))
        except FileNotFoundError:
            pass

    def _adopt(self, wanted):
        """Pods that outlived k3s and are wanted no more are stopped."""
        for name in os.listdir(self.records):
            uid = name.removesuffix(".json")
            if name.endswith(".json") and uid not in self.runtimes \
                    and uid not in wanted:
                pods.kill_recorded(self._record(uid))
                self._forget(uid)

    def close(self):
        """k3s stops: pods stay, unless told otherwise."""
        if not self.params.flag("kubevip_survives"):
            for runtime in self.runtimes.values():
                runtime.kill()
