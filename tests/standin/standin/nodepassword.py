"""Node passwords: a Secret per node, never overwritten (3.4)."""

import base64
import hashlib
import hmac
import os

REJECTED = ("Node password rejected, duplicate hostname or contents of "
            "'/etc/rancher/node/password' may not match server node-passwd "
            "entry, try enabling a unique node name with the --with-node-id "
            "flag")


def local(directory):
    """This node's password; made on first use."""
    path = os.path.join(directory, "password")
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(256).strip()
    except FileNotFoundError:
        pass
    os.makedirs(directory, mode=0o755, exist_ok=True)
    password = os.urandom(16).hex()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(password + "\n")
    return password


def _digest(password, salt):
    return hashlib.scrypt(password.encode(), salt=salt, n=1024, r=8,
                          p=1).hex()


def ensure(client, node, password):
    """Store the node's hash, or PermissionError if another is stored."""
    secrets = "/api/v1/namespaces/kube-system/secrets"
    found = client.get(f"{secrets}/{node}.node-password.k3s")
    if found is None:
        salt = os.urandom(8)
        text = f"${salt.hex()}:1024:8:1:{_digest(password, salt)}"
        client.create(secrets, {
            "metadata": {"name": f"{node}.node-password.k3s",
                         "namespace": "kube-system"},
            "type": "Opaque", "immutable": True,
            "data": {"hash": base64.b64encode(text.encode()).decode()}})
        return
    text = base64.b64decode(found["data"]["hash"]).decode()
    salt, _, _, _, digest = text.lstrip("$").split(":")
    if not hmac.compare_digest(digest, _digest(password,
                                               bytes.fromhex(salt))):
        raise PermissionError(REJECTED)
