"""`k3s agent`: a worker. Checks the CA, gets a kubelet pair, runs pods."""

import json
import os

from . import COMMIT, VERSION, join, log, nodepassword, pki
from .client import RemoteClient, RemoteError, ca_context, fetch
from .config import Config
from .kubelet import Kubelet
from .params import Params
from .pods import Context
from .process import (Loops, Ports, Stopped, http_greeting, sd_notify,
                      stop_on_signals)


class Agent:
    def __init__(self, argv):
        self.config = Config(argv)
        self.params = Params(self.config.node_name)
        self.loops = Loops(self.params)
        self.ports = Ports()
        self.kubelet = None
        self.directory = os.path.join(self.config.data, "agent")
        if not self.config.server:
            raise log.Fatal("--server is required")
        if not self.config.token:
            raise log.Fatal("--token is required")

    def _wait_for_ca(self, token):
        """An agent waits for its server for ever; a wrong CA is fatal."""
        said = None
        while True:
            try:
                return join.trusted_bundle(
                    self.config.server, token,
                    os.path.join(self.directory, "server-ca.crt"))
            except log.Fatal as error:
                if "does not match" in str(error):
                    raise
                if str(error) != said:
                    log.error(f"Failed to validate connection: {error}")
                said = str(error)
            self.loops.pause(self.params.seconds("join_retry"))

    def _pair(self, context, token):
        password = nodepassword.local(self.params.path("node_etc"))
        headers = join.basic("node", token.secret)
        headers.update({"k3s-Node-Name": self.config.node_name,
                        "k3s-Node-Password": password})
        url = self.config.server + "/v1-k3s/client-kubelet.crt"
        said = None
        while True:
            try:
                code, data = fetch(url, context, "POST", headers)
                if code == 200:
                    return json.loads(data)
                text = f"{code} {json.loads(data).get('message', '')}"
            except (RemoteError, ValueError) as error:
                code, text = 0, str(error)
            if code == 403:
                text = nodepassword.REJECTED
            if text != said:
                log.error(f"Waiting to retrieve agent configuration; {text}")
            said = text
            self.loops.pause(self.params.seconds("join_retry"))

    def run(self):
        log.info(f"Starting k3s agent {VERSION} ({COMMIT})")
        token = pki.Token(self.config.token)
        bundle = self._wait_for_ca(token)
        pki.write(os.path.join(self.directory, "server-ca.crt"), bundle,
                  0o644)
        pair = self._pair(ca_context(bundle), token)
        files = [os.path.join(self.directory, "client-kubelet." + end)
                 for end in ("crt", "key")]
        pki.write(files[0], pair["certificate"], 0o644)
        pki.write(files[1], pair["key"], 0o600)
        client = RemoteClient(self.config.server, ca_context(bundle, files))
        self._start_kubelet(client, bundle)
        sd_notify("READY=1")
        self.loops.wait()

    def _start_kubelet(self, client, bundle):
        config = self.config
        host = config.server.removeprefix("https://")
        context = Context(config, self.params, client, bundle,
                          lambda: [host])
        self.kubelet = Kubelet(config, self.params, client, context,
                               is_server=False)
        context.cni_ready = self.kubelet.cni_ready
        self.ports.listen("0.0.0.0", 10250)
        self.ports.listen("127.0.0.1", 10248, http_greeting("ok"))
        while True:
            try:
                self.kubelet.register()
                break
            except (RemoteError, OSError) as error:
                log.error(f"Unable to register node: {error}")
            self.loops.pause(self.params.seconds("join_retry"))
        self.loops.start("kubelet_tick", self.kubelet.turn)


def run(argv):
    agent = Agent(argv)
    stop_on_signals(agent.loops.stop)
    try:
        agent.run()
    except Stopped:
        pass
    sd_notify("STOPPING=1")
    if agent.kubelet is not None:
        agent.kubelet.close()
    if agent.loops.failure is not None:
        raise agent.loops.failure
    return 0
