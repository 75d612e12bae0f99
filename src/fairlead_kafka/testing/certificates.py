"""A throw-away certificate authority, and its certificates as files for clients and brokers. Needs
the extra `security`."""

from __future__ import annotations

import datetime
from pathlib import Path

from fairlead_kafka.base.errors import ConfigError

PASSWORD = "changeit"
EXPIRED_SINCE = datetime.timedelta(days=2)


class Certificates:
    """One certificate authority, made now or found in `folder`, where all files are written.

    ConfigError if the package trustme is not installed.
    """

    def __init__(self, folder: Path) -> None:
        try:
            import trustme
        except ImportError:
            raise ConfigError(
                'certificates are made by the package trustme: pip install "fairlead-kafka[security]"'
            ) from None
        self.folder = folder
        self.trust = folder / "authority.pem"
        """The authority's certificate, as PEM."""
        key = folder / "authority.key"
        self._authority: trustme.CA
        if key.exists():
            self._authority = trustme.CA.from_pem(self.trust.read_bytes(), key.read_bytes())
        else:
            self._authority = trustme.CA()
            self._authority.cert_pem.write_to_path(str(self.trust))
            key.touch(mode=0o600)
            self._authority.private_key_pem.write_to_path(str(key))
        self._issued = 0

    def issue(self, *names: str, expired: bool = False, common_name: str | None = None) -> Path:
        """Issue a certificate for these host names, addresses or e-mail addresses. Returns the path
        of a PEM file with its new key (PKCS #8) and certificate chain."""
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            load_pem_private_key,
        )

        end = datetime.datetime.now(datetime.UTC) - EXPIRED_SINCE
        issued = self._authority.issue_cert(
            *names,
            common_name=common_name,
            not_before=end - EXPIRED_SINCE if expired else None,
            not_after=end if expired else None,
        )
        key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self._issued += 1
        path = self.folder / f"certificate-{self._issued}.pem"
        path.touch(mode=0o600)
        path.write_bytes(text + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        return path

    def pkcs12(self, pem: Path) -> Path:
        """A PKCS12 store, under PASSWORD, with the key and certificate chain of the file `pem`."""
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import (
            BestAvailableEncryption,
            load_pem_private_key,
            pkcs12,
        )
        from cryptography.x509 import load_pem_x509_certificates

        text = pem.read_bytes()
        key = load_pem_private_key(text, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey), "`issue` makes no others"
        own, *others = load_pem_x509_certificates(text)
        path = pem.with_suffix(".p12")
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"own", key, own, others, BestAvailableEncryption(PASSWORD.encode())
            )
        )
        return path
