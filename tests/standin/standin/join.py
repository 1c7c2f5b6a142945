"""What a joining server does before etcd starts, in order (3.2)."""

import base64
import json
import os
import ssl

from . import etcd as etcd_module, log, pki
from .client import RemoteError, ca_context, fetch

FAILED = "preparing server: failed to bootstrap cluster data: "
CHECK = FAILED + "failed to check if bootstrap data has been initialized: "
JOIN_FAILED = "etcd cluster join failed: "


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
        raise log.Fatal(CHECK + "failed to validate token: failed to get CA "
                        f"certs: {error}")
    if not token.hash:
        log.warning("Cluster CA certificate is not trusted by the host CA "
                    "bundle, but the token does not include a CA hash. Use "
                    "the full token from the server's node-token file to "
                    "enable Cluster CA validation.")
        return bundle
    found = pki.ca_hash(bundle)
    if found != token.hash:
        raise log.Fatal(
            CHECK + "failed to validate token: token CA hash does not match "
            f"the Cluster CA certificate hash: {token.hash} != {found}")
    return bundle


def compare_config(config, context):
    """Must-match keys; skipped with a warning if refused (1.4)."""
    secret = pki.secret_of(config.agent_token or config.token)
    try:
        theirs = json.loads(_get(config.server + "/v1-k3s/config", context,
                                 basic("node", secret)))
    except (RemoteError, ValueError) as error:
        log.warning(f"Skipping cluster configuration validation: {error}")
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
    secret = pki.secret_of(config.token)
    try:
        return json.loads(_get(config.server + "/v1-k3s/server-bootstrap",
                               context, basic("server", secret)))
    except RemoteError as error:
        raise log.Fatal(FAILED + str(error))


def _get(url, context, headers):
    """The body; of a refusal only the message of its Status is told."""
    code, data = fetch(url, context, headers=headers)
    if code == 200:
        return data
    try:
        raise RemoteError(json.loads(data)["message"])
    except (ValueError, KeyError, TypeError):
        raise RemoteError(f"{url}: {code}") from None


def _cluster_members(config, context, pause):
    """From the join server, again and again."""
    secret = pki.secret_of(config.token)
    while True:
        try:
            return json.loads(_get(config.server + "/db/info", context,
                                   basic("server", secret)))["members"]
        except RemoteError as error:
            log.info("Waiting to retrieve etcd cluster member list: "
                     f"{error}")
        pause("join_retry")


def _refuse_duplicate(config, members, name_file):
    for member in members:
        name = member.get("name", "")
        if name.rpartition("-")[0] == config.node_name:
            if os.path.exists(name_file):
                os.unlink(name_file)
            raise log.Shutdown(
                JOIN_FAILED + "duplicate node name found, please use a "
                "unique name for this node")


def become_member(config, context, etcd, pause):
    """MemberAddAsLearner, again and again until `pause` gives up."""
    members = _cluster_members(config, context, pause)
    _refuse_duplicate(config, members, config.path("db", "etcd", "name"))
    etcd.choose_name()
    peers = " ".join(f"{m.get('name', '')}={m['peerURLs'][0]}"
                     for m in members)
    log.info(f"Adding member {etcd.name}=https://{config.node_ip}:2380 to "
             f"etcd cluster [{peers}]")
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
        pause("join_retry")
