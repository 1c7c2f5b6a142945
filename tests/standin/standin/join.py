"""What a joining server does before etcd starts, in order (3.2)."""

import base64
import json
import os
import ssl

from . import etcd as etcd_module, log, pki
from .client import RemoteError, ca_context, fetch

FAILED = "preparing server: failed to bootstrap cluster data: "


def basic(user, secret):
    text = base64.b64encode(f"{user}:{secret}".encode()).decode()
    return {"Authorization": "Basic " + text}


def _unverified():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def trusted_bundle(url, token, local_ca):
    """The CA bundle of the join server, checked against the token."""
    if token.hash and os.path.exists(local_ca):
        with open(local_ca, encoding="utf-8") as file:
            bundle = file.read()
        if pki.ca_hash(bundle) == token.hash:
            return bundle
    try:
        _, data = fetch(url + "/cacerts", ssl.create_default_context())
        return data.decode()        # the OS trusts it: no hash check
    except RemoteError:
        pass
    try:
        code, data = fetch(url + "/cacerts", _unverified())
        if code != 200:
            raise RemoteError(f"{url}/cacerts: {code}")
        bundle = data.decode()
        # Once more, verifying with what it gave us.
        fetch(url + "/cacerts", ca_context(bundle))
    except (RemoteError, ssl.SSLError, ValueError) as error:
        raise log.Fatal("preparing server: failed to get CA certs: "
                        f"{error}")
    if not token.hash:
        log.warning("Cluster CA certificate is not trusted by the host CA "
                    "bundle, but the token does not include a CA hash. Use "
                    "the full token from the server's node-token file to "
                    "enable Cluster CA validation.")
        return bundle
    found = pki.ca_hash(bundle)
    if found != token.hash:
        raise log.Fatal(
            "preparing server: failed to validate token: token CA hash does "
            "not match the Cluster CA certificate hash: "
            f"{token.hash} != {found}")
    return bundle


def compare_config(config, context):
    """Must-match keys; skipped with a warning if refused (1.4)."""
    secret = pki.secret_of(config.agent_token or config.token)
    url = config.server + "/v1-k3s/config"
    try:
        code, data = fetch(url, context, headers=basic("node", secret))
        theirs = json.loads(data) if code == 200 else None
    except (RemoteError, ValueError) as error:
        code, theirs = error, None
    if theirs is None:
        log.warning("Skipping cluster configuration validation: "
                    f"{url}: {code}")
        return
    ours, differs = config.must_match(), False
    for name, value in ours.items():
        if theirs.get(name) != value:
            log.warning(f"critical configuration mismatched: {name}")
            differs = True
    if differs:
        raise log.Fatal(
            FAILED + "failed to validate server configuration: critical "
            "configuration value mismatch between servers")


def get_bootstrap(config, context):
    """The CAs of the cluster and where its store is."""
    url = config.server + "/v1-k3s/server-bootstrap"
    secret = pki.secret_of(config.token)
    try:
        code, data = fetch(url, context, headers=basic("server", secret))
    except RemoteError as error:
        raise log.Fatal(FAILED + f"failed to get bootstrap data: {error}")
    if code != 200:
        try:
            message = json.loads(data).get("message", "")
        except ValueError:
            message = ""
        raise log.Fatal(FAILED + f"failed to get bootstrap data: {url}: "
                        f"{code} {message}")
    return json.loads(data)


def cluster_members(config, context):
    url = config.server + "/db/info"
    secret = pki.secret_of(config.token)
    try:
        code, data = fetch(url, context, headers=basic("server", secret))
    except RemoteError as error:
        raise log.Fatal(f"starting kubernetes: preparing server: start "
                        f"managed database: {error}")
    if code != 200:
        raise log.Fatal("starting kubernetes: preparing server: start "
                        f"managed database: {url}: {code}")
    return json.loads(data)["members"]


def refuse_duplicate(config, members, name_file):
    for member in members:
        name = member.get("name", "")
        if name.rpartition("-")[0] == config.node_name:
            if os.path.exists(name_file):
                os.unlink(name_file)
            raise log.Fatal(
                "etcd cluster join failed: duplicate node name found, "
                "please use a unique name for this node")


def add_member(etcd, loops, params):
    """MemberAddAsLearner, again and again; there is no deadline."""
    said = None
    while True:
        try:
            etcd.add_learner()
            return
        except etcd_module.TooManyLearners:
            text = ("Waiting for other members to finish joining etcd "
                    "cluster: etcdserver: too many learner members in "
                    "cluster")
        except etcd_module.UnhealthyCluster:
            text = ("Waiting for other members to finish joining etcd "
                    "cluster: etcdserver: unhealthy cluster")
        except etcd_module.Unavailable:
            text = "Retrying etcd cluster join"
        if text != said:
            log.info(text)
        said = text
        loops.pause(params.seconds("join_retry"))
