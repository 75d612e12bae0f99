"""Certificates and private keys from key stores: JKS, PKCS12 (RFC 7292) and PEM (RFC 7468; Kafka's
KIP-651).

A file's format is found from its content, because Java's keytool writes PKCS12 into files that are
called .jks. The setting for its type is only used in the message if the content is none of the
three.

JKS and PEM are read with the standard library alone. PKCS12 and encrypted keys in PEM need the
package cryptography, which is loaded when such a file is read. Traditional keys (PKCS #1 and SEC 1)
are wrapped into PKCS #8, which takes a few bytes of DER and no package.
"""

from __future__ import annotations

import base64
import binascii
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.security.jks import (
    JCEKS_MAGIC,
    JKS_MAGIC,
    KeyEntry,
    der_elements,
    der_sequence,
    read_jks,
    unprotect_key,
)

STORE_TYPES = ("JKS", "PKCS12", "PEM")
PASSWORD_OF_TRUST, PASSWORD_OF_STORE, PASSWORD_OF_KEY = (
    "ssl.truststore.password",
    "ssl.keystore.password",
    "ssl.key.password",
)

_CERTIFICATE_LABELS = ("CERTIFICATE", "X509 CERTIFICATE")
_PLAIN_KEY, _ENCRYPTED_KEY, _RSA_KEY, _EC_KEY = (
    "PRIVATE KEY",
    "ENCRYPTED PRIVATE KEY",
    "RSA PRIVATE KEY",
    "EC PRIVATE KEY",
)
_READ_LABELS = (*_CERTIFICATE_LABELS, _PLAIN_KEY, _ENCRYPTED_KEY, _RSA_KEY, _EC_KEY)
_PEM_LINE_LETTERS = 64
_INTEGER, _OCTET_STRING, _SEQUENCE = 0x02, 0x04, 0x30
_EXPLICIT_0 = 0xA0
_VERSION_0 = bytes.fromhex("020100")
_RSA_ALGORITHM = bytes.fromhex("300d06092a864886f70d0101010500")
"""AlgorithmIdentifier of RSA (RFC 8017): 1.2.840.113549.1.1.1 with null for parameters."""
_EC_PUBLIC_KEY = bytes.fromhex("06072a8648ce3d0201")
"""The object identifier 1.2.840.10045.2.1 of keys on elliptic curves (RFC 5480)."""
_PKCS12_VERSION = bytes.fromhex("020103")
"""How a PKCS12 begins after its outer tag and length: the version, always 3."""
_TO_PKCS8 = "convert it: `openssl pkcs8 -topk8 -in OLD -out NEW`"


@dataclass(frozen=True, repr=False)
class Identity:
    """A client's certificates in DER, its own first and each followed by its issuer's, and its key
    as PKCS #8 in DER, unencrypted."""

    certificates: tuple[bytes, ...]
    key: bytes

    def __repr__(self) -> str:
        return f"Identity(certificates: {len(self.certificates)}, key: [hidden])"


@dataclass(frozen=True)
class PemBlock:
    """A block of PEM: the `label` of its BEGIN and END lines, and the bytes that its base64 decodes
    to: none for a block that is neither a certificate nor a private key in a known form."""

    label: str
    der: bytes = field(repr=False)
    encrypted: bool = False
    """Encrypted in OpenSSL's traditional way, which the lines above the base64 tell (RFC 1421:
    Proc-Type)."""


class _Names(NamedTuple):
    issuer: bytes
    subject: bytes


class _Bundle(NamedTuple):
    """Contents of a PKCS12, in DER: a key, its certificate and all the others."""

    key: bytes | None
    own: bytes | None
    others: list[bytes]


