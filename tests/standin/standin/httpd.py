"""The listener of :6443: TLS, identity, routing (contract 4.1)."""

import base64
import hmac
import http.server
import json
import os
import socket
import ssl
import threading
import urllib.parse

from . import VERSION, etcd as etcd_module, log, pki
from .apicore import ApiError
from .rbac import User

MAX_CONNECTIONS = 128
MAX_BODY = 4 << 20
IDLE_TIMEOUT = 60
HANDSHAKE_TIMEOUT = 10
MAX_STATIC = 64 << 20


class Listener(http.server.ThreadingHTTPServer):
    """Accepts; the handshake happens in the connection's own thread."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address, supervisor):
        self.supervisor = supervisor
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(address, Handler)

    def server_bind(self):
        # No name look-up of our own address.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = self.server_address[:2]

    def process_request(self, request, client_address):
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address):
        try:
            request.settimeout(HANDSHAKE_TIMEOUT)
            serving = self.supervisor.serving
            serving.dialled(request.getsockname()[0])
            request = serving.context.wrap_socket(request, server_side=True)
            request.settimeout(IDLE_TIMEOUT)
            self.finish_request(request, client_address)
        except (OSError, ssl.SSLError, ValueError):
            pass            # a peer that went away, or no TLS: its business
        finally:
            self.shutdown_request(request)
            self._slots.release()

    def handle_error(self, request, client_address):
        log.error(f"http: connection of {client_address[0]} failed")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # As Go's net does: head and body are two writes, and 40 ms otherwise.
    disable_nagle_algorithm = True

    def log_message(self, format, *args):
        pass

    def version_string(self):
        return "k3s"

    def parse_request(self):
        return super().parse_request() and self._read_body()

    def _read_body(self):
        try:
            length = int(self.headers.get("Content-Length") or 0)
        except ValueError:
            length = -1
        if not 0 <= length <= MAX_BODY:
            self.send_error(413)
            self.close_connection = True
            return False
        if self.headers.get("Expect", "").lower() == "100-continue":
            pass        # answered by the base class already
        self.body = self.rfile.read(length) if length else b""
        return True

    def do_any(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query,
                                            keep_blank_values=True))
        reply = self.server.supervisor.route(
            Request(self, urllib.parse.unquote(url.path), query))
        self._send(reply)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_any

    def _send(self, reply):
        self.send_response(reply.code)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.data)))
        if reply.close:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.data)


class Request:
    """What routing looks at."""

    def __init__(self, handler, path, query):
        self.method, self.path, self.query = handler.command, path, query
        self.headers, self.body = handler.headers, handler.body
        self.peer = handler.client_address[0]
        self.certificate = self._subject(handler.connection)

    @staticmethod
    def _subject(connection):
        peer = connection.getpeercert()
        if not peer:
            return None
        pairs = [pair for part in peer.get("subject", ()) for pair in part]
        return User(
            next((v for k, v in pairs if k == "commonName"), ""),
            [v for k, v in pairs if k == "organizationName"])

    def basic(self):
        """(user, password) or None."""
        scheme, _, text = self.headers.get("Authorization",
                                           "").partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            user, _, password = base64.b64decode(text).decode().partition(
                ":")
        except ValueError:
            return None
        return user, password

    def bearer(self):
        scheme, _, text = self.headers.get("Authorization",
                                           "").partition(" ")
        return text.strip() if scheme.lower() == "bearer" else None


class Reply:
    def __init__(self, code, data, content_type="text/plain", close=False):
        self.code, self.content_type = code, content_type
        self.data = data if isinstance(data, bytes) else data.encode()
        self.close = close


def reply_json(code, obj, close=False):
    return Reply(code, json.dumps(obj) + "\n", "application/json", close)


REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden",
           404: "NotFound", 500: "InternalError",
           503: "ServiceUnavailable"}


def failure(code, message):
    """The supervisor's errors: a Status, and the connection closes."""
    return reply_json(code, ApiError(code, REASONS[code], message).status(),
                      close=True)


