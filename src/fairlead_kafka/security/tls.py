"""TLS contexts of Python's `ssl` from Kafka's settings; the client's end of TLS.

They are made again when one of their files has changed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import ssl
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.security.ciphers import openssl_names
from fairlead_kafka.security.failures import Address, Facts, explain
from fairlead_kafka.security.key_stores import Identity, identity, pem_of, trusted_certificates
from fairlead_kafka.security.references import files_of, resolve
from fairlead_kafka.security.tls_sockets import tls_context

LOGGER = GuardedLogger("fairlead_kafka.security")
STORE_MAX_BYTES = 16 << 20
"""Largest file read, in bytes. No store of keys and certificates holds more: a path that names
something else is told of, not read whole."""
RETRY_AFTER_S = 10.0
"""Seconds after which files that changed and are of no use are read again, though nothing changed:
who may read them may have."""
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_PEM_SUFFIXES = (".pem", ".crt", ".cer")
_Stamp = tuple[tuple[str, int, int, int], ...]


class Contexts(ABC):
    """Makes the TLS contexts of one end. ConfigError when it is made if a file or a setting cannot
    be used."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stamp = _stamp(self._files())
        self._refused: _Stamp | None = None
        self._again_s = 0.0
        self._context = self._made()

    @abstractmethod
    def _made(self) -> ssl.SSLContext:
        """A new context, from the files as they are now. ConfigError if one cannot be used."""

    def _current(self) -> ssl.SSLContext:
        """The context for a connection that begins now, with the files as they are now."""
        stamp = _stamp(self._files())
        if stamp != self._stamp and (stamp != self._refused or time.monotonic() >= self._again_s):
            try:
                self._context = self._made()
                self._stamp = stamp
            except (
                ConfigError,
                OSError,
            ) as error:  # half written, it may be: what was read before still serves
                self._again_s = time.monotonic() + RETRY_AFTER_S
                if stamp != self._refused:
                    LOGGER.warning(
                        "the certificates read before are used, for one of those on the disk is of no use: "
                        "%s",
                        error,
                    )
                self._refused = stamp
        return self._context

    def _files(self) -> list[str]:
        """Paths of all files that a context is made of: those that settings name, those in a folder
        of authorities, and those that references in settings lead to."""
        paths: list[str] = []
        for key in (*_LOCATIONS, *_TEXTS):
            paths += files_of(self._raw(key) or "")
        for key in _LOCATIONS:
            with contextlib.suppress(ConfigError, OSError):  # `_made` tells it
                if (path := self._text(key)) is not None:
                    paths += _pem_files(path) if os.path.isdir(path) else [path]
        return paths

    def _given(self, key: str) -> bool:
        return self._settings[key] is not None

    def _raw(self, key: str) -> str | None:
        value = self._settings[key]
        if value is None:
            return None
        return value.reveal() if isinstance(value, Secret) else str(value)

    def _text(self, key: str) -> str | None:
        raw = self._raw(key)
        return None if raw is None else resolve(raw, key)

    # What goes into a context

    def _set_suites(self, context: ssl.SSLContext) -> None:
        suites = openssl_names(self._settings["ssl.cipher.suites"] or ())
        if suites is not None:
            try:
                context.set_ciphers(suites)
            except ssl.SSLError:
                raise ConfigError(f"ssl.cipher.suites: OpenSSL has none of {suites}") from None

    def _set_versions(self, context: ssl.SSLContext) -> None:
        given = self._settings["ssl.enabled.protocols"]
        unknown = [name for name in given if name not in _VERSIONS]
        if unknown or not given:
            raise ConfigError(
                f"ssl.enabled.protocols: {', '.join(unknown) or 'nothing'} is not one of "
                f"{', '.join(_VERSIONS)}"
            )
        newest = _VERSIONS.get(self._settings["ssl.protocol"], ssl.TLSVersion.TLSv1_3)
        versions = [version for name in given if (version := _VERSIONS[name]) <= newest]
        if not versions:
            raise ConfigError(
                f"ssl.protocol is {self._settings['ssl.protocol']}, and ssl.enabled.protocols has only newer "
                "ones"
            )
        context.minimum_version, context.maximum_version = min(versions), max(versions)

    def _set_trust(self, context: ssl.SSLContext, purpose: ssl.Purpose) -> None:
        # As Java has it, whatever is in the trust store is trusted: an issuer in the middle, or the
        # peer's own certificate.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        trusted = self._trusted()
        if trusted is None:
            context.load_default_certs(purpose)
        else:
            try:
                context.load_verify_locations(cadata=b"".join(trusted))
            except ssl.SSLError as error:
                raise ConfigError(
                    f"ssl.truststore: OpenSSL cannot use a certificate in it ({error.reason or error})"
                ) from None

    def _trusted(self) -> tuple[bytes, ...] | None:
        """The certificates to trust, in DER; None: the system's. ConfigError if both a store and
        certificates are given."""
        text, location = self._text("ssl.truststore.certificates"), self._text("ssl.truststore.location")
        if text is not None and location is not None:
            raise ConfigError(
                "ssl.truststore.location and ssl.truststore.certificates say the same; leave one of them out"
            )
        if text is not None:
            return trusted_certificates(text.encode(), "PEM", None, "ssl.truststore.certificates")
        if location is None:
            return None
        declared, password = self._settings["ssl.truststore.type"], self._text("ssl.truststore.password")
        found: list[bytes] = []
        for path in _pem_files(location) if os.path.isdir(location) else [location]:
            what = f"ssl.truststore.location {path}"
            found += trusted_certificates(_read(path, "ssl.truststore.location"), declared, password, what)
        return tuple(found)

    def _set_identity(self, context: ssl.SSLContext) -> bool:
        """Load the certificate to show into `context`; False if there is none to show. ConfigError
        if OpenSSL refuses the certificate or its key."""
        own = self._identity()
        if own is not None:
            with _as_file(own) as path:
                try:
                    context.load_cert_chain(path)
                except ssl.SSLError as error:
                    if "MISMATCH" in (error.reason or ""):
                        raise ConfigError(
                            "ssl.keystore: the private key is not that of the certificate; give two that "
                            "belong together"
                        ) from None
                    raise ConfigError(
                        "ssl.keystore: OpenSSL cannot use the certificate or its key "
                        f"({error.reason or error})"
                    ) from None
        return own is not None

    def _identity(self) -> Identity | None:
        ways = [
            keys for keys in (_KEY_STORE, _KEY_TEXTS, _KEY_FILES) if any(self._given(key) for key in keys)
        ]
        if not ways:
            return None
        if len(ways) > 1:
            raise ConfigError(f"{ways[0][0]} and {ways[1][0]} say the same; leave one of them out")
        key_password = self._text("ssl.key.password")
        if ways[0] is _KEY_STORE:
            path = self._text("ssl.keystore.location") or ""
            data = _read(path, "ssl.keystore.location")
            password = self._text("ssl.keystore.password")
            return identity(
                data,
                self._settings["ssl.keystore.type"],
                password,
                key_password,
                f"ssl.keystore.location {path}",
            )
        key, chain = _KEY_TEXTS if ways[0] is _KEY_TEXTS else _KEY_FILES
        missing = next((each for each in (key, chain) if not self._given(each)), None)
        if missing is not None:
            raise ConfigError(f"{missing}: is needed beside {chain if missing == key else key}")
        texts = [self._text(each) or "" for each in (key, chain)]
        if ways[0] is _KEY_FILES:
            both = b"\n".join(_read(path, name) for path, name in zip(texts, (key, chain), strict=True))
        else:
            both = "\n".join(texts).encode()
        return identity(both, "PEM", None, key_password, f"{key} and {chain}")