def trusted_certificates(
    data: bytes, store_type: str | None, password: str | None, what: str
) -> tuple[bytes, ...]:
    """The certificates of a trust store, in DER and in the file's order, each once.

    Of a JKS these are, as in Java, the trusted entries and the first certificate of each private
    key. Of PKCS12 and PEM they are all. ConfigError if the file is none of STORE_TYPES, is damaged,
    or has none; if the password is wrong; if it is a PKCS12 and cryptography is not installed.
    `what` names the setting and the file in these messages.
    """
    found = _store_type(data, store_type, what)
    if found == "JKS":
        store = read_jks(data, password, what, PASSWORD_OF_TRUST)
        certificates = [entry.certificate for entry in store.trusted] + [
            each for entry in store.keys for each in entry.certificates[:1]
        ]
    elif found == "PKCS12":
        bundle = _read_pkcs12(data, password, what, PASSWORD_OF_TRUST)
        certificates = ([bundle.own] if bundle.own else []) + bundle.others
    else:
        blocks = split_pem(data, what)
        certificates = [block.der for block in blocks if block.label in _CERTIFICATE_LABELS]
        if not certificates:
            raise ConfigError(
                f"{what}: there is no CERTIFICATE in it, {_inventory(blocks)}; give the certificates to trust"
            )
    if not certificates:
        raise ConfigError(f"{what}: there is no certificate in it; add those to trust: `keytool -importcert`")
    for number, certificate in enumerate(certificates, start=1):
        _names(certificate, number, what)
    return tuple(dict.fromkeys(certificates))


def identity(
    data: bytes, store_type: str | None, store_password: str | None, key_password: str | None, what: str
) -> Identity:
    """The private key of a key store and its certificates.

    Of several keys in a JKS it is the first by alias, in PKCS12 and PEM the first in the file.
    Without a password for the key, that of the store is taken for JKS and PKCS12; a PKCS12 has one
    password for both. ConfigError if the file is none of STORE_TYPES, is damaged, or has no key or
    no certificate; if a password is wrong or missing; if cryptography is needed and not installed.
    `what` names the setting and the file in these messages.
    """
    found = _store_type(data, store_type, what)
    if found == "JKS":
        return _jks_identity(data, store_password, key_password, what)
    if found == "PKCS12":
        return _pkcs12_identity(data, key_password if store_password is None else store_password, what)
    blocks = split_pem(data, what)
    keys = [block for block in blocks if block.label.endswith(_PLAIN_KEY)]
    if not keys:
        raise ConfigError(
            f"{what}: there is no PRIVATE KEY in it, {_inventory(blocks)}; add the key of the certificate"
        )
    certificates = [block.der for block in blocks if block.label in _CERTIFICATE_LABELS]
    if not certificates:
        raise ConfigError(
            f"{what}: there is no CERTIFICATE in it, {_inventory(blocks)}; add the certificate of the key"
        )
    chain, others = _chain(certificates, what)
    return Identity(chain + others, _pem_key(keys[0], key_password, what))


