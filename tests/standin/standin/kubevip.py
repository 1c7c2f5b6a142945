"""kube-vip in ARP control-plane mode, as a process of its own (section 6).

Started by the kubelet with a JSON file: args and env of the container, the
ServiceAccount's token, the CA. It outlives `systemctl stop k3s`.
"""

import json
import os
import random
import socket
import struct
import subprocess
import threading
import time
from datetime import datetime, timezone

from . import log
from .apicore import ApiError
from .client import RemoteClient, RemoteError, ca_context
from .params import Params, now
from .process import stop_on_signals

TRUE = ("true", "1", "t", "T", "TRUE", "True")
FALSE = ("false", "0", "f", "F", "FALSE", "False")
ETH_P_ARP = 0x0806


def ip(*arguments):
    """The output of ip(8), or None if it failed."""
    done = subprocess.run(("ip",) + arguments, capture_output=True,
                          text=True, timeout=10, check=False)
    return done.stdout if done.returncode == 0 else None


class Settings:
    """The environment, parsed as strictly as kube-vip does (6.1)."""

    def __init__(self, spec):
        env = self.env = spec["env"]
        if "manager" not in spec["args"]:
            raise log.Fatal("no command: nothing to manage")
        self.arp = self._bool("vip_arp")
        self.control_plane = self._bool("cp_enable")
        self.address = env.get("address") or env.get("vip_address", "")
        self.prefix = self._int("vip_subnet", 32)
        self.interface = env.get("vip_interface") or _default_interface()
        self.namespace = env.get("cp_namespace") or "kube-system"
        self.lease = env.get("vip_leasename") or "plndr-cp-lock"
        self.identity = env.get("vip_nodename") or socket.gethostname(
            ).lower()
        self.duration = self._int("vip_leaseduration", 15)
        self.renew = self._int("vip_renewdeadline", 10)
        self.retry = self._int("vip_retryperiod", 2)
        rate = self._int("vip_arpRate", 3000)
        self.arp_rate = (3000 if rate < 500 else rate) / 1000
        self.host = env.get("KUBERNETES_SERVICE_HOST") or spec["service_ip"]
        self.port = env.get("KUBERNETES_SERVICE_PORT") or (
            "443" if self.host == spec["service_ip"] else "6443")
        self._check()

    def _bool(self, name):
        value = self.env.get(name) or "false"
        if value not in TRUE + FALSE:
            raise log.Fatal(f'strconv.ParseBool: parsing "{value}": invalid '
                            f"syntax ({name})")
        return value in TRUE

    def _int(self, name, default):
        value = self.env.get(name)
        if not value:
            return default
        if not value.isascii() or not value.isdigit():
            raise log.Fatal(f'strconv.ParseInt: parsing "{value}": invalid '
                            f"syntax ({name})")
        return int(value)

    def _check(self):
        if not self.arp:
            raise log.Fatal("no mode is enabled")
        if not self.control_plane:
            raise log.Fatal("no features are enabled")
        if not self.address:
            raise log.Fatal("no address")
        if self.prefix > 32:
            raise log.Fatal(f"invalid CIDR {self.address}/{self.prefix}")
        if not (self.duration > self.renew > 1.2 * self.retry):
            raise log.Fatal("leaseDuration must be greater than "
                            "renewDeadline, and that than retryPeriod*1.2")
        shown = ip("-o", "link", "show", "dev", self.interface)
        if shown is None:
            raise log.Fatal(f"interface {self.interface}: no such device")
        if ",UP" not in shown and "<UP" not in shown:
            raise log.Fatal(f"interface {self.interface} is not up")


def _default_interface():
    words = (ip("-4", "route", "show", "default") or "").split()
    if "dev" not in words:
        raise log.Fatal("unable to detect the default interface")
    return words[words.index("dev") + 1]


class Address:
    """The VIP on the interface, and its gratuitous ARP."""

    def __init__(self, settings):
        self.settings = settings
        self.cidr = f"{settings.address}/{settings.prefix}"

    def _args(self, verb):
        return ("addr", verb, self.cidr, "dev", self.settings.interface)

    def add(self):
        # Deprecated on purpose: never a source address.
        ip(*self._args("replace"), "valid_lft", "forever", "preferred_lft",
           "0")

    def remove(self):
        ip(*self._args("del"))

    def announce(self):
        interface = self.settings.interface
        try:
            with open(f"/sys/class/net/{interface}/address",
                      encoding="ascii") as file:
                mac = bytes.fromhex(file.read().strip().replace(":", ""))
            vip = socket.inet_aton(self.settings.address)
            everyone = b"\xff" * 6
            frame = (everyone + mac + struct.pack("!H", ETH_P_ARP)
                     + struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1)
                     + mac + vip + everyone + vip)
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
                sock.bind((interface, ETH_P_ARP))
                sock.send(frame)
        except OSError as error:
            log.warning(f"gratuitous ARP: {error}")


