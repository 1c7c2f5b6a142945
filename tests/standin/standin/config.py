"""k3s's configuration: files, drop-ins, environment, command line (1.1, 1.2).

Every key of a file becomes `--key=value` before the real arguments, so the
command line wins; the environment is used only for what neither names.
"""

import os
import re
import socket

import yaml

from . import log

BOOLS = {
    "cluster-init": False, "with-node-id": False, "tls-san-security": True,
    "disable-network-policy": False, "disable-kube-proxy": False,
    "disable-cloud-controller": False, "disable-helm-controller": False,
    "etcd-expose-metrics": False, "embedded-registry": False,
    "secrets-encryption": False, "protect-kernel-defaults": False,
    "flannel-ipv6-masq": False, "flannel-external-ip": False,
    "supervisor-metrics": False, "disable-apiserver": False,
    "disable-scheduler": False, "disable-controller-manager": False,
    "disable-etcd": False, "debug": False, "prefer-bundled-bin": False,
    "selinux": False, "docker": False, "rootless": False,
}
LISTS = (
    "tls-san", "node-ip", "node-external-ip", "node-label", "node-taint",
    "disable", "kube-apiserver-arg", "etcd-arg", "kubelet-arg",
    "kube-controller-manager-arg", "kube-scheduler-arg",
    "helm-controller-arg", "kube-proxy-arg", "cluster-cidr", "service-cidr",
    "cluster-dns", "kube-cloud-controller-manager-arg",
)
# Only these are also split at commas.
COMMA_LISTS = ("tls-san", "disable", "node-ip", "node-external-ip",
               "cluster-cidr", "service-cidr", "cluster-dns")
SCALARS = {
    "config": "", "server": "", "token": "", "token-file": "",
    "agent-token": "", "agent-token-file": "", "bind-address": "",
    "https-listen-port": "6443", "advertise-address": "", "node-name": "",
    "flannel-backend": "vxlan", "data-dir": "/var/lib/rancher/k3s",
    "write-kubeconfig": "/etc/rancher/k3s/k3s.yaml",
    "write-kubeconfig-mode": "", "write-kubeconfig-group": "",
    "write-kubeconfig-name": "default",
    "cluster-domain": "cluster.local", "egress-selector-mode": "agent",
    "secrets-encryption-provider": "aescbc", "datastore-endpoint": "",
    "helm-job-image": "", "system-default-registry": "",
    "private-registry": "/etc/rancher/k3s/registries.yaml",
    "flannel-iface": "", "resolv-conf": "", "snapshotter": "",
    "container-runtime-endpoint": "", "pause-image": "",
    "etcd-snapshot-schedule-cron": "", "etcd-snapshot-retention": "",
    "etcd-snapshot-dir": "", "etcd-disable-snapshots": "",
    "lb-server-port": "6444", "log": "", "v": "",
    "node-internal-dns": "", "node-external-dns": "",
    "default-local-storage-path": "", "service-node-port-range": "",
    "default-runtime": "", "advertise-port": "", "vmodule": "",
}

ENVIRONMENT = {
    "K3S_TOKEN": "token", "K3S_TOKEN_FILE": "token-file",
    "K3S_URL": "server", "K3S_CLUSTER_INIT": "cluster-init",
    "K3S_AGENT_TOKEN": "agent-token", "K3S_DATA_DIR": "data-dir",
    "K3S_NODE_NAME": "node-name", "K3S_KUBECONFIG_MODE":
    "write-kubeconfig-mode", "K3S_KUBECONFIG_OUTPUT": "write-kubeconfig",
    "K3S_KUBECONFIG_GROUP": "write-kubeconfig-group",
}
SHORT = {"c": "config", "t": "token", "s": "server", "d": "data-dir",
         "o": "write-kubeconfig"}
MUST_MATCH = (
    "cluster-dns", "cluster-cidr", "service-cidr", "cluster-domain",
    "disable-cloud-controller", "disable-helm-controller",
    "disable-network-policy", "disable-service-lb", "secrets-encryption",
    "secrets-encryption-provider", "embedded-registry", "flannel-backend",
    "flannel-ipv6-masq", "flannel-external-ip", "egress-selector-mode",
    "supervisor-metrics",
)
MAX_FILE = 1 << 20


def _text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _documents(path):
    """The base file first, then the drop-ins in lexical order."""
    names = [path] if os.path.exists(path) else []
    try:
        entries = sorted(os.listdir(path + ".d"))
    except OSError:
        entries = []
    names += [os.path.join(path + ".d", entry) for entry in entries
              if entry.lower().endswith((".yaml", ".yml"))]
    for name in names:
        if not os.path.isfile(name):
            continue
        if os.path.getsize(name) > MAX_FILE:
            raise log.Fatal(f"{name}: file too large")
        with open(name, encoding="utf-8") as file:
            try:
                content = yaml.safe_load(file)
            except yaml.YAMLError as error:
                raise log.Fatal(f"failed to load {name}: {error}")
        if content is None:
            continue
        if not isinstance(content, dict):
            raise log.Fatal(f"failed to load {name}: not a mapping")
        yield content