def pem_of(certificates: Iterable[bytes]) -> str:
    """Certificates in DER as PEM text, one block after the other."""
    blocks = []
    for certificate in certificates:
        text = base64.b64encode(certificate).decode("ascii")
        lines = [text[start : start + _PEM_LINE_LETTERS] for start in range(0, len(text), _PEM_LINE_LETTERS)]
        blocks.append("\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""]))
    return "".join(blocks)


def split_pem(data: bytes, what: str) -> list[PemBlock]:
    """The blocks of a PEM text, in its order. What is around them is skipped; line ends may be any
    white space, as in Kafka.

    ConfigError if a block has no end or is not base64. `what` names the setting and the file in
    these messages.
    """
    text = data.decode("latin-1")
    blocks: list[PemBlock] = []
    at = text.find("-----BEGIN ")
    while at >= 0:
        number = len(blocks) + 1
        start = at + len("-----BEGIN ")
        label_end = text.find("-----", start)
        label = text[start:label_end]
        body_start = label_end + len("-----")
        body_end = text.find("-----", body_start)
        marker = f"-----END {label}-----"
        if label_end < 0 or body_end < 0 or not text.startswith(marker, body_end):
            raise ConfigError(
                f"{what}: block {number} of the PEM text has a BEGIN, but no END that matches; the text may "
                "be cut short"
            )
        blocks.append(_pem_block(label, text[body_start:body_end], number, what))
        at = text.find("-----BEGIN ", body_end + len(marker))
    return blocks


def _pem_block(label: str, body: str, number: int, what: str) -> PemBlock:
    if label not in _READ_LABELS:
        return PemBlock(label, b"")
    lines = body.splitlines()
    encrypted = any(line.startswith("Proc-Type:") and "ENCRYPTED" in line for line in lines)
    letters = "".join("".join(line for line in lines if ":" not in line).split())
    try:
        der = base64.b64decode(letters, validate=True)
        if not encrypted and len(der_elements(der)) != 1:
            raise ValueError("not one element")
    except (binascii.Error, ValueError):
        raise ConfigError(
            f"{what}: block {number} of the PEM text, {label}, is damaged or cut short; copy it again"
        ) from None
    return PemBlock(label, der, encrypted)


def _inventory(blocks: Sequence[PemBlock]) -> str:
    counts = {
        label: sum(block.label == label for block in blocks)
        for label in dict.fromkeys(block.label for block in blocks)
    }
    return "only " + ", ".join(f"{count} {label}" for label, count in counts.items())


def _store_type(data: bytes, declared: str | None, what: str) -> str:
    """One of STORE_TYPES, by the content. ConfigError if it is none of them."""
    if declared is not None and declared.upper() not in STORE_TYPES:
        raise ConfigError(
            f"{what}: key stores of type {declared} are not known; known are {', '.join(STORE_TYPES)}"
        )
    if not data.strip():
        raise ConfigError(
            f"{what}: is empty; give a key store of type {', '.join(STORE_TYPES[:-1])} or {STORE_TYPES[-1]}"
        )
    if data.startswith((JKS_MAGIC, JCEKS_MAGIC)):
        return "JKS"  # its reader says what to do with a JCEKS
    outer = _outer_content(data)
    if outer is not None and outer.startswith(_PKCS12_VERSION):
        return "PKCS12"
    if b"-----BEGIN " in data:
        return "PEM"
    if outer is not None and outer[:1] == bytes([_SEQUENCE]):
        raise ConfigError(
            f"{what}: is no PKCS12 but DER of another kind; convert a certificate to PEM: `openssl x509 "
            "-inform der -in OLD -out NEW.pem`"
        )
    expected = (
        f"no {declared.upper()}, nor any other key store that is known"
        if declared
        else "no key store that is known"
    )
    raise ConfigError(f"{what}: is {expected} ({', '.join(STORE_TYPES)}); check that it is the right file")


def _outer_content(data: bytes) -> bytes | None:
    """The first bytes within an outer SEQUENCE, whose length need not be true. None if it is no
    SEQUENCE."""
    if len(data) < 2 or data[0] != _SEQUENCE:
        return None
    start = 2 + (data[1] & 0x7F if data[1] & 0x80 else 0)
    return data[start : start + len(_PKCS12_VERSION)]


def _names(certificate: bytes, number: int, what: str) -> _Names:
    """The names in a certificate (RFC 5280). ConfigError if it is none; `number` counts from one in
    the message. ValueError if the certificate has no key."""
    try:
        fields = der_elements(der_sequence(certificate)[0].content)
        if fields[0].tag == _EXPLICIT_0:  # the version, which version 1 leaves out
            fields = fields[1:]
        _serial, _algorithm, issuer, _validity, subject, key = fields[:6]
        if key.tag != _SEQUENCE:
            raise ValueError("no key")
    except (ValueError, IndexError):
        raise ConfigError(f"{what}: certificate {number} is damaged; copy it again") from None
    return _Names(issuer.whole, subject.whole)


def _chain(
    certificates: Sequence[bytes], what: str, own: bytes | None = None
) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """A client's own certificate followed by its issuers', and the certificates that are neither,
    in the given order; each once.

    Unless it is given, the client's own is the first that issued no other, one with an issuer
    rather than one that issued itself.
    """
    left = {each: _names(each, number, what) for number, each in enumerate(certificates, start=1)}
    if own is None:
        issuers = {names.issuer for names in left.values() if names.issuer != names.subject}
        ends = [each for each, names in left.items() if names.subject not in issuers] or list(left)
        own = next((each for each in ends if left[each].issuer != left[each].subject), ends[0])
    ordered = [own]
    wanted = left.pop(own).issuer
    while found := [each for each, names in left.items() if names.subject == wanted]:
        ordered.append(found[0])
        wanted = left.pop(found[0]).issuer
    return tuple(ordered), tuple(left)


def _pem_key(block: PemBlock, password: str | None, what: str) -> bytes:
    """A private key of PEM as unencrypted PKCS #8. ConfigError if the password is wrong or missing,
    or the key is of another form."""
    if block.encrypted:
        raise ConfigError(
            f"{what}: the {block.label} in it is encrypted in OpenSSL's old way; {_TO_PKCS8}, and set "
            f"{PASSWORD_OF_KEY}"
        )
    if block.label == _ENCRYPTED_KEY:
        return _decrypted(block.der, password, what)
    try:
        if block.label == _PLAIN_KEY:
            if [element.tag for element in der_sequence(block.der)[:3]] != [
                _INTEGER,
                _SEQUENCE,
                _OCTET_STRING,
            ]:
                raise ValueError("no PKCS #8")
            return block.der
        if block.label == _RSA_KEY:
            return _der(_SEQUENCE, _VERSION_0 + _RSA_ALGORITHM + _der(_OCTET_STRING, block.der))
        if block.label == _EC_KEY:
            curve = next(element.content for element in der_sequence(block.der) if element.tag == _EXPLICIT_0)
            algorithm = _der(_SEQUENCE, _EC_PUBLIC_KEY + curve)
            return _der(_SEQUENCE, _VERSION_0 + algorithm + _der(_OCTET_STRING, block.der))
    except (ValueError, StopIteration):
        raise ConfigError(
            f"{what}: the {block.label} in it is damaged; copy it again, or {_TO_PKCS8}"
        ) from None
    raise ConfigError(f"{what}: the {block.label} in it is of a form that is not read; {_TO_PKCS8}")


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(octets)]) + octets + content


