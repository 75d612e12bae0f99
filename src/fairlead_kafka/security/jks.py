"""Reads JKS, the key store format of Sun's Java (`sun.security.provider.JavaKeyStore` and
`KeyProtector` of OpenJDK).

All numbers are big-endian. A file is the magic 0xFEEDFEED, a version (1 or 2), a count, that many
entries, and a SHA-1 digest. The digest is over the password (UTF-16BE), the words "Mighty
Aphrodite" and all that comes before it. Certificates are not protected; a private key is covered
with a stream of SHA-1 digests, each of the password and the digest before it.

This is written from scratch because the package for it, pyjks, is not maintained. The format is old
and its protection weak: Java itself has written PKCS12 by default since version 9.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import NamedTuple

from fairlead_kafka.base.errors import ConfigError

JKS_MAGIC = bytes.fromhex("feedfeed")
JCEKS_MAGIC = bytes.fromhex("cececece")
_DIGEST_WORDS = b"Mighty Aphrodite"
_DIGEST_BYTES = 20
_PRIVATE_KEY, _TRUSTED_CERTIFICATE = 1, 2
_SUN_PROTECTOR = bytes.fromhex("2b060104012a02110101")
"""The object identifier 1.3.6.1.4.1.42.2.17.1.1, as DER has it: how keys in a JKS are protected."""
_SEQUENCE, _OBJECT_IDENTIFIER, _OCTET_STRING = 0x30, 0x06, 0x04
_LENGTH_OCTETS_MAX = 4
"""Octets in which a length may be written. These count to 4 GiB, which is more than any key
store."""


class DerElement(NamedTuple):
    """One element of DER (ITU-T X.690): its tag, its content, and the whole element with tag and
    length."""

    tag: int
    content: bytes
    whole: bytes


def der_elements(data: bytes) -> list[DerElement]:
    """The elements of DER that stand one after the other in `data`. ValueError if they do not fill
    it exactly."""
    found = []
    at = 0
    while at < len(data):
        start = at
        if at + 2 > len(data):
            raise ValueError("an element ends early")
        tag, length = data[at], data[at + 1]
        at += 2
        if tag & 0x1F == 0x1F:
            raise ValueError("a tag of several octets")
        if length & 0x80:
            octets = length & 0x7F
            if not 0 < octets <= _LENGTH_OCTETS_MAX or at + octets > len(data):
                raise ValueError("a length that is not DER")
            length = int.from_bytes(data[at : at + octets], "big")
            at += octets
        if length > len(data) - at:
            raise ValueError("an element ends early")
        found.append(DerElement(tag, data[at : at + length], data[start : at + length]))
        at += length
    return found


def der_sequence(data: bytes) -> list[DerElement]:
    """The elements of the one SEQUENCE that `data` is. ValueError if it is anything else."""
    outer = der_elements(data)
    if len(outer) != 1 or outer[0].tag != _SEQUENCE:
        raise ValueError("not one sequence")
    return der_elements(outer[0].content)


@dataclass(frozen=True)
class TrustedEntry:
    """A certificate to trust, in DER."""

    alias: str
    certificate: bytes = field(repr=False)


@dataclass(frozen=True)
class KeyEntry:
    """A private key, still protected (`unprotect_key`), and its certificates in DER, its own
    first."""

    alias: str
    certificates: tuple[bytes, ...] = field(repr=False)
    protected_key: bytes = field(repr=False)


@dataclass(frozen=True)
class Jks:
    """Entries of a JKS, in the file's order."""

    trusted: tuple[TrustedEntry, ...]
    keys: tuple[KeyEntry, ...]


def read_jks(
    data: bytes, password: str | None, what: str = "the key store", password_setting: str = "its password"
) -> Jks:
    """The entries of a JKS. Without a password it is read too, but not checked for changes.

    ConfigError if it is damaged, if the password is wrong, or if it is a JCEKS. `what` names the
    file in these messages, and `password_setting` the setting that the password is from.
    """
    _refuse_others(data, what)
    file = _Input(data, what)
    file.take(len(JKS_MAGIC))
    version = file.number(4)
    if version not in (1, 2):
        raise ConfigError(
            f"{what}: is a JKS of version {version}, but only versions 1 and 2 are known; the file is likely "
            "damaged"
        )
    count = file.number(4)
    trusted: list[TrustedEntry] = []
    keys: list[KeyEntry] = []
    for _ in range(count):
        tag = file.number(4)
        alias = file.text()
        file.take(8)  # when the entry was made
        if tag == _TRUSTED_CERTIFICATE:
            trusted.append(TrustedEntry(alias, _certificate(file, version)))
        elif tag == _PRIVATE_KEY:
            protected = file.take(file.number(4))
            chain = tuple(_certificate(file, version) for _ in range(file.number(4)))
            keys.append(KeyEntry(alias, chain, protected))
        else:
            raise file.damaged(f"an entry of the unknown kind {tag}")
    signed = data[: file.at]
    digest = file.take(_DIGEST_BYTES)
    if password is not None:
        expected = hashlib.sha1(_password_bytes(password) + _DIGEST_WORDS + signed).digest()
        if not hmac.compare_digest(digest, expected):
            raise ConfigError(
                f"{what}: {password_setting} is wrong, or the file was changed; `keytool -list -keystore "
                "FILE` tells which"
            )
    return Jks(tuple(trusted), tuple(keys))