def read_files(path):
    """One ordered mapping: a later file replaces, `key+` appends."""
    merged = {}
    for content in _documents(path):
        for key, value in content.items():
            key = str(key)
            if not key.endswith("+"):
                merged[key] = value
                continue
            key = key[:-1]
            if key not in merged:
                merged[key] = value
                continue
            old = merged[key]
            old = old if isinstance(old, list) else [old]
            new = value if isinstance(value, list) else [value]
            merged[key] = old + new
    return merged


def _pairs_of_files(merged, path):
    for key, value in merged.items():
        name = SHORT.get(key, key)
        if name not in BOOLS and name not in LISTS and name not in SCALARS:
            log.warning(f"Unknown flag --{key} found in "
                        f"{os.path.basename(path)}, skipping")
            continue
        for element in value if isinstance(value, list) else [value]:
            yield name, _text(element)


def _pairs_of_arguments(argv):
    position = 0
    while position < len(argv):
        word = argv[position]
        position += 1
        if not word.startswith("-"):
            raise log.Fatal(f"unexpected argument {word}")
        name, equals, value = word.lstrip("-").partition("=")
        name = SHORT.get(name, name)
        if name not in BOOLS and name not in LISTS and name not in SCALARS:
            raise log.Fatal(f"flag provided but not defined: -{name}")
        if not equals and name in BOOLS:
            value = "true"
        elif not equals:
            if position >= len(argv):
                raise log.Fatal(f"flag needs an argument: -{name}")
            value = argv[position]
            position += 1
        yield name, value


def _split(name, value):
    if name not in COMMA_LISTS:
        return [value]
    return [part.strip() for part in value.split(",") if part.strip()]


class Config:
    """The values of one start. Attribute access by key: c["tls-san"]."""

    def __init__(self, argv):
        arguments = list(_pairs_of_arguments(argv))
        path = dict(arguments).get("config") or "/etc/rancher/k3s/config.yaml"
        path = os.environ.get("K3S_CONFIG_FILE") or path
        given = {}
        for source in (_pairs_of_files(read_files(path), path), arguments):
            fresh = {}
            for name, value in source:
                if name in LISTS:
                    fresh.setdefault(name, []).extend(_split(name, value))
                else:
                    fresh[name] = value
            for name, value in fresh.items():
                given[name] = (given.get(name, []) + value
                               if name in LISTS else value)
        for variable, name in ENVIRONMENT.items():
            if os.environ.get(variable) and name not in given:
                given[name] = os.environ[variable]
        self.values = {name: list(given.get(name, [])) for name in LISTS}
        for name, default in SCALARS.items():
            self.values[name] = given.get(name, default)
        for name, default in BOOLS.items():
            self.values[name] = self._bool(name, given.get(name), default)
        self._derive()

    @staticmethod
    def _bool(name, value, default):
        if value is None:
            return default
        if value.lower() in ("true", "1", "t"):
            return True
        if value.lower() in ("false", "0", "f", ""):
            return False
        raise log.Fatal(f'invalid value "{value}" for flag -{name}')

    def __getitem__(self, name):
        return self.values[name]

    def _secret(self, name):
        if self[name + "-file"]:
            try:
                with open(self[name + "-file"], encoding="utf-8") as file:
                    return file.read(4096).strip()
            except OSError as error:
                raise log.Fatal(f"{name}-file: {error}")
        return self[name].strip()

    def _derive(self):
        name = self["node-name"] or socket.gethostname().split(".")[0]
        self.node_name = name.lower()
        self.node_ip = (self["node-ip"] or [default_address()])[0]
        self.port = int(self["https-listen-port"])
        self.token = self._secret("token")
        self.agent_token = self._secret("agent-token")
        self.server = self["server"].rstrip("/")
        if self.server and not self.server.startswith("https://"):
            raise log.Fatal("only https:// URLs are supported, "
                            f"invalid scheme: {self.server}")
        self.disabled = set(self["disable"])
        self.data = self["data-dir"]
        self.server_dir = os.path.join(self.data, "server")
        self.service_ip = _nth_address(
            (self["service-cidr"] or ["10.43.0.0/16"])[0], 1)

    def path(self, *parts):
        return os.path.join(self.server_dir, *parts)

    def must_match(self):
        """The flags two servers must share, as text (1.4)."""
        service = (self["service-cidr"] or ["10.43.0.0/16"])[0]
        special = {
            "cluster-cidr": ",".join(self["cluster-cidr"]
                                     or ["10.42.0.0/16"]),
            "service-cidr": ",".join(self["service-cidr"] or [service]),
            "cluster-dns": ",".join(self["cluster-dns"]
                                    or [_nth_address(service, 10)]),
            "disable-service-lb": "servicelb" in self.disabled,
        }
        return {name: _text(special.get(name, self.values.get(name)))
                for name in MUST_MATCH}

    def kubeconfig_mode(self):
        """None if unset; the digits are read in base 8, whatever they were."""
        text = self["write-kubeconfig-mode"]
        if not text:
            return 0o600
        if not re.fullmatch("[0-7]+", text):
            log.error(f"Failed to set {self['write-kubeconfig']} to mode "
                      f'{text}: strconv.ParseInt: parsing "{text}": '
                      "invalid syntax")
            return None
        return int(text, 8) & 0o7777


def default_address():
    """The address of the default route; 127.0.0.1 if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))
            return sock.getsockname()[0]
        except OSError:
            return "127.0.0.1"


def _nth_address(cidr, number):
    import ipaddress
    return str(ipaddress.ip_network(cidr, strict=False)[number])