def _jks_identity(data: bytes, store_password: str | None, key_password: str | None, what: str) -> Identity:
    store = read_jks(data, store_password, what, PASSWORD_OF_STORE)
    if not store.keys:
        trusted = "only certificates" if store.trusted else "nor anything else"
        raise ConfigError(
            f"{what}: there is no private key in it, {trusted}; give the key store, not the trust store"
        )
    entry = min(store.keys, key=_alias)
    password = store_password if key_password is None else key_password
    if password is None:
        raise ConfigError(
            f"{what}: its private key needs a password; set {PASSWORD_OF_STORE}, or {PASSWORD_OF_KEY} if it "
            "has its own"
        )
    if not entry.certificates:
        raise ConfigError(
            f"{what}: the private key of alias {entry.alias!r} has no certificate; add it: `keytool "
            "-importcert`"
        )
    setting = (
        f"{PASSWORD_OF_STORE} ({PASSWORD_OF_KEY} is not set)" if key_password is None else PASSWORD_OF_KEY
    )
    key = unprotect_key(entry, password, what, setting)
    chain, others = _chain(entry.certificates, what, entry.certificates[0])
    return Identity(chain + others, key)


def _alias(entry: KeyEntry) -> str:
    return entry.alias


def _pkcs12_identity(data: bytes, password: str | None, what: str) -> Identity:
    bundle = _read_pkcs12(data, password, what, PASSWORD_OF_STORE)
    if bundle.key is None:
        trusted = "only certificates" if bundle.others else "nor anything else"
        raise ConfigError(
            f"{what}: there is no private key in it, {trusted}; give the key store, not the trust store"
        )
    if bundle.own is None:
        raise ConfigError(
            f"{what}: there is no certificate of its private key in it; make the file again, with both"
        )
    chain, _others = _chain([bundle.own, *bundle.others], what, bundle.own)  # the others are of other entries
    return Identity(chain, bundle.key)


