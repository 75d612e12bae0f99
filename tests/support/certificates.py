"""A throw-away certificate authority, and files of its certificates as clients and brokers want them."""

from __future__ import annotations

import datetime
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import load_pem_x509_certificates

PASSWORD = "changeit"


class Certificates:
    """One authority; `folder` gets the files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = trustme.CA()
        self.trust = folder / "authority.pem"
        self.authority.cert_pem.write_to_path(str(self.trust))

    def issue(self, *names: str, common_name: str | None = None, expired: bool = False, authority: trustme.CA | None = None) -> Path:
        """A PEM file with a PKCS #8 key and the chain of a certificate for these names."""
        before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=2)
        dates = {"not_before": before - datetime.timedelta(days=9), "not_after": before} if expired else {}
        issued = (authority or self.authority).issue_cert(*names, common_name=common_name, **dates)
        key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
        text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()) + b"".join(
            blob.bytes() for blob in issued.cert_chain_pems
        )
        path = self.folder / f"{(common_name or names[0]).replace('*', 'any')}{'-expired' if expired else ''}-{id(issued)}.pem"
        path.write_bytes(text)
        return path

    def pkcs12(self, pem: Path) -> Path:
        """The same key and chain as a PKCS12 store."""
        text = pem.read_bytes()
        key = serialization.load_pem_private_key(text, None)
        own, *others = load_pem_x509_certificates(text)
        path = pem.with_suffix(".p12")
        protection = serialization.BestAvailableEncryption(PASSWORD.encode())
        path.write_bytes(pkcs12.serialize_key_and_certificates(b"own", key, own, others, protection))  # type: ignore[arg-type]
        return path
