"""Nodes in network namespaces on a bridge, for the stand-in's own tests."""

import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from standin import client as http     # noqa: E402
from standin.apicore import ApiError   # noqa: E402

RemoteError = http.RemoteError

VIP = "10.77.0.100"
BRIDGE = "10.77.0.254"
# What kube-vip and the kubelets do costs CPU: the machine has two cores.
SPEED = float(os.environ.get("STANDIN_TEST_SPEED", "12"))


def run(*command, check=True):
    done = subprocess.run(command, capture_output=True, text=True,
                          check=False)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def wait_for(what, condition, timeout=45):
    """The first true value of condition(); polls, with a deadline."""
    deadline = time.monotonic() + timeout
    while True:
        with contextlib.suppress(OSError, http.RemoteError, ApiError,
                                 KeyError, ValueError, TypeError, RuntimeError):
            value = condition()
            if value:
                return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout} s")
        time.sleep(0.15)


class Lab:
    """A bridge and a directory; nodes are made on it."""

    def __init__(self, root):
        self.root = root
        self.k3s = os.path.join(root, "k3s")
        self.shared = os.path.join(root, "shared")
        self.nodes = {}
        os.makedirs(self.shared)
        self.params(speed=SPEED)
        run(os.path.join(HERE, "build.sh"), self.k3s)
        os.makedirs("/run/netns", exist_ok=True)
        run("mount", "-t", "tmpfs", "standin", "/run/netns")
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "br0", "type", "bridge")
        run("ip", "addr", "add", f"{BRIDGE}/24", "dev", "br0")
        run("ip", "link", "set", "br0", "up")

    def params(self, **values):
        """Change params.json of the running lab."""
        path = os.path.join(self.shared, "params.json")
        whole = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                whole = json.load(file)
        whole.update(values)
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(whole, file)
        os.replace(path + ".new", path)

    def node(self, name, number):
        self.nodes[name] = Node(self, name, f"10.77.0.{number}")
        return self.nodes[name]

    def close(self):
        for node in self.nodes.values():
            node.kill_all()


class Node:
    def __init__(self, lab, name, address):
        self.lab, self.name, self.address = lab, name, address
        self.root = os.path.join(lab.root, name)
        self.data = os.path.join(self.root, "data")
        self.process = None
        for directory in ("data", "etc", "run", "cni"):
            os.makedirs(os.path.join(self.root, directory))
        self.log = os.path.join(self.root, "log")
        self.notify = None
        run("ip", "netns", "add", name)
        run("ip", "link", "add", f"v-{name}", "type", "veth", "peer", "name",
            "eth0", "netns", name)
        run("ip", "link", "set", f"v-{name}", "master", "br0", "up")
        self.ip("link", "set", "lo", "up")
        self.ip("addr", "add", f"{address}/24", "dev", "eth0")
        self.ip("link", "set", "eth0", "up")

    def ip(self, *arguments, check=True):
        return run("ip", "-n", self.name, *arguments, check=check)

    def server_path(self, *parts):
        return os.path.join(self.data, "server", *parts)

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def logged(self):
        return self.read(self.log) if os.path.exists(self.log) else ""

    # life

    def configure(self, **keys):
        config = {"node-name": self.name, "node-ip": self.address,
                  "data-dir": self.data, "flannel-backend": "none",
                  "disable-kube-proxy": True,
                  "write-kubeconfig": os.path.join(self.root, "k3s.yaml"),
                  "write-kubeconfig-mode": "0600", "tls-san": [VIP],
                  "disable": ["traefik", "servicelb"]}
        config.update({k.replace("_", "-"): v for k, v in keys.items()})
        path = os.path.join(self.root, "config.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)     # JSON is YAML

    def start(self, verb="server"):
        path = os.path.join(self.root, "notify")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(path)
        self.notify.setblocking(False)
        env = {"PATH": os.environ["PATH"], "NOTIFY_SOCKET": path,
               "K3S_CONFIG_FILE": os.path.join(self.root, "config.yaml"),
               "K3S_STANDIN_SHARED": self.lab.shared}
        for name, directory in (("RUN", "run"), ("CNI", "cni"),
                                ("NODE_ETC", "etc")):
            env[f"K3S_STANDIN_{name}_DIR"] = os.path.join(self.root,
                                                          directory)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.name, self.lab.k3s, verb],
                env=env, stderr=log, stdout=log, stdin=subprocess.DEVNULL)

    def ready(self):
        """True once READY=1 arrived."""
        try:
            return b"READY=1" in self.notify.recv(4096)
        except BlockingIOError:
            return False

    def wait_ready(self, timeout=60):
        wait_for(f"{self.name} READY=1", self.ready, timeout)

    def stop(self):
        self.process.terminate()
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)    # says where it is
            self.process.wait(20)
            raise

    def kill(self):
        self.process.kill()
        self.process.wait(20)

    def wipe(self):
        shutil.rmtree(self.data)
        os.makedirs(self.data)

    def pids(self):
        return [int(p) for p in run("ip", "netns", "pids",
                                    self.name).split()]

    def kill_all(self):
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        if self.process is not None:
            self.process.wait(20)

    # requests

    def secret(self):
        return self.read(self.server_path("token")).strip().rpartition(
            ":")[2]

    def token(self):
        return self.read(self.server_path("token")).strip()

    def ca(self):
        return self.read(self.server_path("tls", "server-ca.crt"))

    def context(self, admin=False):
        pair = [self.server_path("tls", "client-admin." + end)
                for end in ("crt", "key")] if admin else None
        return http.ca_context(self.ca(), pair)

    def fetch(self, path, admin=False, basic=None, host=None):
        headers = {}
        if basic:
            text = base64.b64encode(":".join(basic).encode()).decode()
            headers["Authorization"] = "Basic " + text
        return http.fetch(f"https://{host or self.address}:6443{path}",
                          self.context(admin), headers=headers, timeout=10)

    def code(self, path, **options):
        return self.fetch(path, **options)[0]

    def loopback(self, path):
        """(code, text) of a request from inside the node."""
        script = ("import sys, json; sys.path.insert(0, sys.argv[1]);"
                  "from standin.client import *;"
                  "c, d = fetch(sys.argv[3], ca_context("
                  "open(sys.argv[2]).read()));"
                  "print(json.dumps([c, d.decode()]))")
        out = run("ip", "netns", "exec", self.name, sys.executable, "-c",
                  script, HERE, self.server_path("tls", "server-ca.crt"),
                  "https://127.0.0.1:6443" + path)
        return json.loads(out)

    def members(self):
        return json.loads(self.loopback("/db/info")[1])["members"]

    @property
    def api(self):
        return http.RemoteClient(f"https://{self.address}:6443",
                                 self.context(admin=True), timeout=10)

    def manifest(self, name, text):
        directory = self.server_path("manifests")
        temporary = os.path.join(directory, ".tmp-" + name)
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, os.path.join(directory, name))

    def carries_vip(self):
        return f" {VIP}/32 " in self.ip("-o", "addr", "show", "dev", "eth0")
