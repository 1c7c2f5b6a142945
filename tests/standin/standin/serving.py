"""The certificate of :6443 and its SANs (contract 4.3).

One certificate for all servers: Secret kube-system/k3s-serving once the API
is there, cached in tls/dynamic-cert.json. SANs only grow. An address that a
client dialled is added only if the filter lets it.
"""

import base64
import json
import os
import ssl
import tempfile
import threading

from . import log, pki

SECRET = "/api/v1/namespaces/kube-system/secrets/k3s-serving"
PREFIX = "listener.cattle.io/cn-"


def initial_sans(config):
    name, domain = config.node_name, config["cluster-domain"]
    sans = ["127.0.0.1", "::1", "localhost", name, name.split(".")[0],
            config.service_ip, "kubernetes", "kubernetes.default",
            "kubernetes.default.svc", f"kubernetes.default.svc.{domain}"]
    sans += config["node-ip"] or [config.node_ip]
    sans += config["node-external-ip"] + config["tls-san"]
    return set(sans)


class Serving:
    def __init__(self, config, authority, params):
        self.config, self.authority, self.params = config, authority, params
        self.cache = config.path("tls", "dynamic-cert.json")
        self.initial = initial_sans(config)
        self.node_addresses = set()     # of control-plane and etcd nodes
        self.sans = set()
        self._pair = None
        self._wanted = set(self.initial)
        self._lock = threading.Lock()
        self.context = self._new_context()
        self._load_cache()
        with self._lock:
            self._cover(self._wanted)

    def _new_context(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # Client certificates are asked for; without one: basic or bearer.
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(
            cadata=self.authority.ca("client-ca")[0])
        return context

    def _load_cache(self):
        try:
            with open(self.cache, encoding="utf-8") as file:
                secret = json.load(file)
            self._adopt(secret)
        except (OSError, ValueError, KeyError):
            pass

    def _adopt(self, secret):
        """Take the pair of a Secret as ours."""
        pair = tuple(base64.b64decode(secret["data"][key]).decode()
                     for key in ("tls.crt", "tls.key"))
        if pair != self._pair:
            self._use(pair)

    def _use(self, pair):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "pair")
            pki.write(path, pair[0] + pair[1], 0o600)
            self.context.load_cert_chain(path)
        self._pair, self.sans = pair, pki.sans_of(pair[0])

    def _cover(self, names):
        """A new certificate unless the present one has all of `names`."""
        if names <= self.sans:
            return
        self._use(pki.new_leaf(self.authority.ca("server-ca"), "k3s", "k3s",
                               sorted(self.sans | names), server=True))
        self._save()

    def _secret(self):
        annotations = {PREFIX + san: san for san in sorted(self.sans)}
        return {
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "k3s-serving", "namespace": "kube-system",
                         "annotations": annotations},
            "type": "kubernetes.io/tls",
            "data": {key: base64.b64encode(text.encode()).decode()
                     for key, text in zip(("tls.crt", "tls.key"),
                                          self._pair)}}

    def _save(self):
        pki.write(self.cache, json.dumps(self._secret()), 0o600)

    def dialled(self, address):
        """A client reached us at this local address or by this name."""
        if self.config["tls-san-security"] and address not in (
                self.initial | self.node_addresses):
            return
        with self._lock:
            self._wanted.add(address)
            self._cover({address})

    def sync(self, client):
        """Agree with the other servers through the Secret."""
        nodes = client.items("/api/v1/nodes")
        self.node_addresses = {
            address["address"] for node in nodes
            if {"node-role.kubernetes.io/control-plane",
                "node-role.kubernetes.io/etcd"}
            & set(node["metadata"].get("labels") or {})
            for address in node.get("status", {}).get("addresses", ())}
        with self._lock:
            shared = client.get(SECRET)
            if shared is None:
                client.create(os.path.dirname(SECRET), self._secret())
                return
            annotations = shared["metadata"].get("annotations") or {}
            theirs = {value for key, value in annotations.items()
                      if key.startswith(PREFIX)}
            self._adopt(shared)
            self._save()
            if annotations.get("listener.cattle.io/static") == "true" \
                    or self._wanted <= theirs:
                return
            self._cover(self._wanted | theirs)
            secret = self._secret()
            secret["metadata"]["resourceVersion"] = shared["metadata"][
                "resourceVersion"]
            log.info("certificate CN=k3s,O=k3s signed by CN=k3s-server-ca: "
                     f"{len(self.sans)} names")
            client.put(SECRET, secret)