class Supervisor:
    """Routing. The server fills in the parts as they come up."""

    def __init__(self, config, authority, serving, secrets):
        self.config, self.authority = config, authority
        self.serving = serving
        self.server_secret, self.node_secret = secrets
        self.etcd = None            # None in standalone mode
        self.api = None
        self.handlers_ready = False
        self.api_ready = False
        self.api_settled = False    # its first 2 to 3 seconds are over
        self.controllers_ready = False
        self.bootstrap = None       # dict handed to joining servers
        self.new_kubelet = None     # callable(node, password)

    def route(self, request):
        path = request.path
        if not self.handlers_ready:
            return failure(503, "starting")
        if path == "/ping":
            return Reply(200, "pong")
        if path == "/cacerts":
            return Reply(200, self.authority.server_ca)
        if path.startswith("/static/"):
            return self._static(path[len("/static/"):])
        if path.startswith("/v1-k3s/"):
            return self._supervise(request, path[len("/v1-k3s/"):])
        if path == "/db/info":
            return self._db_info(request)
        return self._apiserver(request)

    # identities

    def _is(self, request, user, secret):
        basic = request.basic()
        return (basic is not None and basic[0] == user and hmac.
                compare_digest(basic[1].encode(), secret.encode()))

    def _is_server(self, request):
        return self._is(request, "server", self.server_secret)

    def _is_node(self, request):
        certificate = request.certificate
        return (self._is(request, "node", self.node_secret)
                or certificate is not None
                and "system:nodes" in certificate.groups)

    def _refuse(self, request):
        """401 is for credentials that are wrong; none at all is a 403."""
        wrong = request.headers.get("Authorization") is not None and not (
            self._is_server(request) or self._is_node(request))
        return failure(401, "not authorized") if wrong else failure(
            403, "forbidden")

    # supervisor paths

    def _static(self, name):
        root = os.path.realpath(self.config.path("static"))
        path = os.path.realpath(os.path.join(root, name))
        if not path.startswith(root + os.sep) or not os.path.isfile(path) \
                or os.path.getsize(path) > MAX_STATIC:
            return failure(404, "404 page not found")
        with open(path, "rb") as file:
            return Reply(200, file.read(), "application/octet-stream")

    def _supervise(self, request, name):
        server_only = {"server-bootstrap": self._server_bootstrap,
                       "token": lambda _: Reply(200, "")}
        if name in server_only:
            if not self._is_server(request):
                return self._refuse(request)
            return server_only[name](request)
        node_paths = {
            "config": lambda _: reply_json(200, self.config.must_match()),
            "readyz": self._core_ready,
            "apiservers": self._apiservers,
            "server-ca.crt": lambda _: Reply(200, self.authority.server_ca),
            "client-ca.crt": lambda _: Reply(
                200, self.authority.ca("client-ca")[0]),
            "client-kubelet.crt": self._kubelet_pair}
        if name not in node_paths:
            return failure(404, "404 page not found")
        if not self._is_node(request):
            return self._refuse(request)
        return node_paths[name](request)

    def _core_ready(self, _):
        if not self.controllers_ready:
            return failure(503, "runtime core not ready")
        return Reply(200, "ok")

    def _apiservers(self, _):
        addresses = [f"{self.config.node_ip}:{self.config.port}"]
        if self.etcd is not None:
            addresses = [f"{m.address}:{self.config.port}"
                         for m in etcd_module.members(self.etcd.store)
                         if not m.learner]
        return reply_json(200, addresses)

    def _kubelet_pair(self, request):
        if not self.api_ready:
            return failure(503, "apiserver not ready")
        try:
            return reply_json(200, self.new_kubelet(
                request.headers.get("k3s-Node-Name", ""),
                request.headers.get("k3s-Node-Password", "")))
        except PermissionError as error:
            return failure(403, str(error))

    def _server_bootstrap(self, _):
        if self.etcd is None:
            return failure(400, "etcd disabled")
        return reply_json(200, self.bootstrap)

    def _db_info(self, request):
        local = request.peer in ("127.0.0.1", "::1", "::ffff:127.0.0.1")
        if not local and not self._is_server(request):
            return self._refuse(request)
        if self.etcd is None:
            return failure(400, "etcd disabled")
        trouble = ""
        try:
            self.etcd.require(2)
            mine = self.etcd.me()
            if mine is None or mine.learner:
                trouble = "etcdserver: rpc not supported for learner"
        except etcd_module.Unavailable:
            trouble = "context deadline exceeded"
        if trouble:
            return failure(500, "Internal error occurred: failed to get "
                           f"etcd MemberList: {trouble}")
        return reply_json(200, {"members": [
            m.as_json() for m in etcd_module.members(self.etcd.store)]})

    # kube-apiserver

    def _api_user(self, request):
        if request.certificate is not None:
            return request.certificate
        token = request.bearer()
        name = self.authority.account_of(token) if token else None
        return User(name, ("system:serviceaccounts",
                           "system:authenticated")) if name else None

    def _apiserver(self, request):
        if not self.api_ready:
            return failure(503, "apiserver not ready")
        user = self._api_user(request)
        if user is None:        # anonymous-auth=false
            return reply_json(401, ApiError(
                401, "Unauthorized", "Unauthorized").status())
        if request.path in ("/readyz", "/livez", "/healthz"):
            return self._health(request.path)
        if request.path == "/version":
            major, minor = VERSION.lstrip("v").split(".")[:2]
            return reply_json(200, {
                "major": major, "minor": minor, "gitVersion": VERSION,
                "platform": "linux/amd64"})
        code, obj = self.api.request(
            user, request.method, request.path, request.query,
            request.headers.get("Content-Type", ""), request.body)
        if isinstance(obj, str):
            return Reply(code, obj, "text/plain; charset=utf-8")
        return reply_json(code, obj)

    def _health(self, path):
        etcd, hook = "[+]etcd ok", "[-]poststarthook/rbac/bootstrap-roles " \
            "failed: reason withheld"
        if self.api_settled:
            hook = "[+]poststarthook/rbac/bootstrap-roles ok"
        try:
            if self.etcd is not None:
                self.etcd.require(2)
        except etcd_module.Unavailable:
            etcd = "[-]etcd failed: reason withheld"
        if "[-]" not in etcd + hook:
            return Reply(200, "ok", "text/plain; charset=utf-8")
        return Reply(500, f"[+]ping ok\n[+]log ok\n{etcd}\n{hook}\n"
                     f"{path.lstrip('/')} check failed\n",
                     "text/plain; charset=utf-8")


def new_kubelet_pair(authority, node):
    """The client pair of a worker's kubelet."""
    certificate, key = pki.new_leaf(authority.ca("client-ca"),
                                    f"system:node:{node}", "system:nodes")
    return {"certificate": certificate, "key": key}
