"""Every interval of the stand-in, in seconds of real k3s.

Order of precedence: environment K3S_STANDIN_<NAME>, then the node's own
section `nodes.<name>` of params.json, then its top level, then the default.
`speed` divides every interval. The file is looked at again when it changes,
so a test can change a value or set a hold while the node runs.
"""

import json
import os
import threading
import time

DEFAULTS = {
    "speed": 1.0,
    "start_delay": 1.0,         # process start -> listener on 6443
    "etcd_start": 2.0,          # member known -> etcd serves
    "etcd_poll": 5.0,           # k3s asks etcd "are you a voter" this often
    "etcd_tick": 1.0,           # heartbeats and probes of the peers
    "peer_timeout": 2.5,        # silent peer -> lost; twice this: new leader
    "peer_settled": 5.0,        # peer up for less: no member is added
    "apiserver_start": 4.0,
    "controllers_start": 3.0,   # apiserver -> /v1-k3s/readyz
    "promote_tick": 15.0,       # learner promotion and EtcdIsVoter
    "learner_stall": 300.0,     # learner without progress -> evicted
    "join_retry": 1.0,
    "api_wait": 900.0,          # no API by then: k3s ends, systemd restarts
    "deploy_scan": 15.0,
    "controller_tick": 1.0,
    "kubelet_tick": 2.0,
    "node_status": 10.0,        # kubelet renews its node lease
    "node_grace": 40.0,         # silent node -> Ready Unknown
    "api_settle": 2.5,          # apiserver answers -> its /readyz is 200
    "api_read": 60.0,           # without quorum a read fails after this,
    "api_write": 15.0,          # a write after this; 34 once that is known
    "pod_start": 2.0,
    "cilium_start": 8.0,
    "crash_backoff": 10.0,
    "helm_resume": 2.0,         # the job is created suspended
    "helm_run": 12.0,
    "serving_sync": 5.0,        # serving certificate read back from the Secret
}

# Not intervals: never divided by speed.
FLAGS = {
    "hold": [],                 # ready, promotion, apiserver, learner, helm
    "helm_fail": "",            # message: every helm job pod fails with it
    "kubevip_survives": True,   # KillMode=process leaves it running
}

# Where a node keeps what survives k3s but not a reboot, and what it finds
# outside k3s's own directory. Tests that share one root set them.
PATHS = {
    "run": "/run/k3s/standin",
    "cni": "/etc/cni/net.d",
    "node_etc": "/etc/rancher/node",
}

# Two busy cores stall a process for hundreds of ms: below these a timer
# measures the machine and not the subject.
FLOORS = {"peer_timeout": 1.5, "api_read": 1.0, "api_write": 1.0}
FLOOR = 0.2


def shared_dir():
    return os.environ.get("K3S_STANDIN_SHARED", "/run/standin")


class Params:
    def __init__(self, node=""):
        self.node = node
        self.file = os.environ.get(
            "K3S_STANDIN_PARAMS", os.path.join(shared_dir(), "params.json"))
        self._lock = threading.Lock()
        self._stamp = None
        self._values = {}

    def _load(self):
        try:
            st = os.stat(self.file)
            stamp = (st.st_mtime_ns, st.st_size, st.st_ino)
        except OSError:
            stamp, self._values = None, {}
        if stamp == self._stamp:
            return
        try:
            with open(self.file, encoding="utf-8") as file:
                whole = json.load(file)
        except (OSError, ValueError):
            return      # being written: the old values stand
        nodes = whole.pop("nodes", {})
        whole.update(nodes.get(self.node, {}))
        self._stamp, self._values = stamp, whole

    def _raw(self, name, default):
        env = os.environ.get("K3S_STANDIN_" + name.upper())
        if env is not None:
            return env
        with self._lock:
            self._load()
            return self._values.get(name, default)

    def speed(self):
        return max(float(self._raw("speed", DEFAULTS["speed"])), 0.01)

    def seconds(self, name):
        value = float(self._raw(name, DEFAULTS[name])) / self.speed()
        return max(value, FLOORS.get(name, FLOOR))

    def flag(self, name):
        value = self._raw(name, FLAGS[name])
        if isinstance(FLAGS[name], bool) and isinstance(value, str):
            return value.lower() in ("1", "true", "yes")
        return value

    def path(self, name, *parts):
        return os.path.join(self._raw(name + "_dir", PATHS[name]), *parts)

    def held(self, what):
        hold = self.flag("hold")
        return what in (hold.split(",") if isinstance(hold, str) else hold)

    def vip_speed(self):
        clock = float(self._raw("vip_clock", 0))
        return clock if clock > 0 else self.speed()


def now():
    """CLOCK_MONOTONIC: one clock for all nodes of a lab on one kernel."""
    return time.monotonic()
