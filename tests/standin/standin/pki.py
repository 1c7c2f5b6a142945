"""Cluster CAs, leaf certificates and tokens (contract 2.4, 3.1, 4.3)."""

import base64
import datetime
import hashlib
import hmac
import ipaddress
import os
import re
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from . import log

CA_NAMES = ("server-ca", "client-ca", "request-header-ca",
            "etcd/server-ca", "etcd/peer-ca")
# cryptography of Debian 12 has no call for several certificates.
PEM_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----.*?"
                       rb"-----END CERTIFICATE-----\n?", re.DOTALL)
YEAR = datetime.timedelta(days=365)


def write(path, data, mode):
    """Write through a temporary file: a reader never sees half a key."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = path + ".tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
                         mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
        os.fchmod(file.fileno(), mode)
    os.replace(temporary, path)


def _pem_key(key):
    return key.private_bytes(serialization.Encoding.PEM,
                             serialization.PrivateFormat.TraditionalOpenSSL,
                             serialization.NoEncryption()).decode()


def _pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _name(common, organisation=None):
    parts = []
    if organisation:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME,
                                        organisation))
    parts.append(x509.NameAttribute(NameOID.COMMON_NAME, common))
    return x509.Name(parts)


def _builder(subject, issuer, key, days):
    start = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    return (x509.CertificateBuilder().subject_name(subject)
            .issuer_name(issuer).public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start).not_valid_after(start + days))


def new_ca(name):
    """(certificate PEM, key PEM); valid from now, as k3s's are."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(f"k3s-{name.replace('/', '-')}@{int(time.time())}")
    usage = x509.KeyUsage(True, False, True, False, False, True, False,
                          False, False)
    certificate = (
        _builder(subject, subject, key, 10 * YEAR)
        .add_extension(x509.BasicConstraints(True, None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(
            key.public_key()), critical=False)
        .sign(key, hashes.SHA256()))
    return _pem(certificate), _pem_key(key)


def _general_names(sans):
    for san in sans:
        try:
            yield x509.IPAddress(ipaddress.ip_address(san))
        except ValueError:
            yield x509.DNSName(san)


def new_leaf(ca, common, organisation=None, sans=(), server=False):
    """A leaf signed by `ca` (certificate PEM, key PEM)."""
    issuer = x509.load_pem_x509_certificate(ca[0].encode())
    signer = serialization.load_pem_private_key(ca[1].encode(), None)
    key = ec.generate_private_key(ec.SECP256R1())
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if server:
        purposes.insert(0, ExtendedKeyUsageOID.SERVER_AUTH)
    usage = x509.KeyUsage(True, False, True, False, False, False, False,
                          False, False)
    builder = (
        _builder(_name(common, organisation), issuer.subject, key, YEAR)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(
                signer.public_key()), critical=False))
    if sans:
        builder = builder.add_extension(
            x509.SubjectAlternativeName(list(_general_names(sans))),
            critical=False)
    # The issuer is appended, as dynamiclistener does.
    return (_pem(builder.sign(signer, hashes.SHA256())) + ca[0],
            _pem_key(key))


def sans_of(certificate_pem):
    """SANs of the first certificate of a PEM text."""
    certificate = x509.load_pem_x509_certificate(certificate_pem.encode())
    try:
        names = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {str(name.value) for name in names}


def ca_hash(bundle):
    """SHA-256 of the file's bytes; of the root's DER for a longer bundle."""
    data = bundle.encode() if isinstance(bundle, str) else bundle
    certificates = [x509.load_pem_x509_certificate(pem)
                    for pem in PEM_BLOCK.findall(data)]
    if len(certificates) == 1:
        return hashlib.sha256(data).hexdigest()
    root = certificates[0]
    by_subject = {c.subject: c for c in certificates}
    while root.issuer != root.subject and root.issuer in by_subject:
        root = by_subject[root.issuer]
    return hashlib.sha256(
        root.public_bytes(serialization.Encoding.DER)).hexdigest()


class Token:
    """K10<hash>::<user>:<secret>, or a bare secret without pinning."""

    def __init__(self, text):
        self.hash, self.user, self.secret = "", "", text
        if not text.startswith("K10"):
            return
        pin, separator, rest = text[3:].partition("::")
        if not separator or not rest:
            raise log.Fatal("failed to validate token: invalid token format")
        if pin and not re.fullmatch("[0-9a-f]{64}", pin):
            raise log.Fatal(
                "failed to validate token: invalid token CA hash length")
        self.hash = pin
        user, colon, secret = rest.partition(":")
        self.user, self.secret = (user, secret) if colon else ("", rest)
        if not self.secret:
            raise log.Fatal("failed to validate token: invalid token format")


def secret_of(text):
    return Token(text).secret if text else ""


class Authority:
    """The CAs of one cluster, and what this server signs with them."""

    def __init__(self, bundle):
        self.bundle = bundle    # {"cas": {name: [crt, key]}, "sa_key": hex}

    @classmethod
    def create(cls):
        return cls({"cas": {name: list(new_ca(name)) for name in CA_NAMES},
                    "sa_key": os.urandom(32).hex()})

    def ca(self, name):
        return self.bundle["cas"][name]

    @property
    def server_ca(self):
        return self.ca("server-ca")[0]

    def write_cas(self, tls):
        for name, (certificate, key) in self.bundle["cas"].items():
            path = os.path.join(tls, name)
            if _content(path + ".crt") != certificate:
                write(path + ".crt", certificate, 0o644)
                write(path + ".key", key, 0o600)

    def write_leaf(self, path, ca_name, common, organisation=None, sans=(),
                   server=False):
        """Make the leaf once; a restart keeps it."""
        if os.path.exists(path + ".crt") and os.path.exists(path + ".key"):
            return
        certificate, key = new_leaf(self.ca(ca_name), common, organisation,
                                    sans, server)
        write(path + ".crt", certificate, 0o644)
        write(path + ".key", key, 0o600)

    def account_token(self, namespace, name):
        text = f"{namespace}/{name}"
        return "standin." + base64.urlsafe_b64encode(
            text.encode()).decode() + "." + self._mac(text)

    def account_of(self, token):
        """The user a bearer token stands for, or None."""
        parts = token.split(".")
        if len(parts) != 3 or parts[0] != "standin":
            return None
        try:
            text = base64.urlsafe_b64decode(parts[1]).decode()
        except ValueError:
            return None
        if not hmac.compare_digest(parts[2], self._mac(text)):
            return None
        return "system:serviceaccount:" + text.replace("/", ":", 1)

    def _mac(self, text):
        return hmac.new(bytes.fromhex(self.bundle["sa_key"]), text.encode(),
                        hashlib.sha256).hexdigest()


def _content(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None