class ClientTls(Contexts):
    """`runtime.transport.Tls` for a client. ConfigError when it is made if a file or a setting
    cannot be used."""

    def wrap(self, host: str) -> tuple[ssl.SSLContext, str | None]:
        """The context for a connection that begins now, with the files as they are now."""
        return self._current(), host

    def explain(
        self, host: str, address: Address | None, error: OSError | None
    ) -> tuple[str, Exception | None]:
        """Why a handshake with `host` failed, in words, and AuthenticationFailed if trying again
        does not help. `error` None: the peer closed the connection. May ask the peer at `address`
        once more."""
        trust = ""
        with contextlib.suppress(ConfigError):  # what a reference led to is gone, and is not why
            trust = self._text("ssl.truststore.location") or ""
        shows = any(self._given(key) for key in (*_KEY_STORE, *_KEY_TEXTS, *_KEY_FILES))
        versions = ", ".join(self._settings["ssl.enabled.protocols"])
        return explain(
            Facts(host, address, trust, self._given("ssl.truststore.certificates"), shows, versions), error
        )

    def _made(self) -> ssl.SSLContext:
        settings = self._settings
        context = tls_context(ssl.PROTOCOL_TLS_CLIENT)
        self._set_versions(context)
        self._set_suites(context)
        algorithm = (settings["ssl.endpoint.identification.algorithm"] or "none").lower()
        if algorithm not in ("https", "none"):
            raise ConfigError(
                f"ssl.endpoint.identification.algorithm: must be https, none or empty, got {algorithm!r}"
            )
        context.check_hostname = algorithm == "https" and settings["enable.ssl.certificate.verification"]
        if settings["enable.ssl.certificate.verification"]:
            self._set_trust(context, ssl.Purpose.SERVER_AUTH)
        else:
            context.verify_mode = ssl.CERT_NONE
        self._set_identity(context)
        return context


