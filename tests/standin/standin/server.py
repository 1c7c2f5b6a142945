"""`k3s server`: found, join or resume; then bring everything up in order."""

import base64
import hashlib
import json
import os
import shutil
import threading
import uuid

from . import COMMIT, VERSION, etcd as etcd_module, httpd, join, log
from . import nodepassword, pki
from .apicore import Api, utc_now
from .client import LocalClient, ca_context
from .config import Config
from .controllers import Controllers
from .deploy import Deploy
from .helm import HelmController
from .kubelet import Kubelet
from .params import Params, now, shared_dir
from .pods import Context
from .process import (Loops, Ports, Stopped, http_greeting, sd_notify,
                      stop_on_signals)
from .serving import Serving
from .store import Store

NEWER = 3       # seconds a CA file may be newer than the datastore's copy
GAVE_UP = ("failed to wait for API server to become ready: context deadline "
           "exceeded\nthe server is currently unable to handle the request")


def _hash(secret):
    return hashlib.sha256(secret.encode()).hexdigest()


class Server:
    def __init__(self, argv):
        self.config = Config(argv)
        self.params = Params(self.config.node_name)
        self.loops = Loops(self.params)
        self.ports = Ports()
        self.store = self.etcd = self.authority = None
        self.announced = False
        self.joining = None         # TLS context towards the join server
        self.give_up = 0
        self.kubelet = self.deploy = self.client = None
        self.cluster = self.secret = ""
        self.db_dir = self.config.path("db", "etcd")

    # which mode (1.3)

    def prepare(self):
        config = self.config
        has_wal = os.path.isdir(os.path.join(self.db_dir, "member", "wal"))
        if has_wal:
            has_wal = self._respect_tombstone()
        if has_wal:
            self._resume()
        elif not config["datastore-endpoint"] and (
                config["cluster-init"] or config.server and config.token):
            if config.server:
                self._join()
            else:
                self._found()
        else:
            self._standalone()

    def _open_cluster(self, cluster):
        self.cluster = cluster
        self.store = Store(os.path.join(shared_dir(), "clusters",
                                        cluster + ".db"))
        self.etcd = etcd_module.Etcd(
            self.store, self.params, self.config.node_name,
            self.config.node_ip, self.db_dir)

    def _new_secret(self):
        return pki.secret_of(self.config.token) or os.urandom(16).hex()

    def _fill_new_store(self):
        self.authority = pki.Authority.create()
        self.store.set_meta("bundle", self.authority.bundle)
        self.store.set_meta("secret", _hash(self.secret))

    def _found(self):
        log.info("Managed etcd cluster initializing")
        self.secret = self._new_secret()
        self._open_cluster(os.urandom(8).hex())
        old = self.config.path("db", "state.db")
        if os.path.exists(old):
            self._migrate(old)
        else:
            self._fill_new_store()
        self.etcd.found()
        self.etcd.save(self.cluster)

    def _migrate(self, path):
        """SQLite data from before cluster-init goes into etcd."""
        log.info("Migrating content from sqlite to etcd")
        old = Store(path)
        self.store.copy_objects_from(old)
        self.authority = pki.Authority(old.get_meta("bundle"))
        self.store.set_meta("bundle", self.authority.bundle)
        self.store.set_meta("secret", old.get_meta("secret"))
        self._check_secret()
        old.close()
        os.rename(path, path + ".migrated")

    def _standalone(self):
        log.info("Using SQLite: a cluster of this node alone")
        self.store = Store(self.config.path("db", "state.db"))
        bundle = self.store.get_meta("bundle")
        if bundle is None:
            self.secret = self._new_secret()
            self._fill_new_store()
            return
        self.authority = pki.Authority(bundle)
        self._check_secret()

    def _resume(self):
        with open(os.path.join(self.db_dir, "standin.json"),
                  encoding="utf-8") as file:
            self._open_cluster(json.load(file)["cluster"])
        self.etcd.load()
        bundle = self.store.get_meta("bundle")
        if bundle is None:
            raise log.Fatal(join.FAILED + "the stand-in's shared store of "
                            f"cluster {self.cluster} is gone")
        self.authority = pki.Authority(bundle)
        self._check_secret()
        self._check_newer_cas()
        log.info(f"Managed etcd cluster member {self.etcd.name} resuming")

    def _check_secret(self):
        given = pki.secret_of(self.config.token)
        if not given:
            given = pki.secret_of(_content(self.config.path("token")))
        if _hash(given) != self.store.get_meta("secret"):
            raise log.Fatal(join.FAILED + "bootstrap data already found and "
                            "encrypted with different token")
        self.secret = given

    def _check_newer_cas(self):
        """A newer, different CA on disk is fatal (3.4)."""
        founded = os.stat(self.store.path).st_mtime
        for name in pki.CA_NAMES:
            path = self.config.path("tls", name + ".crt")
            text = _content(path)
            if text and text.strip() != self.authority.ca(name)[0].strip() \
                    and os.stat(path).st_mtime > founded + NEWER:
                raise log.Fatal(
                    join.FAILED + f"failed to reconcile with local "
                    f"datastore: {path} newer than datastore and could "
                    "cause a cluster outage. Remove the file(s) from disk "
                    "and restart to be recreated from datastore.")

    def _respect_tombstone(self):
        if not os.path.exists(os.path.join(self.db_dir, "tombstone")):
            return True
        if not self.config.server:
            raise log.Fatal("this node has been removed from the cluster; "
                            "refusing to start without a server to join")
        log.info("etcd tombstone found: removing the old data and rejoining")
        shutil.rmtree(self.db_dir)
        return False

    def _join(self):
        config = self.config
        token = pki.Token(config.token)
        self.secret = token.secret
        bundle = join.trusted_bundle(config.server, token,
                                     config.path("tls", "server-ca.crt"))
        context = ca_context(bundle)
        join.compare_config(config, context)
        answer = join.get_bootstrap(config, context)
        self.authority = pki.Authority(answer["bundle"])
        self._open_cluster(answer["cluster"])
        self.joining = context

    # files (2.4)

    def write_files(self):
        config, authority = self.config, self.authority
        for directory in ("manifests", "static", "cred", "tls"):
            os.makedirs(config.path(directory), mode=0o700, exist_ok=True)
        tls = config.path("tls")
        authority.write_cas(tls)
        for name, ca, common, group in (
                ("client-admin", "client-ca", "system:admin",
                 "system:masters"),
                ("client-supervisor", "client-ca", "system:k3s-supervisor",
                 "system:masters"),
                ("client-kube-apiserver", "client-ca", "system:apiserver",
                 "system:masters"),
                ("etcd/client", "etcd/server-ca", "etcd-client", None)):
            authority.write_leaf(os.path.join(tls, name), ca, common, group)
        sans = ["127.0.0.1", "localhost", config.node_name, config.node_ip]
        authority.write_leaf(os.path.join(tls, "serving-kube-apiserver"),
                             "server-ca", "kube-apiserver", None,
                             sans + [config.service_ip], server=True)
        for name, ca in (("etcd/server-client", "etcd/server-ca"),
                         ("etcd/peer-server-client", "etcd/peer-ca")):
            authority.write_leaf(os.path.join(tls, name), ca,
                                 os.path.basename(name), None, sans,
                                 server=True)
        self._write_tokens()
        self._write_kubeconfig()

    def _write_tokens(self):
        config = self.config
        pin = pki.ca_hash(self.authority.server_ca)
        path = config.path("token")
        pki.write(path, f"K10{pin}::server:{self.secret}\n", 0o600)
        _link("token", config.path("node-token"))
        agent = pki.secret_of(config.agent_token)
        if agent:
            _unlink(config.path("agent-token"))
            pki.write(config.path("agent-token"),
                      f"K10{pin}::node:{agent}\n", 0o600)
        else:
            _link("token", config.path("agent-token"))
        pki.write(config.path("cred", "passwd"),
                  f"{agent or self.secret},node,node,k3s:agent\n"
                  f"{self.secret},server,server,k3s:server\n", 0o600)

    def _write_kubeconfig(self):
        config = self.config

        def encoded(path):
            return base64.b64encode(_content(path).encode()).decode()

        tls = config.path("tls")
        name = config["write-kubeconfig-name"]
        text = json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "preferences": {},
            "clusters": [{"name": name, "cluster": {
                "certificate-authority-data": encoded(tls +
                                                      "/server-ca.crt"),
                "server": f"https://127.0.0.1:{config.port}"}}],
            "contexts": [{"name": name, "context": {"cluster": name,
                                                    "user": name}}],
            "users": [{"name": name, "user": {
                "client-certificate-data": encoded(tls +
                                                   "/client-admin.crt"),
                "client-key-data": encoded(tls + "/client-admin.key")}}],
        }, indent=2) + "\n"
        mode = config.kubeconfig_mode()
        pki.write(config["write-kubeconfig"], text,
                  0o600 if mode is None else mode)

    # bring-up

    def start_supervisor(self):
        config = self.config
        self.serving = Serving(config, self.authority, self.params)
        agent = pki.secret_of(config.agent_token)
        self.supervisor = httpd.Supervisor(
            config, self.authority, self.serving,
            (self.secret, agent or self.secret))
        self.supervisor.etcd = self.etcd
        self.supervisor.bootstrap = {"bundle": self.authority.bundle,
                                     "cluster": self.cluster}
        bind = config["bind-address"] or "0.0.0.0"
        for address in ((bind, config.port), ("127.0.0.1", config.port + 1)):
            try:
                listener = httpd.Listener(address, self.supervisor)
            except OSError as error:
                raise log.Fatal(f"listen tcp {address[0]}:{address[1]}: "
                                f"bind: {error.strerror}")
            threading.Thread(target=listener.serve_forever, args=(1.0,),
                             daemon=True, name="listener").start()
        log.info(f"Listening on {bind}:{config.port}")
        self.loops.pause(self.params.seconds("start_delay"))
        self.supervisor.handlers_ready = True

    def _pause(self, interval):
        """Between two tries of what the API waits for."""
        if now() > self.give_up:
            raise log.Shutdown(GAVE_UP)
        self.loops.pause(self.params.seconds(interval))

    def start_etcd(self):
        self.give_up = now() + self.params.seconds("api_wait")
        if self.etcd is None:
            return
        if self.joining is not None:
            join.become_member(self.config, self.joining, self.etcd,
                               self._pause)
            self.etcd.save(self.cluster)
        self.loops.pause(self.params.seconds("etcd_start"))
        for host in dict.fromkeys(("127.0.0.1", self.config.node_ip)):
            self.ports.listen(host, 2379)
            self.ports.listen(host, 2380)
        self.ports.listen("127.0.0.1", 2381,
                          http_greeting('{"health":"true","reason":""}'))
        self.etcd.mark_started()
        self.loops.start("etcd_tick", self._etcd_turn)
        self.loops.start("promote_tick", self._leader_turn)
        trouble = self.etcd.test()
        while trouble:
            log.info(f"Failed to test etcd connection: {trouble}")
            self._pause("etcd_poll")
            trouble = self.etcd.test()
        log.info("Connection to etcd is ready")

    def _etcd_turn(self):
        self.etcd.tick()
        if self.etcd.removed.is_set():
            with open(os.path.join(self.db_dir, "tombstone"), "w",
                      encoding="utf-8"):
                pass
            raise log.Fatal("this node has been removed from the cluster; "
                            "restart k3s to rejoin")

    def _leader_turn(self):
        if self.etcd.is_leader():
            self.etcd.manage_learners()
            if self.supervisor.api_ready:
                self._write_conditions()

    def _write_conditions(self):
        """EtcdIsVoter of every etcd node (4.5)."""
        for node in self.client.items(
                "/api/v1/nodes?labelSelector="
                "node-role.kubernetes.io/etcd%3Dtrue"):
            meta = node["metadata"]
            member = (meta.get("annotations") or {}).get(
                "etcd.k3s.cattle.io/node-name", "")
            status, reason, message = self.etcd.condition(meta["name"],
                                                          member)
            present = next(
                (c for c in node.get("status", {}).get("conditions", ())
                 if c["type"] == "EtcdIsVoter"), {})
            if (present.get("status"), present.get("reason")) == (status,
                                                                  reason):
                continue
            stamp = utc_now()
            self.client.strategic(
                f"/api/v1/nodes/{meta['name']}/status",
                {"status": {"conditions": [{
                    "type": "EtcdIsVoter", "status": status,
                    "reason": reason, "message": message,
                    "lastHeartbeatTime": stamp,
                    "lastTransitionTime": stamp}]}})

    def start_apiserver(self):
        self.loops.pause(self.params.seconds("apiserver_start"))
        while self.params.held("apiserver"):
            self._pause("etcd_poll")
        api = Api(self.store, self.etcd, self.params, self.authority)
        self.client = LocalClient(api)
        self.supervisor.api = api
        self.supervisor.api_ready = True
        self._seed()
        self.loops.pause(self.params.seconds("api_settle"))
        self.supervisor.api_settled = True
        self.loops.start("serving_sync", self._serving_turn)
        self.loops.start("etcd_poll", self._announce)

    def _announce(self):
        """READY=1 once; it waits neither for the Node nor for a CNI."""
        if not self.announced and not self.params.held("ready"):
            self.announced = True
            log.info("Kube API server is now running")
            if self.etcd is not None:
                log.info("ETCD server is now running")
            log.info("k3s is up and running")
            sd_notify("READY=1")

    def _serving_turn(self):
        self.serving.sync(self.client)

    def _seed(self):
        """What an apiserver makes for itself."""
        for name in ("default", "kube-system", "kube-public",
                     "kube-node-lease"):
            self.client.ensure("/api/v1/namespaces", {
                "metadata": {"name": name}})
        self.client.ensure(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles", {
                "metadata": {"name": "cluster-admin"},
                "rules": [{"apiGroups": ["*"], "resources": ["*"],
                           "verbs": ["*"]}]})
        self.client.ensure("/api/v1/namespaces/default/services", {
            "metadata": {"name": "kubernetes"},
            "spec": {"clusterIP": self.config.service_ip, "ports": [
                {"name": "https", "port": 443,
                 "targetPort": self.config.port}]}})
        self.client.ensure("/api/v1/namespaces/kube-system/configmaps", {
            "metadata": {"name": "kube-root-ca.crt"},
            "data": {"ca.crt": self.authority.server_ca}})

    def start_controllers(self):
        self.deploy = Deploy(self.client, self.store, self.config)
        self.deploy.stage()
        self.supervisor.new_kubelet = self._new_kubelet
        self._start_kubelet()
        self.loops.start("deploy_scan", self.deploy.turn)
        for controller in (
                Controllers(self.client, self.etcd, self.store, self.params),
                HelmController(self.client, self.etcd, self.params,
                               self.config)):
            self.loops.start("controller_tick", controller.turn)
        self.loops.pause(self.params.seconds("controllers_start"))
        self.supervisor.controllers_ready = True

    def _servers(self):
        addresses = [self.config.node_ip]
        if self.etcd is not None:
            addresses = [m.address for m in etcd_module.members(self.store)
                         if not m.learner]
        return [f"{a}:{self.config.port}" for a in addresses]

    def _start_kubelet(self):
        config = self.config
        context = Context(config, self.params, self.client,
                          self.authority.server_ca, self._servers,
                          self.store)
        self.kubelet = Kubelet(config, self.params, self.client, context,
                               self.etcd.name if self.etcd else None)
        context.cni_ready = self.kubelet.cni_ready
        self.ports.listen("0.0.0.0", 10250)
        self.ports.listen("127.0.0.1", 10248, http_greeting("ok"))
        if not config["disable-kube-proxy"]:
            self.ports.listen("127.0.0.1", 10249, http_greeting("ok"))
            self.ports.listen("0.0.0.0", 10256, http_greeting("ok"))
            context.publish_service()
        self._check_password()
        self.kubelet.register()
        self.loops.start("kubelet_tick", self.kubelet.turn)

    def _check_password(self):
        """On a server a wrong node password is only an Event (3.4)."""
        password = nodepassword.local(self.params.path("node_etc"))
        name = self.config.node_name
        try:
            nodepassword.ensure(self.client, name, password)
        except PermissionError as error:
            log.warning(str(error))
            self.client.create("/api/v1/namespaces/default/events", {
                "metadata": {"name": f"{name}.{uuid.uuid4().hex[:16]}",
                             "namespace": "default"},
                "involvedObject": {"kind": "Node", "name": name},
                "reason": "NodePasswordValidationFailed",
                "message": f"Deferred node password secret validation "
                           f"failed: {error}", "type": "Warning"})

    def _new_kubelet(self, node, password):
        nodepassword.ensure(self.client, node, password)
        return httpd.new_kubelet_pair(self.authority, node)

    def run(self):
        log.info(f"Starting k3s {VERSION} ({COMMIT})")
        self.prepare()
        self.write_files()
        self.start_supervisor()
        self.start_etcd()
        self.start_apiserver()
        self.start_controllers()
        self.loops.wait()

    def close(self):
        sd_notify("STOPPING=1")
        if self.kubelet is not None:
            self.kubelet.close()
        if self.etcd is not None and self.etcd.id is not None:
            self.etcd.resign()


def _content(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def _unlink(path):
    if os.path.lexists(path):
        os.unlink(path)


def _link(target, path):
    _unlink(path)
    os.symlink(target, path)


def run(argv):
    server = Server(argv)
    stop_on_signals(server.loops.stop)
    try:
        server.run()
    except Stopped:
        pass
    server.close()
    if server.loops.failure is not None:
        raise server.loops.failure
    return 0