def micro_time():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Election:
    """client-go's lease protocol (section 10)."""

    def __init__(self, settings, client, scale):
        self.settings, self.client, self.scale = settings, client, scale
        self.path = (f"/apis/coordination.k8s.io/v1/namespaces/"
                     f"{settings.namespace}/leases")
        self.seen, self.seen_at = None, 0.0
        self.said = None

    def attempt(self):
        """One try to acquire or renew; True if we hold the lease."""
        try:
            return self._attempt()
        except (ApiError, RemoteError) as error:
            if str(error) != self.said:
                log.error("error retrieving resource lock "
                          f"{self.settings.namespace}/{self.settings.lease}"
                          f": {error}")
            self.said = str(error)
            return False

    def _attempt(self):
        me, stamp = self.settings.identity, micro_time()
        spec = {"holderIdentity": me, "acquireTime": stamp,
                "renewTime": stamp, "leaseTransitions": 0,
                "leaseDurationSeconds": self.settings.duration}
        lease = self.client.get(f"{self.path}/{self.settings.lease}")
        if lease is None:
            self.client.create(self.path, {
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": self.settings.lease,
                             "namespace": self.settings.namespace},
                "spec": spec})
            return True
        old = lease.get("spec") or {}
        if old != self.seen:
            self.seen, self.seen_at = old, now()
        holder = old.get("holderIdentity") or ""
        until = self.seen_at + old.get("leaseDurationSeconds",
                                       0) / self.scale
        if holder not in ("", me) and until > now():
            return False
        transitions = old.get("leaseTransitions", 0)
        if holder == me:
            spec["acquireTime"] = old.get("acquireTime", stamp)
            spec["leaseTransitions"] = transitions
        else:
            spec["leaseTransitions"] = transitions + 1
        lease["spec"] = {**old, **spec}
        self.client.put(f"{self.path}/{self.settings.lease}", lease)
        return True

    def release(self):
        try:
            lease = self.client.get(f"{self.path}/{self.settings.lease}")
            if lease is None or lease["spec"].get(
                    "holderIdentity") != self.settings.identity:
                return
            stamp = micro_time()
            lease["spec"].update(holderIdentity="", leaseDurationSeconds=1,
                                 renewTime=stamp, acquireTime=stamp)
            self.client.put(f"{self.path}/{self.settings.lease}", lease)
        except (ApiError, RemoteError) as error:
            log.error(f"Failed to release lock: {error}")


class ServiceClient(RemoteClient):
    """The in-cluster address: works only if this node translates it."""

    def __init__(self, spec, context, token, timeout):
        super().__init__("", context, token, timeout)
        self.file = os.path.join(spec["run"], "service-endpoints.json")
        self.base = self.what = f"https://{spec['service_ip']}:443"

    def call(self, method, path, body=None, content_type="application/json"):
        try:
            with open(self.file, encoding="utf-8") as file:
                endpoints = json.load(file)
        except (OSError, ValueError):
            endpoints = []
        trouble = None
        for endpoint in endpoints:
            self.base = f"https://{endpoint}"
            try:
                return super().call(method, path, body, content_type)
            except RemoteError as error:
                trouble = error
        if trouble is None:
            time.sleep(min(self.timeout, 5))
        raise RemoteError(f'Get "{self.what}{path}": dial tcp '
                          f"{self.what[8:]}: i/o timeout")


class KubeVip:
    def __init__(self, spec):
        self.settings = settings = Settings(spec)
        scale = self.scale = Params(spec["node"]).vip_speed()
        self.address = Address(settings)
        context = ca_context(spec["ca"])
        # A refused or black-holed call may take the whole deadline.
        timeout = max(settings.renew / scale, 0.5)
        if settings.host == spec["service_ip"]:
            client = ServiceClient(spec, context, spec["token"], timeout)
        else:
            client = RemoteClient(f"https://{settings.host}:{settings.port}",
                                  context, spec["token"], timeout)
        self.election = Election(settings, client, scale)
        self.stop = threading.Event()

    def _wait(self, seconds):
        return self.stop.wait(max(seconds / self.scale, 0.1))

    def run(self):
        self.address.remove()
        while not self.election.attempt():
            if self._wait(self.settings.retry * random.uniform(1, 2.2)):
                return
        log.info(f"node [{self.settings.identity}] is assuming leadership "
                 "of the cluster")
        lost = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(lost,))
        keeper.start()
        self._renew()
        # client-go releases first and calls OnStoppedLeading afterwards:
        # the VIP stays while a black-holed release runs into its deadline.
        self.election.release()
        lost.set()
        keeper.join()
        self.address.remove()

    def _keep(self, lost):
        """Re-add and announce, at the rate of vip_arpRate."""
        while not lost.is_set():
            self.address.add()
            self.address.announce()
            lost.wait(max(self.settings.arp_rate / self.scale, 0.2))

    def _renew(self):
        deadline = now() + self.settings.renew / self.scale
        while not self._wait(self.settings.retry):
            if self.election.attempt():
                deadline = now() + self.settings.renew / self.scale
            elif now() > deadline:
                log.info("leader election lost: "
                         f"{self.settings.identity}")
                return


def run(argv):
    with open(argv[0], encoding="utf-8") as file:
        spec = json.load(file)
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("kube-vip")
    vip = KubeVip(spec)
    stop_on_signals(vip.stop)
    vip.run()
    return 0