_KEY_STORE = ("ssl.keystore.location",)
_KEY_TEXTS = ("ssl.keystore.key", "ssl.keystore.certificate.chain")
_KEY_FILES = ("ssl.key.location", "ssl.certificate.location")
_LOCATIONS = ("ssl.truststore.location", *_KEY_STORE, *_KEY_FILES)
_TEXTS = (
    *_KEY_TEXTS,
    "ssl.truststore.certificates",
    "ssl.key.password",
    "ssl.keystore.password",
    "ssl.truststore.password",
)


def _pem_files(folder: str) -> list[str]:
    found = sorted(
        str(path) for path in Path(folder).iterdir() if path.suffix in _PEM_SUFFIXES and path.is_file()
    )
    if not found:
        raise ConfigError(
            f"ssl.truststore.location {folder}: no file in this folder ends in {', '.join(_PEM_SUFFIXES)}"
        )
    return found


def _read(path: str, setting: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(STORE_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"{setting} {path}: cannot be read ({(error.strerror or str(error)).lower()})"
        ) from None
    if len(data) > STORE_MAX_BYTES:
        raise ConfigError(
            f"{setting} {path}: is larger than {STORE_MAX_BYTES >> 20} MiB; that is no store of certificates"
        )
    return data


def _stamp(paths: list[str]) -> _Stamp:
    """Value that changes when one of these files is written again or replaced, and when they are
    others."""
    stamps = []
    for path in paths:
        with contextlib.suppress(OSError, ValueError):  # ValueError: no path
            found = os.stat(path)
            stamps.append((path, found.st_mtime_ns, found.st_size, found.st_ino))
    return tuple(stamps)


@contextlib.contextmanager
def _as_file(own: Identity) -> Iterator[str]:
    """The path of a file with certificate and key, for Python's `ssl` reads them from files alone.
    The file is in memory if possible, and removed at the end of the `with` block."""
    import base64

    key = base64.encodebytes(own.key).decode()
    text = f"-----BEGIN PRIVATE KEY-----\n{key}-----END PRIVATE KEY-----\n{pem_of(own.certificates)}".encode()
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create(f"fairlead-{secrets.token_hex(4)}", os.MFD_CLOEXEC)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
        return
    with tempfile.TemporaryDirectory() as folder:  # of this user alone
        path = os.path.join(folder, "identity.pem")
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as file:
            file.write(text)
        yield path
