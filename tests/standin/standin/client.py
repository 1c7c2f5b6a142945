"""Clients of the Kubernetes API: in process, and over verified TLS."""

import http.client
import json
import socket
import ssl
import urllib.parse

from . import rbac
from .apicore import ApiError

MAX_REPLY = 32 << 20


class Client:
    """The verbs that controllers use, over one call()."""

    def call(self, method, path, body=None, content_type="application/json"):
        raise NotImplementedError

    def get(self, path):
        """The object, or None if there is none."""
        try:
            return self.call("GET", path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def items(self, path):
        found = self.get(path)
        return found["items"] if found else []

    def create(self, collection, body):
        return self.call("POST", collection, body)

    def ensure(self, collection, body):
        """Create unless it is there."""
        try:
            return self.create(collection, body)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            return None

    def merge(self, path, patch):
        return self.call("PATCH", path, patch, "application/merge-patch+json")

    def strategic(self, path, patch):
        return self.call("PATCH", path, patch,
                         "application/strategic-merge-patch+json")

    def put(self, path, body):
        return self.call("PUT", path, body)

    def delete(self, path):
        try:
            return self.call("DELETE", path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise


class LocalClient(Client):
    """k3s's own loopback client: admin, no TLS."""

    def __init__(self, api, user=rbac.ADMIN):
        self.api, self.user = api, user

    def call(self, method, path, body=None, content_type="application/json"):
        path, _, query = path.partition("?")
        data = b"" if body is None else json.dumps(body).encode()
        code, reply = self.api.request(
            self.user, method, urllib.parse.unquote(path),
            dict(urllib.parse.parse_qsl(query)), content_type, data)
        if isinstance(reply, str):
            raise ApiError(code, "", reply.strip())
        if code >= 400:
            raise ApiError(code, reply.get("reason", ""), reply["message"])
        return reply


class RemoteError(Exception):
    """No usable HTTP reply: refused, timed out, certificate not accepted."""


def ca_context(bundle, certificate=None):
    """Verify against exactly `bundle`; optionally present a client pair."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=bundle)
    if certificate:
        context.load_cert_chain(*certificate)
    return context


def fetch(url, context, method="GET", headers=None, body=None, timeout=15):
    """(code, bytes). RemoteError if there was no reply."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPSConnection(
        parts.hostname, parts.port or 443, timeout=timeout, context=context)
    target = parts.path + ("?" + parts.query if parts.query else "")
    try:
        connection.request(method, target, body, headers or {})
        reply = connection.getresponse()
        return reply.status, reply.read(MAX_REPLY)
    except (OSError, http.client.HTTPException) as error:
        kind = ("i/o timeout" if isinstance(error, socket.timeout)
                else str(error))
        raise RemoteError(f'Get "{url}": {kind}') from error
    finally:
        connection.close()


class RemoteClient(Client):
    """One API address, a bearer token or a client certificate."""

    def __init__(self, base, context, token=None, timeout=10):
        self.base, self.context = base, context
        self.token, self.timeout = token, timeout

    def call(self, method, path, body=None, content_type="application/json"):
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = content_type
        code, reply = fetch(self.base + path, self.context, method, headers,
                            data, self.timeout)
        try:
            parsed = json.loads(reply)
        except ValueError as error:
            if code == 404:
                raise ApiError(code, "", reply.decode().strip()) from error
            raise RemoteError(f"{self.base}{path}: {error}") from error
        if code >= 400:
            raise ApiError(code, parsed.get("reason", ""),
                           parsed.get("message", ""))
        return parsed
