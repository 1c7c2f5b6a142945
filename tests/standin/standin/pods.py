"""What runs inside the simulated pods.

Three kinds are simulated in earnest: kube-vip (a process of its own), the
Cilium agent and operator, and the helm job. Any other pod is Running a
moment after its node has a network.
"""

import json
import os
import signal
import subprocess
import sys

from . import cilium, log
from .apicore import ApiError, utc_now
from .client import RemoteClient, RemoteError, ca_context
from .params import now

SERVICE_FILE = "service-endpoints.json"


class Context:
    """What a node lends to its pods."""

    def __init__(self, config, params, client, ca, servers, store=None,
                 cni_ready=None):
        self.config, self.params, self.client = config, params, client
        self.ca, self.store = ca, store
        self.servers = servers          # callable: ["addr:port", ...]
        self.cni_ready = cni_ready

    def account_token(self, pod):
        namespace = pod["metadata"]["namespace"]
        name = pod["spec"].get("serviceAccountName") or "default"
        reply = self.client.call(
            "POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/"
            f"{name}/token", {})
        return reply["status"]["token"]

    def service_file(self):
        return self.params.path("run", SERVICE_FILE)

    def publish_service(self):
        """ClusterIPs are translated on this node from now on."""
        path = self.service_file()
        text = json.dumps(self.servers())
        try:
            with open(path, encoding="utf-8") as file:
                if file.read() == text:
                    return
        except OSError:
            pass
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".tmp", path)


def new(context, pod, record):
    labels = pod["metadata"].get("labels") or {}
    images = " ".join(c.get("image", "")
                      for c in pod["spec"].get("containers") or ())
    if "/kube-vip:" in images or "/kube-vip@" in images \
            or images.startswith("kube-vip"):
        return KubeVip(context, pod, record)
    if labels.get("k8s-app") == "cilium":
        return CiliumAgent(context, pod, record)
    if labels.get("name") == "cilium-operator":
        return CiliumOperator(context, pod, record)
    if "helmcharts.helm.cattle.io/chart" in labels:
        from .helm import HelmPod
        return HelmPod(context, pod, record)
    return Plain(context, pod, record)


def kill_recorded(record):
    """SIGTERM to a process that outlived its kubelet."""
    if record.get("pid") and _is_kube_vip(record["pid"]):
        os.kill(record["pid"], signal.SIGTERM)


def _is_kube_vip(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"\0kube-vip\0" in file.read()
    except OSError:
        return False


def environment(container, pod, node_ip):
    """Values and the field references a manifest may use."""
    fields = {"spec.nodeName": pod["spec"].get("nodeName", ""),
              "metadata.name": pod["metadata"]["name"],
              "metadata.namespace": pod["metadata"]["namespace"],
              "status.podIP": node_ip, "status.hostIP": node_ip}
    found = {}
    for entry in container.get("env") or ():
        reference = (entry.get("valueFrom") or {}).get("fieldRef") or {}
        value = (fields.get(reference.get("fieldPath"), "") if reference
                 else entry.get("value", ""))
        found[entry["name"]] = "" if value is None else str(value)
    return found


class Plain:
    """Running once its node has what it needs, after pod_start."""

    start_parameter = "pod_start"

    def __init__(self, context, pod, record):
        self.context, self.pod = context, pod
        self.saved = record
        self.born = now()
        self.running = bool(record.get("running"))
        self.restarts = record.get("restarts", 0)
        self.waiting = "ContainerCreating"
        self.message = ""
        self.retry_at = 0.0
        self.started_at = record.get("started", "")

    def record(self):
        return {"running": self.running, "restarts": self.restarts,
                "started": self.started_at}

    def due(self):
        return (now() - self.born >= self.context.params.seconds(
            self.start_parameter) and now() >= self.retry_at)

    def turn(self):
        if not self.running and self.due() and (
                self.pod["spec"].get("hostNetwork")
                or self.context.cni_ready()):
            self.started()

    def started(self):
        self.running, self.waiting, self.message = True, "", ""
        self.started_at = utc_now()

    def crashed(self, message):
        """Down until the back-off has passed."""
        if message != self.message:
            log.warning(f"pod {self.pod['metadata']['name']}: {message}")
        self.running, self.waiting = False, "CrashLoopBackOff"
        self.message = message
        self.restarts += 1
        factor = min(2 ** (self.restarts - 1), 30)
        self.retry_at = now() + factor * self.context.params.seconds(
            "crash_backoff")

    def kill(self):
        pass

    def _container(self, name, running):
        state = ({"running": {"startedAt": self.started_at}} if running else
                 {"waiting": {"reason": self.waiting or "PodInitializing",
                              "message": self.message}})
        return {"name": name, "ready": running, "started": running,
                "restartCount": self.restarts, "state": state}

    def status(self):
        ready = "True" if self.running else "False"
        stamp = (self.pod.get("status") or {}).get("startTime") or utc_now()
        return {
            "phase": "Running" if self.running else "Pending",
            "hostIP": self.context.config.node_ip, "startTime": stamp,
            "podIP": self.context.config.node_ip,
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "Initialized", "status": ready},
                {"type": "ContainersReady", "status": ready},
                {"type": "Ready", "status": ready}],
            "containerStatuses": [
                self._container(c["name"], self.running)
                for c in self.pod["spec"].get("containers") or ()]}