def unprotect_key(
    entry: KeyEntry,
    password: str,
    what: str = "the key store",
    password_setting: str = "the password of its private key",
) -> bytes:
    """The private key of an entry, as PKCS #8 in DER, unencrypted.

    ConfigError if the password is wrong, or if it is protected in another way than Sun's. `what`
    names the file in these messages, and `password_setting` the setting that the password is from.
    """
    problem = f"{what}: the private key of alias {entry.alias!r} is damaged; make the file again"
    try:
        (algorithm, protected) = der_sequence(entry.protected_key)
        identifier = der_elements(algorithm.content)[0]
    except (ValueError, IndexError):
        raise ConfigError(problem) from None
    if (algorithm.tag, identifier.tag, protected.tag) != (_SEQUENCE, _OBJECT_IDENTIFIER, _OCTET_STRING):
        raise ConfigError(problem)
    if identifier.content != _SUN_PROTECTOR:
        raise ConfigError(
            f"{what}: the private key of alias {entry.alias!r} is protected in another way than a JKS does "
            "it; " + _conversion("JKS")
        )
    if len(protected.content) < 2 * _DIGEST_BYTES:
        raise ConfigError(problem)
    salt, covered = protected.content[:_DIGEST_BYTES], protected.content[_DIGEST_BYTES:-_DIGEST_BYTES]
    check = protected.content[-_DIGEST_BYTES:]
    secret = _password_bytes(password)
    key = _uncover(covered, secret, salt)
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), check):
        raise ConfigError(
            f"{what}: {password_setting} is not that of the private key of alias {entry.alias!r}"
        )
    return key


def _uncover(covered: bytes, secret: bytes, salt: bytes) -> bytes:
    stream = bytearray()
    digest = salt
    while len(stream) < len(covered):
        digest = hashlib.sha1(secret + digest).digest()
        stream += digest
    return bytes(one ^ other for one, other in zip(covered, stream, strict=False))


def _password_bytes(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


def _refuse_others(data: bytes, what: str) -> None:
    if not data:
        raise ConfigError(f"{what}: the file is empty; give a key store")
    if data.startswith(JCEKS_MAGIC):
        raise ConfigError(f"{what}: is a JCEKS, which only Java reads; " + _conversion("JCEKS"))
    if not data.startswith(JKS_MAGIC):
        raise ConfigError(f"{what}: is no JKS")


def _conversion(store_type: str) -> str:
    return (
        f"convert it: `keytool -importkeystore -srckeystore OLD -srcstoretype {store_type} -destkeystore "
        "NEW.p12 -deststoretype PKCS12`, "
        "and give NEW.p12"
    )


def _certificate(file: _Input, version: int) -> bytes:
    """The next certificate in the file. In version 2 the file says its type before; in version 1
    all are X.509."""
    if version == 2 and file.text() not in ("X.509", "X509"):
        raise file.damaged("a certificate that is not X.509")
    return file.take(file.number(4))


class _Input:
    """Takes a JKS file's bytes from first to last. ConfigError if there are fewer than the lengths
    in it say."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._what = what
        self.at = 0

    def take(self, count: int) -> bytes:
        left = len(self._data) - self.at
        if count > left:
            raise ConfigError(
                f"{self._what}: the file is cut short or damaged: at byte {self.at} it says that {count} "
                f"more follow, but {left} do; "
                "copy or make it again"
            )
        self.at += count
        return self._data[self.at - count : self.at]

    def number(self, octets: int) -> int:
        return int.from_bytes(self.take(octets), "big")

    def text(self) -> str:
        """Take a text in Java's modified UTF-8: a null character is two bytes, and a character
        beyond 16 bits is two surrogates."""
        raw = self.take(self.number(2)).replace(b"\xc0\x80", b"\0")
        try:
            return (
                raw.decode("utf-8", "surrogatepass")
                .encode("utf-16-be", "surrogatepass")
                .decode("utf-16-be", "replace")
            )
        except UnicodeDecodeError:
            raise self.damaged("a name that is not text") from None

    def damaged(self, found: str) -> ConfigError:
        return ConfigError(
            f"{self._what}: the file is damaged: before byte {self.at} there is {found}; copy or make it "
            "again"
        )