def _read_pkcs12(data: bytes, password: str | None, what: str, password_setting: str) -> _Bundle:
    """The contents of a PKCS12.

    ConfigError if the password is wrong, if the file is damaged, or if cryptography is not
    installed.
    """
    try:
        from cryptography.exceptions import InternalError, UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
    except ImportError:
        raise _needs_cryptography(what, "a PKCS12 key store") from None
    if len(data) < (size := _declared_size(data)):
        raise ConfigError(
            f"{what}: the file is cut short: it has {len(data)} of its {size} bytes; copy it again"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a store that is not written as strictly as it might be
            bundle = pkcs12.load_pkcs12(data, _encoded(password))
        key = (
            bundle.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
            if bundle.key
            else None
        )
        own = bundle.cert.certificate.public_bytes(Encoding.DER) if bundle.cert else None
        return _Bundle(
            key, own, [entry.certificate.public_bytes(Encoding.DER) for entry in bundle.additional_certs]
        )
    except (UnsupportedAlgorithm, InternalError):
        raise ConfigError(
            f"{what}: has a cipher or a kind of key that OpenSSL does not read here; make it again with a "
            "newer keytool"
        ) from None
    except Exception:  # ValueError as a rule; but in a stranger's bytes the library finds more to raise
        if password is None:
            raise ConfigError(
                f"{what}: is a PKCS12, which needs a password; set {password_setting}"
            ) from None
        hint = (
            "; a key in a PKCS12 must have the password of the file"
            if password_setting == PASSWORD_OF_STORE
            else ""
        )
        raise ConfigError(f"{what}: {password_setting} is wrong, or the file is damaged{hint}") from None


def _declared_size(data: bytes) -> int:
    """The bytes of a SEQUENCE as its first bytes say; 0 if they do not (BER may leave it open)."""
    if data[1] == 0x80:
        return 0
    octets = data[1] & 0x7F if data[1] & 0x80 else 0
    return 2 + octets + (int.from_bytes(data[2 : 2 + octets], "big") if octets else data[1])


def _decrypted(der: bytes, password: str | None, what: str) -> bytes:
    """An encrypted PKCS #8 without its encryption. ConfigError if the password is wrong, or if
    cryptography is not installed."""
    try:
        from cryptography.exceptions import InternalError, UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            load_der_private_key,
        )
    except ImportError:
        raise _needs_cryptography(what, "an encrypted private key") from None
    if not password:
        raise ConfigError(f"{what}: its private key is encrypted; set {PASSWORD_OF_KEY}")
    try:
        return load_der_private_key(der, _encoded(password)).private_bytes(
            Encoding.DER, PrivateFormat.PKCS8, NoEncryption()
        )
    except (UnsupportedAlgorithm, InternalError):
        raise ConfigError(
            f"{what}: its private key has a cipher or is of a kind that OpenSSL does not read here; "
            f"{_TO_PKCS8}"
        ) from None
    except (ValueError, TypeError):
        raise ConfigError(f"{what}: {PASSWORD_OF_KEY} is wrong, or the private key is damaged") from None


def _encoded(password: str | None) -> bytes | None:
    return None if password is None else password.encode("utf-8", "surrogatepass")


def _needs_cryptography(what: str, reading: str) -> ConfigError:
    return ConfigError(
        f'{what}: reading {reading} needs the package cryptography: pip install "fairlead-kafka[security]"'
    )