class KubeVip(Plain):
    """A process; the kubelet restarts it whenever it ends."""

    def __init__(self, context, pod, record):
        super().__init__(context, pod, record)
        self.process = None
        self.pid = record.get("pid")
        if self.pid and not _is_kube_vip(self.pid):
            self.pid = None
        self.running = self.pid is not None

    def record(self):
        return {**super().record(), "pid": self.pid}

    def turn(self):
        if self.pid is not None and not self._alive():
            code = self.process.returncode if self.process else None
            self.pid = self.process = None
            self.crashed(f"kube-vip ended with status {code}")
        if self.pid is None and self.due():
            self._start()

    def _alive(self):
        if self.process is not None:
            return self.process.poll() is None
        return _is_kube_vip(self.pid)

    def _start(self):
        context, pod = self.context, self.pod
        container = pod["spec"]["containers"][0]
        try:
            token = context.account_token(pod)
        except ApiError as error:
            self.waiting, self.message = "CreateContainerError", str(error)
            return
        directory = context.params.path("run", "pods",
                                        pod["metadata"]["uid"])
        os.makedirs(directory, mode=0o700, exist_ok=True)
        spec_file = os.path.join(directory, "spec.json")
        with open(spec_file, "w", encoding="utf-8") as file:
            json.dump({
                "args": (container.get("command") or [])
                + (container.get("args") or []),
                "env": environment(container, pod, context.config.node_ip),
                "token": token, "ca": context.ca,
                "node": context.config.node_name,
                "run": context.params.path("run"),
                "service_ip": context.config.service_ip}, file)
        env = {k: v for k, v in os.environ.items() if k != "NOTIFY_SOCKET"}
        with open(os.path.join(directory, "log"), "ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, os.path.abspath(sys.argv[0]), "kube-vip",
                 spec_file], env=env, stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, start_new_session=True)
        self.pid = self.process.pid
        self.started()

    def kill(self):
        if self.pid is not None and self._alive():
            os.kill(self.pid, signal.SIGTERM)
            if self.process is not None:
                try:
                    self.process.wait(10)
                except subprocess.TimeoutExpired:
                    self.process.kill()


class CiliumAgent(Plain):
    """Ready once it reached the API where its environment says (7.2)."""

    start_parameter = "cilium_start"

    def turn(self):
        if not self.running and self.due():
            trouble = self._reach_api()
            if trouble:
                trouble = "Unable to contact k8s api-server: " + trouble
            else:
                trouble = cilium.agent_refuses(self._cilium_config())
            if trouble:
                self.crashed(trouble)
            else:
                self._install_cni()
                self.started()
        if self.running:
            self._report()

    def _cilium_config(self):
        namespace = self.pod["metadata"]["namespace"]
        found = self.context.client.get(
            f"/api/v1/namespaces/{namespace}/configmaps/cilium-config")
        return (found or {}).get("data") or {}

    def _reach_api(self):
        """'' if the API answers there with a certificate that verifies."""
        context = self.context
        env = environment(self.pod["spec"]["containers"][0], self.pod,
                          context.config.node_ip)
        host = env.get("KUBERNETES_SERVICE_HOST", "")
        port = env.get("KUBERNETES_SERVICE_PORT", "")
        if not host:
            if os.path.exists(context.service_file()):
                return ""       # translated here already: fails at reboot
            return (f"Get \"https://{context.config.service_ip}:443\": "
                    "i/o timeout")
        if not port:
            return f"invalid address {host}: empty port"
        try:
            RemoteClient(f"https://{host}:{port}", ca_context(context.ca),
                         context.account_token(self.pod),
                         5).call("GET", "/version")
        except (RemoteError, ApiError, ValueError) as error:
            return str(error)
        log.info(f"Establishing connection to apiserver "
                 f"ipAddr=https://{host}:{port}")
        return ""

    def _install_cni(self):
        directory = self.context.params.path("cni")
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, "05-cilium.conflist"), "w",
                  encoding="utf-8") as file:
            json.dump({"cniVersion": "0.3.1", "name": "cilium",
                       "plugins": [{"type": "cilium-cni"}]}, file)

    def _report(self):
        """NetworkUnavailable False, and the service translation."""
        context = self.context
        context.publish_service()
        node = context.client.get(f"/api/v1/nodes/{context.config.node_name}")
        if node is None or any(
                c["type"] == "NetworkUnavailable" and c["status"] == "False"
                for c in node.get("status", {}).get("conditions") or ()):
            return
        stamp = utc_now()
        context.client.strategic(
            f"/api/v1/nodes/{context.config.node_name}/status",
            {"status": {"conditions": [{
                "type": "NetworkUnavailable", "status": "False",
                "reason": "CiliumIsUp",
                "message": "Cilium is running on this node",
                "lastHeartbeatTime": stamp,
                "lastTransitionTime": stamp}]}})

    def status(self):
        """The failing part is the init container `config`."""
        status = super().status()
        if not self.running and self.message:
            status["initContainerStatuses"] = [self._container("config",
                                                               False)]
            for container in status["containerStatuses"]:
                container["restartCount"] = 0
                container["state"] = {"waiting": {
                    "reason": "PodInitializing"}}
        return status


class CiliumOperator(CiliumAgent):
    """Makes Cilium's CRDs; looks for Gateway API's once, at its start."""

    def _install_cni(self):
        for crd in cilium.crds():
            self.context.client.ensure(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                crd)
        config = self._cilium_config()
        for pool in cilium.pod_pools(config):
            self.context.client.ensure(
                "/apis/cilium.io/v2alpha1/ciliumpodippools", pool)
        if config.get("enable-gateway-api") != "true":
            return
        if not cilium.gateway_api_present(self.context.client):
            log.warning("Required GatewayAPI resources are not found")
            return
        path = "/apis/gateway.networking.k8s.io/v1/gatewayclasses/cilium"
        if self.context.client.get(path) is not None:
            self.context.client.merge(path, {"status": {"conditions": [
                {"type": "Accepted", "status": "True"}]}})

    def _report(self):
        pass
