"""A private certificate authority, for servers that no public authority can reach.

`python -m webapp.deploy.certificates AUTHORITY FOLDER NAME…` writes ca.key and ca.crt into the folder AUTHORITY, which
only this command needs, and ca.crt, server.crt and server.key for the names and IP addresses into FOLDER. Files that
are valid for another month are kept. With `--daily` it does not end, and checks every day.
"""

import ipaddress
import os
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS = 3650
SERVER_DAYS = 397  # browsers accept no longer validity
RENEW_DAYS = 30
DAY_S = 86_400


@dataclass(frozen=True)
class Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def ensure(authority_folder: Path, folder: Path, names: list[str]) -> bool:
    """Write files that are missing, have other names or expire soon; True if the server has a new certificate.

    The folder's group can read the server's key; only the owner can read the authority's key.
    """
    authority = _authority(authority_folder)
    _write(folder / "ca.crt", authority.certificate.public_bytes(Encoding.PEM), 0o644)
    if _good(folder / "server.crt", names, authority):
        return False
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _server(authority, key, names)
    _write(folder / "server.key", _pem(key), 0o640)
    _write(folder / "server.crt", certificate.public_bytes(Encoding.PEM), 0o644)
    return True


def _authority(folder: Path) -> Authority:
    certificate, key = folder / "ca.crt", folder / "ca.key"
    if certificate.exists() and key.exists():
        loaded = load_pem_private_key(key.read_bytes(), None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        return Authority(x509.load_pem_x509_certificate(certificate.read_bytes()), loaded)
    made = _new_authority()
    _write(key, _pem(made.key), 0o600)
    _write(certificate, made.certificate.public_bytes(Encoding.PEM), 0o644)
    return made


def _new_authority() -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Sweetspot's own authority")])
    builder = _builder(name, name, key, AUTHORITY_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    return Authority(builder.sign(key, SHA256()), key)


def _server(authority: Authority, key: ec.EllipticCurvePrivateKey, names: list[str]) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    issuer = authority.certificate.subject
    builder = _builder(subject, issuer, key, SERVER_DAYS)
    builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    known_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = builder.add_extension(known_by, critical=False)
    return builder.sign(authority.key, SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=days))
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=signs_certificates, crl_sign=signs_certificates, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _good(path: Path, names: list[str], authority: Authority) -> bool:
    if not path.exists() or not path.with_suffix(".key").exists():
        return False
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    lasts = certificate.not_valid_after_utc > datetime.now(UTC) + timedelta(days=RENEW_DAYS)
    return (
        lasts
        and certificate.issuer == authority.certificate.subject
        and list(alternatives) == [_alternative(n) for n in names]
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(path: Path, content: bytes, mode: int) -> None:
    """Write atomically."""
    new = path.with_name(path.name + ".new")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
    new.chmod(mode)
    new.replace(path)


def main(arguments: list[str]) -> None:
    daily = "--daily" in arguments
    authority, folder, *names = (word for word in arguments if word != "--daily")
    while True:
        is_new = ensure(Path(authority), Path(folder), names)
        print("new server certificate" if is_new else "the server's certificate is still valid", flush=True)
        if not daily:
            return
        time.sleep(DAY_S)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(sys.argv[1:])
